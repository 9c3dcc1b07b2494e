//! Hosts with far more adapters than any host has.

use std::time::Duration;

use anyhow::Result;
use daemon_bed::FirstGpu;
use devices::{Adapter, HostSnapshot, LocationPath, Luid, PnpId};

use crate::target::Target;

/// The adapters of the host.
const ADAPTERS: usize = 1_000;

/// The rules of the configuration.
const RULES: usize = 100;

/// Who made the further adapters, so that a rule selects them and none of the node's GPUs.
const VENDOR: u32 = 0x8086;

/// How long a host stays.
const STAYS: Duration = Duration::from_millis(500);

/// The rules, of which only the last one selects adapters.
pub(super) fn rules() -> String {
    let rule = |n: usize| {
        let description = if n + 1 < RULES { format!("none {n}") } else { ".*".to_owned() };
        format!(
            "- {{name: example.com/other, match: {{vendor: intel, description: '{description}'}}, \
             multitenancy: 1}}\n"
        )
    };
    "resources:\n".to_owned() + &(0..RULES).map(rule).collect::<String>()
}

/// Adds the adapters and removes them.
pub(super) fn many_adapters(target: &Target) -> Result<u64> {
    let host = with_adapters(target.node.host(FirstGpu::Healthy));
    let mut count = 0;
    while target.goes_on(count) {
        target.node.set_snapshot(&host)?;
        std::thread::sleep(STAYS);
        target.node.set_host(FirstGpu::Healthy)?;
        std::thread::sleep(STAYS);
        count += 1;
    }
    Ok(count)
}

fn with_adapters(mut host: HostSnapshot) -> HostSnapshot {
    let Some(model) = host.adapters.first().cloned() else { return host };
    host.adapters.extend((host.adapters.len()..ADAPTERS).map(|n| further(&model, n)));
    host
}

fn further(model: &Adapter, n: usize) -> Adapter {
    let mut adapter = model.clone();
    adapter.luid = Luid(model.luid.0 + i64::try_from(n).unwrap_or_default());
    adapter.hardware_id.vendor = VENDOR;
    adapter.driver_store = None;
    if let Some(pnp) = &mut adapter.pnp {
        pnp.id = PnpId::new(format!(r"PCI\VEN_8086&DEV_56C0\4&{n:X}&0&0008"));
        pnp.location_paths = vec![LocationPath::new(format!("PCIROOT(1)#PCI({n:04X})"))];
    }
    adapter
}
