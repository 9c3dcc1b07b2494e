//! Normalises paths of driver store folders.

/// Makes a path from D3DKMT absolute. The path can begin with `\SystemRoot` or `\??\`,
/// which only the kernel and its callers understand. A final separator is removed.
#[must_use]
pub fn absolute(path: &str, system_root: &str) -> String {
    let path = path.strip_prefix(r"\??\").unwrap_or(path);
    let expanded = match strip_prefix_ignore_case(path, r"\SystemRoot") {
        Some(rest) if rest.is_empty() || rest.starts_with('\\') => {
            format!("{}{rest}", system_root.trim_end_matches('\\'))
        }
        _ => path.to_owned(),
    };
    expanded.trim_end_matches('\\').to_owned()
}

/// The folder of `file`, if `file` is an absolute path (`C:\…`).
#[must_use]
pub fn parent(file: &str) -> Option<&str> {
    let drive = file.as_bytes();
    let absolute = drive.len() > 3 && drive[0].is_ascii_alphabetic() && &drive[1..3] == br":\";
    let (folder, name) = file.rsplit_once('\\')?;
    (absolute && folder.len() > 2 && !name.is_empty()).then_some(folder)
}

/// The folder of the first absolute path in the value `UserModeDriverName` of a driver key.
/// Its other entries are names of files in System32.
#[must_use]
pub fn folder_of_user_mode_drivers(names: &[String]) -> Option<&str> {
    names.iter().find_map(|name| parent(name))
}

fn strip_prefix_ignore_case<'a>(text: &'a str, prefix: &str) -> Option<&'a str> {
    let (start, rest) = text.split_at_checked(prefix.len())?;
    start.eq_ignore_ascii_case(prefix).then_some(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kernel_paths_become_absolute() {
        let root = r"C:\Windows";
        let folder = r"C:\Windows\System32\DriverStore\FileRepository\x.inf_amd64_1";
        for path in [
            r"\SystemRoot\System32\DriverStore\FileRepository\x.inf_amd64_1",
            r"\systemroot\System32\DriverStore\FileRepository\x.inf_amd64_1\",
            r"\??\C:\Windows\System32\DriverStore\FileRepository\x.inf_amd64_1",
            folder,
        ] {
            assert_eq!(absolute(path, root), folder, "{path}");
        }
        assert_eq!(absolute(r"\SystemRoot\a", r"C:\"), r"C:\a");
        assert_eq!(absolute(r"\SystemRooted\a", root), r"\SystemRooted\a");
        assert_eq!(absolute("ä", root), "ä");
    }

    #[test]
    fn the_first_absolute_path_is_used() {
        let names = |names: &[&str]| names.iter().map(ToString::to_string).collect::<Vec<_>>();
        let list = names(&["nvldumd.dll", "", r"C:\store\nv\nvldumdx.dll", r"C:\other\x.dll"]);
        assert_eq!(folder_of_user_mode_drivers(&list), Some(r"C:\store\nv"));
        for none in ["a.dll", r"\a\b.dll", r"C:\a.dll", r"C:\a\", r"C:a\b.dll", r"\\server\x\y"] {
            assert_eq!(folder_of_user_mode_drivers(&names(&[none])), None, "{none}");
        }
    }
}
