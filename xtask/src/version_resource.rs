//! Version resources for files that cargo does not link, like those of the Rust programs
//! (`programs/version_resource`).

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, bail};

use crate::machine::Machine;
use crate::process::run;

/// Compiles the resource of `file`, such as `a.exe`, into an object in `folder`.
pub(crate) fn compile(
    folder: &Path,
    file: &str,
    description: &str,
    version: &str,
    machine: Machine,
) -> Result<PathBuf> {
    let source = folder.join(format!("{file}.rc"));
    fs::write(&source, script(file, description, version)?)
        .with_context(|| format!("cannot write {}", source.display()))?;
    let object = folder.join(format!("{file}.o"));
    let mut windres = Command::new("x86_64-w64-mingw32-windres");
    windres
        .args(["--target", machine.object_format()])
        .arg("-i")
        .arg(&source)
        .arg("-o")
        .arg(&object);
    run(&mut windres)?;
    Ok(object)
}

fn script(file: &str, description: &str, version: &str) -> Result<String> {
    let numbers: Vec<&str> = version.split(['.', '-', '+']).take(3).collect();
    if numbers.len() != 3 || numbers.iter().any(|number| number.parse::<u16>().is_err()) {
        bail!("the version `{version}` does not begin with three numbers");
    }
    let numbers = format!("{},0", numbers.join(","));
    let (name, extension) = file.rsplit_once('.').context("a file name without extension")?;
    // VFT_DLL and VFT_APP (verrsrc.h).
    let file_type = if extension == "dll" { 2 } else { 1 };
    let strings = [
        ("FileDescription", description),
        ("FileVersion", version),
        ("InternalName", name),
        ("LegalCopyright", "MIT licence"),
        ("OriginalFilename", file),
        ("ProductName", "DirectX device plugin for Kubernetes"),
        ("ProductVersion", version),
    ];
    let strings = strings.map(|(key, text)| format!("      VALUE \"{key}\", \"{text}\"\n"));
    // US English, UTF-16.
    Ok(format!(
        "1 VERSIONINFO\nFILEVERSION {numbers}\nPRODUCTVERSION {numbers}\nFILETYPE {file_type}\n\
         BEGIN\n  BLOCK \"StringFileInfo\"\n  BEGIN\n    BLOCK \"040904b0\"\n    BEGIN\n{}    END\n  \
         END\n  BLOCK \"VarFileInfo\"\n  BEGIN\n    VALUE \"Translation\", 0x409, 1200\n  END\nEND\n",
        strings.concat()
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_resource_has_the_numbers_of_the_version() {
        let text = script("name.exe", "text", "1.2.3-rc.1").unwrap();
        for part in [
            "FILEVERSION 1,2,3,0\n",
            "FILETYPE 1\n",
            "\"FileVersion\", \"1.2.3-rc.1\"\n",
            "\"InternalName\", \"name\"\n",
            "\"OriginalFilename\", \"name.exe\"\n",
        ] {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(script("name.dll", "text", "1.2.3").unwrap().contains("FILETYPE 2\n"));
        for version in ["1.2", "1.2.x", "1.2.65536", ""] {
            assert!(script("name.exe", "text", version).is_err(), "{version}");
        }
    }
}
