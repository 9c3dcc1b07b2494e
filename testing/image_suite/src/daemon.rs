//! Debian's docker-registry and containerd, with runc, on this machine. They end with the test.

use std::env;
use std::fs;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, Output, Stdio};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use serde_json::json;

/// The packages that `cargo xtask setup` unpacks: installing them would start services.
fn packages() -> PathBuf {
    let user = env::var_os("XDG_CACHE_HOME").map(PathBuf::from);
    let user = user.or_else(|| Some(env::home_dir()?.join(".cache"))).expect("a home directory");
    let packages = user.join("directx-device-plugin/image-daemons-1");
    assert!(packages.exists(), "{} is missing; run `cargo xtask setup`", packages.display());
    packages
}

fn program(name: &str) -> PathBuf {
    packages().join("usr/bin").join(name)
}

/// What a command that succeeds prints.
fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// A running daemon, which is killed when it is dropped or when the test's thread ends.
struct Daemon {
    child: Child,
}

impl Daemon {
    /// Starts a daemon and returns the first line of its log that contains `ready`.
    fn start(
        words: &[&str],
        name: &str,
        arguments: &[&str],
        ready: &'static str,
    ) -> (Daemon, String) {
        let mut command = Command::new("setpriv");
        command.args(["--pdeathsig", "KILL", "--"]).args(words).arg(program(name)).args(arguments);
        // containerd starts runc.
        let path = std::env::var("PATH").unwrap();
        command.env("PATH", format!("{}:{path}", packages().join("usr/sbin").display()));
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
        let mut log = BufReader::new(child.stderr.take().unwrap()).lines().map_while(Result::ok);
        let daemon = Daemon { child };
        let (sender, receiver) = mpsc::channel();
        thread::spawn(move || {
            let found = log.by_ref().inspect(|line| println!("{line}")).find(|l| l.contains(ready));
            found.map(|line| sender.send(line));
            // The thread reads to the end, so that the daemon can always write.
            log.for_each(drop);
        });
        let line = receiver.recv_timeout(Duration::from_mins(5));
        (daemon, line.expect("the daemon starts"))
    }
}

impl Drop for Daemon {
    fn drop(&mut self) {
        // Both calls fail only if the daemon has ended already.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// How a registry treats requests.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Everybody may do everything.
    Everybody,
    /// The registry lets in only the user `user` with the password `secret`.
    Login,
    /// Everybody, but nobody may push.
    ReadOnly,
}

/// A registry.
pub struct Registry {
    /// The address, such as `127.0.0.1:40000`.
    pub address: String,
    has_tls: bool,
    folder: tempfile::TempDir,
    daemon: Option<Daemon>,
}

impl Registry {
    /// Starts a registry without TLS on a free port.
    #[must_use]
    pub fn start(access: Access) -> Registry {
        Registry::new(access, false)
    }

    /// Starts a registry with TLS, in which everybody may do everything.
    #[must_use]
    pub fn with_tls() -> Registry {
        Registry::new(Access::Everybody, true)
    }

    fn new(access: Access, has_tls: bool) -> Registry {
        let folder = tempfile::tempdir().unwrap();
        if has_tls {
            let mut openssl = Command::new("openssl");
            openssl.current_dir(&folder).args(["req", "-x509", "-newkey", "rsa:2048", "-nodes"]);
            openssl.args(["-subj", "/CN=test", "-addext", "subjectAltName=IP:127.0.0.1"]);
            run(openssl.args(["-keyout", "key.pem", "-out", "certificate.pem"]));
        }
        let address = "127.0.0.1:0".to_owned();
        let mut registry = Registry { address, has_tls, folder, daemon: None };
        registry.restart(access);
        registry
    }

    /// Starts the registry again, with the same content at the same address.
    pub fn restart(&mut self, access: Access) {
        self.daemon = None;
        let path = |name: &str| self.folder.path().join(name);
        // JSON is YAML as well.
        let mut config = json!({
            "version": 0.1,
            "log": {"level": "info"},
            "storage": {
                "filesystem": {"rootdirectory": path("data")},
                "maintenance": {"readonly": {"enabled": access == Access::ReadOnly}},
            },
            "http": {"addr": self.address},
            // By default, it refuses layers with URLs.
            "validation": {"manifests": {"urls": {"allow": ["^https://"]}}},
        });
        if self.has_tls {
            config["http"]["tls"] =
                json!({"certificate": path("certificate.pem"), "key": path("key.pem")});
        }
        if access == Access::Login {
            // The line is what `htpasswd -B` prints.
            let user = "user:$2y$05$abcdefghijklmnopqrstuuOQiyCxlgf/oeuTqixKmWdcYUh4Hjl0a\n";
            fs::write(path("users"), user).unwrap();
            config["auth"] = json!({"htpasswd": {"realm": "test", "path": path("users")}});
        }
        fs::write(path("config.yml"), config.to_string()).unwrap();
        let config = path("config.yml").display().to_string();
        let arguments = ["serve", &config];
        let (daemon, line) = Daemon::start(&[], "docker-registry", &arguments, "listening on ");
        self.daemon = Some(daemon);
        let address = line.split_once("listening on ").unwrap().1;
        address.split(['"', ',']).next().unwrap().clone_into(&mut self.address);
    }

    /// The certificate that clients must trust.
    #[must_use]
    pub fn certificate(&self) -> PathBuf {
        self.folder.path().join("certificate.pem")
    }
}

/// containerd that nobody else uses.
pub struct Containerd {
    folder: tempfile::TempDir,
    _daemon: Daemon,
}

impl Containerd {
    /// Starts containerd.
    #[must_use]
    pub fn start() -> Containerd {
        let folder = tempfile::tempdir().unwrap();
        let config = format!(
            "version = 2\nroot = '{0}/root'\nstate = '{0}/state'\n\
             disabled_plugins = ['io.containerd.grpc.v1.cri']\n\
             [grpc]\naddress = '{0}/socket'\n\
             [plugins.'io.containerd.internal.v1.opt']\npath = '{0}/opt'\n",
            folder.path().display(),
        );
        let path = folder.path().join("config.toml");
        fs::write(&path, config).unwrap();
        // No other process sees what containerd mounts.
        let isolation = ["unshare", "--mount", "--propagation", "private", "--"];
        let arguments = ["--config", path.to_str().unwrap()];
        let ready = "containerd successfully booted";
        let (daemon, _) = Daemon::start(&isolation, "containerd", &arguments, ready);
        Containerd { folder, _daemon: daemon }
    }

    /// What `ctr` prints.
    #[allow(clippy::must_use_candidate, reason = "most callers only need it to succeed")]
    pub fn ctr(&self, arguments: &[&str]) -> String {
        let mut ctr = Command::new(program("ctr"));
        ctr.arg("--address").arg(self.folder.path().join("socket"));
        run(ctr.args(["--namespace", "test", "--timeout", "300s"]).args(arguments))
    }

    /// Panics unless containerd has every blob of `image`, whose manifest has `digest`.
    pub fn assert_complete(&self, image: &str, digest: &str) {
        let list = self.ctr(&["images", "check"]);
        let row = list.lines().find(|line| line.split_whitespace().next() == Some(image));
        let is_complete = row.is_some_and(|row| row.contains(digest) && row.contains(" complete "));
        assert!(is_complete, "{image} with {digest} is not complete:\n{list}");
    }
}
