//! The kinds of path that a mount may contain: a path that stays inside a driver store folder,
//! also one whose folders are patterns, and a bare file name.
//!
//! All are parsed from untrusted input (the registry, a configuration). Every name that
//! Windows interprets differently from how it looks is rejected: parent folders, roots,
//! drive letters, device paths, alternate data streams, reserved device names, and names
//! that end with dots or spaces, which Windows removes.

use std::str::FromStr;

use crate::text::case_folding::fold_case;
use crate::text::printable::printable;
use crate::text::text_newtype::text;

/// A file's path relative to a driver store folder, with `\` between its components.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StorePath(String);

text!(StorePath);

impl StorePath {
    /// The last component.
    #[must_use]
    pub fn file_name(&self) -> FileName {
        let name = self.0.rsplit_once('\\').map_or(self.0.as_str(), |(_, name)| name);
        FileName(name.to_owned())
    }
}

impl FromStr for StorePath {
    type Err = PathError;

    /// Parses a relative path; `/` counts as `\`, as in Windows.
    fn from_str(text: &str) -> Result<Self, PathError> {
        let path = text.replace('/', "\\");
        if path.starts_with('\\') {
            return Err(PathError::new(
                text,
                "is absolute; it must be relative to the driver store folder",
            ));
        }
        path.split('\\').try_for_each(check_component).map_err(|why| PathError::new(text, why))?;
        Ok(StorePath(path))
    }
}

/// The path of a file below a driver store folder. In the name of a folder, `*` stands for any
/// characters: some drivers have a folder whose name is different in each version.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct StorePattern(String);

text!(StorePattern);

impl StorePattern {
    #[must_use]
    pub fn file_name(&self) -> FileName {
        FileName(self.folders_and_file().1.to_owned())
    }

    /// Whether a folder is a pattern. Without one, this is the path of a file.
    #[must_use]
    pub fn has_wildcard(&self) -> bool {
        self.0.contains('*')
    }

    /// The names of the folders, which may be patterns, and the name of the file.
    #[must_use]
    pub fn folders_and_file(&self) -> (Vec<&str>, &str) {
        match self.0.rsplit_once('\\') {
            Some((folders, file)) => (folders.split('\\').collect(), file),
            None => (Vec::new(), &self.0),
        }
    }

    /// Whether `path` matches, compared without case.
    #[must_use]
    pub fn matches(&self, path: &StorePath) -> bool {
        let mut names = path.as_str().split('\\');
        let mut patterns = self.0.split('\\');
        patterns.all(|pattern| names.next().is_some_and(|name| name_matches(pattern, name)))
            && names.next().is_none()
    }
}

impl FromStr for StorePattern {
    type Err = PathError;

    fn from_str(text: &str) -> Result<Self, PathError> {
        let file = text.rsplit(['\\', '/']).next().unwrap_or(text);
        if file.contains('*') {
            return Err(PathError::new(text, "has `*` in the name of the file, not of a folder"));
        }
        if text.contains("**") {
            return Err(PathError::new(text, "contains `**`; `*` stands for one folder"));
        }
        // What the pattern matches is checked again.
        let example = text.replace('*', "x").parse::<StorePath>();
        example.map_err(|error| PathError::new(text, error.why))?;
        Ok(StorePattern(text.replace('/', "\\")))
    }
}

/// Whether the name of a folder or file matches `pattern`, in which `*` stands for any characters.
#[must_use]
pub fn name_matches(pattern: &str, name: &str) -> bool {
    let pattern = fold_case(pattern);
    let name = fold_case(name);
    let mut parts = pattern.split('*');
    let Some(mut rest) = name.strip_prefix(parts.next().unwrap_or_default()) else { return false };
    let Some(end) = parts.next_back() else { return rest.is_empty() };
    for part in parts {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(end)
}

/// A bare file name.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct FileName(String);

text!(FileName);

impl FileName {
    /// The name with its case folded: equal for names that differ only in case.
    #[must_use]
    pub fn folded(&self) -> String {
        fold_case(&self.0)
    }
}

impl FromStr for FileName {
    type Err = PathError;

    /// Parses a file name without a folder.
    fn from_str(text: &str) -> Result<Self, PathError> {
        if text.contains(['\\', '/']) {
            return Err(PathError::new(text, "contains a folder; it must be a bare file name"));
        }
        check_component(text).map_err(|why| PathError::new(text, why))?;
        Ok(FileName(text.to_owned()))
    }
}

/// A path that is not allowed, and why.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("the path `{}` {why}", printable(.path))]
pub struct PathError {
    path: String,
    why: &'static str,
}

impl PathError {
    fn new(path: &str, why: &'static str) -> PathError {
        PathError { path: path.to_owned(), why }
    }
}

/// Checks one component of a path; the error completes the sentence that begins with the path.
pub(crate) fn check_component(component: &str) -> Result<(), &'static str> {
    if component.is_empty() {
        Err("is empty or has an empty component")
    } else if component == "." || component == ".." {
        Err("contains `.` or `..`; it must stay inside the driver store folder")
    } else if component.contains(':') {
        Err("contains a colon; drive letters and alternate data streams are not allowed")
    } else if component.chars().any(|c| c.is_control() || "<>\"|?*\\/".contains(c)) {
        Err("contains a character that Windows does not allow in file names")
    } else if component.ends_with(['.', ' ']) {
        Err("has a component that ends with a dot or a space, which Windows removes")
    } else if is_device(component) {
        Err("has a component that Windows treats as a device name, such as NUL")
    } else {
        Ok(())
    }
}

/// Whether Windows opens a device for this name, with or without an extension
/// (Microsoft's "Naming Files, Paths, and Namespaces").
fn is_device(component: &str) -> bool {
    let stem = fold_case(component.split('.').next().unwrap_or(component).trim_end_matches(' '));
    let numbered = ["COM", "LPT"].iter().any(|port| {
        stem.strip_prefix(port).is_some_and(|rest| {
            let mut digits = rest.chars();
            matches!((digits.next(), digits.next()), (Some('0'..='9' | '¹' | '²' | '³'), None))
        })
    });
    numbered || ["CON", "PRN", "AUX", "NUL", "CONIN$", "CONOUT$", "CLOCK$"].contains(&&*stem)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn paths_inside_the_folder_are_accepted() {
        for (text, path, name) in [
            ("nvcuda.dll", "nvcuda.dll", "nvcuda.dll"),
            (r"B026261\amfrt64.dll", r"B026261\amfrt64.dll", "amfrt64.dll"),
            ("a/b.dll", r"a\b.dll", "b.dll"),
            (" leading space.dll", " leading space.dll", " leading space.dll"),
            ("a..b.dll", "a..b.dll", "a..b.dll"),
            ("communicate.dll", "communicate.dll", "communicate.dll"),
            ("COM10.dll", "COM10.dll", "COM10.dll"),
        ] {
            let parsed = text.parse::<StorePath>().unwrap();
            assert_eq!((parsed.as_str(), parsed.file_name().as_str()), (path, name));
        }
    }

    #[test]
    fn paths_outside_the_folder_are_rejected() {
        for bad in [
            "",
            "..",
            r"..\x.dll",
            r"a\..\..\x.dll",
            "a/../../x.dll",
            r"a\.\x.dll",
            r"\x.dll",
            "/x.dll",
            r"\\server\share\x.dll",
            r"\\?\C:\x.dll",
            r"\\.\pipe\x",
            r"C:\x.dll",
            "C:x.dll",
            "x.dll:stream",
            "x.dll::$DATA",
            r"a\\x.dll",
            r"a\",
            "x.dll.",
            "x.dll ",
            r".. \x.dll",
            r"...\x.dll",
            r"a.\x.dll",
            "nul",
            "NUL.dll",
            "con .txt",
            r"a\com1.dll",
            "LPT¹",
            "a\0b",
            "a\nb",
            "a|b",
            "a*",
            "a\"b",
        ] {
            assert!(bad.parse::<StorePath>().is_err(), "{bad:?}");
            assert!(bad.parse::<FileName>().is_err(), "{bad:?}");
        }
    }

    #[test]
    fn patterns_match_whole_names_of_folders_without_case() {
        for (pattern, path, expected) in [
            (r"B*\vulkan64.dll", r"b420000\VULKAN64.dll", true),
            ("B*/vulkan64.dll", r"B\vulkan64.dll", true),
            (r"B*\vulkan64.dll", r"vulkan64.dll", false),
            (r"B*\vulkan64.dll", r"B1\x\vulkan64.dll", false),
            (r"B*\vulkan64.dll", r"C1\vulkan64.dll", false),
            (r"B*\vulkan64.dll", r"B1\vulkan64.dll.old", false),
            (r"*\x.dll", r"anything\x.dll", true),
            (r"a*b*c\*2\x.dll", r"aXXbYYc\12\x.dll", true),
            (r"a*b*c\*2\x.dll", r"aXXcYYb\12\x.dll", false),
            (r"ab*ba\x.dll", r"aba\x.dll", false),
            (r"a\x.dll", r"A\X.DLL", true),
            (r"a\x.dll", r"ab\x.dll", false),
        ] {
            let parsed: StorePattern = pattern.parse().unwrap();
            assert_eq!(parsed.matches(&path.parse().unwrap()), expected, "{pattern} {path}");
        }
        let pattern: StorePattern = r"B*\vulkan64.dll".parse().unwrap();
        assert_eq!(pattern.file_name().as_str(), "vulkan64.dll");
    }

    #[test]
    fn patterns_are_only_in_folders_and_stay_inside_the_folder() {
        for bad in [
            "*",
            "*.dll",
            r"B1\*.dll",
            r"B*\vulkan*.dll",
            r"**\x.dll",
            r"a**b\x.dll",
            r"B?\x.dll",
            r"..\B*\x.dll",
            r"B*\..\x.dll",
            r"*\..\..\x.dll",
            r"\B*\x.dll",
            r"C:\B*\x.dll",
            r"\\server\B*\x.dll",
            r"B*.\x.dll",
            r"B* \x.dll",
            r"B*\",
            r"B*\\x.dll",
            r"B*\NUL",
            r"B*\x.dll:stream",
        ] {
            let error = bad.parse::<StorePattern>().unwrap_err().to_string();
            assert!(error.starts_with(&format!("the path `{bad}` ")), "{error}");
        }
    }

    #[test]
    fn errors_contain_no_control_characters() {
        let error = "a\nb\u{1b}[31m".parse::<StorePath>().unwrap_err().to_string();
        assert!(error.starts_with(r"the path `a\nb\u{1b}[31m` "), "{error}");
    }

    #[test]
    fn a_file_name_has_no_folder() {
        for bad in [r"drivers\x.sys", "drivers/x.sys"] {
            assert!(bad.parse::<FileName>().is_err(), "{bad}");
        }
        assert_eq!("X.dll".parse::<FileName>().unwrap().folded(), "X.DLL");
    }

    proptest! {
        #[test]
        fn every_path_is_a_pattern_that_only_itself_matches(
            text in r"[a-c.\\/: ]{0,12}",
            other in r"[a-c.\\]{1,6}",
        ) {
            let path = text.parse::<StorePath>();
            let pattern = text.parse::<StorePattern>();
            prop_assert_eq!(path.is_ok(), pattern.is_ok());
            if let (Ok(path), Ok(pattern)) = (path, pattern) {
                prop_assert!(pattern.matches(&path) && !pattern.has_wildcard());
                prop_assert_eq!(pattern.file_name(), path.file_name());
                if let Ok(other) = other.parse::<StorePath>() {
                    prop_assert_eq!(pattern.matches(&other), other == path);
                }
            }
        }

        /// An accepted path stays inside the folder after Windows has resolved it.
        #[test]
        fn accepted_paths_never_leave_the_folder(text in r"[a-c.\\/: ]{0,12}") {
            if let Ok(path) = text.parse::<StorePath>() {
                prop_assert!(!path.as_str().contains(':'));
                for part in path.as_str().split('\\') {
                    let as_windows_reads_it = part.trim_end_matches(['.', ' ']);
                    prop_assert_eq!(as_windows_reads_it, part);
                    prop_assert!(!part.is_empty());
                }
                prop_assert_eq!(path.as_str().parse::<StorePath>(), Ok(path));
            }
        }
    }
}
