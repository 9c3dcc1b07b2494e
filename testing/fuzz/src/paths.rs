//! Paths from the registry and from configurations, which become mounts.
//!
//! Windows opens every accepted path inside the folder and under exactly that name.

use devices::Destination;
use host::{FileName, StorePath, StorePattern, SystemRoot, check_store_folder};

const REPOSITORY: &str = r"C:\Windows\System32\DriverStore\FileRepository";
const FOLDER: &str = r"C:\Windows\System32\DriverStore\FileRepository\nv.inf_amd64_1";

/// Checks one input.
pub fn check(data: &[u8]) {
    let text = crate::first_text(data);
    if let Ok(path) = text.parse::<StorePath>() {
        let expected = format!("{FOLDER}\\{path}");
        assert_eq!(crate::resolve(FOLDER, text).as_ref(), Some(&expected));
        assert_eq!(crate::resolve(FOLDER, path.as_str()), Some(expected));
        let name = path.file_name();
        assert_eq!(name.as_str().parse::<FileName>(), Ok(name));
        assert_eq!(path.as_str().parse::<StorePath>(), Ok(path));
    }
    match text.parse::<StorePattern>() {
        Ok(pattern) => {
            assert!(text.replace('*', "x").parse::<StorePath>().is_ok());
            let name = pattern.file_name();
            assert_eq!(name.as_str().parse::<FileName>(), Ok(name));
        }
        Err(_) => assert!(text.parse::<StorePath>().is_err()),
    }
    if let Ok(name) = text.parse::<FileName>() {
        assert_eq!(name.as_str(), text);
        assert!(!text.contains(['\\', '/']));
        assert!(text.parse::<StorePath>().is_ok());
        if let Ok(destination) = text.parse::<Destination>() {
            assert_eq!(destination.as_str(), text);
        }
    } else {
        assert!(text.contains(['\\', '/']) || text.parse::<StorePath>().is_err());
        assert!(text.parse::<Destination>().is_err());
    }
    let folder = format!("{REPOSITORY}\\{text}");
    if check_store_folder(&folder, &SystemRoot::default()).is_ok() {
        let exact = folder.strip_suffix('\\').unwrap_or(&folder);
        assert_eq!(crate::resolve(REPOSITORY, text).as_deref(), Some(exact));
    }
}
