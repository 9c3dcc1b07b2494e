//! Debian's docker-registry on a free port of the loopback interface.

use std::fs;

use anyhow::Result;
use serde_json::{Value, json};

use super::daemon::Daemon;
use super::tools::Tools;

/// The user of a registry with a login; the password is `secret`.
pub(super) const USER: &str = "user";
pub(super) const PASSWORD: &str = "secret";

/// `PASSWORD` with bcrypt, as `htpasswd -B` prints it.
const PASSWORD_HASH: &str = "$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a";

/// How a registry treats requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Access {
    Everybody,
    /// Only `USER`.
    Login,
    /// Everybody, but nobody may push.
    ReadOnly,
}

pub(super) struct Registry {
    /// Such as `127.0.0.1:40000`.
    pub(super) address: String,
    _daemon: Daemon,
    _folder: tempfile::TempDir,
}

impl Registry {
    pub(super) fn start(tools: &Tools, access: Access) -> Result<Registry> {
        let folder = tempfile::tempdir()?;
        let path = |name: &str| folder.path().join(name);
        let config = path("config.yml");
        // JSON is YAML as well.
        let mut document = json!({
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {
                "filesystem": {"rootdirectory": path("data")},
                "maintenance": {"readonly": {"enabled": access == Access::ReadOnly}},
            },
            "http": {"addr": "127.0.0.1:0"},
            // Without a rule, the registry refuses layers that lie elsewhere.
            "validation": {"manifests": {"urls": {"allow": ["^https?://"]}}},
        });
        if access == Access::Login {
            fs::write(path("users"), format!("{USER}:{PASSWORD_HASH}\n"))?;
            document["auth"] = json!({"htpasswd": {"realm": "test", "path": path("users")}});
        }
        fs::write(&config, document.to_string())?;
        let mut command = tools.daemon("docker-registry");
        command.arg("serve").arg(config);
        let mut daemon = Daemon::start(command, &path("log"))?;
        let address = daemon.wait(|log| {
            let address = log.split_once("listening on ")?.1.split_once('"')?.0;
            Some(address.to_owned())
        })?;
        Ok(Registry { address, _daemon: daemon, _folder: folder })
    }
}

/// The file of credentials that skopeo reads from `REGISTRY_AUTH_FILE`.
pub(super) fn credentials(address: &str) -> Value {
    let auth = crate::image::base64(format!("{USER}:{PASSWORD}").as_bytes());
    json!({"auths": {address: {"auth": auth}}})
}
