//! The host that is simulated: that of an inventory, a recorded one for demonstration, or one with
//! the GPUs that the user names.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use command_line::Failure;
use devices::{Adapter, DriverKey, HardwareId, HostSnapshot, LocationPath, Luid, PnpId};

/// The host that is simulated by default: two of the four Tesla T4 of an AWS GPU host with
/// Windows Server 2022.
const DEFAULT_HOST: &str = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");

pub(crate) struct SimulatedHost {
    pub(crate) snapshot: HostSnapshot,
    pub(crate) source: Source,
    /// What is not as on a real host.
    pub(crate) notes: Vec<String>,
}

/// Where the host comes from.
pub(crate) enum Source {
    Inventory(PathBuf),
    /// The default host.
    Demonstration,
    /// `--gpu`.
    Gpus,
}

/// A GPU that no inventory records.
struct UnrecordedGpu {
    /// The name that its driver gives it.
    description: &'static str,
    /// Its PCI device ID, from the PCI ID Repository (pci.ids, vendor 10de).
    device: u32,
    /// The memory of one GPU in GB, from its data sheet (nvidia.com/en-us/data-center).
    memory_gb: u64,
}

/// GPUs of NVIDIA that are common in Windows nodes, in the order of their names.
const UNRECORDED: [UnrecordedGpu; 6] = [
    // GA102GL [A10]; data sheet "NVIDIA A10 Tensor Core GPU": 24 GB GDDR6.
    UnrecordedGpu { description: "NVIDIA A10", device: 0x2236, memory_gb: 24 },
    // GA107GL [A2 / A16]; data sheet "NVIDIA A16": four GPUs with 16 GB each.
    UnrecordedGpu { description: "NVIDIA A16", device: 0x25B6, memory_gb: 16 },
    // GA107GL [A2 / A16]; data sheet "NVIDIA A2 Tensor Core GPU": 16 GB GDDR6.
    UnrecordedGpu { description: "NVIDIA A2", device: 0x25B6, memory_gb: 16 },
    // AD104GL [L4]; data sheet "NVIDIA L4 Tensor Core GPU": 24 GB.
    UnrecordedGpu { description: "NVIDIA L4", device: 0x27B8, memory_gb: 24 },
    // AD102GL [L40S]; data sheet "NVIDIA L40S": 48 GB GDDR6.
    UnrecordedGpu { description: "NVIDIA L40S", device: 0x26B9, memory_gb: 48 },
    // GM204GL [Tesla M60]; data sheet "Tesla M60": two GPUs with 8 GB each.
    UnrecordedGpu { description: "NVIDIA Tesla M60", device: 0x13F2, memory_gb: 8 },
];

impl SimulatedHost {
    /// The host of the inventory, the one with these GPUs, or the default one.
    pub(crate) fn of(inventory: Option<&Path>, gpus: &[String]) -> Result<SimulatedHost, Failure> {
        let demonstration =
            || config::inventory::parse("aws-t4-two.yaml", DEFAULT_HOST).map_err(Failure::runtime);
        let (snapshot, source) = match inventory {
            Some(path) => (command_line::read_inventory(path)?, Source::Inventory(path.to_owned())),
            None if gpus.is_empty() => (demonstration()?, Source::Demonstration),
            None => return with_gpus(demonstration()?, gpus),
        };
        Ok(SimulatedHost { snapshot, source, notes: Vec::new() })
    }
}

/// The recorded host with these GPUs in place of its own.
fn with_gpus(mut snapshot: HostSnapshot, gpus: &[String]) -> Result<SimulatedHost, Failure> {
    let recorded = std::mem::take(&mut snapshot.adapters);
    let mut notes = Vec::new();
    for (n, name) in gpus.iter().enumerate() {
        let adapter = if let Some(adapter) = named(&recorded, |a| &a.driver_description, name) {
            adapter.clone()
        } else if let Some(gpu) = named(&UNRECORDED, |gpu| gpu.description, name) {
            let adapter = like(&recorded[0], gpu);
            let note = format!(
                "{} is not recorded: its driver files are as recorded for {}",
                gpu.description, recorded[0].driver_description
            );
            if !notes.contains(&note) {
                notes.push(note);
            }
            adapter
        } else {
            return Err(unknown(name, &recorded));
        };
        snapshot.adapters.push(in_slot(n, adapter));
    }
    Ok(SimulatedHost { snapshot, source: Source::Gpus, notes })
}

/// The first of `gpus` whose description is `name`, or ends with it after a space, in any case.
fn named<'a, T>(gpus: &'a [T], description: fn(&T) -> &str, name: &str) -> Option<&'a T> {
    let name = name.to_ascii_lowercase();
    gpus.iter().find(|gpu| {
        let description = description(gpu).to_ascii_lowercase();
        let rest = description.strip_suffix(&name);
        !name.is_empty() && rest.is_some_and(|rest| rest.is_empty() || rest.ends_with(' '))
    })
}

/// A GPU with the driver of a recorded one.
fn like(recorded: &Adapter, gpu: &UnrecordedGpu) -> Adapter {
    let mut adapter = recorded.clone();
    gpu.description.clone_into(&mut adapter.driver_description);
    adapter.hardware_id = HardwareId { device: gpu.device, ..HardwareId::default() };
    adapter.hardware_id.vendor = recorded.hardware_id.vendor;
    adapter.dedicated_memory_mib = Some(gpu.memory_gb * 1024);
    if let Some(pnp) = &mut adapter.pnp {
        gpu.description.clone_into(&mut pnp.description);
    }
    adapter
}

/// The adapter with identifiers that no adapter in another slot has.
fn in_slot(n: usize, mut adapter: Adapter) -> Adapter {
    let slot = n + 1;
    adapter.luid = Luid(i64::try_from(slot).unwrap_or(i64::MAX));
    let HardwareId { vendor, device, subsystem, revision } = adapter.hardware_id;
    if let Some(pnp) = &mut adapter.pnp {
        pnp.id = PnpId::new(format!(
            r"PCI\VEN_{vendor:04X}&DEV_{device:04X}&SUBSYS_{subsystem:08X}&REV_{revision:02X}\{slot:X}"
        ));
        pnp.location_paths = vec![LocationPath::new(format!("PCIROOT({slot:X})#PCI(0000)"))];
        // {4d36e968-…} is the class of display adapters.
        pnp.driver_key =
            Some(DriverKey::new(format!(r"{{4d36e968-e325-11ce-bfc1-08002be10318}}\{slot:04}")));
    }
    adapter
}

fn unknown(name: &str, recorded: &[Adapter]) -> Failure {
    let recorded = recorded.iter().map(|adapter| adapter.driver_description.as_str());
    let mut names: Vec<&str> = recorded.map(last_word).collect();
    names.dedup();
    names.extend(UNRECORDED.iter().map(|gpu| last_word(gpu.description)));
    let error = anyhow!("unknown GPU `{name}`; known are {}", names.join(", "));
    Failure::usage(error).hint(
        "for another GPU, use `--inventory` with a file that `record` writes on its host, or that you \
         write as docs/reference/inventory.md describes",
    )
}

fn last_word(text: &str) -> &str {
    text.rsplit(' ').next().unwrap_or(text)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn host(gpus: &[&str]) -> Result<SimulatedHost, Failure> {
        let gpus: Vec<String> = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        SimulatedHost::of(None, &gpus)
    }

    #[test]
    fn every_known_gpu_is_found_by_its_name_in_any_case() {
        for name in ["T4", "t4", "tesla t4", "NVIDIA Tesla T4"] {
            let host = host(&[name]).ok().unwrap();
            assert_eq!(host.snapshot.adapters[0].driver_description, "NVIDIA Tesla T4");
            assert!(host.notes.is_empty(), "{:?}", host.notes);
        }
        for gpu in &UNRECORDED {
            let host = host(&[&last_word(gpu.description).to_lowercase()]).ok().unwrap();
            let [adapter] = host.snapshot.adapters.as_slice() else { panic!("one GPU") };
            assert_eq!(adapter.driver_description, gpu.description);
            assert_eq!(adapter.hardware_id.device, gpu.device);
            assert!(host.notes[0].starts_with(&format!("{} is not recorded", gpu.description)));
        }
        for unknown in ["", "4", "H100"] {
            let error = host(&[unknown]).err().unwrap().chain();
            let known = "known are T4, A10, A16, A2, L4, L40S, M60";
            assert_eq!(error, format!("unknown GPU `{unknown}`; {known}"));
        }
    }

    #[test]
    fn equal_gpus_have_different_identifiers() {
        let gpus: Vec<&str> = ["T4", "A10"].into_iter().cycle().take(40).collect();
        let adapters = host(&gpus).ok().unwrap().snapshot.adapters;
        let pnp = |adapter: &Adapter| adapter.pnp.clone().unwrap();
        let different = |identifier: fn(&Adapter, devices::PnpDevice) -> String| {
            let all: BTreeSet<String> = adapters.iter().map(|a| identifier(a, pnp(a))).collect();
            assert_eq!(all.len(), 40, "{all:?}");
        };
        different(|adapter, _| adapter.luid.to_string());
        different(|_, pnp| pnp.id.to_string());
        different(|_, pnp| pnp.location_paths[0].to_string());
        different(|_, pnp| pnp.driver_key.unwrap().to_string());
    }
}
