//! The runtime specification of a container (`config.json`) as containerd writes it, whose
//! annotations name the container's pod.

use serde::Deserialize;

/// The names of a container of a pod.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ContainerName {
    pub namespace: String,
    pub pod: String,
    pub container: String,
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
///
/// # Errors
/// The file is not a specification.
pub fn parse(specification: &[u8]) -> Result<Option<ContainerName>, serde_json::Error> {
    let Specification { annotations } = serde_json::from_slice(specification)?;
    let Annotations { namespace, pod, container } = annotations;
    Ok(namespace.zip(pod).zip(container).map(|((namespace, pod), container)| ContainerName {
        namespace,
        pod,
        container,
    }))
}
