//! Allocations before this process started, from the kubelet's checkpoint.
//!
//! In comes the file; out go the allocations. Without a file that can be read they are not known,
//! which changes nothing but reports.

use std::io;
use std::path::Path;

use devices::EarlierAllocation;
use kubelet::{RecordedAllocation, recorded_allocations};

/// The allocations of the resources `names` in the checkpoint `path`.
pub(crate) fn read(path: &Path, names: &[String]) -> Vec<EarlierAllocation> {
    match documents::read_bytes(path) {
        // A kubelet without devices has no checkpoint.
        Err(error) if error.kind() == io::ErrorKind::NotFound => Vec::new(),
        Err(error) => unknown(path, &error),
        Ok(bytes) => {
            let is_ours = |name: &str| names.iter().any(|ours| ours == name);
            match recorded_allocations(&bytes, is_ours) {
                Ok(recorded) => recorded.into_iter().map(earlier).collect(),
                Err(error) => unknown(path, &error),
            }
        }
    }
}

fn unknown(path: &Path, error: &(dyn std::error::Error + 'static)) -> Vec<EarlierAllocation> {
    tracing::warn!(
        file = %path.display(),
        error = cli::error_chain(error),
        "cannot read the kubelet's checkpoint; containers from before the start that use a driver \
         which was replaced are not reported"
    );
    Vec::new()
}

fn earlier(recorded: RecordedAllocation) -> EarlierAllocation {
    let RecordedAllocation { resource, device_ids, envs, mounts } = recorded;
    EarlierAllocation { resource, slots: device_ids, envs, mounts }
}

#[cfg(test)]
mod tests {
    use super::*;
    use daemon::test_log::Log;

    #[test]
    fn only_a_file_that_cannot_be_used_is_reported() {
        let log = Log::start();
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join(kubelet::CHECKPOINT);
        let read = || super::read(&path, &["a/b".to_owned()]);
        assert_eq!(read(), []);
        let entry = r#"{"ResourceName":"a/b","DeviceIDs":{"-1":["A\\0"]},"AllocResp":""}"#;
        let text = format!(r#"{{"Data":{{"PodDeviceEntries":[{entry}]}},"Checksum":1}}"#);
        std::fs::write(&path, &text).unwrap();
        let slots = vec![r"A\0".to_owned()];
        let expected =
            EarlierAllocation { resource: "a/b".to_owned(), slots, ..Default::default() };
        assert_eq!(read(), [expected]);
        assert_eq!(log.text(), "");
        std::fs::write(&path, &text[..text.len() - 9]).unwrap();
        assert_eq!(read(), []);
        let text = log.text();
        assert_eq!(text.matches("cannot read the kubelet's checkpoint").count(), 1, "{text}");
        assert!(text.contains("not JSON, or incomplete"), "{text}");
    }
}
