//! Where the API server is, and how it and this program prove who they are.

use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

use http::Uri;
use kube::Config;
use kube::config::Kubeconfig;

/// Where the kubelet mounts the account of a pod.
const ACCOUNT_FOLDER: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// The access to an API server.
pub struct Access {
    pub(crate) config: Config,
    /// The folder of the account, or the kubeconfig file.
    pub(crate) path: PathBuf,
}

/// There is no access to an API server.
#[derive(Debug, thiserror::Error)]
pub enum AccessError {
    /// The program does not run in a pod: the variable is not set.
    #[error("{0} is not set, so this program does not run in a pod")]
    NoPod(&'static str),
    /// The account or the kubeconfig file cannot be used, and why.
    #[error("cannot use `{path}`: {1}", path = .0.display())]
    Unusable(PathBuf, String),
}

impl AccessError {
    /// What an administrator can do.
    #[must_use]
    pub fn hint(&self) -> &'static str {
        match self {
            AccessError::NoPod(_) => {
                "name a kubeconfig file with `--kubeconfig FILE`, or use `--print`, \
                 which needs no cluster"
            }
            AccessError::Unusable(..) => {
                "a pod needs `automountServiceAccountToken: true`; the current context of a kubeconfig \
                 file needs a cluster with a certificate authority, and a user with a certificate or a \
                 token"
            }
        }
    }

    fn unusable(path: &Path, error: &dyn Error) -> Self {
        AccessError::Unusable(path.to_owned(), error.to_string())
    }
}

impl Access {
    /// The access with the account of a pod that has these environment variables.
    ///
    /// containerd mounts volumes of a `HostProcess` container below `CONTAINER_SANDBOX_MOUNT_POINT`
    /// where Windows cannot bind folders for one container (Windows Server 2019), and otherwise at
    /// their own paths. `kube` knows only the latter.
    pub fn of_pod(variable: impl Fn(&str) -> Option<String>) -> Result<Access, AccessError> {
        let [host, port] = ["KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"].map(|name| {
            variable(name).filter(|text| !text.is_empty()).ok_or(AccessError::NoPod(name))
        });
        let host = host?;
        let port = port?;
        let url = if host.contains(':') {
            format!("https://[{host}]:{port}")
        } else {
            format!("https://{host}:{port}")
        };
        let sandbox = variable("CONTAINER_SANDBOX_MOUNT_POINT").unwrap_or_default();
        let folders = [&sandbox, "/"].map(|root| Path::new(root).join(ACCOUNT_FOLDER));
        let [path, default] = folders;
        let path = if path.is_absolute() && path.exists() { path } else { default };
        let url = url.parse::<Uri>().map_err(|error| AccessError::unusable(&path, &error))?;
        let namespace = fs::read_to_string(path.join("namespace"))
            .map_err(|error| AccessError::unusable(&path, &error))?;
        let mut config = Config::new(url);
        config.default_namespace = namespace;
        // The kubelet replaces both files; `kube` reads them again every minute.
        config.root_cert = Some(Vec::new());
        config.root_cert_file = Some(path.join("ca.crt"));
        config.auth_info.token_file = Some(path.join("token").to_string_lossy().into_owned());
        Ok(Access { config, path })
    }

    /// The access of the current context of a kubeconfig file.
    pub fn of_kubeconfig(path: &Path) -> Result<Access, AccessError> {
        let path = path.to_owned();
        match Kubeconfig::read_from(&path).and_then(Config::try_from) {
            Ok(config) => Ok(Access { config, path }),
            Err(error) => Err(AccessError::Unusable(path, error.to_string())),
        }
    }
}
