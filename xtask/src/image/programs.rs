//! The programs that images contain.

use std::fs;
use std::io::{self, IsTerminal};
use std::path::{Path, PathBuf};

use anyhow::{Result, anyhow};

use super::layer::Files;
use super::source::{NO_REGISTRY, Source};
use crate::process::{run, stage};
use crate::visibility_filter::{self, FILTERS};
use crate::workspace::{self, STATIC_TARGET, VERSION, WINDOWS_TARGET, cargo_for};
use crate::{prerequisites, windows_suites};

/// The programs of a layer, and the images that have this layer.
pub(crate) struct Shipped {
    /// The name of the layout, and of the repository for the first image.
    pub(crate) name: &'static str,
    pub(super) description: &'static str,
    /// The system that the programs run on, as images name it.
    pub(crate) os: &'static str,
    pub(super) target: &'static str,
    pub(super) images: &'static [Entrypoint],
    /// The packages that contain the programs.
    pub(crate) packages: &'static [&'static str],
    /// The folder of the programs in the image: the root, or one that ends with a slash.
    pub(super) folder: &'static str,
    pub(crate) files: &'static [&'static str],
}

/// What a container of an image runs by default.
pub(crate) struct Entrypoint {
    /// The name of the image.
    pub(crate) image: &'static str,
    pub(super) program: &'static str,
    pub(super) arguments: &'static [&'static str],
    /// Variables, each with its value.
    pub(super) environment: &'static [&'static str],
}

impl Shipped {
    /// The repository of the first image if it is not pushed. Manifests name the images for Windows
    /// with the placeholder of the registry.
    pub(crate) fn unpublished(&self) -> String {
        let registry = if self.os == "linux" { "localhost" } else { NO_REGISTRY };
        format!("{registry}/{}", self.name)
    }

    /// The names of the images. The image with the name of the layout is in `repository`, and the
    /// others are next to it. If no image has this name, `repository` is the folder of all.
    pub(crate) fn names(&self, repository: &str, tag: &str) -> Vec<String> {
        let has_first = self.images.iter().any(|image| image.image == self.name);
        let parent = repository.rsplit_once('/').map_or(repository, |(parent, _)| parent);
        let folder = if has_first { parent } else { repository };
        let names = self.images.iter().map(|image| match image.image {
            name if name == self.name => format!("{repository}:{tag}"),
            name => format!("{folder}/{name}:{tag}"),
        });
        names.collect()
    }
}

pub(crate) const PLUGIN: Shipped = Shipped {
    name: "directx-device-plugin",
    description: "Advertises the DirectX devices of Windows nodes to Kubernetes",
    os: "windows",
    target: WINDOWS_TARGET,
    images: &[
        Entrypoint {
            image: "directx-device-plugin",
            program: "directx-device-plugin.exe",
            arguments: &["serve"],
            environment: &[],
        },
        // TensorWorks' images of these names have the same entrypoints
        // (github.com/TensorWorks/directx-device-plugins, build.ps1), so their manifests need only
        // another registry.
        Entrypoint {
            image: "wddm-device-plugin",
            program: "device-plugin-wddm.exe",
            arguments: &[],
            environment: &[],
        },
        Entrypoint {
            image: "mcdm-device-plugin",
            program: "device-plugin-mcdm.exe",
            arguments: &[],
            // With TensorWorks' plugin, a container that requests several devices starts with one.
            environment: &["MCDM_DEVICE_PLUGIN_MULTI_DEVICE=first"],
        },
    ],
    packages: &["plugin", "feature_discovery", "tools", "discovery_dll", "gpu_probe"],
    folder: "",
    files: &[
        "directx-device-plugin.exe",
        "device-plugin-wddm.exe",
        "device-plugin-mcdm.exe",
        "directx-feature-discovery.exe",
        "gen-device-mounts.exe",
        "gpu-probe.exe",
        "query-hcs-capabilities.exe",
        "test-device-discovery.exe",
        "test-device-discovery-cpp.exe",
        "test-device-discovery-go.exe",
        "directx-device-discovery.dll",
    ],
};

/// Programs that need no other file.
pub(crate) const LINUX: Shipped = Shipped {
    name: "directx-device-plugin-linux",
    description: "Advertises the DirectX devices of a made-up Windows host to Kubernetes",
    os: "linux",
    target: STATIC_TARGET,
    images: &[Entrypoint {
        image: "directx-device-plugin-linux",
        program: "/directx-device-plugin",
        arguments: &["serve"],
        environment: &[],
    }],
    packages: &["plugin", "feature_discovery"],
    folder: "",
    files: &["directx-device-plugin", "directx-feature-discovery"],
};

/// Apart from the plugin, because an antivirus may object to what changes other processes.
pub(crate) const VISIBLE: Shipped = Shipped {
    name: "directx-visible",
    description: "Runs programs that see only the DirectX devices of their container",
    images: &[Entrypoint {
        image: "directx-visible",
        program: "directx-visible.exe",
        arguments: &["--help"],
        environment: &[],
    }],
    packages: &["directx_visible"],
    files: &["directx-visible.exe", FILTERS[0].file, FILTERS[1].file],
    ..PLUGIN
};

/// For the manifests in `examples`. The images are based on Windows.
pub(super) const EXAMPLES: Shipped = Shipped {
    name: "directx-examples",
    description: "Tests the DirectX devices that a container of Windows can use",
    images: &[
        Entrypoint {
            image: "gpu-probe",
            program: r"C:\app\gpu-probe.exe",
            arguments: &[],
            environment: &[],
        },
        Entrypoint {
            image: "device-discovery",
            program: r"C:\app\test-device-discovery.exe",
            arguments: &[],
            environment: &[],
        },
    ],
    packages: &["tools", "gpu_probe"],
    folder: "app/",
    files: &["gpu-probe.exe", "test-device-discovery.exe"],
    ..PLUGIN
};

/// The file of the build that becomes the file `name`. The clients in C++ and in Go print the same
/// as `test-device-discovery`.
pub(crate) fn built(name: &str) -> &str {
    match name {
        "test-device-discovery-cpp.exe" | "test-device-discovery-go.exe" => {
            "test-device-discovery.exe"
        }
        "directx-device-discovery.dll" => "directx_device_discovery.dll",
        name => name,
    }
}

/// Builds the programs of an image with a profile and returns their folder.
pub(crate) fn build(shipped: &Shipped, profile: &str, source: &Source) -> Result<PathBuf> {
    let usual = match profile {
        "release" if shipped.packages.contains(&"plugin") => {
            ", 4 to 9 minutes on two cores the first time"
        }
        _ => "",
    };
    stage(&format!("building the programs of {} for {}{usual}", shipped.name, shipped.target));
    let folder = compile(shipped.target, shipped.packages, profile, Some(source))?;
    if shipped.name == VISIBLE.name {
        stage("building the filters, about a minute on two cores");
        for library in visibility_filter::build()? {
            fs::copy(&library, folder.join(library.file_name().unwrap_or_default()))?;
        }
    }
    Ok(folder)
}

/// Builds all programs of `packages` and returns their folder. They print the version of `source` and
/// addresses of its pages.
pub(crate) fn compile(
    target: &str,
    packages: &[&str],
    profile: &str,
    source: Option<&Source>,
) -> Result<PathBuf> {
    match target {
        WINDOWS_TARGET => prerequisites::for_windows_programs()?,
        STATIC_TARGET => prerequisites::for_static_builds()?,
        _ => {}
    }
    if (target, profile) == (WINDOWS_TARGET, "dev") {
        // Tests read the programs that run under Wine.
        windows_suites::build()?;
        return Ok(folder(target, profile));
    }
    let mut build = cargo_for(target);
    if !io::stderr().is_terminal() {
        build.arg("--quiet");
    }
    build.args(["build", "--locked", "--profile", profile, "--target", target]);
    build.args(packages.iter().flat_map(|package| ["--package", package]));
    build.envs(source.and_then(Source::url).map(|url| ("REPOSITORY_URL", url)));
    let version = source.map(|source| &source.version).filter(|version| *version != VERSION);
    build.envs(version.map(|version| ("DIRECTX_VERSION", version)));
    run(&mut build)?;
    Ok(folder(target, profile))
}

/// Where cargo puts the programs for `target`.
pub(crate) fn folder(target: &str, profile: &str) -> PathBuf {
    let name = if profile == "dev" { "debug" } else { profile };
    workspace::target_dir().join(target).join(name)
}

/// Reads the files of an image from `folder`, by their paths in the image.
pub(super) fn read(folder: &Path, shipped: &Shipped) -> Result<Files> {
    let mut files = Files::new();
    for name in shipped.files {
        let path = folder.join(built(name));
        let bytes = fs::read(&path).map_err(|error| {
            let hint = "hint: --programs names a folder with a build";
            anyhow!("cannot read {}: {error}\n{hint}", path.display())
        })?;
        files.insert(format!("{}{name}", shipped.folder), bytes);
    }
    Ok(files)
}
