//! What a scrape of `/metrics` costs.
//!
//! The text is formatted in the measuring program: 16 GPUs with 12 engines each, and a pod on each
//! GPU. A scrape is one of the program with eight GPUs of 16 replicas: the time on a processor of
//! all its threads (`/proc/PID/task/*/schedstat`).

use std::collections::BTreeMap;
use std::hint::black_box;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use daemon::metrics::{Holder, PluginMetrics, Scrape};
use devices::{DeviceSet, Moment};
use host::{EngineKind, EngineTelemetry, Luid, MemoryUse, Telemetry};
use process::metrics::render;
use tokio::time::sleep;

use super::decisions;
use crate::group::{AppliesTo, Effort, Group, Row};
use crate::minimal_kubelet::MinimalKubelet;
use crate::node::{Node, REPLICAS, RESOURCE};
use crate::process::Program;
use crate::sample::milliseconds;

/// Longer than the daemon answers with the text of the scrape before.
const PAUSE: Duration = Duration::from_millis(600);

const GPUS: u32 = 16;

/// The engines of a GPU, as drivers report them.
const ENGINES: u32 = 12;

pub(super) async fn measure(program: &Path, effort: Effort) -> Result<Group> {
    let cpu = scrapes(program, effort).await?;
    let text = Row::new("text for 16 GPUs", "ms", texts(effort)?)?;
    let mut rows = vec![text.within(5.0, AppliesTo::Percentile99)];
    if !cpu.is_empty() {
        rows.push(Row::new("CPU time of a scrape", "ms", cpu)?.within(5.0, AppliesTo::Median));
    }
    Ok(Group { title: "Metrics", rows })
}

/// CPU times in milliseconds.
async fn scrapes(program: &Path, effort: Effort) -> Result<Vec<f64>> {
    let node = Node::new()?;
    let mut kubelet = MinimalKubelet::start(&node.directory())?;
    let address = TcpListener::bind("127.0.0.1:0")?.local_addr()?;
    let listen = format!("--listen={address}");
    let program = Program::start_with(program, &node, &[&listen])?;
    kubelet.list(RESOURCE, REPLICAS).await?;
    sleep(PAUSE).await;
    let mut cpu = Vec::new();
    for _ in 0..effort.times(40) {
        let before = program.cpu_time();
        scrape(address)?;
        if let (Some(before), Some(after)) = (before, program.cpu_time()) {
            cpu.push(milliseconds(after.saturating_sub(before)));
        }
        sleep(PAUSE).await;
    }
    Ok(cpu)
}

fn scrape(address: SocketAddr) -> Result<()> {
    let mut stream = TcpStream::connect(address).context("the program does not listen")?;
    stream.set_read_timeout(Some(Duration::from_secs(10)))?;
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")?;
    let mut text = String::new();
    stream.read_to_string(&mut text)?;
    ensure!(text.contains("directx_device_info{"), "no devices in the scrape: {text}");
    Ok(())
}

fn texts(effort: Effort) -> Result<Vec<f64>> {
    let catalog = decisions::catalog("")?;
    let set = DeviceSet::next(None, catalog.offer(&decisions::host(GPUS)?), Moment::default());
    let resource = &set.resources[0];
    let name = resource.spec.name.to_string();
    let telemetry: BTreeMap<Luid, Telemetry> =
        resource.entries().iter().map(|entry| (entry.device.luid, telemetry())).collect();
    let holder = |replica: devices::Replica| Holder {
        resource: name.clone(),
        namespace: "namespace".to_owned(),
        pod: format!("pod-of-{}", replica.id.device),
        pod_uid: Some(format!("uid-of-{}", replica.id.device)),
        replica: replica.id,
        container: "container".to_owned(),
    };
    let holders: Vec<Holder> = resource.replicas().map(holder).collect();
    let metrics = PluginMetrics::default();
    metrics.add_resource(&name);
    let scrape = Arc::new(Scrape {
        metrics,
        devices: Arc::new(set),
        telemetry: Some((Arc::new(telemetry), Duration::from_millis(250))),
        holders,
        ..Scrape::default()
    });
    let text = || {
        let started = Instant::now();
        black_box(render(Arc::clone(&scrape)));
        milliseconds(started.elapsed())
    };
    Ok((0..effort.times(100)).map(|_| text()).collect())
}

fn telemetry() -> Telemetry {
    let memory = Some(MemoryUse { used_bytes: 1 << 30, budget_bytes: Some(16 << 30) });
    let engine = |index| EngineTelemetry {
        index,
        kind: EngineKind::Compute,
        name: None,
        running_time: Duration::from_hours(1),
    };
    Telemetry {
        engines: (0..ENGINES).map(engine).collect(),
        dedicated: memory,
        shared: memory,
        temperature_celsius: Some(47.0),
        engine_hertz: Some(1_590_000_000),
        memory_hertz: Some(5_001_000_000),
        power_percent: Some(35.0),
        fan_rpm: Some(1200),
        resets: Some(0),
    }
}
