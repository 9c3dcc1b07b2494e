//! How long the decisions for large nodes take, without a program around them.

use std::fmt::Write;
use std::hint::black_box;
use std::time::Instant;

use crate::sample::milliseconds;
use anyhow::{Context, Result};
use devices::{
    Catalog, DeviceSet, HostSnapshot, LocationPath, Luid, Moment, PnpId, preferred_allocation,
};

use crate::group::{AppliesTo, Effort, Group, MANY, Row};

/// A node with GPUs and their driver's files.
const NODE: &str = include_str!("../../../../fixtures/inventories/aws-t4-two.yaml");

const ADAPTERS: u32 = 1_000;
const RULES: u32 = 100;

/// The number of different names among the adapters.
const NAMES: u32 = 20;

pub(super) fn measure(effort: Effort) -> Result<Group> {
    let preferred = Row::new(
        format!("preferred allocation of {0} from {0} replicas", MANY.replicas),
        "ms",
        preferred(effort)?,
    )?;
    let sets = Row::new("device set", "ms", device_sets(effort)?)?;
    Ok(Group {
        title: "Decisions for large nodes",
        how: "Called in the measuring program, which is built as the release program is: the \
              preferred allocation of all replicas of eight GPUs, and the device set that follows \
              when a node with 1,000 adapters and 100 rules is read again.",
        rows: vec![
            preferred.within(50.0, AppliesTo::Percentile99),
            sets.within(100.0, AppliesTo::Percentile99),
        ],
    })
}

fn preferred(effort: Effort) -> Result<Vec<f64>> {
    const GPUS: u32 = 8;
    let catalog = catalog(&format!("multitenancy: {}", MANY.replicas / GPUS as usize))?;
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

fn device_sets(effort: Effort) -> Result<Vec<f64>> {
    let catalog = catalog(&rules())?;
    let host = host(ADAPTERS)?;
    let mut set = DeviceSet::next(None, catalog.offer(&host), Moment::default());
    let mut advance = || {
        let started = Instant::now();
        set = DeviceSet::next(Some(&set), catalog.offer(&host), Moment::default());
        milliseconds(started.elapsed())
    };
    Ok((0..effort.times(100)).map(|_| advance()).collect())
}

/// The catalog of a configuration.
pub(super) fn catalog(text: &str) -> Result<Catalog> {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile()?;
    std::fs::write(file.path(), text)?;
    let flags = config::Flags { config: Some(file.path().into()), ..Default::default() };
    let config = config::load(&flags, &config::ProcessEnvironment)?;
    Ok(Catalog::new(config.policy))
}

/// Rules by location, by description and by PCI ID. The last one matches every adapter.
fn rules() -> String {
    let mut text = "resources:\n".to_owned();
    for n in 0..RULES - 1 {
        let condition = match n % 3 {
            0 => format!("locationPath: 'PCIROOT(1)#PCI({n:04X})'"),
            1 => format!("description: 'T4 {n}$'"),
            _ => format!("pciId: '10de:{n:04x}'"),
        };
        writeln!(text, "- {{name: a/r{n}, match: {{{condition}}}}}").expect("a string grows");
    }
    text.push_str("- {name: a/rest}\n");
    text
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
            pnp.description = format!("{} {}", pnp.description, n % NAMES);
        }
        adapter
    }));
    Ok(host)
}
