//! What must succeed before something is published, and what the jobs that publish run.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::files::{jobs, may_write, steps, workflows};

/// The jobs that must succeed before anything is published.
const TESTS: [&str; 3] = ["linux/oldest-rust", "linux/test", "windows/test"];

/// Wine has neither `AF_UNIX` nor HCS, so only Windows shows that the product works there. The node
/// has never run, so a build of `main` does not need it.
#[test]
fn publishing_needs_the_tests_on_windows_and_with_the_oldest_rust() {
    let main = needed("test", "publish");
    let release = needed("release", "publish");
    for test in TESTS {
        assert!(main.contains(test), "test.yml publishes without {test}: {main:?}");
    }
    assert!(release.contains("windows-node/hosted"), "{release:?}");
    // A test that is added to test.yml also counts for a release.
    let workflow = jobs("test");
    let names = workflow.as_object().unwrap().keys();
    let tested: BTreeSet<String> =
        names.filter(|name| *name != "publish").flat_map(|name| parts("test", name)).collect();
    assert!(tested.len() > TESTS.len(), "{tested:?}");
    let missing: Vec<_> = tested.difference(&release).collect();
    assert!(missing.is_empty(), "release.yml publishes without {missing:?}");
}

/// What a job needs does not count if the job runs in any case, or if a failure is accepted.
#[test]
fn no_failure_is_ignored() {
    for workflow in workflows() {
        for (name, job) in jobs(&workflow).as_object().unwrap() {
            let condition = job["if"].as_str().unwrap_or_default();
            for function in ["always()", "cancelled()", "failure()"] {
                assert!(!condition.contains(function), "{workflow}/{name}: {condition}");
            }
            let ignored = match (&*workflow, &**name) {
                // containerd does not test on this system either.
                ("windows-node", "hosted") => "${{ matrix.os == 'windows-2025' }}".into(),
                _ => Value::Null,
            };
            assert_eq!(job["continue-on-error"], ignored, "{workflow}/{name}");
        }
    }
}

/// The default is 90 days, for several hundred megabytes of each push to a pull request.
#[test]
fn artifacts_live_for_days() {
    let mut count = 0;
    for workflow in workflows() {
        for (name, job) in jobs(&workflow).as_object().unwrap() {
            for step in job["steps"].as_array().into_iter().flatten() {
                if step["uses"].as_str().is_some_and(|uses| uses.contains("/upload-artifact@")) {
                    let days = step["with"]["retention-days"].as_u64();
                    assert!(days.is_some_and(|days| days <= 7), "{workflow}/{name}: {days:?}");
                    count += 1;
                }
            }
        }
    }
    assert!(count > 5, "only {count} artifacts");
}

/// Actions that run only what their commit contains, or compare what they download with a digest in
/// that commit, as cosign-installer does.
const PINNED: [&str; 6] = [
    "actions/attest",
    "actions/checkout",
    "actions/deploy-pages",
    "actions/download-artifact",
    "actions/upload-artifact",
    "sigstore/cosign-installer",
];

/// Whoever controls what a job with credentials runs can publish and sign as this repository. The
/// commit of an action says nothing about a script or an image that it downloads.
#[test]
fn jobs_with_credentials_run_only_what_is_pinned() {
    let mut found = Vec::new();
    for workflow in workflows() {
        for (name, job) in jobs(&workflow).as_object().unwrap() {
            let has_secret = steps(job).any(|step| step["env"].to_string().contains("secrets."));
            if !job["uses"].is_null() || !may_write(job) && !has_secret {
                continue;
            }
            found.push(format!("{workflow}/{name}"));
            assert!(job["container"].is_null(), "{workflow}/{name} runs a container");
            for uses in job["steps"].as_array().unwrap().iter().filter_map(|s| s["uses"].as_str()) {
                let action = uses.split('@').next().unwrap();
                assert!(PINNED.contains(&action), "{workflow}/{name} uses {action}");
            }
            for step in steps(job) {
                let script = step["run"].as_str().unwrap();
                for word in ["cargo", "chmod", "curl", "docker run", "go ", "npx", "pip", "wget"] {
                    assert!(!script.contains(word), "{workflow}/{name} runs `{word}`");
                }
            }
        }
    }
    found.sort();
    assert_eq!(found, ["package/sign", "publish/publish", "release/release", "site/deploy"]);
}

/// Two jobs at the same time could both find the older image. The script fails without the history.
#[test]
fn one_job_publishes_at_a_time_and_knows_the_history() {
    let job = &jobs("publish")["publish"];
    assert_eq!(job["concurrency"]["group"], "publish-${{ github.ref }}");
    assert_eq!(job["concurrency"]["cancel-in-progress"], false);
    assert_eq!(job["steps"][0]["with"]["fetch-depth"], 0);
}

/// Every job of a run may replace the artifacts of the others.
#[test]
fn an_artifact_that_another_job_replaced_is_refused() {
    let mut count = 0;
    for workflow in ["package", "publish", "release"] {
        for (name, job) in jobs(workflow).as_object().unwrap() {
            let all: Vec<_> = job["steps"].as_array().into_iter().flatten().collect();
            let is_download = |step: &&&Value| step["uses"].to_string().contains("/download-");
            let downloads = all.iter().filter(is_download).count();
            let Some(last) = all.iter().rposition(|step| is_download(&step)) else { continue };
            let next = all[last + 1];
            let digests = next["env"].as_object().unwrap();
            assert_eq!(digests.len(), downloads, "{workflow}/{name}");
            for digest in digests.values().map(|digest| digest.as_str().unwrap()) {
                let is_output = digest.contains(".outputs.") || digest.contains("inputs.dist");
                assert!(is_output, "{workflow}/{name}: {digest}");
            }
            let first = next["run"].as_str().unwrap().lines().next().unwrap();
            let is_compared = first.ends_with(" | sha256sum --check --strict");
            let has_all = digests.keys().all(|name| first.contains(&format!("\"${name}")));
            assert!(is_compared && has_all, "{workflow}/{name}: {first}");
            count += 1;
        }
    }
    assert_eq!(count, 5);
}

/// The names of the jobs that a job waits for.
fn needs(job: &Value) -> Vec<String> {
    match &job["needs"] {
        Value::String(name) => vec![name.clone()],
        Value::Array(names) => names.iter().map(|name| name.as_str().unwrap().into()).collect(),
        _ => Vec::new(),
    }
}

/// Every job, as `WORKFLOW/JOB`, that must succeed before a job of a workflow starts.
fn needed(workflow: &str, job: &str) -> BTreeSet<String> {
    let names = needs(&jobs(workflow)[job]);
    let each = names.iter().map(|name| &parts(workflow, name) | &needed(workflow, name));
    each.fold(BTreeSet::new(), |all, some| &all | &some)
}

/// A job, or the jobs of the workflow that it calls.
fn parts(workflow: &str, job: &str) -> BTreeSet<String> {
    let called = jobs(workflow)[job]["uses"].as_str().map(str::to_owned);
    let Some(called) = called else { return BTreeSet::from([format!("{workflow}/{job}")]) };
    let called = called.trim_start_matches("./.github/workflows/").trim_end_matches(".yml");
    let names = jobs(called);
    names.as_object().unwrap().keys().flat_map(|name| parts(called, name)).collect()
}
