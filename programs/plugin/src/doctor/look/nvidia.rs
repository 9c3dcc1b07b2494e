//! NVIDIA's management library, asked through the program that comes with it.

use std::path::{Path, PathBuf};

use super::programs::answer;
use crate::doctor::observed::{NvidiaGpu, Nvml};

/// The library in the first of `folders` that has it, and what `nvidia-smi` says, which
/// asks the library.
pub(super) fn nvml(folders: &[PathBuf]) -> Nvml {
    let first = |file: &str| folders.iter().map(|folder| folder.join(file)).find(|p| p.is_file());
    let gpus = match first("nvidia-smi.exe") {
        Some(program) => gpus(&program),
        None => Err("there is no nvidia-smi.exe to ask with".to_owned()),
    };
    Nvml { library: first("nvml.dll").map(|path| path.display().to_string()), gpus }
}

fn gpus(program: &Path) -> Result<Vec<NvidiaGpu>, String> {
    let query = "--query-gpu=index,driver_version,driver_model.current,name";
    read(&answer(program, &[query, "--format=csv,noheader"])?)
}

/// Reads the lines of the query; the name comes last because it may have commas.
fn read(text: &str) -> Result<Vec<NvidiaGpu>, String> {
    let lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    lines
        .map(|line| {
            let parts: Vec<&str> = line.splitn(4, ',').map(str::trim).collect();
            match parts.as_slice() {
                &[index, driver, model, name] => Ok(NvidiaGpu {
                    index: index.to_owned(),
                    name: name.to_owned(),
                    driver: driver.to_owned(),
                    model: model.to_owned(),
                }),
                _ => Err(format!("nvidia-smi prints `{line}`")),
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpus_are_read_from_lines() {
        let text = "0, 528.49, WDDM, NVIDIA Tesla T4\r\n1, 528.49, TCC, Odd, name\r\n";
        let gpus = read(text).unwrap();
        let shown: Vec<_> = gpus.iter().map(|g| (g.index.as_str(), g.model.as_str())).collect();
        assert_eq!(shown, [("0", "WDDM"), ("1", "TCC")]);
        assert_eq!(gpus[1].name, "Odd, name");
        assert_eq!(gpus[0].driver, "528.49");
        assert_eq!(read("").unwrap(), []);
        assert_eq!(
            read("No devices were found").unwrap_err(),
            "nvidia-smi prints `No devices were found`"
        );
    }

    #[test]
    fn without_files_nothing_is_claimed() {
        let folder = tempfile::tempdir().unwrap();
        let nvml = nvml(&[folder.path().to_owned()]);
        assert_eq!(nvml.library, None);
        assert_eq!(nvml.gpus.unwrap_err(), "there is no nvidia-smi.exe to ask with");
    }
}
