//! The access that a kubeconfig file describes.

use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use documents::Text;
use serde::Deserialize;
use tokio_rustls::rustls::pki_types::PrivateKeyDer;
use tokio_rustls::rustls::pki_types::pem::PemObject;

use crate::credentials::Credentials;
use crate::in_cluster::{parse_certificates, read};
use crate::server::{Access, ClientCertificate, ConfigError, Server};

/// A kubeconfig file, as far as it is used. `kubectl` writes more keys than these.
#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct File {
    current_context: Option<Text>,
    #[serde(default = "Vec::new")]
    contexts: Vec<NamedContext>,
    #[serde(default = "Vec::new")]
    clusters: Vec<NamedCluster>,
    #[serde(default = "Vec::new")]
    users: Vec<NamedUser>,
}

#[derive(Deserialize)]
struct NamedContext {
    name: Text,
    context: Context,
}

#[derive(Deserialize)]
struct Context {
    cluster: Text,
    user: Option<Text>,
    namespace: Option<Text>,
}

#[derive(Deserialize)]
struct NamedCluster {
    name: Text,
    cluster: Cluster,
}

#[derive(Deserialize)]
#[serde(rename_all = "kebab-case")]
struct Cluster {
    server: Text,
    certificate_authority: Option<Text>,
    certificate_authority_data: Option<Text>,
    tls_server_name: Option<Text>,
}

#[derive(Deserialize)]
struct NamedUser {
    name: Text,
    user: User,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "kebab-case")]
struct User {
    token: Option<Text>,
    #[serde(rename = "tokenFile")]
    token_file: Option<Text>,
    client_certificate: Option<Text>,
    client_certificate_data: Option<Text>,
    client_key: Option<Text>,
    client_key_data: Option<Text>,
}

/// Reads the access of the current context of the file at `path`.
///
/// # Errors
/// The file cannot be read, or does not describe an access with a token or a certificate. Programs
/// that print a token (`exec`) are not run.
pub fn read_kubeconfig(path: &Path) -> Result<Access, ConfigError> {
    let name = path.display().to_string();
    let file: File = documents::parse(&name, &read(path)?)?;
    let folder = path.parent().unwrap_or(Path::new("."));
    Reader { file: name, folder: folder.to_owned() }.access(file)
}

/// Reads what a file refers to.
struct Reader {
    file: String,
    /// Relative paths are relative to it.
    folder: PathBuf,
}

impl Reader {
    fn access(&self, file: File) -> Result<Access, ConfigError> {
        let current = file.current_context.map(|name| name.0).filter(|name| !name.is_empty());
        let current = current.ok_or_else(|| self.missing("current-context", "no context"))?;
        let context = file.contexts.into_iter().find(|context| context.name.0 == current);
        let context = context.ok_or_else(|| self.missing("contexts", &current))?.context;
        let cluster = file.clusters.into_iter().find(|c| c.name.0 == context.cluster.0);
        let cluster = cluster.ok_or_else(|| self.missing("clusters", &context.cluster.0))?.cluster;
        let user = match context.user.map(|user| user.0) {
            None => User::default(),
            Some(name) => {
                let user = file.users.into_iter().find(|user| user.name.0 == name);
                user.ok_or_else(|| self.missing("users", &name))?.user
            }
        };
        let namespace = context.namespace.map(|namespace| namespace.0);
        Ok(Access {
            server: self.server(&cluster)?,
            client: self.client(&user)?,
            credentials: self.credentials(user)?,
            authorities: self.authorities(&cluster)?,
            namespace: namespace.unwrap_or_else(|| "default".to_owned()),
        })
    }

    fn server(&self, cluster: &Cluster) -> Result<Server, ConfigError> {
        let url = &cluster.server.0;
        let server = Server::parse(url).ok_or_else(|| {
            let what = format!("`{url}` is not the URL of an API server");
            self.value("server", what, "use a URL such as https://10.0.0.1:6443")
        })?;
        let name = cluster.tls_server_name.as_ref().map(|name| name.0.clone());
        Ok(Server { certified_name: name.unwrap_or(server.certified_name.clone()), ..server })
    }

    fn authorities(
        &self,
        cluster: &Cluster,
    ) -> Result<Vec<tokio_rustls::rustls::pki_types::CertificateDer<'static>>, ConfigError> {
        let key = "certificate-authority";
        let pem = self.data(
            key,
            cluster.certificate_authority_data.as_ref(),
            cluster.certificate_authority.as_ref(),
        )?;
        let pem = pem.ok_or_else(|| {
            let what = "the cluster has no certificate authority".to_owned();
            self.value(key, what, "add certificate-authority or certificate-authority-data; connections without verification are not supported")
        })?;
        parse_certificates(&pem, &format!("{}: {key}", self.file))
    }

    fn client(&self, user: &User) -> Result<Option<ClientCertificate>, ConfigError> {
        let (name, key) = ("client-certificate", "client-key");
        let data = user.client_certificate_data.as_ref();
        let Some(chain) = self.data(name, data, user.client_certificate.as_ref())? else {
            return Ok(None);
        };
        let pem = self.data(key, user.client_key_data.as_ref(), user.client_key.as_ref())?;
        let parsed = pem.and_then(|pem| PrivateKeyDer::from_pem_slice(&pem).ok());
        let key = parsed.ok_or_else(|| {
            let what = "the client certificate has no key in PEM format".to_owned();
            self.value(key, what, "add client-key or client-key-data")
        })?;
        let chain = parse_certificates(&chain, &format!("{}: {name}", self.file))?;
        Ok(Some(ClientCertificate { chain, key }))
    }

    fn credentials(&self, user: User) -> Result<Credentials, ConfigError> {
        let has_certificate =
            user.client_certificate.is_some() || user.client_certificate_data.is_some();
        match (user.token, user.token_file) {
            (_, Some(file)) => Ok(Credentials::File(self.folder.join(file.0))),
            (Some(token), None) => Ok(Credentials::Token(token.0)),
            (None, None) if has_certificate => Ok(Credentials::None),
            (None, None) => {
                let what = "the user has neither a token nor a client certificate".to_owned();
                Err(self.value("users", what, "add token, tokenFile or client-certificate-data; programs that print a token (exec) are not supported"))
            }
        }
    }

    /// The data of `key-data`, or the file of `key`.
    fn data(
        &self,
        key: &str,
        data: Option<&Text>,
        file: Option<&Text>,
    ) -> Result<Option<Vec<u8>>, ConfigError> {
        match (data, file) {
            (Some(data), _) => BASE64_STANDARD.decode(data.0.trim()).map(Some).map_err(|_| {
                let what = "the value is not base64".to_owned();
                self.value(&format!("{key}-data"), what, "use the output of `base64 -w0 FILE`")
            }),
            (None, Some(file)) => read(&self.folder.join(&file.0)).map(Some),
            (None, None) => Ok(None),
        }
    }

    fn missing(&self, key: &str, name: &str) -> ConfigError {
        let what = format!("`{name}` does not exist");
        self.value(key, what, "select a context of the file with `kubectl config use-context`")
    }

    fn value(&self, key: &str, what: String, hint: &'static str) -> ConfigError {
        ConfigError::Value { place: format!("{}: {key}", self.file), what, hint }
    }
}
