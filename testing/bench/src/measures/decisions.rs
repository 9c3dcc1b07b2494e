//! How long a preferred allocation takes, without a program around it.
//!
//! The function is called in the measuring program, which is built as the release program is.

use std::hint::black_box;
use std::time::Instant;

use anyhow::{Context, Result};
use devices::{Catalog, DeviceSet, Moment, preferred_allocation};
use host::{HostSnapshot, LocationPath, Luid, PnpId};

use crate::group::{AppliesTo, Effort, Group, Row};
use crate::sample::milliseconds;

/// A node with GPUs and their driver's files.
const NODE: &str = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");

const GPUS: u32 = 8;

/// The most replicas that eight GPUs can have.
const REPLICAS: u32 = 8192;

pub(super) fn measure(effort: Effort) -> Result<Group> {
    let what = format!("all of {REPLICAS} replicas");
    Ok(Group {
        title: "Preferred allocation",
        rows: vec![Row::new(what, "ms", preferred(effort)?)?.within(50.0, AppliesTo::Percentile99)],
    })
}

fn preferred(effort: Effort) -> Result<Vec<f64>> {
    let catalog = catalog(&format!("multitenancy: {}", REPLICAS / GPUS))?;
    let set = DeviceSet::next(None, catalog.offer(&host(GPUS)?), Moment::default());
    let resource = &set.resources[0];
    let replicas: Vec<String> = resource.replicas().map(|replica| replica.id.to_string()).collect();
    let choose = || {
        let started = Instant::now();
        black_box(preferred_allocation(resource, &replicas, &[], replicas.len()))?;
        Ok(milliseconds(started.elapsed()))
    };
    (0..effort.times(100)).map(|_| choose()).collect()
}

/// The catalog of a configuration.
pub(super) fn catalog(text: &str) -> Result<Catalog> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), text)?;
    let flags = config::Flags { config: Some(file.path().into()), ..Default::default() };
    let config = config::load(&flags, &config::ProcessEnvironment)?;
    Ok(Catalog::new(config.policy))
}

/// A node with this many T4s.
pub(super) fn host(adapters: u32) -> Result<HostSnapshot> {
    let mut host = config::inventory::parse("aws-t4-two.yaml", NODE)?;
    let one = host.adapters.pop().context("the inventory has no adapter")?;
    host.adapters.extend((0..adapters).map(|n| {
        let mut adapter = one.clone();
        adapter.luid = Luid(i64::from(n) + 1);
        if let Some(pnp) = &mut adapter.pnp {
            pnp.id = PnpId::new(format!(r"{}&{n:X}", pnp.id));
            pnp.location_paths = vec![LocationPath::new(format!("PCIROOT(0)#PCI({n:04X})"))];
        }
        adapter
    }));
    Ok(host)
}
