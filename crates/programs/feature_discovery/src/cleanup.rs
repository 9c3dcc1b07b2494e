//! `cleanup`: removes from the nodes what this program has written, before it is uninstalled.

use std::path::PathBuf;
use std::pin::pin;

use anyhow::anyhow;
use clap::Args;
use cluster::{Client, ClusterError, Node, ResourceExt as _, applied_labels, condition, has_taint};
use command_line::{Failure, error_chain};
use daemon::event_loop;
use devices::report::ConditionKind;
use futures_util::TryStreamExt as _;
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

/// How many nodes are cleaned at a time.
const PARALLEL: usize = 8;

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
    let taint = &arguments.startup_taint;
    let (mut count, mut failed) = (0, 0);
    let mut report = |name: &str, outcome: Result<String, ClusterError>| {
        count += 1;
        failed += usize::from(outcome.is_err());
        print(&format!("{name}: {}\n", outcome.unwrap_or_else(|error| error_chain(&error))))
    };
    if let Some(name) = &arguments.node {
        report(name, clean_named(&client.for_node(name), taint).await)?;
    } else {
        let nodes = client.all_nodes().map_ok(|node| async move {
            let name = node.name_any();
            let outcome = clean_listed(&client.for_node(&name), &node, taint).await;
            Ok((name, outcome))
        });
        let mut cleaned = pin!(nodes.try_buffered(PARALLEL));
        let failure = |error| Failure::runtime(error).hint(HINT);
        while let Some((name, outcome)) = cleaned.try_next().await.map_err(failure)? {
            report(&name, outcome)?;
        }
    }
    if failed > 0 {
        let error = anyhow!("{failed} of {count} nodes could not be cleaned");
        return Err(Failure::runtime(error).hint(HINT));
    }
    Ok(())
}

/// Cleans the node of the client, and says what was removed.
async fn clean_named(client: &Client, startup_taint: &str) -> Result<String, ClusterError> {
    let mut removed = Vec::new();
    clean(client, &client.node().await?, startup_taint, &mut removed).await?;
    Ok(text_of(&removed))
}

/// Cleans the node of the client, which was `node` when all nodes were listed, and says what was
/// removed. If it has changed since, it is read again.
async fn clean_listed(
    client: &Client,
    node: &Node,
    startup_taint: &str,
) -> Result<String, ClusterError> {
    let mut removed = Vec::new();
    match clean(client, node, startup_taint, &mut removed).await {
        Err(ClusterError::Refused(_, status)) if matches!(status.code, 404 | 409 | 422) => {
            match client.node().await {
                Err(ClusterError::Refused(_, status)) if status.code == 404 => {
                    return Ok("no longer exists".to_owned());
                }
                node => clean(client, &node?, startup_taint, &mut removed).await?,
            }
        }
        outcome => outcome?,
    }
    Ok(text_of(&removed))
}

fn text_of(removed: &[&str]) -> String {
    if removed.is_empty() {
        return "nothing to remove".to_owned();
    }
    format!("removed {}", removed.join(", "))
}

/// Cleans the node of the client, which was `node` when it was read, and adds to `removed` what was
/// removed.
async fn clean(
    client: &Client,
    node: &Node,
    startup_taint: &str,
    removed: &mut Vec<&'static str>,
) -> Result<(), ClusterError> {
    if !applied_labels(node, MANAGER).is_empty() {
        client.remove_labels().await?;
        removed.push("labels");
    }
    let mut conditions: Vec<&str> =
        ConditionKind::VARIANTS.iter().map(|kind| kind.name()).collect();
    conditions.retain(|kind| condition(node, kind).is_some());
    if !conditions.is_empty() {
        client.remove_conditions(&conditions).await?;
        removed.push("conditions");
    }
    if has_taint(node, startup_taint) {
        client.remove_taint(node, startup_taint).await?;
        removed.push("startup taint");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::time::Duration;

    use cluster::TestServer;
    use serde_json::{Value, json};
    use tokio::time::Instant;

    use super::*;

    const TAINT: &str = "directx.microsoft.com/not-ready";

    /// A node with what this program has written, and what others have.
    fn labeled() -> Value {
        let labels = json!({
            "directx.microsoft.com/count": "1", "directx.microsoft.com/demonstration": "true", "other": "1"
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

    /// A large cluster behind a slow network. Five thousand nodes must take less than four minutes.
    #[tokio::test(start_paused = true)]
    async fn several_nodes_are_cleaned_at_a_time_without_a_request_to_read_each() {
        let server = TestServer::new(labeled());
        for number in 2..=80 {
            server.add(format!("node-{number}").leak(), labeled());
        }
        server.answer_after(Duration::from_secs(1), "PATCH");
        let began = Instant::now();
        let (printed, result) = cleaned(&server, None).await;
        assert!(result.is_ok(), "{printed}");
        let expected = ": removed labels, conditions, startup taint\n";
        assert_eq!(printed.matches(expected).count(), 80, "{printed}");
        // Three changes of each node.
        assert_eq!(began.elapsed(), Duration::from_secs(80 / 8 * 3));
        let requests = server.requests();
        let reads = requests.iter().filter(|request| request.name.starts_with("GET"));
        assert!(reads.clone().all(|request| request.name == "GET /api/v1/nodes"));
        assert_eq!(reads.count(), 80, "one for each page");
    }

    /// The list of the nodes is old when its last node is cleaned.
    #[tokio::test]
    async fn a_node_that_changes_meanwhile_is_read_again() {
        let server = TestServer::new(labeled());
        let mut listed = labeled();
        listed["spec"]["taints"] = json!([{"key": TAINT, "effect": "NoSchedule"}]);
        let listed: Node = serde_json::from_value(listed).unwrap();
        let client = server.client();
        let outcome = clean_listed(&client, &listed, TAINT).await.unwrap();
        assert_eq!(outcome, "removed labels, conditions, startup taint");
        assert_eq!(
            server.node()["spec"]["taints"],
            json!([{"key": "other", "effect": "NoSchedule"}])
        );
        let outcome = clean_listed(&client.for_node("node-9"), &listed, TAINT).await.unwrap();
        assert_eq!(outcome, "no longer exists");
        server.change(|node| *node = labeled());
        server.refuse(422, "AdmissionPolicy", "PATCH");
        assert!(clean_listed(&client, &listed, TAINT).await.is_err());
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
        let labels = json!({"directx.microsoft.com/demonstration": "true", "other": "1"});
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
