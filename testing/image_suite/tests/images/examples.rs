//! Images of examples, on a stand-in for Microsoft's image of Windows.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};

use crate::image::{Builder, Layout, digest, run, text};
use crate::push::{digest_of, download};
use image_suite::daemon::{Access, Containerd, Registry};

const EXAMPLES: &str = "directx-examples";
const MANIFEST: &str = "application/vnd.docker.distribution.manifest.v2+json";
const LAYER: &str = "application/vnd.docker.image.rootfs.diff.tar.gzip";
/// The type of Windows' layers before Microsoft allowed others to distribute them.
const FOREIGN_LAYER: &str = "application/vnd.docker.image.rootfs.foreign.diff.tar.gzip";

/// An image in the form that Microsoft's registry has: Docker's documents, and a list of platforms.
struct Windows {
    folder: tempfile::TempDir,
    config: Value,
    layers: Vec<Value>,
}

impl Windows {
    fn new(os: &str) -> Windows {
        let config = json!({
            "architecture": "amd64",
            "os": os,
            "os.version": "10.0.20348.4893",
            "created": "2026-11-10T00:00:00Z",
            "config": {
                "ArgsEscaped": true,
                "Cmd": [r"c:\windows\system32\cmd.exe"],
                "Env": [r"PATH=C:\Windows\system32"],
                "User": "ContainerAdministrator",
            },
            "rootfs": {"type": "layers", "diff_ids": []},
            "history": [{"created_by": "Apply image"}, {"created_by": "Install update"}],
        });
        Windows { folder: tempfile::tempdir().unwrap(), config, layers: Vec::new() }
    }

    /// Adds a layer, which may have a URL instead of a blob in the registry.
    fn layer(&mut self, name: &str, url: Option<&str>) {
        let archive = name.repeat(1000).into_bytes();
        let mut gzip = GzEncoder::new(Vec::new(), Compression::fast());
        std::io::Write::write_all(&mut gzip, &archive).unwrap();
        let mut layer = self.add(LAYER, gzip.finish().unwrap());
        if let Some(url) = url {
            layer["mediaType"] = FOREIGN_LAYER.into();
            layer["urls"] = json!([url]);
        }
        self.config["rootfs"]["diff_ids"].as_array_mut().unwrap().push(digest(&archive).into());
        self.layers.push(layer);
    }

    fn add(&self, media_type: &str, bytes: Vec<u8>) -> Value {
        let digest = digest(&bytes);
        let name = digest.trim_start_matches("sha256:");
        let descriptor = json!({"mediaType": media_type, "size": bytes.len(), "digest": digest});
        // The names are those of skopeo's `dir:`.
        let name =
            if media_type == MANIFEST { format!("{name}.manifest.json") } else { name.into() };
        fs::write(self.folder.path().join(name), bytes).unwrap();
        descriptor
    }

    fn push(&self, name: &str) {
        let config = self.config.to_string().into_bytes();
        let manifest = json!({
            "schemaVersion": 2,
            "mediaType": MANIFEST,
            "config": self.add("application/vnd.docker.container.image.v1+json", config),
            "layers": self.layers,
        });
        let mut manifest = self.add(MANIFEST, manifest.to_string().into_bytes());
        manifest["platform"] = json!({
            "architecture": "amd64",
            "os": "windows",
            "os.version": self.config["os.version"],
        });
        let list = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.docker.distribution.manifest.list.v2+json",
            "manifests": [manifest],
        });
        fs::write(self.folder.path().join("manifest.json"), list.to_string()).unwrap();
        fs::write(self.folder.path().join("version"), "Directory Transport Version: 1.1\n")
            .unwrap();
        let mut skopeo = Command::new("skopeo");
        skopeo.args(["--insecure-policy", "copy", "--all", "--quiet", "--dest-tls-verify=false"]);
        skopeo.arg(format!("dir:{}", self.folder.path().display()));
        run(skopeo.arg(format!("docker://{name}")));
    }
}

/// The images of a layout, by the descriptors of their manifests.
fn images(layout: &Layout) -> Vec<Value> {
    layout.index()["manifests"].as_array().unwrap().clone()
}

#[test]
#[ignore = "needs root, skopeo, docker-registry and containerd: cargo xtask test image"]
fn examples_add_one_layer_to_windows() {
    let registry = Registry::start(Access::Everybody);
    let base = format!("{}/windows/server:ltsc2022", registry.address);
    let mut windows = Windows::new("windows");
    windows.layer("base", None);
    windows.layer("update", None);
    windows.push(&base);

    let builder = Builder::new();
    let folder = format!("{}/{EXAMPLES}", registry.address);
    let arguments = ["--examples", "--base", &base, "--plain-http", "--push", &folder];
    let printed = builder.build(1_000_000_000, &arguments);
    assert!(!builder.output().join("directx-examples.tar").exists());
    let layout = builder.layout(EXAMPLES);
    let containerd = Containerd::start();
    for (descriptor, (name, program)) in images(&layout)
        .iter()
        .zip([("gpu-probe", "gpu-probe.exe"), ("device-discovery", "test-device-discovery.exe")])
    {
        let full = format!("{folder}/{name}:ltsc2022");
        assert_eq!(descriptor["annotations"]["io.containerd.image.name"], full);
        assert_eq!(descriptor["platform"]["os.version"], windows.config["os.version"]);
        let manifest = layout.document(descriptor);
        let config = layout.document(&manifest["config"]);
        is_based_on(&windows, &layout, &manifest, &config);
        let entrypoint = format!(r"C:\app\{program}");
        assert_eq!(config["config"]["Entrypoint"], json!([entrypoint]));
        // A command of the base would be arguments of the program.
        assert_eq!(config["config"]["Cmd"], json!([]));
        assert_eq!(config["config"].get("ArgsEscaped"), None);
        assert_eq!(config["config"]["Labels"]["org.opencontainers.image.title"], name);

        let digest = text(&descriptor["digest"]);
        assert!(printed.contains(&format!("\npushed {full}@{digest}\n")), "{printed}");
        assert_eq!(digest_of(&full), digest);
        let fetch = ["content", "fetch", "--plain-http", "--platform", "windows/amd64"];
        containerd.ctr(&[&fetch[..], &[&full]].concat());
        containerd.assert_complete(&full, &digest);
        is_complete(&layout, &manifest);
        let copy = download(&full, &builder.programs().join(name));
        is_complete(&copy, &manifest);
    }
    has_only_programs(&layout);
}

/// Everything of the base stays, and one layer is added.
fn is_based_on(windows: &Windows, layout: &Layout, manifest: &Value, config: &Value) {
    let layers = manifest["layers"].as_array().unwrap();
    assert_eq!(layers.len(), windows.layers.len() + 1);
    for (layer, expected) in layers.iter().zip(&windows.layers) {
        for key in ["digest", "size"] {
            assert_eq!(layer[key], expected[key]);
        }
        assert!(text(&layer["mediaType"]).starts_with("application/vnd.oci.image.layer."));
    }
    // Windows refuses an image without the version, and with another one than its own.
    for key in ["os", "os.version", "architecture"] {
        assert_eq!(config[key], windows.config[key]);
    }
    for key in ["Env", "User"] {
        assert_eq!(config["config"][key], windows.config["config"][key]);
    }
    let list =
        |config: &Value, path: &str| config.pointer(path).unwrap().as_array().unwrap().clone();
    for path in ["/rootfs/diff_ids", "/history"] {
        let found = list(config, path);
        let expected = list(&windows.config, path);
        assert_eq!(found.len(), expected.len() + 1, "{path}");
        assert!(found.starts_with(&expected), "{path}");
    }
    // `entries` compares it with the last of the list.
    assert!(!layout.entries().is_empty());
}

/// Every layer is there with its digest, unless it has a URL.
fn is_complete(layout: &Layout, manifest: &Value) {
    for layer in manifest["layers"].as_array().unwrap() {
        let name = text(&layer["digest"]);
        let blob = layout.blob(&name);
        if layer["urls"].is_array() {
            assert!(!blob.exists(), "{name}");
        } else {
            assert_eq!(digest(&fs::read(blob).unwrap()), name);
        }
    }
}

/// Hives would replace the registry of Windows, and rights those of its drive.
fn has_only_programs(layout: &Layout) {
    let entries = layout.entries();
    let expected = [
        ("Files", false),
        ("Files/app", true),
        ("Hives", false),
        ("Files/app/gpu-probe.exe", true),
        ("Files/app/test-device-discovery.exe", true),
    ];
    let found = entries.iter().map(|entry| {
        let has_rights = entry.attributes.contains_key("MSWINDOWS.rawsd");
        (&*entry.path, has_rights)
    });
    assert_eq!(found.collect::<Vec<_>>(), expected);
    for entry in &entries {
        assert!(entry.attributes.contains_key("MSWINDOWS.fileattr"), "{}", entry.path);
    }
    assert_eq!(entries[4].bytes, b"test-device-discovery.exe");
}

/// The manifests in `examples` name the images that the command builds.
#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn images_have_the_names_of_the_manifests() {
    let registry = Registry::start(Access::Everybody);
    let base = format!("{}/windows/server:ltsc2022", registry.address);
    let mut windows = Windows::new("windows");
    windows.layer("base", Some("https://windows.example.com/layer"));
    windows.layer("update", None);
    windows.push(&base);
    let builder = Builder::new();
    builder.build(1, &["--examples", "--base", &base, "--plain-http"]);
    let layout = builder.layout(EXAMPLES);
    for descriptor in images(&layout) {
        let manifest = layout.document(&descriptor);
        let layer = &manifest["layers"][0];
        assert_eq!(layer["urls"], windows.layers[0]["urls"]);
        assert!(text(&layer["mediaType"]).contains(".nondistributable."), "{layer}");
        is_based_on(&windows, &layout, &manifest, &layout.document(&manifest["config"]));
        is_complete(&layout, &manifest);
        let full = text(&descriptor["annotations"]["io.containerd.image.name"]);
        let folder = full.split(['/', ':']).nth(2).unwrap();
        let manifests = examples().join(folder);
        let jobs = fs::read_dir(&manifests).unwrap().map(|file| file.unwrap().path());
        let jobs: Vec<PathBuf> =
            jobs.filter(|file| file.extension().is_some_and(|end| end == "yaml")).collect();
        assert!(jobs.len() > 1, "{}", manifests.display());
        for job in jobs {
            let text = fs::read_to_string(&job).unwrap();
            assert!(text.contains(&format!("image: {full}\n")), "{}: {full}", job.display());
            assert!(!text.contains("command:"), "{} does not use the entrypoint", job.display());
        }
    }
    // A layer with a URL is pushed without its blob.
    let folder = format!("{}/{EXAMPLES}", registry.address);
    builder.build(1, &["--examples", "--base", &base, "--plain-http", "--push", &folder]);
    let pushed = builder.layout(EXAMPLES).digest();
    assert_eq!(digest_of(&format!("{folder}/gpu-probe:ltsc2022")), pushed);
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

#[test]
#[ignore = "needs skopeo and docker-registry: cargo xtask test image"]
fn a_base_that_is_not_windows_is_refused() {
    let registry = Registry::start(Access::Everybody);
    let name = |image: &str| format!("{}/{image}:1", registry.address);
    let mut linux = Windows::new("linux");
    linux.layer("base", None);
    linux.push(&name("linux"));
    let builder = Builder::new();
    let error = |base: &str| builder.error(1, &["--examples", "--base", base, "--plain-http"]);
    let hint = "\nhint: --base names an image of Windows, such as \
                mcr.microsoft.com/windows/server:ltsc2022\n";
    let found = error(&name("linux"));
    assert!(found.contains(" is an image for `linux`\nhint: "), "{found}");
    assert!(found.ends_with(hint), "{found}");
    assert_eq!(error(&name("none")), format!("error: {} does not exist{hint}", name("none")));
    assert!(!builder.output().join(EXAMPLES).exists());
}
