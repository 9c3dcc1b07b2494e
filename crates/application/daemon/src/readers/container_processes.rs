//! The processes of the containers that hold devices, for metrics.
//!
//! The host is read for a scrape, at most once in ten seconds. A scrape waits half a second at
//! most, and only once for a host that hangs.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use win32::container_processes::{ContainerName, ContainerProcess, ContainerProcessesError};

use crate::readers::background_query::BackgroundQuery;
use crate::readers::latest_answer::{Ask, LatestAnswer};
use process::logging::Repeated;

/// How old an answer may get.
const PERIOD: Duration = Duration::from_secs(10);

/// How long to wait for an answer, which usually takes some milliseconds.
const WAIT: Duration = Duration::from_millis(500);

/// How long an answer is used while there is no newer one. Windows reuses process IDs.
const MAX_AGE: Duration = Duration::from_mins(1);

type Answer = Result<Vec<ContainerProcess>, ContainerProcessesError>;

/// Reads the processes of containers. It blocks, perhaps forever.
type Read = Box<dyn FnMut(&BTreeSet<ContainerName>) -> Answer + Send>;

/// The processes of containers, as last read.
pub(crate) type ContainerProcesses = LatestAnswer<BTreeSet<ContainerName>, Arc<[ContainerProcess]>>;

impl ContainerProcesses {
    /// The processes of this host, whose containerd has the state folder `state` if one is given.
    /// Only Windows reports them.
    #[cfg_attr(not(windows), expect(unused_variables, reason = "Linux has none"))]
    pub(crate) fn of_host(state: Option<&Path>) -> Self {
        #[cfg(windows)]
        {
            let state = state.map(Path::to_owned);
            let mut host = win32::container_processes::ContainerProcesses::of_host(state);
            Self::of(Some(Box::new(move |containers| host.read(containers))))
        }
        #[cfg(not(windows))]
        Self::of(None)
    }

    fn of(read: Option<Read>) -> Self {
        let query = BackgroundQuery::new("containers", "metrics have no processes of containers");
        LatestAnswer::new(query, PERIOD, WAIT, read.map(asking))
    }

    /// The processes of `containers`, at most 4096. While the host gives no newer answer, this is
    /// its last one, and after a minute an empty one.
    pub(crate) async fn current(
        &self,
        containers: BTreeSet<ContainerName>,
    ) -> Vec<ContainerProcess> {
        let current = self.get(containers.clone()).await.filter(|(_, age)| *age <= MAX_AGE);
        let processes = current.iter().flat_map(|(processes, _)| processes.iter());
        processes.filter(|process| containers.contains(&process.name)).cloned().collect()
    }
}

/// Asks with `read`, and logs its failures.
fn asking(mut read: Read) -> Ask<BTreeSet<ContainerName>, Arc<[ContainerProcess]>> {
    let mut logged = Repeated::default();
    Box::new(move |containers| match read(&containers) {
        Ok(processes) => (Some(processes.into()), 0),
        Err(failure) => {
            let error = command_line::error_chain(&failure);
            if logged.is_due(error.clone()) {
                let hint = hint(&failure);
                tracing::warn!(error, hint, "cannot read processes of containers");
            }
            (None, 1)
        }
    })
}

fn hint(error: &ContainerProcessesError) -> &'static str {
    match error {
        ContainerProcessesError::NoFolder(_) => {
            "name the state folder of containerd with the option --containerd-state"
        }
        ContainerProcessesError::Containers(_) | ContainerProcessesError::Job { .. } => {
            "run the plugin as SYSTEM in a HostProcess container"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use process::logging::test_log::Log;

    fn process(process_id: u32, pod: &str) -> ContainerProcess {
        let [namespace, pod, container] = ["default", pod, "main"].map(str::to_owned);
        let name = ContainerName { namespace, pod, container };
        ContainerProcess { process_id, name, container_id: "a1".to_owned() }
    }

    #[tokio::test]
    async fn only_the_processes_of_the_containers_are_returned() {
        let all = [process(7, "render"), process(8, "gone")];
        let processes = ContainerProcesses::of(Some(Box::new(move |_| Ok(all.to_vec()))));
        let render = process(7, "render");
        assert_eq!(processes.current([render.name.clone()].into()).await, [render]);
        assert_eq!(processes.failures(), [("timeout", 0), ("other", 0)]);
    }

    #[test]
    fn a_failure_is_counted_each_time_and_logged_more_and_more_rarely() {
        let log = Log::start();
        let denied = || std::io::ErrorKind::PermissionDenied.into();
        let mut ask = asking(Box::new(move |_| Err(ContainerProcessesError::Containers(denied()))));
        for _ in 0..3 {
            assert_eq!(ask(BTreeSet::new()), (None, 1));
        }
        let text = log.text();
        assert_eq!(text.matches("cannot read processes of containers").count(), 2, "{text}");
        assert!(text.contains("permission denied") && text.contains("as SYSTEM"), "{text}");
        let missing = || ContainerProcessesError::NoFolder("state".into());
        let mut ask = asking(Box::new(move |_| Err(missing())));
        assert_eq!(ask(BTreeSet::new()), (None, 1));
        let text = log.text();
        assert!(text.contains("`state` does not exist"), "{text}");
        assert!(text.contains("--containerd-state"), "{text}");
    }

    #[tokio::test]
    async fn a_host_without_containers_has_no_processes() {
        let containers = [process(7, "a").name].into();
        assert!(ContainerProcesses::of_host(None).current(containers).await.is_empty());
    }
}
