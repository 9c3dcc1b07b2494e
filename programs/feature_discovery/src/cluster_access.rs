//! The cluster and the node that the options and the environment describe.

use cli::Failure;
use cluster::{Access, Client};

use crate::command_line::CommandLine;
use crate::config_selection::SelectionFile;
use crate::feature_object::FeatureObject;
use crate::node_state::MANAGER;
use crate::reporter::{Report, Reporter};

/// A reporter for this node.
pub(crate) fn reporter(line: &CommandLine) -> Result<Reporter, Failure> {
    let node = line.node_name.clone().or_else(|| std::env::var("NODE_NAME").ok());
    let node = node.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!("the name of the node is unknown")).hint(
            "use `--node-name NAME` or the variable NODE_NAME; `--print` and `--output FILE` need \
             no cluster",
        )
    })?;
    let access = match &line.kubeconfig {
        Some(file) => Access::of_kubeconfig(file),
        None => Access::of_pod(|name| std::env::var(name).ok()),
    };
    let client = access.and_then(|access| Client::new(access, MANAGER, &node));
    let client = client.map_err(|error| {
        let hint = error.hint();
        Failure::usage(error).hint(hint)
    })?;
    let selection = line.select_config.then(|| line.input.config.selection()).flatten();
    let report = Report {
        family: line.labels.family(),
        startup_taint: line.startup_taint.clone(),
        selection: selection.map(|path| SelectionFile::new(path.to_owned())),
        feature: line.labels.node_feature.then(FeatureObject::default),
    };
    Ok(Reporter::new(report, client))
}
