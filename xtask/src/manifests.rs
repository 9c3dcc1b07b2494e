//! The manifests in `deploy`, which are renderings of the Helm chart. Each folder in `deploy/values`
//! is one manifest, and each of its files has the values of one release. The chart's `defaults.yaml`
//! is a copy of its `values.yaml`.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use crate::prerequisites;
use crate::process::{stage, stdout};
use crate::workspace;

/// The manifest of the feature discovery, which is applied in addition to one of the plugin.
const DISCOVERY: &str = "feature-discovery";

/// The newest Kubernetes whose policies the chart uses.
const KUBERNETES: &str = "1.36.0";

/// Writes all manifests.
pub(crate) fn update() -> Result<()> {
    // The templates read the defaults.
    let (path, text) = defaults()?;
    fs::write(path, text)?;
    for (path, text) in rendered()? {
        fs::write(&path, text).with_context(|| format!("cannot write {}", path.display()))?;
    }
    stage("read the changes with `git diff`");
    Ok(())
}

/// Fails unless the manifests are what the chart renders.
pub(crate) fn check() -> Result<()> {
    for (path, text) in [defaults()?].into_iter().chain(rendered()?) {
        let found = fs::read_to_string(&path);
        let found = found.with_context(|| format!("cannot read {}", path.display()))?;
        ensure!(
            found == text,
            "{} is not what the chart renders: run `cargo xtask update --manifests`",
            path.display()
        );
    }
    Ok(())
}

/// The path and the text of each manifest.
fn rendered() -> Result<Vec<(PathBuf, String)>> {
    let deploy = workspace::root().join("deploy");
    let helm = prerequisites::helm()?.join("helm");
    let manifests = sorted(&deploy.join("values"))?;
    manifests
        .into_iter()
        .map(|values| {
            let name = values.file_name().context("a manifest without a name")?;
            let path = deploy.join(name).with_extension("yml");
            Ok((path, manifest(&helm, &values)?))
        })
        .collect()
}

/// The values of the chart without comments, in a file that its templates can read.
fn defaults() -> Result<(PathBuf, String)> {
    let chart = workspace::root().join("deploy/charts/directx-device-plugin");
    let values = fs::read_to_string(chart.join("values.yaml"))?;
    let mut text = "# The values of values.yaml, by `cargo xtask update --manifests`.\n".to_owned();
    for line in values.lines() {
        if !line.is_empty() && !line.trim_start().starts_with('#') {
            text += line;
            text.push('\n');
        }
    }
    Ok((chart.join("defaults.yaml"), text))
}

/// The releases whose values are in `folder`, after the comment of the first one.
fn manifest(helm: &Path, folder: &Path) -> Result<String> {
    let name = folder.file_name().and_then(OsStr::to_str).context("a name that is no text")?;
    let mut text =
        format!("# Rendered from deploy/values/{name} by `cargo xtask update --manifests`.\n");
    for (index, values) in sorted(folder)?.iter().enumerate() {
        if index == 0 {
            let values = fs::read_to_string(values)?;
            text += "#\n";
            for line in values.lines().take_while(|line| line.starts_with('#')) {
                text.extend([line, "\n"]);
            }
        }
        let release = values.file_stem().context("values without a name")?;
        let mut template = Command::new(helm);
        template.arg("template").arg(release);
        template.arg(workspace::root().join("deploy/charts/directx-device-plugin"));
        template.args(["--namespace", "kube-system", "--no-hooks", "--kube-version", KUBERNETES]);
        template.arg("--values").arg(values);
        if name == DISCOVERY {
            template.args(["--show-only", "templates/feature-discovery.yaml"]);
        }
        let objects = stdout(&mut template);
        let objects = objects.with_context(|| format!("cannot render {}", values.display()))?;
        let is_source = |line: &&str| !line.starts_with("# Source: ");
        text.extend(objects.lines().filter(is_source).map(|line| format!("{line}\n")));
    }
    Ok(text)
}

fn sorted(folder: &Path) -> Result<Vec<PathBuf>> {
    let entries =
        fs::read_dir(folder).with_context(|| format!("cannot read {}", folder.display()))?;
    let mut paths = entries.map(|entry| Ok(entry?.path())).collect::<Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}
