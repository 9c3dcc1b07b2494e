//! The host that is simulated: the host of an inventory, a recorded one for demonstration, or a
//! made-up one with the GPUs and the Windows that the user names.

use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::ValueEnum;
use command_line::Failure;
use host::{
    Adapter, Attribute, Attributes, DriverKey, HardwareId, HostSnapshot, LocationPath, Luid, PnpId,
};

use crate::simulate::gpus::{Gpu, GpuArgument, McdmStart, Mode, Model, NVIDIA, OtherGpu, QUALCOMM};

/// The host that is simulated by default: two of the four Tesla T4 of an AWS GPU host with
/// Windows Server 2022.
const DEFAULT_HOST: &str = include_str!("../../../../../fixtures/inventories/aws-t4-two.yaml");
/// Hosts with other versions of Windows.
const HOST_2019: &str = include_str!("../../../../../fixtures/inventories/azure-m60.yaml");
const HOST_2025: &str = include_str!("../../../../../fixtures/inventories/made-up-l4-2025.yaml");

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
    /// `--gpu` or `--windows`.
    MadeUp,
}

/// The value of `--windows`.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(crate) enum WindowsServer {
    /// Windows Server 2019, build 17763
    #[value(name = "2019")]
    Server2019,
    /// Windows Server 2022, build 20348
    #[value(name = "2022")]
    Server2022,
    /// Windows Server 2025, build 26100
    #[value(name = "2025")]
    Server2025,
}

impl SimulatedHost {
    /// The host of the inventory, a made-up one with these GPUs and this Windows, or the default one.
    pub(crate) fn of(
        inventory: Option<&Path>,
        gpus: &[String],
        windows: Option<WindowsServer>,
    ) -> Result<SimulatedHost, Failure> {
        if let Some(path) = inventory {
            let snapshot = command_line::read_inventory(path)?;
            let source = Source::Inventory(path.to_owned());
            return Ok(SimulatedHost { snapshot, source, notes: Vec::new() });
        }
        let mut snapshot = fixture(DEFAULT_HOST)?;
        if gpus.is_empty() && windows.is_none() {
            return Ok(SimulatedHost {
                snapshot,
                source: Source::Demonstration,
                notes: Vec::new(),
            });
        }
        let windows = windows.unwrap_or(WindowsServer::Server2022);
        let mut notes = Vec::new();
        if !gpus.is_empty() {
            let gpus: Vec<GpuArgument> =
                gpus.iter().map(|gpu| GpuArgument::parse(gpu)).collect::<Result<_, _>>()?;
            check_modes(&gpus, windows)?;
            notes = gpu_notes(&gpus, &snapshot.adapters);
            let adapters = gpus.iter().map(|gpu| adapter(gpu, &snapshot.adapters, windows));
            snapshot.adapters =
                adapters.enumerate().map(|(n, adapter)| in_slot(n, adapter)).collect();
        }
        let has_files = snapshot.adapters.iter().any(|adapter| adapter.driver_store.is_some());
        if windows != WindowsServer::Server2022 {
            notes.extend(
                has_files
                    .then(|| "the driver files are as recorded on Windows Server 2022".to_owned()),
            );
            snapshot.host = windows.host()?;
        }
        Ok(SimulatedHost { snapshot, source: Source::MadeUp, notes })
    }
}

fn fixture(text: &str) -> Result<HostSnapshot, Failure> {
    config::inventory::parse("a host of this program", text).map_err(Failure::runtime)
}

impl WindowsServer {
    fn host(self) -> Result<host::HostFacts, Failure> {
        let text = match self {
            WindowsServer::Server2019 => HOST_2019,
            WindowsServer::Server2022 => DEFAULT_HOST,
            WindowsServer::Server2025 => HOST_2025,
        };
        Ok(fixture(text)?.host)
    }

    /// Whether `DXCore` reports hardware types; before, this follows from other attributes.
    fn has_hardware_types(self) -> bool {
        self == WindowsServer::Server2025
    }
}

/// Fails if this Windows has no compute-only devices: MCDM came with version 1903 (Microsoft
/// Compute Driver Model overview, learn.microsoft.com), and Server 2019 is version 1809.
fn check_modes(gpus: &[GpuArgument], windows: WindowsServer) -> Result<(), Failure> {
    let compute_only = gpus.iter().find(|gpu| matches!(gpu.mode, Some(Mode::Mcdm | Mode::Npu)));
    match compute_only {
        Some(gpu) if windows == WindowsServer::Server2019 => {
            let name = gpu.model.description();
            Err(Failure::usage(anyhow!(
                "`{name}` needs an MCDM driver, which Windows Server 2019 does not have"
            ))
            .hint("choose another version, such as `--windows 2022`, or leave out the mode"))
        }
        _ => Ok(()),
    }
}

/// What is assumed about these GPUs, each note once.
fn gpu_notes(gpus: &[GpuArgument], recorded: &[Adapter]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut add = |note: String| {
        if !notes.contains(&note) {
            notes.push(note);
        }
    };
    for GpuArgument { model, mode } in gpus {
        let name = model.description();
        match model {
            Model::Known(gpu) if recording_of(gpu, recorded).is_some() => {}
            Model::Known(gpu) if gpu.vendor == NVIDIA => add(format!(
                "{name} is not recorded: its driver files are as recorded for {}",
                recorded[0].driver_description
            )),
            Model::Known(_) => add(format!(
                "{name} is not recorded: its driver files are not known, so none is mounted here"
            )),
            Model::Other(OtherGpu { integrated, .. }) => {
                let what = if *integrated && *mode != Some(Mode::Npu) {
                    "; it counts as integrated"
                } else {
                    ""
                };
                add(format!(
                    "{name} is not known: its driver files, its memory and its PCI device ID are not \
                     known, so no file is mounted here, and rules for that memory or ID do not match\
                     {what}"
                ));
            }
        }
        if let Model::Other(OtherGpu { vendor: QUALCOMM, .. }) = model {
            add(format!("{name}: hosts with Arm64 processors need programs that do not exist yet"));
        }
    }
    if gpus.iter().any(|gpu| matches!(gpu.mode, Some(Mode::Mcdm | Mode::Npu))) {
        add("what Windows reports of compute-only devices is assumed: none is recorded".to_owned());
    }
    let mut may_start_in_mcdm: Vec<&str> = Vec::new();
    for gpu in gpus {
        if let (Model::Known(Gpu { name, mcdm: McdmStart::FromR595, .. }), None) =
            (&gpu.model, gpu.mode)
            && !may_start_in_mcdm.contains(name)
        {
            may_start_in_mcdm.push(name);
        }
    }
    if let Some(first) = may_start_in_mcdm.first() {
        add(format!(
            "{}: from driver R595 on, NVIDIA's data center GPUs may start in MCDM mode, and are then by \
             default in directx.microsoft.com/compute; `--gpu '{first}:mcdm'` simulates that",
            may_start_in_mcdm.join(", ")
        ));
    }
    notes
}

/// The recorded adapter of this model.
fn recording_of<'a>(gpu: &Gpu, recorded: &'a [Adapter]) -> Option<&'a Adapter> {
    recorded.iter().find(|adapter| adapter.driver_description == gpu.description)
}

/// The adapter of a GPU or NPU, without identifiers. What is not known of it is as for the recorded
/// GPU, or left out.
fn adapter(gpu: &GpuArgument, recorded: &[Adapter], windows: WindowsServer) -> Adapter {
    let mut adapter = match &gpu.model {
        Model::Known(known) => recording_of(known, recorded).cloned().unwrap_or_else(|| {
            let mut adapter = like(&recorded[0], known.description, known.vendor, known.device);
            adapter.dedicated_memory_mib = Some(known.memory_gb * 1024);
            adapter
        }),
        Model::Other(OtherGpu { name, vendor, integrated }) => {
            let mut adapter = like(&recorded[0], name, *vendor, 0);
            adapter.dedicated_memory_mib = None;
            adapter.driver_store = None;
            adapter.integrated = *integrated && gpu.mode != Some(Mode::Npu);
            adapter
        }
    };
    adapter.attributes = match gpu.mode {
        None | Some(Mode::Wddm) => adapter.attributes,
        Some(mode) => compute_only(mode, windows),
    };
    adapter
}

/// A GPU with the driver of a recorded one, if that is of the same vendor.
fn like(recorded: &Adapter, description: &str, vendor: u32, device: u32) -> Adapter {
    let mut adapter = recorded.clone();
    description.clone_into(&mut adapter.driver_description);
    adapter.hardware_id = HardwareId { vendor, device, ..HardwareId::default() };
    let has_other_vendor = vendor != recorded.hardware_id.vendor;
    if has_other_vendor {
        adapter.driver_store = None;
    }
    if let Some(pnp) = &mut adapter.pnp {
        description.clone_into(&mut pnp.description);
        if has_other_vendor {
            pnp.manufacturer.clear();
        }
    }
    adapter
}

/// The attributes of a device without a display, as in the made-up inventories.
fn compute_only(mode: Mode, windows: WindowsServer) -> Attributes {
    use Attribute::{D3d12CoreCompute, D3d12GenericMl, Gpu, Npu};
    let attributes: &[Attribute] = match (mode, windows.has_hardware_types()) {
        (_, false) => &[D3d12CoreCompute],
        (Mode::Npu, true) => &[D3d12GenericMl, Npu],
        (Mode::Wddm | Mode::Mcdm, true) => &[D3d12CoreCompute, Gpu],
    };
    attributes.iter().copied().collect()
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

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use devices::{Catalog, DriverModel, ModelPolicy, Offer, Policy};
    use host::DeviceKind;

    use super::*;
    use crate::simulate::gpus::GPUS;

    fn host_with(gpus: &[&str], windows: Option<WindowsServer>) -> Result<SimulatedHost, Failure> {
        let gpus: Vec<String> = gpus.iter().map(|gpu| (*gpu).to_owned()).collect();
        SimulatedHost::of(None, &gpus, windows)
    }

    fn host(gpus: &[&str]) -> SimulatedHost {
        host_with(gpus, None).unwrap_or_else(|error| panic!("{gpus:?}: {}", error.chain()))
    }

    /// What the plugin advertises of a host without a configuration.
    fn offer(host: &SimulatedHost) -> Offer {
        let models = [DriverModel::Wddm, DriverModel::Mcdm].map(ModelPolicy::for_model).to_vec();
        Catalog::new(Policy { models }).offer(&host.snapshot)
    }

    /// The resource and the kind of each device.
    fn advertised(host: &SimulatedHost) -> Vec<(String, DeviceKind)> {
        let offer = offer(host);
        let devices = offer.resources.iter().flat_map(|resource| {
            let name = resource.spec.name.as_str().rsplit('/').next().unwrap().to_owned();
            resource.devices.iter().map(move |(device, _)| (name.clone(), device.kind))
        });
        devices.collect()
    }

    #[test]
    fn every_known_gpu_has_its_facts_and_says_what_is_not_recorded() {
        for gpu in &GPUS {
            let host = host(&[&gpu.name.to_lowercase()]);
            let [adapter] = host.snapshot.adapters.as_slice() else { panic!("one GPU") };
            assert_eq!(adapter.name(), gpu.description);
            assert_eq!(adapter.hardware_id.vendor, gpu.vendor);
            assert_eq!(adapter.hardware_id.device, gpu.device);
            assert_eq!(adapter.driver_store.is_some(), gpu.vendor == NVIDIA, "{}", gpu.name);
            let is_noted = |text: &str| host.notes.iter().any(|note| note.contains(text));
            assert_eq!(is_noted("is not recorded"), gpu.name != "T4", "{:?}", host.notes);
            let mcdm = format!("`--gpu '{}:mcdm'`", gpu.name);
            assert_eq!(is_noted(&mcdm), gpu.mcdm == McdmStart::FromR595, "{:?}", host.notes);
            assert_eq!(advertised(&host), [("display".to_owned(), DeviceKind::Gpu)]);
        }
        assert_eq!(host(&["T4:wddm"]).notes, [""; 0]);
    }

    #[test]
    fn a_mode_decides_the_resource_and_the_kind() {
        for windows in [WindowsServer::Server2022, WindowsServer::Server2025] {
            for (gpu, resource, kind) in [
                ("L40S", "display", DeviceKind::Gpu),
                ("L40S:MCDM", "compute", DeviceKind::Gpu),
                ("NVIDIA A30:mcdm", "compute", DeviceKind::Gpu),
                ("AMD Radeon PRO W7900:wddm", "display", DeviceKind::Gpu),
                ("Intel AI Boost:npu", "compute", DeviceKind::Npu),
                ("Qualcomm Hexagon NPU:npu", "compute", DeviceKind::Npu),
            ] {
                let host = host_with(&[gpu], Some(windows)).ok().unwrap();
                assert_eq!(advertised(&host), [(resource.to_owned(), kind)], "{gpu} {windows:?}");
                let assumed = "what Windows reports of compute-only devices is assumed";
                let is_noted = host.notes.iter().any(|note| note.starts_with(assumed));
                assert_eq!(is_noted, resource == "compute", "{gpu}: {:?}", host.notes);
            }
        }
        for gpu in ["T4:mcdm", "Intel AI Boost:npu"] {
            let error = host_with(&[gpu], Some(WindowsServer::Server2019)).err().unwrap().chain();
            let text = " needs an MCDM driver, which Windows Server 2019 does not have";
            assert!(error.ends_with(text), "{error}");
        }
    }

    #[test]
    fn of_another_gpu_only_the_vendor_is_known() {
        for (name, vendor, integrated) in [
            ("NVIDIA GeForce RTX 4090", "nvidia", false),
            ("Radeon PRO W7900", "amd", false),
            ("Intel(R) UHD Graphics 770", "intel", true),
            ("Intel(R) Arc(TM) A770", "intel", false),
            ("Snapdragon X Elite GPU", "qualcomm", true),
        ] {
            let host = host(&[name]);
            let [adapter] = host.snapshot.adapters.as_slice() else { panic!("one GPU") };
            assert_eq!(adapter.name(), name);
            assert_eq!(host::Vendor::from_id(adapter.hardware_id.vendor).to_string(), vendor);
            assert_eq!((adapter.hardware_id.device, adapter.dedicated_memory_mib), (0, None));
            assert_eq!((adapter.driver_store.is_none(), adapter.integrated), (true, integrated));
            let note = &host.notes[0];
            assert!(note.starts_with(&format!("{name} is not known: ")), "{note}");
            assert_eq!(note.ends_with("; it counts as integrated"), integrated, "{note}");
            let not_advertised = offer(&host).not_advertised;
            assert_eq!(not_advertised.len(), usize::from(integrated), "{not_advertised:?}");
        }
    }

    #[test]
    fn windows_is_that_of_a_host_with_this_version() {
        for (windows, build, files_are_noted) in [
            (WindowsServer::Server2019, 17_763, true),
            (WindowsServer::Server2022, 20_348, false),
            (WindowsServer::Server2025, 26_100, true),
        ] {
            for gpus in [&[][..], &["T4"]] {
                let SimulatedHost { snapshot, notes, source } =
                    host_with(gpus, Some(windows)).ok().unwrap();
                assert_eq!(snapshot.host.build.unwrap().build, build);
                let year = windows.to_possible_value().unwrap();
                assert!(snapshot.host.product.unwrap().contains(year.get_name()));
                assert!(matches!(source, Source::MadeUp));
                let note = "the driver files are as recorded on Windows Server 2022";
                assert_eq!(notes.iter().any(|other| other == note), files_are_noted, "{notes:?}");
            }
        }
        let notes = host_with(&["V620"], Some(WindowsServer::Server2019)).ok().unwrap().notes;
        assert_eq!(notes.len(), 1, "it has no files: {notes:?}");
    }

    #[test]
    fn equal_notes_are_one() {
        let notes = host(&["A10", "A10", "L4", "V620", "V620"]).notes;
        assert_eq!(notes.len(), 4, "{notes:?}");
        assert!(notes[3].starts_with("A10, L4: from driver R595 on"), "{notes:?}");
    }

    #[test]
    fn equal_gpus_have_different_identifiers() {
        let gpus: Vec<&str> = ["T4", "A10"].into_iter().cycle().take(40).collect();
        let adapters = host(&gpus).snapshot.adapters;
        let pnp = |adapter: &Adapter| adapter.pnp.clone().unwrap();
        let different = |identifier: fn(&Adapter, host::PnpDevice) -> String| {
            let all: BTreeSet<String> = adapters.iter().map(|a| identifier(a, pnp(a))).collect();
            assert_eq!(all.len(), 40, "{all:?}");
        };
        different(|adapter, _| adapter.luid.to_string());
        different(|_, pnp| pnp.id.to_string());
        different(|_, pnp| pnp.location_paths[0].to_string());
        different(|_, pnp| pnp.driver_key.unwrap().to_string());
    }
}
