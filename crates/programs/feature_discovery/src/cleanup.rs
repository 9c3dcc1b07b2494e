//! `cleanup`: removes from the nodes what this program has written, before it is uninstalled.

use std::path::PathBuf;

use anyhow::anyhow;
use clap::Args;
use cluster::{Client, ClusterError, applied_labels, condition, has_taint};
use command_line::{Failure, error_chain};
use daemon::event_loop;
use devices::report::ConditionKind;
use strum::VariantArray as _;

use crate::reconcile::MANAGER;

pub(crate) const EXAMPLES: &str = "\
Examples:
  Clean every node, with the current context of a kubeconfig file:
    directx-feature-discovery cleanup --kubeconfig config
  Clean one node, in a pod:
    directx-feature-discovery cleanup --node node-1

The account needs the verbs get, list and patch for nodes, and patch for nodes/status. The command
removes the labels and the conditions that this program has set, and the startup taint. It can be
repeated. The exit status is 1 if a node could not be cleaned.";

const HINT: &str =
    "run it again, with an account that may get, list and patch nodes, and patch nodes/status";

#[derive(Args, Debug)]
#[command(after_help = EXAMPLES)]
pub(crate) struct CleanupArguments {
    /// Clean only the node with this name [default: every node]
    #[arg(long, value_name = "NAME")]
    node: Option<String>,
    /// Key of the startup taint
    #[arg(long, value_name = "KEY", default_value = "directx.microsoft.com/not-ready")]
    startup_taint: String,
    /// Kubeconfig file to use instead of the account of the pod
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
}

/// Cleans the nodes, and prints what it does.
pub(crate) fn run(arguments: &CleanupArguments) -> Result<(), Failure> {
    let event_loop = event_loop::build()?;
    let _entered = event_loop.enter();
    let node = arguments.node.as_deref().unwrap_or_default();
    let client = crate::client(arguments.kubeconfig.as_deref(), node)?;
    event_loop.block_on(clean_nodes(&client, arguments, command_line::print))
}

async fn clean_nodes(
    client: &Client,
    arguments: &CleanupArguments,
    print: impl Fn(&str) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let names = match &arguments.node {
        Some(name) => vec![name.clone()],
        None => client.node_names().await.map_err(|error| Failure::runtime(error).hint(HINT))?,
    };
    let mut failed = 0;
    for name in &names {
        let outcome = match clean(&client.for_node(name), &arguments.startup_taint).await {
            Ok(removed) if removed.is_empty() => "nothing to remove".to_owned(),
            Ok(removed) => format!("removed {}", removed.join(", ")),
            Err(error) => {
                failed += 1;
                error_chain(&error)
            }
        };
        print(&format!("{name}: {outcome}\n"))?;
    }
    if failed > 0 {
        let error = anyhow!("{failed} of {} nodes could not be cleaned", names.len());
        return Err(Failure::runtime(error).hint(HINT));
    }
    Ok(())
}

/// Cleans the node of the client, and returns what was removed.
async fn clean(client: &Client, startup_taint: &str) -> Result<Vec<&'static str>, ClusterError> {
    let node = client.node().await?;
    let mut removed = Vec::new();
    if !applied_labels(&node, MANAGER).is_empty() {
        client.remove_labels().await?;
        removed.push("labels");
    }
    let mut conditions: Vec<&str> =
        ConditionKind::VARIANTS.iter().map(|kind| kind.name()).collect();
    conditions.retain(|kind| condition(&node, kind).is_some());
    if !conditions.is_empty() {
        client.remove_conditions(&conditions).await?;
        removed.push("conditions");
    }
    if has_taint(&node, startup_taint) {
        client.remove_taint(&node, startup_taint).await?;
        removed.push("startup taint");
    }
    Ok(removed)
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use cluster::TestServer;
    use serde_json::{Value, json};

    use super::*;

    const TAINT: &str = "directx.microsoft.com/not-ready";

    /// A node with what this program has written, and what others have.
    fn labeled() -> Value {
        let labels = json!({
            "directx.microsoft.com/count": "1", "directx.microsoft.com/dxg": "true", "other": "1"
        });
        json!({
            "metadata": {"labels": labels, "managedFields": [{
                "manager": MANAGER, "operation": "Apply",
                "fieldsV1": {"f:metadata": {"f:labels": {"f:directx.microsoft.com/count": {}}}},
            }]},
            "spec": {"taints": [{"key": "other", "effect": "NoSchedule"},
                {"key": TAINT, "effect": "NoSchedule"}]},
            "status": {"conditions": [{"type": "DirectXDevicesHealthy", "status": "True"},
                {"type": "DirectXDevicesReady", "status": "False"},
                {"type": "Ready", "status": "True"}]},
        })
    }

    /// Cleans, and returns what was printed.
    async fn cleaned(server: &TestServer, node: Option<&str>) -> (String, Result<(), Failure>) {
        let arguments = CleanupArguments {
            node: node.map(str::to_owned),
            startup_taint: TAINT.to_owned(),
            kubeconfig: None,
        };
        let printed = RefCell::default();
        let result = clean_nodes(&server.client(), &arguments, |line| {
            *printed.borrow_mut() += line;
            Ok(())
        })
        .await;
        (printed.into_inner(), result)
    }

    fn writes(server: &TestServer) -> usize {
        let requests = server.requests();
        requests.iter().filter(|request| request.name.starts_with("PATCH")).count()
    }

    #[tokio::test]
    async fn only_what_this_program_has_written_is_removed_and_only_once() {
        let server = TestServer::new(labeled());
        let (printed, result) = cleaned(&server, None).await;
        assert_eq!(printed, "node-1: removed labels, conditions, startup taint\n");
        assert!(result.is_ok() && writes(&server) == 3);
        let node = server.node();
        let labels = json!({"directx.microsoft.com/dxg": "true", "other": "1"});
        assert_eq!(node["metadata"]["labels"], labels);
        assert_eq!(node["spec"]["taints"], json!([{"key": "other", "effect": "NoSchedule"}]));
        assert_eq!(node["status"]["conditions"], json!([{"type": "Ready", "status": "True"}]));
        let (printed, result) = cleaned(&server, None).await;
        assert_eq!(printed, "node-1: nothing to remove\n");
        assert!(result.is_ok() && writes(&server) == 0);
    }

    #[tokio::test]
    async fn a_node_that_cannot_be_cleaned_is_an_error_and_the_others_are_cleaned() {
        let server = TestServer::new(labeled());
        server.add("node-0", labeled());
        server.refuse(403, "no", "PATCH /api/v1/nodes/node-0");
        let (printed, result) = cleaned(&server, None).await;
        let (first, second) = printed.split_once('\n').unwrap();
        assert!(
            first.starts_with("node-0: the API server refused to remove the labels"),
            "{first}"
        );
        assert_eq!(second, "node-1: removed labels, conditions, startup taint\n");
        let failure = result.unwrap_err();
        assert_eq!(failure.chain(), "1 of 2 nodes could not be cleaned");
        assert!(failure.hint_text().is_some_and(|hint| hint.contains("patch nodes/status")));
    }

    #[tokio::test]
    async fn one_node_can_be_named() {
        let server = TestServer::new(labeled());
        server.add("node-2", labeled());
        let (printed, result) = cleaned(&server, Some("node-2")).await;
        assert_eq!(printed, "node-2: removed labels, conditions, startup taint\n");
        assert!(result.is_ok());
        assert_eq!(server.node()["metadata"]["labels"], labeled()["metadata"]["labels"]);
        assert!(server.requests().iter().all(|request| request.name.contains("nodes/node-2")));
        let (printed, result) = cleaned(&server, Some("node-3")).await;
        assert!(printed.contains("node-3: the API server refused to read the node with 404"));
        assert!(result.is_err());
    }

    #[tokio::test]
    async fn nodes_that_cannot_be_listed_are_an_error() {
        let server = TestServer::new(labeled());
        server.refuse(403, "no", "GET");
        let (printed, result) = cleaned(&server, None).await;
        assert_eq!(printed, "");
        assert!(result.unwrap_err().chain().contains("refused to list the nodes"));
    }
}
