//! NVIDIA's management library, asked through the program that comes with it.

use std::path::{Path, PathBuf};

use host::{NvidiaGpu, Nvml};

use super::programs::stdout_of;

/// The library in the first of `folders` that holds it, and the GPUs that `nvidia-smi`,
/// which asks the library, reports.
pub(super) fn nvml(folders: &[PathBuf]) -> Nvml {
    let gpus = match first(folders, "nvidia-smi.exe") {
        Some(program) => gpus(&program),
        None => Err("nvidia-smi.exe not found".to_owned()),
    };
    Nvml { library: first(folders, "nvml.dll").map(|path| path.display().to_string()), gpus }
}

fn first(folders: &[PathBuf], name: &str) -> Option<PathBuf> {
    folders.iter().map(|folder| folder.join(name)).find(|path| path.is_file())
}

fn gpus(program: &Path) -> Result<Vec<NvidiaGpu>, String> {
    let query = "--query-gpu=index,driver_version,driver_model.current,name";
    parse(&stdout_of(program, &[query, "--format=csv,noheader"])?)
}

fn parse(text: &str) -> Result<Vec<NvidiaGpu>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| gpu(line).ok_or_else(|| format!("unexpected output of nvidia-smi: `{line}`")))
        .collect()
}

/// Parses one line. The name comes last because it may contain commas.
fn gpu(line: &str) -> Option<NvidiaGpu> {
    let mut values = line.splitn(4, ',').map(|value| value.trim().to_owned());
    Some(NvidiaGpu {
        index: values.next()?.parse().ok()?,
        driver_version: values.next()?,
        driver_model: values.next()?,
        name: values.next()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_line_is_a_gpu() {
        let text = "0, 528.49, WDDM, NVIDIA Tesla T4\r\n1, 528.49, TCC, Odd, name\r\n";
        let gpus = parse(text).unwrap();
        let shown: Vec<_> = gpus.iter().map(|g| (g.index, g.driver_model.as_str())).collect();
        assert_eq!(shown, [(0, "WDDM"), (1, "TCC")]);
        assert_eq!(gpus[1].name, "Odd, name");
        assert_eq!(gpus[0].driver_version, "528.49");
        assert_eq!(parse("").unwrap(), []);
        for line in ["No devices were found", "x, 528.49, WDDM, NVIDIA Tesla T4"] {
            let error = format!("unexpected output of nvidia-smi: `{line}`");
            assert_eq!(parse(line).unwrap_err(), error);
        }
    }

    #[test]
    fn nothing_is_reported_where_nvidia_is_not_installed() {
        let folder = tempfile::tempdir().unwrap();
        let nvml = nvml(&[folder.path().to_owned()]);
        assert_eq!(nvml.library, None);
        assert_eq!(nvml.gpus.unwrap_err(), "nvidia-smi.exe not found");
    }
}
