//! Which releases of containerd fit a node, from containerd's own list: `RELEASES.md` of 2.4.2.
//! `docs/installation.md` has the same table.

use host::ProgramVersion;

/// Nothing compares dates: a release is supported as long as this table says so.
#[rustfmt::skip] // One release a line.
const RELEASES: [Release; 6] = [
    Release { version: (1, 7), too_old_for: Some(36), is_supported: false, support: "ended in September 2026" },
    Release { version: (2, 0), too_old_for: Some(35), is_supported: true, support: "until March 2027, only for what GKE needs" },
    Release { version: (2, 1), too_old_for: Some(36), is_supported: false, support: "ended in July 2026" },
    Release { version: (2, 2), too_old_for: Some(37), is_supported: false, support: "ended in November 2026" },
    Release { version: (2, 3), too_old_for: None, is_supported: true, support: "until April 2028" },
    Release { version: (2, 4), too_old_for: None, is_supported: true, support: "until May 2027" },
];

/// The release for new nodes, which has the longest support.
pub(super) const RECOMMENDED: &str = "2.3";

struct Release {
    version: (u32, u32),
    /// The first minor version of Kubernetes 1 for which containerd's list does not name it.
    too_old_for: Option<u32>,
    /// Whether containerd's maintainers still fix it.
    is_supported: bool,
    support: &'static str,
}

/// What is wrong with this containerd beside this kubelet, such as `is too old for kubelet 1.36.1`.
/// Nothing is known of releases that are not in the table.
pub(super) fn faults(containerd: &ProgramVersion, kubelet: Option<&ProgramVersion>) -> Vec<String> {
    let Some(release) = RELEASES.iter().find(|release| release.contains(containerd)) else {
        return Vec::new();
    };
    let too_new = |kubelet: &&ProgramVersion| {
        release.too_old_for.is_some_and(|minor| kubelet.is_at_least(1, minor))
    };
    let too_old =
        kubelet.filter(too_new).map(|kubelet| format!("is too old for kubelet {kubelet}"));
    let ended = format!("is no longer supported ({})", release.support);
    too_old.into_iter().chain((!release.is_supported).then_some(ended)).collect()
}

impl Release {
    fn contains(&self, version: &ProgramVersion) -> bool {
        let (major, minor) = self.version;
        version.is_at_least(major, minor) && !version.is_at_least(major, minor + 1)
    }
}

#[cfg(test)]
mod tests {
    use std::fmt::Write as _;

    use super::*;

    const BEGIN: &str = "<!-- generated from crates/application/doctor/src/evaluate/containerd_releases.rs by cargo xtask update -->\n";

    fn name(release: &Release) -> String {
        let (major, minor) = release.version;
        format!("{major}.{minor}")
    }

    fn table() -> String {
        let mut table =
            "| containerd | too old for Kubernetes | support |\n|---|---|---|\n".to_owned();
        for release in RELEASES {
            let name = name(&release);
            let mark = if name == RECOMMENDED { "**" } else { "" };
            let kubernetes = release.too_old_for.map(|minor| format!(" 1.{minor} and newer"));
            let kubernetes = kubernetes.unwrap_or_default();
            let support = release.support;
            writeln!(table, "| {mark}{name}{mark} |{kubernetes} | {support} |").unwrap();
        }
        table
    }

    #[test]
    fn the_page_has_the_same_releases() {
        doc_pages::assert_part("installation.md", BEGIN, &table());
    }

    #[test]
    fn the_recommended_release_is_supported() {
        let recommended = RELEASES.iter().find(|release| name(release) == RECOMMENDED).unwrap();
        assert!(recommended.is_supported && recommended.too_old_for.is_none());
    }

    #[test]
    fn faults_depend_on_both_versions() {
        let version = |text: &str| text.parse::<ProgramVersion>().unwrap();
        let found = |containerd, kubelet: &str| {
            faults(&version(containerd), Some(&version(kubelet))).join(" and ")
        };
        for (containerd, kubelet, text) in [
            ("1.7.33", "1.35.9", "is no longer supported (ended in September 2026)"),
            (
                "1.7.33",
                "1.36.0",
                "is too old for kubelet 1.36.0 and is no longer supported (ended in September 2026)",
            ),
            ("2.0.10", "1.34.0", ""),
            ("2.0.10", "1.35.0", "is too old for kubelet 1.35.0"),
            ("2.2.9", "1.36.6", "is no longer supported (ended in November 2026)"),
            (
                "2.2.9",
                "1.37.0",
                "is too old for kubelet 1.37.0 and is no longer supported (ended in November 2026)",
            ),
            ("2.3.0", "1.37.0", ""),
            // Not in the table.
            ("2.5.0", "1.40.0", ""),
            ("3.0.0", "1.26.0", ""),
        ] {
            assert_eq!(found(containerd, kubelet), text, "{containerd} {kubelet}");
        }
        assert!(faults(&version("2.0.10"), None).is_empty());
        assert_eq!(faults(&version("1.7.33+azure"), None).len(), 1);
    }
}
