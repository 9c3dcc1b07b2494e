//! Where a driver store folder may be.
//!
//! Its path comes from a driver, the registry or an inventory, and files below it are
//! mounted into containers. Windows stages every driver package below one of two folders,
//! so a path elsewhere is a mistake or an attempt to reach other files.

use std::str::FromStr;

use crate::ParseError;
use crate::text::case_folding::fold_case;
use crate::text::file_values::text_value;
use crate::text::paths::check_component;
use crate::text::printable::printable;
use crate::text::text_newtype::text;

/// The folders below the Windows folder that contain driver packages: the driver store, and
/// the host's driver store in virtual machines with a paravirtualized GPU and in containers.
const REPOSITORIES: [&str; 2] =
    [r"System32\DriverStore\FileRepository", r"System32\HostDriverStore\FileRepository"];

/// The Windows folder of a host (`%SystemRoot%`), without a final separator.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct SystemRoot(String);

text!(SystemRoot);
text_value!(SystemRoot);

impl Default for SystemRoot {
    fn default() -> SystemRoot {
        SystemRoot(r"C:\Windows".to_owned())
    }
}

impl FromStr for SystemRoot {
    type Err = ParseError;

    /// The default in any case is the default, so that equal folders are equal values.
    fn from_str(text: &str) -> Result<SystemRoot, ParseError> {
        let root = text.strip_suffix('\\').unwrap_or(text);
        let mut parts = root.split('\\');
        let drive = parts.next().unwrap_or_default().as_bytes();
        let on_drive = matches!(drive, [letter, b':'] if letter.is_ascii_alphabetic());
        let mut folders = 0;
        let valid = parts.inspect(|_| folders += 1).all(|part| check_component(part).is_ok());
        if !on_drive || !valid || folders == 0 {
            let text = printable(text);
            return Err(ParseError::new(&text, r"a folder on a drive, such as C:\Windows"));
        }
        let default = SystemRoot::default();
        let is_default = fold_case(root) == fold_case(&default.0);
        Ok(if is_default { default } else { SystemRoot(root.to_owned()) })
    }
}

/// A driver store folder that is refused: none of its files is used.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the driver store folder `{}` {why}", printable(.path))]
pub struct StoreFolderError {
    path: String,
    why: String,
}

/// Checks that `path` is a folder of a driver package on a host with this Windows folder.
pub fn check_store_folder(path: &str, root: &SystemRoot) -> Result<(), StoreFolderError> {
    check_below_repository(path, root)
        .map_err(|why| StoreFolderError { path: path.to_owned(), why })
}

fn check_below_repository(path: &str, root: &SystemRoot) -> Result<(), String> {
    let [driver_store, host_driver_store] = REPOSITORIES.map(|folder| format!("{root}\\{folder}"));
    let below = strip_folder(path, &driver_store)
        .or(strip_folder(path, &host_driver_store))
        .ok_or_else(|| format!("is not below {driver_store} or {host_driver_store}"))?;
    let package = below.strip_suffix('\\').unwrap_or(below);
    package.split('\\').try_for_each(check_component).map_err(str::to_owned)
}

/// The part of `path` below `folder`, compared without case.
fn strip_folder<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    let mut rest = path;
    for part in folder.split('\\') {
        let (first, others) = rest.split_once('\\')?;
        if fold_case(first) != fold_case(part) {
            return None;
        }
        rest = others;
    }
    Some(rest)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const STORE: &str = r"C:\Windows\System32\DriverStore\FileRepository";

    fn check(path: &str) -> Result<(), String> {
        check_store_folder(path, &SystemRoot::default()).map_err(|error| error.to_string())
    }

    #[test]
    fn folders_of_driver_packages_are_accepted() {
        for path in [
            r"C:\Windows\System32\DriverStore\FileRepository\nv.inf_amd64_1",
            r"c:\WINDOWS\system32\driverstore\filerepository\NV.INF_AMD64_1\",
            r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1",
            r"C:\Windows\System32\DriverStore\FileRepository\NVINF_~1",
            r"C:\Windows\System32\DriverStore\FileRepository\grafik_äöü_显卡\sub",
        ] {
            assert_eq!(check(path), Ok(()), "{path}");
        }
        let d: SystemRoot = r"D:\WinNT\".parse().unwrap();
        let store = r"d:\winnt\System32\DriverStore\FileRepository\x";
        assert_eq!(check_store_folder(store, &d), Ok(()));
        assert!(check_store_folder(&format!("{STORE}\\x"), &d).is_err());
    }

    #[test]
    fn every_other_path_is_rejected() {
        for path in [
            "",
            "x",
            r"System32\DriverStore\FileRepository\x",
            r"C:\Windows\System32",
            r"D:\Windows\System32\DriverStore\FileRepository\x",
            r"C:Windows\System32\DriverStore\FileRepository\x",
            r"C:\Windows\System32\DriverStoreX\FileRepository\x",
            r"C:\Windows\System32\DriverStore\Temp\x",
            r"C:\Users\Public\HostDriverStore\FileRepository\x",
            r"\\server\share\Windows\System32\DriverStore\FileRepository\x",
            r"\\?\C:\Windows\System32\DriverStore\FileRepository\x",
            r"\\?\GLOBALROOT\Device\HarddiskVolume1\Windows\System32",
            r"\\.\C:\Windows\System32\DriverStore\FileRepository\x",
            r"\Windows\System32\DriverStore\FileRepository\x",
            r"C:\Windows\.\System32\DriverStore\FileRepository\x",
            "C:/Windows/System32/DriverStore/FileRepository/x",
        ] {
            let error = check(path).unwrap_err();
            assert!(error.contains(r"is not below C:\Windows\System32\DriverStore"), "{error}");
        }
        for below in [
            "",
            "\\",
            "..",
            r"..\..\config",
            r"x\..\..\..",
            r"x\.",
            r"x\\y",
            "x:stream",
            "x. ",
            "x\\y.",
            "NUL",
            "a/../..",
            "a\0b",
            "a\nb",
        ] {
            let error = check(&format!("{STORE}\\{below}")).unwrap_err();
            assert!(!error.contains("is not below") && !error.contains(['\0', '\n']), "{error}");
        }
    }

    #[test]
    fn the_windows_folder_is_on_a_drive() {
        for bad in
            ["", "C:", "C:\\", r"Windows", r"\Windows", r"\\server\share\Windows", r"C:\a\..\b"]
        {
            assert!(bad.parse::<SystemRoot>().is_err(), "{bad}");
        }
        assert_eq!(r"c:\WINDOWS\".parse(), Ok(SystemRoot::default()));
        assert_eq!(r"E:\Win".parse::<SystemRoot>().unwrap().to_string(), r"E:\Win");
    }

    proptest! {
        /// Whatever is below, an accepted folder is below the repository as Windows reads it.
        #[test]
        fn accepted_folders_never_leave_the_repository(below in r"[a-b.\\/: ]{0,12}") {
            if check(&format!("{STORE}\\{below}")).is_ok() {
                for part in below.trim_end_matches('\\').split('\\') {
                    prop_assert_eq!(part.trim_end_matches(['.', ' ']), part);
                    prop_assert!(!part.is_empty() && !part.contains([':', '/']));
                }
            }
        }
    }
}
