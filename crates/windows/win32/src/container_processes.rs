//! The processes of containers, to join metrics of processes with pods.
//!
//! Every process of a container belongs to the container's job object, and Windows reports its ID
//! on the host. This module returns the processes of the containers with given names.
//! Containers with Hyper-V isolation have none, because their processes run in another system.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;

pub use windows_report::container_specification::ContainerName;
#[cfg(windows)]
use windows_report::containerd_state::TASKS;

use crate::containers::Containers;

/// How many processes are reported. More are left out.
const PROCESSES: usize = 4096;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ContainerProcess {
    /// The process ID on the host, which is not the one in the container.
    pub process_id: u32,
    pub name: ContainerName,
    pub container_id: String,
}

/// Why the processes of containers cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ContainerProcessesError {
    /// containerd's state folder has no folder with containers of Kubernetes.
    #[error("containerd's folder `{}` does not exist", .0.display())]
    NoFolder(PathBuf),
    /// The folder with the containers of containerd cannot be read.
    #[error("cannot read the containers of containerd")]
    Containers(#[source] io::Error),
    /// The job of a container cannot be read.
    #[error("cannot read the processes of container `{container_id}`")]
    Job { container_id: String, source: io::Error },
}

/// Returns the processes of the container with an ID, at most as many as it is asked for.
/// `NotFound` if the container has none on this host.
type ProcessIds = fn(&str, usize) -> io::Result<Vec<u32>>;

/// Returns the folders in which containerd may keep the folders of containers, the likeliest first.
type Tasks = Box<dyn Fn() -> Vec<PathBuf> + Send>;

pub struct ContainerProcesses {
    tasks: Tasks,
    containers: Containers,
    process_ids: ProcessIds,
}

impl ContainerProcesses {
    /// The containers in containerd's state folder on this host: `state`, or the one that its
    /// service names, or a default. Nothing is read yet.
    #[cfg(windows)]
    #[must_use]
    pub fn of_host(state: Option<PathBuf>) -> Self {
        let tasks = move || {
            let folders = match &state {
                Some(state) => vec![state.clone()],
                None => crate::containerd_state::folders(),
            };
            folders.iter().map(|state| state.join(TASKS)).collect()
        };
        Self::new(Box::new(tasks), crate::sys::job::process_ids_of_container)
    }

    /// The containers with a folder in one of `tasks`, and their processes as `process_ids` returns
    /// them.
    #[must_use]
    pub fn new(tasks: Tasks, process_ids: ProcessIds) -> Self {
        Self { tasks, containers: Containers::default(), process_ids }
    }

    /// The processes of the containers with these names, at most 4096. Takes some milliseconds,
    /// and needs the rights of SYSTEM. May block as long as the disk does.
    ///
    /// # Errors
    /// containerd's folder or the job of a container cannot be read.
    pub fn read(
        &mut self,
        wanted: &BTreeSet<ContainerName>,
    ) -> Result<Vec<ContainerProcess>, ContainerProcessesError> {
        let mut processes = Vec::new();
        if wanted.is_empty() {
            return Ok(processes);
        }
        let mut tasks = (self.tasks)();
        let existing = tasks.iter().position(|folder| !matches!(folder.try_exists(), Ok(false)));
        let folder = tasks.swap_remove(existing.unwrap_or(0));
        if existing.is_none() {
            return Err(ContainerProcessesError::NoFolder(folder));
        }
        let found = self.containers.find(&folder, wanted);
        let found = found.map_err(ContainerProcessesError::Containers)?;
        for (container_id, name) in found {
            let ids = match (self.process_ids)(&container_id, PROCESSES - processes.len()) {
                Ok(ids) => ids,
                // The container has just ended, or has Hyper-V isolation.
                Err(error) if error.kind() == io::ErrorKind::NotFound => continue,
                Err(source) => return Err(ContainerProcessesError::Job { container_id, source }),
            };
            processes.extend(ids.into_iter().map(|process_id| ContainerProcess {
                process_id,
                name: name.clone(),
                container_id: container_id.clone(),
            }));
        }
        processes.truncate(PROCESSES);
        Ok(processes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::containers::tests::{name, write};

    fn containers(process_ids: ProcessIds) -> (tempfile::TempDir, ContainerProcesses) {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path(), "a1", &name("render", "main"));
        write(folder.path(), "a2", &name("train", "main"));
        let tasks = [folder.path().join("default"), folder.path().to_owned()];
        let containers = ContainerProcesses::new(Box::new(move || tasks.to_vec()), process_ids);
        (folder, containers)
    }

    fn wanted() -> BTreeSet<ContainerName> {
        [name("render", "main"), name("train", "main")].into()
    }

    #[test]
    fn processes_have_the_names_of_their_container() {
        let (_folder, mut containers) = containers(|id, _| match id {
            "a1" => Err(io::ErrorKind::NotFound.into()),
            _ => Ok(vec![4712, 8]),
        });
        let expected = [4712, 8].map(|process_id| ContainerProcess {
            process_id,
            name: name("train", "main"),
            container_id: "a2".to_owned(),
        });
        assert_eq!(containers.read(&wanted()).unwrap(), expected);
    }

    /// If no container is wanted, containerd may not have run any.
    #[test]
    fn a_folder_that_does_not_exist_is_an_error_only_for_wanted_containers() {
        let (folder, mut containers) = containers(|_, _| Ok(Vec::new()));
        let default = folder.path().join("default");
        drop(folder);
        assert!(containers.read(&BTreeSet::new()).unwrap().is_empty());
        let error = containers.read(&wanted()).unwrap_err().to_string();
        let expected = format!("containerd's folder `{}` does not exist", default.display());
        assert_eq!(error, expected);
    }

    #[test]
    fn the_number_of_processes_is_limited() {
        let (_folder, mut containers) = containers(|_, limit| Ok(vec![1; limit.min(3000)]));
        assert_eq!(containers.read(&wanted()).unwrap().len(), 4096);
    }

    #[test]
    fn a_denied_job_is_an_error_that_names_the_container() {
        let (_folder, mut containers) =
            containers(|_, _| Err(io::ErrorKind::PermissionDenied.into()));
        let error = containers.read(&wanted()).unwrap_err();
        assert_eq!(error.to_string(), "cannot read the processes of container `a1`");
        assert!(containers.read(&BTreeSet::new()).unwrap().is_empty());
    }
}
