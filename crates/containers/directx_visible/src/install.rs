//! `--install`: copies the files of this program to a folder.

use std::io::{self, Write as _};
use std::path::Path;
use std::{env, fs};

use gpu_probe::failure::Failure;
use tempfile::NamedTempFile;

use crate::exit_codes::OTHER;
use crate::filter_file::{FILTER, FILTER_32};

/// The files. The last one may be missing.
const FILES: [&str; 3] = ["directx-visible.exe", FILTER, FILTER_32];

const HINT: &str = "exclude the files from antivirus, and let this account write to the folder";

/// Copies the files, unless they are equal, and compares the copies.
pub(crate) fn install(folder: &Path) -> Result<u32, Failure> {
    let own = env::current_exe().map_err(|error| failure("find", Path::new(FILES[0]), &error))?;
    let files = read(own.parent().unwrap_or(&own))?;
    if read(folder).is_ok_and(|installed| installed == files) {
        return Ok(0);
    }
    fs::create_dir_all(folder).map_err(|error| failure("create", folder, &error))?;
    // The device plugin reads the folder at any time. Files without the program are ignored, so it
    // goes first and comes last: files of two versions are never mixed.
    for path in FILES.map(|name| folder.join(name)).iter().filter(|path| path.exists()) {
        fs::remove_file(path).map_err(|error| failure("replace", path, &error))?;
    }
    for (name, content) in files.iter().rev() {
        let path = folder.join(name);
        write(&path, folder, content).map_err(|error| failure("write", &path, &error))?;
    }
    let copies = read(folder)?;
    if let Some((name, _)) = files.iter().find(|file| !copies.contains(file)) {
        return Err(failure("verify", &folder.join(name), &io::Error::other("the copy differs")));
    }
    println!("copied the files to {}", folder.display());
    Ok(0)
}

/// Names and contents of the files in a folder.
fn read(folder: &Path) -> Result<Vec<(&'static str, Vec<u8>)>, Failure> {
    let mut files = Vec::new();
    for name in FILES {
        let path = folder.join(name);
        match fs::read(&path) {
            Ok(content) => files.push((name, content)),
            Err(error) if name == FILTER_32 && error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(failure("read", &path, &error)),
        }
    }
    Ok(files)
}

/// Writes the file in one step, so that no reader sees a part of it.
fn write(path: &Path, folder: &Path, content: &[u8]) -> io::Result<()> {
    let mut new = NamedTempFile::new_in(folder)?;
    new.write_all(content)?;
    Ok(new.into_temp_path().persist(path)?)
}

fn failure(what: &str, path: &Path, error: &io::Error) -> Failure {
    Failure::new(OTHER, format!("cannot {what} {}: {error}", path.display()), HINT)
}
