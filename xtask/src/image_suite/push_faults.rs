//! Registries that fail: every error is clear, and no tag is set.

use anyhow::{Result, ensure};

use super::build::{Layout, failure, run};
use super::faulty_registry::{Fault, FaultyRegistry};
use super::test_case::{Context, TestCase};
use crate::image::PLUGIN;

pub(super) fn tests() -> Vec<TestCase> {
    vec![
        TestCase { name: "a registry that denies access", run: denied },
        TestCase { name: "a registry that accepts no blobs", run: uploads },
        TestCase { name: "a registry that fails midway sets no tag", run: midway },
        TestCase { name: "a registry that cannot be reached", run: unreachable },
        TestCase { name: "skopeo is missing", run: no_skopeo },
    ]
}

/// The error of a push to a registry with `fault`, and the manifests that it accepted.
fn push(context: &Context, fault: Fault) -> Result<(String, Vec<String>)> {
    let registry = FaultyRegistry::start(fault)?;
    let folder = tempfile::tempdir()?;
    let target = format!("{}/plugin:1.0", registry.address);
    let arguments = ["--plain-http", "--push", &target];
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    let digest = Layout { folder: folder.path().join(PLUGIN) }.digest()?;
    let accepted = registry.accepted_manifests();
    ensure!(!accepted.contains(&"1.0".to_owned()), "the tag is set: {accepted:?}");
    ensure!(accepted.first().is_none_or(|first| *first == digest), "{accepted:?}");
    ensure!(error.starts_with("error: cannot push 127.0.0.1:"), "{error}");
    Ok((error.replace(&registry.address, "REGISTRY"), accepted))
}

fn denied(context: &Context) -> Result<()> {
    let (error, accepted) = push(context, Fault::Denied)?;
    let hint = "\nhint: log in with `skopeo login REGISTRY` as a user who may push\n";
    ensure!(error.ends_with(hint), "{error}");
    ensure!(accepted.is_empty(), "{accepted:?}");
    Ok(())
}

fn uploads(context: &Context) -> Result<()> {
    let (error, accepted) = push(context, Fault::Uploads)?;
    ensure!(error.contains("500"), "{error}");
    ensure!(accepted.is_empty(), "{accepted:?}");
    Ok(())
}

/// Fails at every manifest of a push in turn. How many there are depends on skopeo.
fn midway(context: &Context) -> Result<()> {
    let registry = FaultyRegistry::start(Fault::ManifestsAfter(usize::MAX))?;
    let folder = tempfile::tempdir()?;
    let target = format!("{}/plugin:1.0", registry.address);
    let arguments = ["--plain-http", "--push", &target];
    run(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    let all = registry.accepted_manifests();
    // The image, two artifacts, their index and the tag.
    ensure!(all.len() >= 5, "{all:?}");
    ensure!(all.last().is_some_and(|last| last == "1.0"), "the tag is not the last: {all:?}");
    for count in 0..all.len() {
        for fault in [Fault::ManifestsAfter(count), Fault::ConnectionAfter(count)] {
            let (error, accepted) = push(context, fault)?;
            ensure!(accepted == all[..count], "{fault:?}: {accepted:?}");
            let hint = "\nhint: nothing was tagged; run the same command again to continue\n";
            ensure!(error.ends_with(hint), "{fault:?}: {error}");
        }
    }
    Ok(())
}

fn unreachable(context: &Context) -> Result<()> {
    let folder = tempfile::tempdir()?;
    // Nothing listens on the port for TCP multiplexing.
    let arguments = ["--plain-http", "--push", "127.0.0.1:1/plugin:1.0"];
    let error = failure(&mut context.builds.stub_command(folder.path(), 1, &arguments))?;
    ensure!(error.starts_with("error: cannot read 127.0.0.1:1/plugin:1.0: "), "{error}");
    ensure!(error.contains("connection refused"), "{error}");
    Ok(())
}

fn no_skopeo(context: &Context) -> Result<()> {
    let folder = tempfile::tempdir()?;
    let arguments = ["--push", "127.0.0.1:1/plugin:1.0"];
    let mut push = context.builds.stub_command(folder.path(), 1, &arguments);
    let error = failure(push.env("PATH", folder.path()))?;
    let expected = "error: skopeo is not installed; it pushes images\n\
                    hint: install it; in Debian the package is `skopeo`\n";
    ensure!(error == expected, "{error}");
    ensure!(!folder.path().join(PLUGIN).exists(), "the image was built first");
    Ok(())
}
