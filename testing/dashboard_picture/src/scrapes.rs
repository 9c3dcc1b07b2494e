//! An hour of scrapes of a recorded host, with made-up values.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Result;
use devices::{Catalog, DeviceSet, EngineKind, EngineTelemetry, MemoryUse, Moment, Telemetry};
use metrics::{Format, HeldDriver, Holder, PluginMetrics, ReloadCounts, Scrape, render};

/// 2026-01-01, 00:00 UTC.
pub(crate) const START: u64 = 1_767_225_600;
pub(crate) const END: u64 = START + 3600;
const INTERVAL: u64 = 30;

const HOST: &str = "fixtures/inventories/aws-t4-two.yaml";
const RESOURCE: &str = "directx.microsoft.com/display";

/// No variables and no files.
struct Nothing;

impl settings::Environment for Nothing {
    fn variable(&self, _: &str) -> Option<std::ffi::OsString> {
        None
    }

    fn variable_names(&self) -> Vec<String> {
        Vec::new()
    }

    fn working_directory(&self) -> std::io::Result<PathBuf> {
        Ok("/".into())
    }

    fn read(&self, _: &Path) -> std::io::Result<Vec<u8>> {
        Err(std::io::ErrorKind::NotFound.into())
    }
}

/// The scrapes as one text in the format of `OpenMetrics` with times, which Prometheus imports.
pub(crate) fn recording() -> Result<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let snapshot = inventory::read(&root.join(HOST))?;
    let config = settings::load(&settings::Flags::default(), &Nothing)?;
    let devices =
        DeviceSet::next(None, Catalog::new(config.policy).offer(&snapshot), Moment::default());
    let counters = PluginMetrics::default();
    counters.add_resource(RESOURCE);
    let mut text = String::new();
    for time in (START..=END).step_by(usize::try_from(INTERVAL)?) {
        text += &with_time(&scrape(&devices, &counters, time - START), time);
    }
    Ok(text + "# EOF\n")
}

/// The text of a scrape `second` seconds after the start.
fn scrape(devices: &DeviceSet, counters: &PluginMetrics, second: u64) -> String {
    let mut telemetry = BTreeMap::new();
    let mut holders = Vec::new();
    let entries = devices.resources.iter().flat_map(|resource| resource.entries());
    for (number, listed) in (0_u32..).zip(entries) {
        let begin = 600 + 900 * u64::from(number);
        telemetry.insert(listed.device.luid, work(second.saturating_sub(begin), number));
        if second < begin {
            continue;
        }
        if (begin..begin + INTERVAL).contains(&second) {
            counters.allocate_answered(RESOURCE, Ok(()), Duration::from_micros(70));
        }
        holders.push(Holder {
            resource: RESOURCE.to_owned(),
            slot: format!(r"{}\0", listed.device.id),
            namespace: "studio".to_owned(),
            pod: ["render-7c9f", "transcode-0"][number as usize % 2].to_owned(),
            pod_uid: None,
            container: "main".to_owned(),
            driver: HeldDriver::Current,
        });
    }
    if (2400..2400 + INTERVAL).contains(&second) {
        counters.allocate_answered(RESOURCE, Err("unhealthy"), Duration::from_micros(30));
    }
    let scrape = Scrape {
        host_name: "node-1",
        version: env!("CARGO_PKG_VERSION"),
        devices,
        telemetry: &telemetry,
        telemetry_age: Some(Duration::from_millis(250)),
        holders: Some(&holders),
        processes: &[],
        resources: &[(RESOURCE.to_owned(), true)],
        registrations: &[
            (RESOURCE.to_owned(), "startup", 1),
            (RESOURCE.to_owned(), "kubelet_restarted", u64::from(second >= 1800)),
        ],
        reloads: ReloadCounts { applied: 1, rejected: 0, current: true },
        log_lines_dropped: 0,
        readings: &[],
    };
    render(counters, &scrape, Format::OpenMetrics)
}

/// A device that has worked for `second` seconds: the first renders, the second decodes video.
#[expect(clippy::cast_precision_loss, reason = "an hour has few seconds")]
fn work(second: u64, number: u32) -> Telemetry {
    let (time, is_busy) = (second as f64, second > 0);
    // The integral of a load that swings by 0.2 around a mean.
    let busy = |mean: f64| {
        let seconds = mean * time + 0.2 * 60.0 * (1.0 - (time / 60.0).cos());
        Duration::from_secs_f64(if is_busy { seconds } else { 0.0 })
    };
    let engine = |index, kind, mean: f64| EngineTelemetry {
        index,
        kind,
        name: None,
        running_time: busy(mean),
    };
    let mean = |when_first: f64, otherwise: f64| if number == 0 { when_first } else { otherwise };
    let gib = |gib: u64| gib << 30;
    let warm_up = 1.0 - (-time / 300.0).exp();
    Telemetry {
        engines: vec![
            engine(0, EngineKind::ThreeD, mean(0.7, 0.22)),
            engine(1, EngineKind::VideoDecode, mean(0.2, 0.55)),
            engine(2, EngineKind::Copy, 0.21),
        ],
        dedicated: Some(MemoryUse {
            used_bytes: if is_busy { gib(3 + 4 * u64::from(1 - number.min(1))) } else { gib(0) },
            budget_bytes: Some(gib(15)),
        }),
        shared: Some(MemoryUse {
            used_bytes: if is_busy { gib(1) } else { gib(0) },
            budget_bytes: Some(gib(8)),
        }),
        temperature_celsius: Some((34.0 + mean(33.0, 21.0) * warm_up).round()),
        engine_hertz: Some(if is_busy { 1_590_000_000 } else { 300_000_000 }),
        memory_hertz: Some(if is_busy { 5_001_000_000 } else { 405_000_000 }),
        power_percent: Some((14.0 + mean(60.0, 35.0) * warm_up).round()),
        fan_rpm: None,
        resets: Some(0),
    }
}

/// The scrape without its end, and each of its samples with a time.
fn with_time(scrape: &str, time: u64) -> String {
    let mut text = String::with_capacity(scrape.len() * 2);
    for line in scrape.lines().filter(|line| *line != "# EOF") {
        text += line;
        if !line.starts_with('#') {
            write!(text, " {time}").expect("a text can be written");
        }
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_sample_has_a_time_and_the_text_one_end() {
        let text = recording().unwrap();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        let time = |line: &&str| line.rsplit(' ').next().unwrap().parse::<u64>().unwrap();
        assert!(samples.iter().map(time).all(|time| (START..=END).contains(&time)));
        assert!(samples.iter().any(|line| line.contains("pod=\"render-7c9f\"")));
        assert_eq!(text.matches("# EOF").count(), 1);
        assert!(text.ends_with("# EOF\n"));
    }
}
