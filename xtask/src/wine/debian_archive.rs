//! The Debian archive that this machine uses. The Wine root is installed from it too.
//!
//! Reads apt's source files (`sources.list(5)`: one-line and deb822 style) and returns
//! the address of the main archive.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;

/// The archive of machines whose apt sources name none.
const DEFAULT: &str = "http://deb.debian.org/debian";

/// The archive that this machine installs from.
pub(super) fn of_this_machine() -> String {
    let release = fs::read_to_string("/etc/os-release").unwrap_or_default();
    let field = |name: &str| {
        let line = release.lines().find_map(|l| l.strip_prefix(name)?.strip_prefix('='));
        line.unwrap_or_default().trim_matches('"').to_owned()
    };
    if field("ID") != "debian" {
        return DEFAULT.to_owned();
    }
    let codename = field("VERSION_CODENAME");
    let found = source_files(Path::new("/etc/apt"))
        .iter()
        .flat_map(|(name, text)| sources(name, text))
        .find(|source| source.is_main_archive_of(&codename));
    found.map_or_else(|| DEFAULT.to_owned(), |source| source.uri)
}

/// The names and texts of apt's source files below `apt`.
fn source_files(apt: &Path) -> Vec<(String, String)> {
    let mut paths = vec![apt.join("sources.list")];
    let parts = fs::read_dir(apt.join("sources.list.d"));
    paths.extend(parts.into_iter().flatten().flatten().map(|entry| entry.path()));
    paths.sort();
    let read = |path: &Path| Some((path.to_str()?.to_owned(), fs::read_to_string(path).ok()?));
    paths.iter().filter_map(|path| read(path)).collect()
}

/// One archive that apt installs from.
#[derive(Debug, PartialEq, Eq)]
struct Source {
    uri: String,
    suites: Vec<String>,
    components: Vec<String>,
}

impl Source {
    /// Whether it is a web server with the main section of the release itself, and not
    /// with its updates, its security fixes or packages of another vendor.
    fn is_main_archive_of(&self, codename: &str) -> bool {
        self.uri.starts_with("http")
            && self.components.iter().any(|c| c == "main")
            && self.suites.iter().any(|s| s == codename || s == "stable")
    }
}

fn sources(file: &str, text: &str) -> Vec<Source> {
    let style = Path::new(file).extension().and_then(OsStr::to_str);
    if style == Some("sources") {
        let text: String = text
            .lines()
            .filter(|l| !l.starts_with('#'))
            .fold(String::new(), |all, line| all + line + "\n");
        text.split("\n\n").filter_map(deb822).collect()
    } else if style == Some("list") {
        text.lines().filter_map(one_line).collect()
    } else {
        Vec::new()
    }
}

/// `deb [options] uri suite component...`
fn one_line(line: &str) -> Option<Source> {
    let rest = line.split('#').next()?.trim().strip_prefix("deb")?;
    let rest = rest.strip_prefix([' ', '\t'])?.trim_start();
    let rest = match rest.strip_prefix('[') {
        Some(options) => options.split_once(']')?.1,
        None => rest,
    };
    let mut words = rest.split_whitespace().map(str::to_owned);
    Some(Source { uri: words.next()?, suites: vec![words.next()?], components: words.collect() })
}

/// One stanza. Only its first address is used.
fn deb822(stanza: &str) -> Option<Source> {
    let words = |name: &str| -> Vec<String> {
        let mut found = Vec::new();
        let mut inside = false;
        for line in stanza.lines() {
            let value = match line.split_once(':') {
                _ if line.starts_with([' ', '\t']) => inside.then_some(line),
                Some((key, value)) => {
                    inside = key.eq_ignore_ascii_case(name);
                    inside.then_some(value)
                }
                None => None,
            };
            found.extend(value.into_iter().flat_map(str::split_whitespace).map(str::to_owned));
        }
        found
    };
    let enabled = words("Enabled").first().is_none_or(|value| value != "no");
    let binary = words("Types").iter().any(|kind| kind == "deb");
    let uri = words("URIs").into_iter().next()?;
    (enabled && binary).then(|| Source {
        uri,
        suites: words("Suites"),
        components: words("Components"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn archive(file: &str, text: &str) -> Option<String> {
        sources(file, text).into_iter().find(|s| s.is_main_archive_of("bookworm")).map(|s| s.uri)
    }

    #[test]
    fn the_main_archive_is_found_in_a_deb822_file() {
        let text = "Types: deb deb-src\n# a note\nURIs: http://mirror.example/debian/\n\
                    Suites: bookworm\n  bookworm-updates\nComponents: main contrib\n\n\
                    Types: deb\nURIs: http://mirror.example/security\nSuites: bookworm-security\n\
                    Components: main\n";
        assert_eq!(
            archive("debian.sources", text).as_deref(),
            Some("http://mirror.example/debian/")
        );
    }

    #[test]
    fn the_main_archive_is_found_in_a_one_line_file() {
        let text = "# deb http://commented.example/debian bookworm main\n\
                    deb-src http://source.example/debian bookworm main\n\
                    deb cdrom:[Debian]/ bookworm main\n\
                    deb http://security.example bookworm-security main\n\
                    deb [signed-by=/a/b arch=amd64] https://mirror.example/debian bookworm main # x\n";
        assert_eq!(archive("sources.list", text).as_deref(), Some("https://mirror.example/debian"));
    }

    #[test]
    fn other_archives_are_ignored() {
        let vendor = "deb https://packages.example cloud-sdk-bookworm main\n";
        assert_eq!(archive("vendor.list", vendor), None);
        let disabled = "Enabled: no\nTypes: deb\nURIs: http://off.example/debian\n\
                        Suites: bookworm\nComponents: main\n";
        assert_eq!(archive("off.sources", disabled), None);
        let flat =
            "Types: deb\nURIs: http://flat.example/node\nSuites: nodistro\nComponents: main\n";
        assert_eq!(archive("node.sources", flat), None);
        assert_eq!(
            archive("debian.sources.save", "Types: deb\nURIs: http://x\nSuites: bookworm\n"),
            None
        );
    }
}
