//! Writes the file with which the plugin gets the devices that are out of service.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use host::DeviceName;
use plugin_status::cordon_file;
use tokio::sync::Mutex;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

/// How long a write may take. A disk that hangs must not stop the program.
const LIMIT: Duration = Duration::from_secs(30);

/// Writes one file, on a thread for blocking calls. Each clone writes the same file.
#[derive(Clone)]
pub(crate) struct CordonWriter {
    file: PathBuf,
    /// Locked during a write, so that at most one thread hangs.
    busy: Arc<Mutex<()>>,
}

impl CordonWriter {
    /// A writer of the file in this device plugin directory.
    pub(crate) fn new(directory: &Path) -> CordonWriter {
        CordonWriter { file: cordon_file::path_in(directory), busy: Arc::default() }
    }

    /// Writes the file, and returns whether it is new or has changed.
    pub(crate) async fn write(self, devices: Vec<DeviceName>) -> io::Result<bool> {
        let Ok(busy) = self.busy.try_lock_owned() else {
            return Err(io::Error::new(
                io::ErrorKind::TimedOut,
                "the last write has not ended yet",
            ));
        };
        let written = spawn_blocking(move || {
            let written = cordon_file::write(&self.file, &devices);
            drop(busy);
            written
        });
        timeout(LIMIT, written).await.map_err(|_| {
            let text = format!("the write did not end within {} s", LIMIT.as_secs());
            io::Error::new(io::ErrorKind::TimedOut, text)
        })??
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_write_that_hangs_is_the_only_one() {
        let directory = tempfile::tempdir().unwrap();
        let writer = CordonWriter::new(directory.path());
        let hanging = writer.busy.clone().try_lock_owned().unwrap();
        let devices = DeviceName::list("PCIROOT(0)");
        let error = writer.clone().write(devices.clone()).await.unwrap_err();
        assert_eq!(error.to_string(), "the last write has not ended yet");
        assert!(!cordon_file::path_in(directory.path()).exists());
        drop(hanging);
        assert!(writer.clone().write(devices.clone()).await.unwrap());
        assert!(!writer.write(devices).await.unwrap(), "nothing has changed");
    }
}
