//! The cluster and the node that the options and the environment describe.

use cluster::{Access, Client};
use node::cli::Failure;

use crate::command_line::CommandLine;
use crate::node_state::MANAGER;
use crate::reporter::Reporter;

/// A reporter for this node.
pub(crate) fn reporter(line: &CommandLine) -> Result<Reporter, Failure> {
    let node = line.node_name.clone().or_else(|| std::env::var("NODE_NAME").ok());
    let node = node.filter(|name| !name.is_empty()).ok_or_else(|| {
        Failure::usage(anyhow::anyhow!("the name of the node is unknown"))
            .hint("use `--node-name NAME` or the variable NODE_NAME; `--print` needs no cluster")
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
    Ok(Reporter::new(client, line.gfd_labels, line.startup_taint.clone()))
}
