//! `cleanup`: removes from the nodes what this program has written, before it is uninstalled.

use std::collections::HashSet;
use std::path::PathBuf;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;
use cluster::{
    Client, ClusterError, FailureKind, Node, ResourceExt as _, applied_labels, condition, has_taint,
};
use command_line::{Failure, error_chain};
use futures_util::stream::{StreamExt as _, iter};
use process::event_loop;
use report::ConditionKind;
use strum::VariantArray as _;
use tokio::time::sleep;

use crate::reconcile::{MANAGER, delay, growing};

pub(crate) const EXAMPLES: &str = "\
Examples:
  Clean every node, with the current context of a kubeconfig file:
    directx-feature-discovery cleanup --kubeconfig config
  Clean one node, in a pod:
    directx-feature-discovery cleanup --node node-1

The account needs the verbs get, list and patch for nodes, and patch for nodes/status. The command
removes the labels and the conditions that this program has set, and the startup taint. It can be
repeated. The exit status is 1 if a node could not be cleaned.";

/// The hint if the server refuses the account.
const ACCOUNT_HINT: &str =
    "run it again, with an account that may get, list and patch nodes, and patch nodes/status";

/// The hint if the server is overloaded, or restarts.
const BUSY_HINT: &str = "run it again when the API server answers; nodes that are clean stay clean";

/// The shortest pause before a request is repeated that failed for a reason that may pass. It
/// doubles each time.
const PAUSE: Duration = Duration::from_millis(500);

/// How many times such a request is made, and how many times the nodes are listed again although
/// no other node was found. The pauses take one to two minutes together, and what the server asks
/// for.
const TRIES: usize = 8;

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
    let (mut count, mut failed, mut hint) = (0, 0, None);
    let mut report = |name: &str, outcome: Result<String, ClusterError>| {
        count += 1;
        let text = outcome.unwrap_or_else(|error| {
            failed += 1;
            hint = hint.or(hint_of(&error));
            error_chain(&error)
        });
        print(&format!("{name}: {text}\n"))
    };
    if let Some(name) = &arguments.node {
        report(name, clean_named(&client.for_node(name), taint).await)?;
    } else {
        let mut known = HashSet::new();
        let mut lists = 1;
        let mut token = None;
        loop {
            let (nodes, next) = match patiently(|| client.nodes_page(token.as_deref())).await {
                Ok(page) => page,
                // The list is too old. The server may say how to continue with the nodes as they are
                // now; otherwise it begins again.
                Err(error) if error.kind() == FailureKind::Refused(410) && lists < TRIES => {
                    lists += 1;
                    token = error.next_page();
                    continue;
                }
                Err(error) => {
                    let hint = hint_of(&error).map(str::to_owned);
                    return Err(Failure::runtime(error).hint_if_any(hint));
                }
            };
            let new: Vec<Node> =
                nodes.into_iter().filter(|node| known.insert(node.name_any())).collect();
            if !new.is_empty() {
                lists = 1;
            }
            let mut cleaned = iter(new)
                .map(|node| async move {
                    let name = node.name_any();
                    let outcome = clean_listed(&client.for_node(&name), &node, taint).await;
                    (name, outcome)
                })
                .buffered(PARALLEL);
            while let Some((name, outcome)) = cleaned.next().await {
                report(&name, outcome)?;
            }
            token = next;
            if token.is_none() {
                break;
            }
        }
    }
    if failed > 0 {
        let error = anyhow!("{failed} of {count} nodes could not be cleaned");
        return Err(Failure::runtime(error).hint_if_any(hint.map(str::to_owned)));
    }
    Ok(())
}

/// What an administrator can do about the failure.
fn hint_of(error: &ClusterError) -> Option<&'static str> {
    let kind = error.kind();
    if kind == FailureKind::Refused(403) || error.is_of_policy() {
        return Some(ACCOUNT_HINT);
    }
    if error.is_temporary() && kind != FailureKind::Unreachable {
        return Some(BUSY_HINT);
    }
    error.hint()
}

/// Repeats a request that fails for a reason that may pass.
async fn patiently<T>(
    mut request: impl AsyncFnMut() -> Result<T, ClusterError>,
) -> Result<T, ClusterError> {
    let mut delays = growing(PAUSE);
    let mut tries = 1;
    loop {
        match request().await {
            Err(error) if error.is_temporary() && tries < TRIES => {
                tries += 1;
                sleep(delay(&mut delays, error.retry_after())).await;
            }
            answer => return answer,
        }
    }
}

/// Cleans the node of the client, and says what was removed.
async fn clean_named(client: &Client, startup_taint: &str) -> Result<String, ClusterError> {
    clean_listed(client, &patiently(|| client.node()).await?, startup_taint).await
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
            match patiently(|| client.node()).await {
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
        patiently(|| client.remove_labels()).await?;
        removed.push("labels");
    }
    let mut conditions: Vec<&str> =
        ConditionKind::VARIANTS.iter().map(|kind| kind.name()).collect();
    conditions.retain(|kind| condition(node, kind).is_some());
    if !conditions.is_empty() {
        patiently(|| client.remove_conditions(&conditions)).await?;
        removed.push("conditions");
    }
    if has_taint(node, startup_taint) {
        patiently(|| client.remove_taint(node, startup_taint)).await?;
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
        let reads: Vec<&str> = reads.map(|request| &*request.name).collect();
        assert_eq!(reads, ["GET /api/v1/nodes"]);
    }

    /// As during a rolling update of the control plane.
    #[tokio::test(start_paused = true)]
    async fn a_busy_server_delays_and_leaves_no_node() {
        for (number, code, part) in
            [(10, 429, ""), (10, 500, ""), (4, 503, "PATCH"), (2, 410, "continue="), (5, 504, "")]
        {
            let server = TestServer::new(labeled());
            for number in 2..=1000 {
                server.add(format!("node-{number}").leak(), labeled());
            }
            server.refuse_each(number, code, part);
            let (printed, result) = cleaned(&server, None).await;
            assert!(result.is_ok(), "{code}: {:?}", result.err().map(|failure| failure.chain()));
            let expected = ": removed labels, conditions, startup taint\n";
            assert_eq!(printed.matches(expected).count(), 1000, "{code}");
            assert_eq!(printed.lines().count(), 1000, "each node once");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_stays_busy_is_an_error_with_a_hint_of_its_kind() {
        for (code, hint) in [
            (429, "when the API server answers"),
            (500, "when the API server answers"),
            (401, "expired"),
            (403, "patch nodes/status"),
        ] {
            for part in ["PATCH", "GET"] {
                let server = TestServer::new(labeled());
                server.refuse(code, "the reason", part);
                let began = Instant::now();
                let failure = cleaned(&server, None).await.1.unwrap_err();
                let has_waited = began.elapsed() > Duration::from_mins(1);
                assert_eq!(has_waited, matches!(code, 429 | 500), "{part} {code}");
                let found = failure.hint_text().unwrap_or_default();
                assert!(found.contains(hint), "{part} {code}: {found}");
            }
        }
        let server = TestServer::new(labeled());
        for number in 2..=201 {
            server.add(format!("node-{number}").leak(), labeled());
        }
        server.refuse_each(1, 410, "continue=");
        let (printed, result) = cleaned(&server, None).await;
        assert_eq!(printed.lines().count(), 100, "the first page");
        assert!(result.unwrap_err().chain().contains("with 410"));
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
        server.refuse(403, "no", "GET");
        let error = clean_listed(&client, &listed, TAINT).await.unwrap_err();
        assert!(error.to_string().contains("with 403"), "{error}");
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
