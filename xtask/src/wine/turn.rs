//! One user at a time: a file with the process id of whoever has the turn.

use std::fs::{self, File};
use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result};

/// How often somebody who waits looks.
const INTERVAL: Duration = Duration::from_millis(500);

/// The turn, given on when it is dropped.
pub(crate) struct Turn(PathBuf);

impl Turn {
    /// Waits until no other process that runs has the turn of `file`, and takes it.
    pub(super) fn take(file: PathBuf) -> Result<Turn> {
        let mut told = false;
        while !take(&file).with_context(|| format!("cannot write {}", file.display()))? {
            let holder = fs::read_to_string(&file).unwrap_or_default();
            if !holder.is_empty() && !Path::new("/proc").join(holder.trim()).exists() {
                // It ended without giving the turn on. Somebody else may remove it first.
                let _ = fs::remove_file(&file);
                continue;
            }
            if !told {
                eprintln!("waiting for process {} to end its run", holder.trim());
                told = true;
            }
            thread::sleep(INTERVAL);
        }
        Ok(Turn(file))
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A file that stays is found to be of an ended process.
        let _ = fs::remove_file(&self.0);
    }
}

/// Takes the turn if nobody has it.
fn take(file: &Path) -> std::io::Result<bool> {
    match File::create_new(file) {
        Ok(mut file) => write!(file, "{}", std::process::id()).map(|()| true),
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_turn_is_one_process_at_a_time() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("turn");
        let first = Turn::take(file.clone()).unwrap();
        let second = thread::spawn(move || Turn::take(file).unwrap());
        thread::sleep(Duration::from_millis(50));
        assert!(!second.is_finished());
        drop(first);
        second.join().unwrap();
    }

    #[test]
    fn the_turn_of_an_ended_process_is_taken() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("turn");
        fs::write(&file, "999999999").unwrap();
        Turn::take(file).unwrap();
    }
}
