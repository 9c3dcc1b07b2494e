//! A well-behaved kubelet that allocates devices while the daemon is attacked.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use bytes::Bytes;
use daemon_bed::{GPUS, MinimalKubelet, Node, RESOURCE, RawPlugin, milliseconds};
use daemon_bed::{Method, Sample};
use device_plugin::v1beta1::AllocateResponse;
use prost::Message;
use tokio::time::{sleep, timeout};

use crate::target::{HANGS, allocate_request};

/// The pause between two allocations.
const PAUSE: Duration = Duration::from_millis(2);

/// The kubelet, and what it observed.
pub(crate) struct Probe {
    kubelet: MinimalKubelet,
    plugin: RawPlugin,
    replicas: Vec<String>,
    /// The device of the last GPU, which every answer must contain.
    device: Option<String>,
    /// The healthy replicas of the newest list.
    healthy: usize,
    /// The fewest healthy replicas in any list.
    pub(crate) fewest_healthy: usize,
    /// How often the plugin had to register again.
    pub(crate) registrations: u32,
    times: Vec<f64>,
}

impl Probe {
    /// Starts the kubelet and waits until the plugin has registered with it.
    pub(crate) async fn start(node: &Node, replicas: usize) -> Result<Probe> {
        let mut kubelet = MinimalKubelet::start(&node.directory())?;
        let list = kubelet.list(RESOURCE, replicas).await?;
        Ok(Probe {
            kubelet,
            plugin: RawPlugin::new(list.connection),
            device: None,
            healthy: list.healthy.len(),
            fewest_healthy: list.healthy.len(),
            replicas: list.healthy,
            registrations: 0,
            times: Vec::new(),
        })
    }

    pub(crate) fn replicas(&self) -> &[String] {
        &self.replicas
    }

    /// The times of the allocations in milliseconds.
    pub(crate) fn times(&self) -> Option<Sample> {
        Sample::new(self.times.clone())
    }

    /// Allocates one replica after the other until `is_over`.
    pub(crate) async fn allocate_until(&mut self, is_over: impl Fn() -> bool) -> Result<()> {
        let mut number = 0;
        while !is_over() {
            self.allocate(number).await?;
            number += 1;
            sleep(PAUSE).await;
        }
        Ok(())
    }

    /// Allocates a replica of the last GPU, which every attack leaves healthy.
    pub(crate) async fn allocate(&mut self, number: usize) -> Result<()> {
        self.read_lists();
        let first = self.replicas.len() / GPUS * (GPUS - 1);
        let replica = first + number % (self.replicas.len() - first);
        let request = allocate_request(&self.replicas[replica..=replica], 1);
        let start = Instant::now();
        match timeout(HANGS, self.plugin.call(Method::Allocate, request.clone())).await {
            Ok(Ok(answer)) => {
                self.times.push(milliseconds(start.elapsed()));
                self.check(answer)?;
            }
            Ok(Err(error)) if is_refusal(&error) => return Err(error.context("Allocate refused")),
            Ok(Err(error)) => {
                // The connection is lost, so the plugin must register again.
                let list = timeout(HANGS, self.wait_for_list()).await;
                list.with_context(|| format!("registration lost: {error:#}"))?;
                self.registrations += 1;
                let call = self.plugin.call(Method::Allocate, request);
                let answer = timeout(HANGS, call).await.context("no answer to Allocate")??;
                self.check(answer)?;
            }
            Err(_) => bail!("no answer to Allocate within {HANGS:?}"),
        }
        Ok(())
    }

    /// Checks that the answer has exactly the device of the replica.
    fn check(&mut self, answer: Bytes) -> Result<()> {
        let answer = AllocateResponse::decode(answer)?;
        let containers = answer.container_responses.iter();
        let devices: Vec<&str> =
            containers.flat_map(|c| &c.devices).map(|device| &*device.host_path).collect();
        let [device] = devices[..] else { bail!("Allocate returned the devices {devices:?}") };
        let expected = self.device.get_or_insert_with(|| device.to_owned());
        ensure!(device == expected, "Allocate returned `{device}`, and `{expected}` before");
        Ok(())
    }

    /// Waits until the newest list has an unhealthy GPU.
    pub(crate) async fn wait_for_unhealthy_gpu(&mut self) -> Result<()> {
        let expected = self.replicas.len() / GPUS * (GPUS - 1);
        let unhealthy = async {
            while self.healthy != expected {
                self.wait_for_list().await;
            }
        };
        timeout(HANGS, unhealthy).await.context("no list with an unhealthy GPU")
    }

    async fn wait_for_list(&mut self) {
        while !self.read_lists() {
            sleep(PAUSE).await;
        }
    }

    /// Reads the lists that were received, and returns whether there was one.
    fn read_lists(&mut self) -> bool {
        let mut has_read = false;
        while let Some(list) = self.kubelet.received() {
            if list.resource == RESOURCE {
                self.healthy = list.healthy.len();
                self.fewest_healthy = self.fewest_healthy.min(self.healthy);
                self.plugin = RawPlugin::new(list.connection);
                has_read = true;
            }
        }
        has_read
    }
}

/// Whether the plugin answered with an error, so that the connection is not lost.
fn is_refusal(error: &anyhow::Error) -> bool {
    use tonic::Code::{FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted};
    let status = error.downcast_ref::<tonic::Status>();
    let refusals = [FailedPrecondition, InvalidArgument, NotFound, ResourceExhausted];
    status.is_some_and(|status| refusals.contains(&status.code()))
}
