//! The containers of containerd on this host, and the pods that they belong to.
//!
//! containerd keeps one folder for each running container, named after the container's ID, with a
//! runtime specification whose annotations name the pod
//! (`io.containerd.runtime.v2.task/k8s.io/<ID>/config.json`). This module searches
//! these folders for containers, and returns their IDs.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::path::Path;

use windows_report::container_specification::{self, ContainerName};

/// The file name of a specification.
const SPECIFICATION: &str = "config.json";

/// The containers of a host. A specification never changes, so each one is read once.
#[derive(Debug, Default)]
pub(crate) struct Containers {
    /// The containers by ID. `None` is a container that belongs to no pod, or a pod's sandbox.
    known: HashMap<String, Option<ContainerName>>,
}

impl Containers {
    /// The IDs of the containers in `folder` whose names are `wanted`, with their names, sorted by
    /// ID. A container that restarts can have two IDs for a moment.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn find(
        &mut self,
        folder: &Path,
        wanted: &BTreeSet<ContainerName>,
    ) -> io::Result<Vec<(String, ContainerName)>> {
        let ids = ids(folder)?;
        self.known.retain(|id, _| ids.contains(id));
        let mut found = Vec::new();
        for id in ids {
            if let Some(name) = self.name(folder, &id).filter(|name| wanted.contains(name)) {
                found.push((id, name));
            }
        }
        Ok(found)
    }

    /// The name of a container. What cannot be read now, such as a file that containerd is
    /// writing, is read again the next time.
    fn name(&mut self, folder: &Path, id: &str) -> Option<ContainerName> {
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let specification = std::fs::read(folder.join(id).join(SPECIFICATION)).ok()?;
        let name = container_specification::parse(&specification).ok()?;
        self.known.insert(id.to_owned(), name.clone());
        name
    }
}

/// The names of the folders in `folder`, which are the IDs of containers.
fn ids(folder: &Path) -> io::Result<BTreeSet<String>> {
    let entries = std::fs::read_dir(folder)?;
    entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect()
}

#[cfg(test)]
pub(crate) mod tests;
