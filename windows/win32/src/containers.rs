//! The containers of containerd on this host, and the pods that they belong to.
//!
//! containerd keeps one folder for each running container, named after the container's ID, with a
//! runtime specification whose annotations name the pod
//! (`io.containerd.runtime.v2.task/k8s.io/<ID>/config.json`). This module searches
//! these folders for containers, and returns their IDs.

use std::collections::{BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use serde::Deserialize;

use crate::container_name::ContainerName;

/// How many containers a host may have. More are ignored.
const CONTAINERS: usize = 4096;

/// How large a specification may be, in bytes. Real ones have some KiB.
const SPECIFICATION_BYTES: u64 = 1024 * 1024;

/// How long a container's ID may be. Those of Kubernetes have 64 characters, and containerd
/// permits 76.
const ID_BYTES: usize = 76;

/// The file name of a specification.
const SPECIFICATION: &str = "config.json";

/// The containers of a host. A specification never changes, so each one is read once.
#[derive(Debug)]
pub(crate) struct Containers {
    folder: PathBuf,
    /// By ID. `None` is a container that belongs to no pod, or a pod's sandbox.
    known: HashMap<String, Option<ContainerName>>,
}

impl Containers {
    pub(crate) fn new(folder: PathBuf) -> Containers {
        Containers { folder, known: HashMap::new() }
    }

    /// The IDs of the containers whose names are `wanted`, with their names, sorted by ID. A
    /// container that restarts can have two IDs for a moment.
    ///
    /// # Errors
    /// The folder cannot be read. A missing folder contains no containers.
    pub(crate) fn find(
        &mut self,
        wanted: &BTreeSet<ContainerName>,
    ) -> io::Result<Vec<(String, ContainerName)>> {
        let ids = ids(&self.folder)?;
        self.known.retain(|id, _| ids.contains(id));
        let mut found = Vec::new();
        for id in ids {
            if let Some(name) = self.name(&id).filter(|name| wanted.contains(name)) {
                found.push((id, name));
            }
        }
        Ok(found)
    }

    /// The name of a container. What cannot be read now, such as a file that containerd is
    /// writing, is read again the next time.
    fn name(&mut self, id: &str) -> Option<ContainerName> {
        if let Some(known) = self.known.get(id) {
            return known.clone();
        }
        let name = match read(&self.folder.join(id).join(SPECIFICATION)).ok()? {
            Some(specification) => parse(&specification).ok()?,
            None => None,
        };
        self.known.insert(id.to_owned(), name.clone());
        name
    }
}

/// The names of the folders in `folder` that are IDs of containers.
fn ids(folder: &Path) -> io::Result<BTreeSet<String>> {
    let entries = match std::fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(BTreeSet::new()),
        entries => entries?,
    };
    let mut ids = BTreeSet::new();
    for entry in entries.take(CONTAINERS) {
        if let Ok(id) = entry?.file_name().into_string()
            && is_id(&id)
        {
            ids.insert(id);
        }
    }
    Ok(ids)
}

/// Whether a text has the form of a container's ID. It becomes part of the name of a job.
pub(crate) fn is_id(text: &str) -> bool {
    let valid = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    (1..=ID_BYTES).contains(&text.len()) && text.chars().all(valid)
}

/// The bytes of a file; `None` if it is larger than any specification.
fn read(path: &Path) -> io::Result<Option<Vec<u8>>> {
    let mut bytes = Vec::new();
    File::open(path)?.take(SPECIFICATION_BYTES + 1).read_to_end(&mut bytes)?;
    let fits = u64::try_from(bytes.len()).is_ok_and(|length| length <= SPECIFICATION_BYTES);
    Ok(fits.then_some(bytes))
}

#[derive(Deserialize)]
struct Specification {
    #[serde(default)]
    annotations: Annotations,
}

/// The annotations that containerd adds (`pkg/cri/annotations`). Sandboxes have no container name.
#[derive(Deserialize, Default)]
struct Annotations {
    #[serde(rename = "io.kubernetes.cri.sandbox-namespace")]
    namespace: Option<String>,
    #[serde(rename = "io.kubernetes.cri.sandbox-name")]
    pod: Option<String>,
    #[serde(rename = "io.kubernetes.cri.container-name")]
    container: Option<String>,
}

/// The name of the container with this specification; `None` if it has none.
pub(crate) fn parse(specification: &[u8]) -> Result<Option<ContainerName>, serde_json::Error> {
    let Specification { annotations } = serde_json::from_slice(specification)?;
    let Annotations { namespace, pod, container } = annotations;
    Ok(namespace.zip(pod).zip(container).map(|((namespace, pod), container)| ContainerName {
        namespace,
        pod,
        container,
    }))
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// The name of a container of the pod `pod` in namespace `default`.
    pub(crate) fn name(pod: &str, container: &str) -> ContainerName {
        let [namespace, pod, container] = ["default", pod, container].map(str::to_owned);
        ContainerName { namespace, pod, container }
    }

    /// Writes the specification of a container, as containerd 2.1 does.
    pub(crate) fn write(folder: &Path, id: &str, name: &ContainerName) {
        let text = format!(
            r#"{{"ociVersion":"1.2.1","process":{{"args":["render.exe"],"cwd":"C:\\"}},
            "annotations":{{"io.kubernetes.cri.container-name":"{}",
            "io.kubernetes.cri.container-type":"container",
            "io.kubernetes.cri.image-name":"example.com/render:1",
            "io.kubernetes.cri.sandbox-id":"5c8b","io.kubernetes.cri.sandbox-name":"{}",
            "io.kubernetes.cri.sandbox-namespace":"{}","io.kubernetes.cri.sandbox-uid":"1-2-3"}},
            "windows":{{"layerFolders":["C:\\l"],"devices":[{{"idType":"vpci-location-path"}}]}}}}"#,
            name.container, name.pod, name.namespace
        );
        write_text(folder, id, &text);
    }

    fn write_text(folder: &Path, id: &str, text: &str) {
        std::fs::create_dir_all(folder.join(id)).unwrap();
        std::fs::write(folder.join(id).join(SPECIFICATION), text).unwrap();
    }

    fn found(
        containers: &mut Containers,
        wanted: &[&ContainerName],
    ) -> Vec<(String, ContainerName)> {
        containers.find(&wanted.iter().map(|name| (*name).clone()).collect()).unwrap()
    }

    #[test]
    fn only_wanted_containers_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let (main, sidecar) = (name("render", "main"), name("render", "sidecar"));
        write(folder.path(), "a1", &main);
        write(folder.path(), "a2", &sidecar);
        write(folder.path(), "a3", &name("other", "main"));
        let sandbox = r#"{"annotations":{"io.kubernetes.cri.container-type":"sandbox",
            "io.kubernetes.cri.sandbox-name":"render","io.kubernetes.cri.sandbox-namespace":"default"}}"#;
        write_text(folder.path(), "5c8b", sandbox);
        write_text(folder.path(), "buildkit", "{}");
        let mut containers = Containers::new(folder.path().to_owned());
        for _ in 0..2 {
            let wanted = [&main, &name("gone", "main")];
            assert_eq!(found(&mut containers, &wanted), [("a1".to_owned(), main.clone())]);
        }
        assert_eq!(found(&mut containers, &[&sidecar]).len(), 1);
        assert!(found(&mut containers, &[]).is_empty());
    }

    #[test]
    fn containers_come_and_go() {
        let folder = tempfile::tempdir().unwrap();
        let main = name("render", "main");
        let mut containers = Containers::new(folder.path().join("k8s.io"));
        assert!(found(&mut containers, &[&main]).is_empty());
        write(&folder.path().join("k8s.io"), "a1", &main);
        assert_eq!(found(&mut containers, &[&main]).len(), 1);
        std::fs::remove_dir_all(folder.path().join("k8s.io").join("a1")).unwrap();
        assert!(found(&mut containers, &[&main]).is_empty());
        assert!(containers.known.is_empty());
    }

    /// containerd may still be writing the file.
    #[test]
    fn an_incomplete_specification_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let main = name("render", "main");
        let mut containers = Containers::new(folder.path().to_owned());
        write_text(folder.path(), "a1", r#"{"annotations":{"io.kuber"#);
        std::fs::create_dir(folder.path().join("a2")).unwrap();
        assert!(found(&mut containers, &[&main]).is_empty());
        write(folder.path(), "a1", &main);
        write(folder.path(), "a2", &main);
        assert_eq!(found(&mut containers, &[&main]).len(), 2);
    }

    #[test]
    fn hostile_folders_are_ignored() {
        let folder = tempfile::tempdir().unwrap();
        let main = name("render", "main");
        for id in ["a b", "ä", &"x".repeat(77)] {
            write(folder.path(), id, &main);
        }
        write_text(folder.path(), "deep", &"[".repeat(100_000));
        write_text(
            folder.path(),
            "numbers",
            r#"{"annotations":{"io.kubernetes.cri.sandbox-name":7}}"#,
        );
        write_text(folder.path(), "list", "[]");
        write(folder.path(), "large", &main);
        let large = folder.path().join("large").join(SPECIFICATION);
        let mut text = std::fs::read_to_string(&large).unwrap();
        text.push_str(&" ".repeat(1024 * 1024));
        std::fs::write(&large, text).unwrap();
        std::fs::create_dir_all(folder.path().join("folder").join(SPECIFICATION)).unwrap();
        std::fs::write(folder.path().join("file"), "").unwrap();
        let mut containers = Containers::new(folder.path().to_owned());
        assert!(found(&mut containers, &[&main]).is_empty());
    }

    #[test]
    fn an_id_cannot_lead_elsewhere() {
        for id in ["", r"a\b", "a/b", "a:b", "a b", "a\0"] {
            assert!(!is_id(id), "{id:?}");
        }
        assert!(is_id(&"0af3".repeat(16)));
    }
}
