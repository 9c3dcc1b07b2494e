//! What `directx-visible --check` finds in a container.

use serde::Deserialize;

use crate::finding::Finding;
use crate::step::Step;

/// What `directx-visible --check --output json` prints, as far as it matters here.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    is_as_allocated: bool,
    apis: Vec<Row>,
}

#[derive(Deserialize)]
struct Row {
    api: String,
    call: String,
    verdict: String,
    unfiltered: serde_json::Value,
    filtered: serde_json::Value,
}

/// The variables that the program reads begin with it.
pub(super) const VARIABLE: &str = "DIRECTX_VISIBLE_DEVICES";

/// Judges what the program printed; `None` if that is no report.
pub(super) fn judge(text: &str) -> Option<Finding> {
    let Report { is_as_allocated, apis } = serde_json::from_str(text).ok()?;
    let counts = [
        ("okCalls", "ok"),
        ("differentCalls", "different"),
        ("failedCalls", "failed"),
        ("absentCalls", "absent"),
    ]
    .map(|(key, verdict)| (key, apis.iter().filter(|row| row.verdict == verdict).count().into()));
    if is_as_allocated {
        let what = "directx-visible shows exactly the allocated devices";
        return Some(Step::Container.ok(what).measured(counts));
    }
    let different = apis
        .iter()
        .filter(|row| row.verdict == "different")
        .map(|row| format!("{} {}: {} -> {}", row.api, row.call, row.unfiltered, row.filtered));
    let what = "directx-visible does not show exactly the allocated devices";
    let hint =
        concat!("the table of APIs says what is known: ", env!("PAGES"), "docs/visibility.md");
    Some(Step::Container.failed(what, hint).measured(counts).detail(different))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Status;

    #[test]
    fn the_report_of_the_check_is_judged() {
        let row = |verdict| {
            format!(
                r#"{{"api":"vulkan","call":"B","verdict":"{verdict}",
                "unfiltered":{{"devices":{{"luids":[1,2]}}}},"filtered":{{"failed":"x"}}}}"#
            )
        };
        let verdicts = "ok ok ok ok different failed failed absent absent absent";
        let rows: Vec<String> = verdicts.split(' ').map(row).collect();
        let rows = rows.join(",");
        let report = |is_as_allocated: bool| {
            format!(r#"{{"allocated":[1],"isAsAllocated":{is_as_allocated},"apis":[{rows}]}}"#)
        };
        let counts =
            [("okCalls", 4), ("differentCalls", 1), ("failedCalls", 2), ("absentCalls", 3)]
                .map(|(key, count)| (key, count.into()));
        let detail = r#"vulkan B: {"devices":{"luids":[1,2]}} -> {"failed":"x"}"#;
        for (is_as_allocated, status, what, details) in [
            (true, Status::Ok, "directx-visible shows exactly", &[][..]),
            (false, Status::Failed, "directx-visible does not show exactly", &[detail]),
        ] {
            let found = judge(&report(is_as_allocated)).unwrap();
            assert_eq!(
                (found.status, found.what),
                (status, format!("{what} the allocated devices"))
            );
            assert_eq!(found.measurements, counts);
            assert_eq!(found.details, details);
        }
        for other in ["", "{}", "error: no report"] {
            assert_eq!(judge(other), None, "{other}");
        }
    }
}
