//! Named configurations whose selection and content change while they are followed.

use std::fs;
use std::path::Path;

use settings::{ConfigChoice, NamedConfigs};

use super::tests::{Followed, start};
use super::*;
use crate::config::ConfigSource;
use crate::test_log::Log;

/// Follows the configurations `default` (2 replicas) and `shared` (4), with this selection. The
/// path of the result is the selection.
fn follow(selection: Option<&str>) -> Followed {
    let folder = tempfile::tempdir().unwrap();
    let configs = folder.path().join("configs");
    fs::create_dir(&configs).unwrap();
    fs::write(configs.join("default"), "multitenancy: 2").unwrap();
    fs::write(configs.join("shared"), "multitenancy: 4").unwrap();
    // The writer of the selection creates its folder.
    let path = folder.path().join("state").join("selection");
    if let Some(selection) = selection {
        fs::create_dir(path.parent().unwrap()).unwrap();
        fs::write(&path, selection).unwrap();
    }
    let reload = start(choice(&configs, &path));
    Followed { reload, path, _folder: folder }
}

fn choice(configs: &Path, selection: &Path) -> ConfigChoice {
    let selection = Some(selection.to_owned());
    ConfigChoice::Named(NamedConfigs { directory: configs.to_owned(), selection, default: None })
}

fn replicas(followed: &Followed) -> u32 {
    let active = &followed.reload.following.as_ref().unwrap().active;
    active.policy.models[0].sharing.replicas.get()
}

impl Followed {
    fn configuration(&self, name: &str) -> std::path::PathBuf {
        self.path.parent().unwrap().with_file_name("configs").join(name)
    }
}

#[tokio::test]
async fn another_selection_and_edits_of_what_is_selected_are_applied() {
    let log = Log::start();
    let mut followed = follow(None);
    assert_eq!(replicas(&followed), 2);
    fs::create_dir(followed.path.parent().unwrap()).unwrap();
    followed.replace("shared");
    assert_eq!(followed.apply().await, Some(4));
    let edited = followed.configuration("new");
    fs::write(&edited, "multitenancy: 5").unwrap();
    fs::rename(edited, followed.configuration("shared")).unwrap();
    assert_eq!(followed.apply().await, Some(5));
    // It is not in use.
    fs::write(followed.configuration("default"), "multitenancy: 3").unwrap();
    followed.stays_the_same().await;
    followed.replace("");
    assert_eq!(followed.apply().await, Some(3));
    followed.stays_the_same().await;
    assert_eq!(followed.status(), ReloadStatus { applied: 3, ..ReloadStatus::default() });
    let text = log.text();
    assert!(text.contains("key=\"config\" before=\"default\" value=\"shared\""), "{text}");
}

#[tokio::test]
async fn an_unknown_or_invalid_selection_keeps_the_previous_configuration() {
    let mut followed = follow(Some("shared"));
    assert_eq!(replicas(&followed), 4);
    for (selection, problem) in [
        ("exclusive", "no configuration is named `exclusive`"),
        ("../shared", "`../shared` is not"),
    ] {
        followed.replace(selection);
        assert_eq!(followed.apply().await, None);
        let error = followed.reload.last_error().unwrap();
        assert!(error.contains(problem) && error.contains("; hint: "), "{error}");
        assert_eq!(replicas(&followed), 4);
    }
    followed.replace("exclusive");
    assert_eq!(followed.apply().await, None);
    // Its configuration is created afterwards.
    fs::write(followed.configuration("exclusive"), "multitenancy: 1").unwrap();
    assert_eq!(followed.apply().await, Some(1));
    assert_eq!(followed.reload.last_error(), None);
    assert_eq!(followed.status().rejected, 3);
}

#[tokio::test]
async fn a_daemon_starts_with_the_default_if_the_selection_cannot_be_used() {
    for selection in ["exclusive", "a/b", "invalid"] {
        let mut followed = follow(Some(selection));
        fs::write(followed.configuration("invalid"), "nonsense: 1").unwrap();
        // Now also with the invalid configuration.
        let configs = followed.configuration("");
        followed.reload = start(choice(&configs, &followed.path));
        assert_eq!(replicas(&followed), 2, "{selection}");
        assert_eq!(followed.status().rejected, 1, "{selection}");
        assert!(followed.reload.last_error().is_some(), "{selection}");
        followed.stays_the_same().await;
        followed.replace("shared");
        assert_eq!(followed.apply().await, Some(4), "{selection}");
        assert_eq!(followed.reload.last_error(), None, "{selection}");
    }
}

#[test]
fn a_default_that_is_needed_and_cannot_be_used_is_wrong_usage() {
    let folder = tempfile::tempdir().unwrap();
    let selection = folder.path().join("selection");
    fs::write(&selection, "exclusive").unwrap();
    let source = ConfigSource::new(&[], choice(folder.path(), &selection), None);
    let failure = source.read_at_start().err().unwrap();
    let error = failure.chain();
    assert!(error.contains("no configuration is named `default`"), "{error}");
}

#[tokio::test]
async fn a_missing_selection_is_no_change() {
    let mut followed = follow(Some("shared"));
    fs::remove_file(&followed.path).unwrap();
    followed.stays_the_same().await;
    followed.replace("shared");
    followed.stays_the_same().await;
    assert_eq!(replicas(&followed), 4);
}

/// How the kubelet lays out the volume of a `ConfigMap`, and updates it on Windows, where it
/// cannot replace the link.
#[cfg(unix)]
#[tokio::test]
async fn a_swap_of_the_config_map_with_a_gap_is_followed_without_an_error() {
    use std::os::unix::fs::symlink;
    let version = |volume: &Path, version: &str, shared: &str| {
        fs::create_dir(volume.join(version)).unwrap();
        fs::write(volume.join(version).join("default"), "multitenancy: 2").unwrap();
        fs::write(volume.join(version).join("shared"), shared).unwrap();
    };
    let folder = tempfile::tempdir().unwrap();
    let volume = folder.path().join("configs");
    fs::create_dir(&volume).unwrap();
    version(&volume, "..1", "multitenancy: 4");
    symlink("..1", volume.join("..data")).unwrap();
    for name in ["default", "shared"] {
        symlink(format!("..data/{name}"), volume.join(name)).unwrap();
    }
    let path = folder.path().join("selection");
    fs::write(&path, "shared").unwrap();
    let reload = start(choice(&volume, &path));
    let mut followed = Followed { reload, path, _folder: folder };
    version(&volume, "..2", "multitenancy: 7");
    fs::remove_file(volume.join("..data")).unwrap();
    followed.stays_the_same().await;
    symlink("..2", volume.join("..data")).unwrap();
    assert_eq!(followed.apply().await, Some(7));
    assert_eq!(followed.status().rejected, 0);
}
