//! The account of a pod.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use tokio_rustls::rustls::pki_types::CertificateDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::credentials::Credentials;
use crate::server::{Access, ConfigError, Server};

/// Where the kubelet mounts the account.
pub const ACCOUNT_FOLDER: &str = "var/run/secrets/kubernetes.io/serviceaccount";

/// The variables that describe the account. A test has its own.
pub struct AccountEnvironment {
    /// `KUBERNETES_SERVICE_HOST`.
    pub host: Option<String>,
    /// `KUBERNETES_SERVICE_PORT`.
    pub port: Option<String>,
    /// Folders that contain [`ACCOUNT_FOLDER`]; the first one that does counts.
    pub roots: Vec<PathBuf>,
}

impl AccountEnvironment {
    /// Those of this process.
    ///
    /// containerd mounts volumes of a `HostProcess` container below
    /// `CONTAINER_SANDBOX_MOUNT_POINT` where Windows cannot bind folders for one container
    /// (Windows Server 2019), and otherwise at their own paths.
    #[must_use]
    pub fn of_process() -> AccountEnvironment {
        let text = |name| std::env::var_os(name).and_then(|value| value.into_string().ok());
        let sandbox: Option<OsString> = std::env::var_os("CONTAINER_SANDBOX_MOUNT_POINT");
        let roots = sandbox.map(PathBuf::from).into_iter().chain([PathBuf::from("/")]);
        AccountEnvironment {
            host: text("KUBERNETES_SERVICE_HOST"),
            port: text("KUBERNETES_SERVICE_PORT"),
            roots: roots.collect(),
        }
    }
}

/// The access of this pod to its cluster.
pub fn in_cluster(environment: &AccountEnvironment) -> Result<Access, ConfigError> {
    let set = |value: &Option<String>, name| {
        value.clone().filter(|value| !value.is_empty()).ok_or(ConfigError::NotInCluster(name))
    };
    let host = set(&environment.host, "KUBERNETES_SERVICE_HOST")?;
    let port = set(&environment.port, "KUBERNETES_SERVICE_PORT")?;
    let number = port.parse().map_err(|_| ConfigError::Value {
        place: "KUBERNETES_SERVICE_PORT".to_owned(),
        what: format!("`{port}` is not the number of a port"),
        hint: "leave the variable as the kubelet sets it",
    })?;
    let folders = || environment.roots.iter().map(|root| root.join(ACCOUNT_FOLDER));
    let folder = folders().find(|folder| folder.join("ca.crt").exists());
    // If none exists, the error names the last.
    let folder = folder.or_else(|| folders().next_back()).unwrap_or_else(|| ACCOUNT_FOLDER.into());
    let namespace = read(&folder.join("namespace"))?;
    Ok(Access {
        server: Server { certified_name: host.clone(), host, port: number, prefix: String::new() },
        authorities: certificates(&folder.join("ca.crt"))?,
        client: None,
        credentials: Credentials::File(folder.join("token")),
        namespace: String::from_utf8_lossy(&namespace).trim().to_owned(),
    })
}

pub(crate) fn read(path: &Path) -> Result<Vec<u8>, ConfigError> {
    let failed = |source| ConfigError::File { path: path.to_owned(), source };
    documents::read_bytes(path).map_err(failed)
}

fn certificates(path: &Path) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    parse_certificates(&read(path)?, &path.display().to_string())
}

/// The certificates of a PEM file.
pub(crate) fn parse_certificates(
    pem: &[u8],
    place: &str,
) -> Result<Vec<CertificateDer<'static>>, ConfigError> {
    let found: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem).collect();
    let found = found.ok().filter(|certificates| !certificates.is_empty());
    found.ok_or_else(|| ConfigError::Value {
        place: place.to_owned(),
        what: "no certificate in PEM format".to_owned(),
        hint: "a certificate begins with -----BEGIN CERTIFICATE-----",
    })
}
