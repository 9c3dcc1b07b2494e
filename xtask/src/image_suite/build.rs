//! Runs `cargo xtask image` as a user does, and reads what it writes.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use serde_json::Value;

use crate::image::PLUGIN;
use crate::machine::Machine;
use crate::process::{line, output_within};
use crate::visibility_filter::{FILTERS, Filter};

/// How long a build may take. The first one compiles the release programs.
const TIME_LIMIT: Duration = Duration::from_secs(3600);

/// The builds that several tests use.
pub(super) struct Builds {
    folder: tempfile::TempDir,
    /// The plugin's image with the release programs.
    pub(super) release: Layout,
}

impl Builds {
    pub(super) fn create() -> Result<Builds> {
        let folder = tempfile::tempdir()?;
        let output = folder.path().join("release");
        run(command(&["--output"]).arg(&output))?;
        let release = Layout { folder: output.join(PLUGIN) };
        write_stubs(&folder.path().join("stubs"))?;
        Ok(Builds { folder, release })
    }

    /// A folder with files that pass for the programs. Images of them are built and pushed
    /// in no time.
    pub(super) fn stubs(&self) -> PathBuf {
        self.folder.path().join("stubs")
    }

    /// An image of the stubs. `date` makes it unique.
    pub(super) fn stub_command(&self, output: &Path, date: u64, arguments: &[&str]) -> Command {
        let mut command = command(arguments);
        command.arg("--programs").arg(self.stubs()).arg("--output").arg(output);
        command.env("SOURCE_DATE_EPOCH", date.to_string());
        command
    }
}

/// The start of each Windows program, then its name.
fn write_stubs(folder: &Path) -> Result<()> {
    fs::create_dir(folder)?;
    for name in crate::image::program_names() {
        let filter = FILTERS.iter().find(|filter| filter.file == name);
        let machine = filter.map_or(Machine::X86_64, Filter::machine);
        let mut bytes = b"MZ".to_vec();
        bytes.resize(0x3c, 0);
        bytes.extend(b"\x40\0\0\0PE\0\0");
        bytes.extend(machine.number().to_le_bytes());
        bytes.extend(name.as_bytes());
        fs::write(folder.join(name), bytes)?;
    }
    Ok(())
}

/// `cargo xtask image` with `arguments`.
pub(super) fn command(arguments: &[&str]) -> Command {
    // The program's own file, also after cargo has replaced it.
    let mut command = Command::new("/proc/self/exe");
    if let Ok(program) = std::env::current_exe() {
        command = Command::new(program);
    }
    command.arg("image").args(arguments).env_remove("SOURCE_DATE_EPOCH");
    command
}

pub(super) fn output(command: &mut Command) -> Result<Output> {
    output_within(TIME_LIMIT, command)
}

/// Runs `command`, which must succeed, and returns what it prints.
pub(super) fn run(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    if !output.status.success() {
        bail!("{} failed with {}:\n{}", line(command), output.status, text(&output.stderr));
    }
    Ok(text(&output.stdout))
}

/// Runs `command`, which must fail, and returns its error.
pub(super) fn failure(command: &mut Command) -> Result<String> {
    let output = output(command)?;
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    ensure!(
        output.status.code() == Some(1),
        "expected exit status 1, got {}: {text}",
        output.status
    );
    let start = text.find("error: ").context("no error was printed")?;
    Ok(text[start..].to_owned())
}

/// An OCI layout on disk.
pub(super) struct Layout {
    pub(super) folder: PathBuf,
}

impl Layout {
    /// The descriptor of the first manifest.
    pub(super) fn descriptor(&self) -> Result<Value> {
        let index = fs::read(self.folder.join("index.json"))?;
        let index: Value = serde_json::from_slice(&index)?;
        Ok(index["manifests"][0].clone())
    }

    pub(super) fn digest(&self) -> Result<String> {
        text(&self.descriptor()?["digest"])
    }

    pub(super) fn manifest(&self) -> Result<Value> {
        self.document(&self.digest()?)
    }

    pub(super) fn config(&self) -> Result<Value> {
        self.document(&text(&self.manifest()?["config"]["digest"])?)
    }

    /// The file of the blob with this digest.
    pub(super) fn blob(&self, digest: &str) -> PathBuf {
        self.folder.join("blobs").join(digest.replacen(':', "/", 1))
    }

    /// The file of the topmost layer.
    pub(super) fn top_layer(&self) -> Result<PathBuf> {
        let manifest = self.manifest()?;
        let layers = manifest["layers"].as_array().context("no layers")?;
        Ok(self.blob(&text(&layers.last().context("no layers")?["digest"])?))
    }

    fn document(&self, digest: &str) -> Result<Value> {
        Ok(serde_json::from_slice(&fs::read(self.blob(digest))?)?)
    }
}

pub(super) fn text(value: &Value) -> Result<String> {
    value.as_str().map(str::to_owned).with_context(|| format!("expected a text, found {value}"))
}
