//! The report, as text and as JSON.

use std::fmt::Write as _;
use std::time::Duration;

use host::printable::printable;
use serde::Serialize;

use crate::advice;
use crate::agreement::{self, Difference};
use crate::api::Api;
use crate::outcome::{DeviceOutcome, Fault, Kind, Library, Outcome};
use crate::verdict::{Demands, Verdict, judge};
use crate::visibility::{self, Expected, Visibility};

/// One tested API.
pub(crate) struct Test {
    pub(crate) api: Api,
    pub(crate) outcome: Outcome,
    pub(crate) time: Duration,
}

/// What all tests found, and the verdicts. It is serialized as the JSON document.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Report {
    verdict: &'static str,
    apis: Vec<Row>,
    /// Adapters that not all lists of Windows contain. They fail no test.
    differences: Vec<Difference>,
    visibility: Option<Visibility>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Row {
    api: &'static str,
    verdict: &'static str,
    is_failure: bool,
    library: Option<Library>,
    fault: Option<Fault>,
    milliseconds: u64,
    devices: Vec<DeviceOutcome>,
}

impl Report {
    pub(crate) fn new(tests: &[Test], demands: Demands, expected: Option<&Expected>) -> Report {
        let outcomes: Vec<_> = tests.iter().map(|test| (test.api, &test.outcome)).collect();
        let rows: Vec<Row> = tests.iter().map(|test| row(test, &outcomes, demands)).collect();
        let all = tests.iter().map(|test| &test.outcome);
        let visibility =
            expected.map(|expected| visibility::compare(expected, all, demands.allow_software));
        let works = rows.iter().any(|row| row.verdict == Verdict::Ok.name())
            && !rows.iter().any(|row| row.is_failure)
            && visibility.as_ref().is_none_or(|visibility| visibility.is_as_allocated);
        let differences = agreement::differences(&outcomes);
        let verdict = if works { "ok" } else { "failed" };
        Report { verdict, apis: rows, differences, visibility }
    }

    pub(crate) fn is_success(&self) -> bool {
        self.verdict == "ok"
    }

    /// The report for programs.
    pub(crate) fn json(&self) -> String {
        let text = serde_json::to_string_pretty(self);
        text.expect("texts and numbers can be written as JSON") + "\n"
    }

    /// The report for people.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        // Writing to a String cannot fail, here and below.
        for row in &self.apis {
            let _ = writeln!(text, "{:<8} {:<14} {}", row.api, row.verdict, headline(row));
            if row.library.is_some()
                && let Some(fault) = &row.fault
            {
                push_fault(&mut text, "  ", fault);
            } else if let Some(hint) = row.fault.as_ref().and_then(|fault| fault.hint.as_ref()) {
                let _ = writeln!(text, "  hint: {}", printable(hint));
            }
            for device in &row.devices {
                let _ = writeln!(text, "  {}", device_line(device));
                if let Some(fault) = &device.fault {
                    push_fault(&mut text, "    ", fault);
                }
            }
        }
        for difference in &self.differences {
            push_difference(&mut text, difference);
        }
        if let Some(visibility) = &self.visibility {
            push_visibility(&mut text, visibility);
        }
        let _ = writeln!(text, "{}", self.summary());
        text
    }

    fn summary(&self) -> String {
        let ok = self.count(Verdict::Ok);
        let absent = self.count(Verdict::Absent);
        let other = self.apis.len() - ok - absent;
        let none = if ok == 0 { "; no API works" } else { "" };
        format!("{}: {ok} ok, {other} failed, {absent} absent{none}", self.verdict)
    }

    fn count(&self, verdict: Verdict) -> usize {
        self.apis.iter().filter(|row| row.verdict == verdict.name()).count()
    }
}

fn row(test: &Test, all: &[(Api, &Outcome)], demands: Demands) -> Row {
    let (verdict, fault) = judge(test.api, &test.outcome, demands.allow_software);
    let fault = match verdict {
        Verdict::Absent => fault.map(|fault| advice::refine(test.api, fault, all)),
        _ => fault,
    };
    let (library, devices) = match &test.outcome {
        Outcome::Absent(_) => (None, Vec::new()),
        Outcome::Broken { library, .. } => (library.clone(), Vec::new()),
        Outcome::Listed { library, devices } => (Some(library.clone()), devices.clone()),
    };
    Row {
        api: test.api.name(),
        verdict: verdict.name(),
        is_failure: verdict.is_failure(demands),
        library,
        fault,
        milliseconds: u64::try_from(test.time.as_millis()).unwrap_or(u64::MAX),
        devices,
    }
}

/// The library, or why there is none.
fn headline(row: &Row) -> String {
    let text = match (&row.library, &row.fault) {
        (Some(Library { path, file_version, version }), _) => {
            let mut parts = vec![path.clone()];
            // The path of a library in the driver store may end with the version of the file.
            if let Some(version) = file_version
                && !path.ends_with(version)
            {
                parts.push(format!("file version {version}"));
            }
            parts.extend(version.clone());
            parts.push(format!("{} ms", row.milliseconds));
            parts.join(", ")
        }
        (None, Some(fault)) => fault.message.clone(),
        (None, None) => String::new(),
    };
    printable(&text).into_owned()
}

fn push_fault(text: &mut String, indent: &str, fault: &Fault) {
    let _ = writeln!(text, "{indent}error: {}", printable(&fault.message));
    if let Some(hint) = &fault.hint {
        let _ = writeln!(text, "{indent}hint: {}", printable(hint));
    }
}

fn device_line(device: &DeviceOutcome) -> String {
    let info = &device.info;
    let mut parts = vec![info.name.clone()];
    if info.kind == Kind::Software {
        parts.push("software".to_owned());
    }
    parts.extend(info.luid.map(|luid| format!("LUID {luid}")));
    parts.extend(info.memory_bytes.map(|bytes| format!("{} MiB", bytes >> 20)));
    parts.extend(info.driver.as_ref().map(|driver| format!("driver {driver}")));
    parts.extend(info.license.map(|license| license.to_string()));
    parts.extend(device.first_run_milliseconds.map(|time| format!("first run {time} ms")));
    printable(&parts.join(", ")).into_owned()
}

fn push_difference(text: &mut String, difference: &Difference) {
    let Difference { luid, listed_by, not_listed_by } = difference;
    let listed = listed_by.join(" and ");
    let missing = not_listed_by.join(" and ");
    let _ = writeln!(text, "note: LUID {luid} is listed by {listed}, but not by {missing}");
    if let Some(meaning) = difference.meaning() {
        let _ = writeln!(text, "  {meaning}");
    }
}

fn push_visibility(text: &mut String, visibility: &Visibility) {
    let verdict = if visibility.is_as_allocated { "ok" } else { "failed" };
    let _ = writeln!(text, "{:<8} {verdict:<14} {}", "adapters", visibility.summary);
    for luid in &visibility.missing {
        let _ = writeln!(text, "  error: LUID {luid} was allocated, but no API lists it");
    }
    for luid in &visibility.extra {
        let _ = writeln!(text, "  error: LUID {luid} is visible, but was not allocated");
    }
    if !visibility.is_as_allocated {
        text.push_str(concat!("  hint: see ", page!("visibility"), "\n"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::DeviceInfo;

    fn library(path: &str) -> Library {
        let file_version = Some("31.0.15.5362".into());
        Library { path: path.into(), file_version, version: Some("1.3".into()) }
    }

    fn gpu(name: &str, fault: Option<Fault>) -> DeviceOutcome {
        let info = DeviceInfo {
            name: name.into(),
            luid: Some(70_000),
            memory_bytes: Some(16 << 30),
            driver: Some("553.62".into()),
            ..DeviceInfo::default()
        };
        DeviceOutcome { info, fault, first_run_milliseconds: Some(43) }
    }

    fn tests(fault: Option<Fault>) -> Vec<Test> {
        let time = Duration::from_millis(12);
        let listed = |devices| Outcome::Listed { library: library("vulkan-1.dll"), devices };
        vec![
            Test { api: Api::Vulkan, outcome: listed(vec![gpu("Tesla\u{1b} T4", fault)]), time },
            Test {
                api: Api::Nvml,
                outcome: Outcome::Absent(advice::absent(Api::Nvml, &["nvml.dll"])),
                time,
            },
        ]
    }

    fn report(fault: Option<Fault>, expected: Option<&Expected>) -> Report {
        let demands = Demands { allow_software: false, are_named: false };
        Report::new(&tests(fault), demands, expected)
    }

    #[test]
    fn the_text_has_a_line_for_each_api_and_device() {
        let text = report(None, None).text();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(
            lines,
            [
                "vulkan   ok             vulkan-1.dll, file version 31.0.15.5362, 1.3, 12 ms",
                "  Tesla\\u{1b} T4, LUID 70000, 16384 MiB, driver 553.62, first run 43 ms",
                "nvml     absent         nvml.dll not found",
                concat!(
                    "  hint: if the GPU is NVIDIA's, its driver's files are not mounted: see ",
                    page!("runtime-files")
                ),
                "ok: 1 ok, 0 failed, 1 absent",
            ]
        );
    }

    #[test]
    fn a_fault_of_a_device_fails_the_report() {
        let report = report(Some(Fault::new("device lost").hint("restart")), None);
        let text = report.text();
        assert!(!report.is_success());
        assert!(text.contains("\n    error: device lost\n    hint: restart\n"), "{text}");
        assert!(text.ends_with("failed: 0 ok, 1 failed, 1 absent; no API works\n"), "{text}");
    }

    #[test]
    fn other_adapters_than_the_allocated_ones_fail_the_report() {
        let expected = Expected::Luids([5].into());
        let report = report(None, Some(&expected));
        let text = report.text();
        assert!(!report.is_success());
        assert!(text.contains("adapters failed         1 allocated, 1 visible\n"), "{text}");
        assert!(text.contains("  error: LUID 5 was allocated, but no API lists it\n"), "{text}");
        assert!(text.contains("  error: LUID 70000 is visible, but was not allocated\n"), "{text}");
    }

    #[test]
    fn lists_that_differ_are_noted_and_fail_nothing() {
        let listed = |devices| Outcome::Listed { library: library("x.dll"), devices };
        let time = Duration::from_millis(1);
        let dxgi = listed(vec![gpu("T4", None)]);
        let dxcore = listed(vec![]);
        let tests = [
            Test { api: Api::Dxgi, outcome: dxgi.clone(), time },
            Test { api: Api::Dxcore, outcome: dxcore, time },
        ];
        let demands = Demands { allow_software: false, are_named: false };
        let text = Report::new(&tests, demands, None).text();
        assert!(text.contains("note: LUID 70000 is listed by dxgi, but not by dxcore\n"), "{text}");
        let same = [
            Test { api: Api::Dxgi, outcome: dxgi.clone(), time },
            Test { api: Api::D3dkmt, outcome: dxgi, time },
        ];
        let report = Report::new(&same, demands, None);
        assert!(report.is_success() && !report.text().contains("note: "));
    }

    #[test]
    fn the_json_has_the_documented_keys() {
        let value = serde_json::to_value(report(None, None)).unwrap();
        assert_eq!(value["verdict"], "ok");
        assert_eq!(value["apis"][0]["library"]["fileVersion"], "31.0.15.5362");
        let device = &value["apis"][0]["devices"][0];
        assert_eq!(device["luid"], 70_000);
        assert_eq!(device["kind"], "hardware");
        assert_eq!(device["memoryBytes"], 17_179_869_184_u64);
        assert_eq!(device["firstRunMilliseconds"], 43);
        assert_eq!(value["apis"][1]["fault"]["message"], "nvml.dll not found");
        assert!(value["visibility"].is_null());
    }
}
