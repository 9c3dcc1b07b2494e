//! Runs `cargo xtask image`, and reads what it writes.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use serde_json::Value;
use sha2::{Digest, Sha256};

pub(crate) const PLUGIN: &str = "directx-device-plugin";
pub(crate) const VISIBLE: &str = "directx-visible";
pub(crate) const LINUX: &str = "directx-device-plugin-linux";

/// The files of the builds that images consist of: one for Linux, the others for Windows.
pub(crate) const BUILT: [&str; 14] = [
    "directx-device-plugin",
    "directx-feature-discovery",
    "directx-device-plugin.exe",
    "device-plugin-wddm.exe",
    "device-plugin-mcdm.exe",
    "directx-feature-discovery.exe",
    "gen-device-mounts.exe",
    "query-hcs-capabilities.exe",
    "test-device-discovery.exe",
    "directx_device_discovery.dll",
    "gpu-probe.exe",
    "directx-visible.exe",
    "directx-visible-filter.dll",
    "directx-visible-filter32.dll",
];

/// `cargo xtask image`, built once.
pub(crate) fn xtask_image() -> Command {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let program = PROGRAM.get_or_init(|| {
        let mut build = Command::new(env!("CARGO"));
        run(build.args(["build", "--quiet", "--package", "xtask"]));
        let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap();
        target.join("debug/xtask").with_extension(std::env::consts::EXE_EXTENSION)
    });
    let mut command = Command::new(program);
    command.arg("image").env_remove("SOURCE_DATE_EPOCH").env_remove("GITHUB_REPOSITORY");
    command
}

/// Builds images of stand-ins.
pub(crate) struct Builder {
    folder: tempfile::TempDir,
}

impl Builder {
    pub(crate) fn new() -> Builder {
        let folder = tempfile::tempdir().unwrap();
        fs::create_dir(folder.path().join("programs")).unwrap();
        for name in BUILT {
            fs::write(folder.path().join("programs").join(name), name).unwrap();
        }
        Builder { folder }
    }

    pub(crate) fn programs(&self) -> PathBuf {
        self.folder.path().join("programs")
    }

    pub(crate) fn output(&self) -> PathBuf {
        self.folder.path().join("output")
    }

    /// Another `date` gives another image.
    pub(crate) fn command(&self, date: u32, arguments: &[&str]) -> Command {
        let mut command = xtask_image();
        command.arg("--programs").arg(self.programs()).arg("--output").arg(self.output());
        command.args(arguments).env("SOURCE_DATE_EPOCH", date.to_string());
        command
    }

    pub(crate) fn build(&self, date: u32, arguments: &[&str]) -> String {
        run(&mut self.command(date, arguments))
    }

    /// The error of a build that must fail.
    pub(crate) fn error(&self, date: u32, arguments: &[&str]) -> String {
        error(&mut self.command(date, arguments))
    }

    /// The layout that was written last under a name.
    pub(crate) fn layout(&self, name: &str) -> Layout {
        Layout { folder: self.output().join(name) }
    }
}

/// Runs a command that must succeed, and returns what it prints.
pub(crate) fn run(command: &mut Command) -> String {
    let Output { status, stdout, stderr } = command.output().unwrap();
    assert!(status.success(), "{command:?} failed: {}", String::from_utf8_lossy(&stderr));
    String::from_utf8(stdout).unwrap()
}

/// Runs a command that must fail, and returns its error.
pub(crate) fn error(command: &mut Command) -> String {
    let Output { status, stderr, .. } = command.output().unwrap();
    let text = String::from_utf8(stderr).unwrap();
    assert!(!status.success(), "{command:?} did not fail: {text}");
    text[text.find("error: ").expect("an error is printed")..].to_owned()
}

pub(crate) fn digest(bytes: &[u8]) -> String {
    let hash = Sha256::digest(bytes);
    hash.iter().fold("sha256:".to_owned(), |text, byte| format!("{text}{byte:02x}"))
}

/// An OCI layout on disk.
pub(crate) struct Layout {
    pub(crate) folder: PathBuf,
}

impl Layout {
    pub(crate) fn index(&self) -> Value {
        serde_json::from_slice(&fs::read(self.folder.join("index.json")).unwrap()).unwrap()
    }

    /// The digest of the first image.
    pub(crate) fn digest(&self) -> String {
        text(&self.index()["manifests"][0]["digest"])
    }

    /// The manifest of the first image.
    pub(crate) fn manifest(&self) -> Value {
        self.document(&self.index()["manifests"][0])
    }

    pub(crate) fn config(&self) -> Value {
        self.document(&self.manifest()["config"])
    }

    /// The document with a descriptor.
    pub(crate) fn document(&self, descriptor: &Value) -> Value {
        let bytes = fs::read(self.blob(&text(&descriptor["digest"]))).unwrap();
        assert_eq!(digest(&bytes), descriptor["digest"]);
        serde_json::from_slice(&bytes).unwrap()
    }

    pub(crate) fn blob(&self, digest: &str) -> PathBuf {
        self.folder.join("blobs").join(digest.replacen(':', "/", 1))
    }

    /// The file of the topmost layer.
    pub(crate) fn layer(&self) -> PathBuf {
        let layers = self.manifest()["layers"].as_array().unwrap().clone();
        self.blob(&text(&layers.last().unwrap()["digest"]))
    }

    /// The entries of the topmost layer, whose digest the configuration lists.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let mut bytes = Vec::new();
        let file = fs::File::open(self.layer()).unwrap();
        flate2::read::GzDecoder::new(file).read_to_end(&mut bytes).unwrap();
        let diff_ids = self.config()["rootfs"]["diff_ids"].as_array().unwrap().clone();
        assert_eq!(*diff_ids.last().unwrap(), digest(&bytes));
        tar::Archive::new(&bytes[..]).entries().unwrap().map(|e| Entry::read(e.unwrap())).collect()
    }
}

/// An entry of a layer.
pub(crate) struct Entry {
    pub(crate) path: String,
    pub(crate) link: Option<String>,
    pub(crate) header: tar::Header,
    pub(crate) attributes: BTreeMap<String, String>,
    pub(crate) bytes: Vec<u8>,
}

impl Entry {
    fn read(mut entry: tar::Entry<'_, &[u8]>) -> Entry {
        let attributes = entry.pax_extensions().unwrap().into_iter().flatten().map(|extension| {
            let extension = extension.unwrap();
            (extension.key().unwrap().to_owned(), extension.value().unwrap().to_owned())
        });
        let attributes = attributes.collect();
        let mut bytes = Vec::new();
        entry.read_to_end(&mut bytes).unwrap();
        let text = |path: &Path| path.to_str().unwrap().trim_end_matches('/').to_owned();
        Entry {
            path: text(&entry.path().unwrap()),
            link: entry.link_name().unwrap().map(|path| text(&path)),
            header: entry.header().clone(),
            attributes,
            bytes,
        }
    }
}

pub(crate) fn text(value: &Value) -> String {
    value.as_str().expect("the value is a text").to_owned()
}

/// All files below `folder`, by their relative paths.
pub(crate) fn files(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(inner) = folders.pop() {
        for entry in fs::read_dir(&inner).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                let name = path.strip_prefix(folder).unwrap().to_owned();
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}
