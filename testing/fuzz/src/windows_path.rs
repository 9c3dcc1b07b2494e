//! A model of how Windows reads a path, which shares no code with the product.
//!
//! From Microsoft's "File path formats on Windows systems" (normalization) and "Naming
//! files, paths, and namespaces" (devices, streams).

/// The absolute path that Windows opens for `relative` below `folder`, which is an absolute
/// path without a final separator. `None` if Windows opens a device or a stream of a file
/// instead of a file.
pub(crate) fn resolve(folder: &str, relative: &str) -> Option<String> {
    let relative = relative.replace('/', "\\");
    let drive = folder.split('\\').next().unwrap_or_default();
    let joined = if relative.starts_with(r"\\") {
        // UNC and device paths are absolute.
        return Some(relative);
    } else if let Some(rooted) = relative.strip_prefix('\\') {
        format!("{drive}\\{rooted}")
    } else if relative.get(1..2) == Some(":") {
        // A path with a drive is outside of the folder, with a root or relative to that drive's
        // current directory.
        return Some(relative);
    } else {
        format!("{folder}\\{relative}")
    };
    let mut parts: Vec<&str> = Vec::new();
    let ends_in_file = !joined.ends_with('\\');
    let count = joined.split('\\').count();
    for (n, part) in joined.split('\\').enumerate() {
        match part {
            "" | "." => {}
            ".." => {
                if parts.len() > 1 {
                    parts.pop();
                }
            }
            _ if n + 1 == count && ends_in_file => parts.push(part.trim_end_matches(['.', ' '])),
            _ => parts.push(without_one_final_dot(part)),
        }
    }
    let is_file = parts.iter().skip(1).all(|part| !part.contains(':') && !is_device(part));
    is_file.then(|| parts.join("\\"))
}

/// "If a segment ends in a single period, that period is removed."
fn without_one_final_dot(part: &str) -> &str {
    match part.strip_suffix('.') {
        Some(rest) if !rest.ends_with('.') => rest,
        _ => part,
    }
}

/// Whether a name is a device in every folder, with any extension.
fn is_device(part: &str) -> bool {
    let stem: String = part.chars().take_while(|c| *c != '.' && *c != ':').collect();
    let stem = stem.trim_end_matches(' ').to_ascii_lowercase();
    let numbered = |name: &str| {
        stem.strip_prefix(name).is_some_and(|digit| {
            ["0", "1", "2", "3", "4", "5", "6", "7", "8", "9", "¹", "²", "³"].contains(&digit)
        })
    };
    ["con", "prn", "aux", "nul", "conin$", "conout$"].contains(&&*stem)
        || numbered("com")
        || numbered("lpt")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_resolve_as_microsoft_documents() {
        let folder = r"C:\store\nv";
        for (relative, opened) in [
            ("a.dll", Some(r"C:\store\nv\a.dll")),
            ("a/b.dll", Some(r"C:\store\nv\a\b.dll")),
            (r"..\b.dll", Some(r"C:\store\b.dll")),
            (r"..\..\..\..\b.dll", Some(r"C:\b.dll")),
            (r"\b.dll", Some(r"C:\b.dll")),
            (r"\\server\share", Some(r"\\server\share")),
            (r"D:b.dll", Some(r"D:b.dll")),
            ("b.dll. .", Some(r"C:\store\nv\b.dll")),
            (r"sub.\b", Some(r"C:\store\nv\sub\b")),
            (r"sub..\b", Some(r"C:\store\nv\sub..\b")),
            (r"a\.\\b", Some(r"C:\store\nv\a\b")),
            ("a.dll:stream", None),
            ("nul.dll", None),
            (r"COM1 .x\b", None),
        ] {
            assert_eq!(resolve(folder, relative).as_deref(), opened, "{relative}");
        }
    }
}
