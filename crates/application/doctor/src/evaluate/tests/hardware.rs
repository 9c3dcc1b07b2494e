use devices::Visibility;
use host::{AdapterWarning, Luid, WarningEffect};

use super::*;

fn warn(facts: &mut NodeFacts, luid: Luid, effect: WarningEffect) {
    let text = format!("what was read of it: {effect:?}");
    facts.snapshot.warnings.push(AdapterWarning { luid, text, effect });
}

#[test]
fn devices_and_adapters_that_were_read_in_part() {
    let mut table = Table::of(&[Subject::Device]);
    table.row("version and date of the driver are known", |facts| {
        facts.adapter().driver_version = Some("31.0.15.2849".parse().unwrap());
        facts.pnp().driver_date = Some("2023-02-14".parse().unwrap());
    });
    table.row("no adapter", |facts| facts.adapters().clear());
    table.row("an adapter incomplete, another one unreadable", |facts| {
        warn(facts, Luid(7), WarningEffect::Incomplete);
        warn(facts, Luid(8), WarningEffect::Unreadable);
    });
    // Without a device, this one explains why.
    let alone = |facts: &mut NodeFacts| {
        facts.adapters().clear();
        facts.snapshot.node.nvml = None;
        warn(facts, Luid(9), WarningEffect::NotListed);
    };
    table.row("DXCore does not list one of two adapters", |facts| {
        warn(facts, Luid(9), WarningEffect::NotListed);
    });
    table.row("DXCore does not list the only adapter", alone);
    table.row("the same, and NVML reports a GPU in MCDM mode", |facts| {
        alone(facts);
        facts.set_nvml(nvml(&["MCDM"]));
    });
    insta::assert_snapshot!(table.text());
}

#[test]
fn visible_gpus() {
    let mut table = Table::of(&[Subject::Visibility]);
    table.row("one GPU", |_| ());
    for (words, attribute, vendor) in [
        ("the only GPU is in MCDM mode", Attribute::D3d12CoreCompute, 0x10DE),
        ("the only GPU has no Direct3D", Attribute::Gpu, 0x8086),
    ] {
        table.row(words, |facts| {
            facts.adapter().attributes = Attributes::from_iter([attribute]);
            facts.adapter().hardware_id.vendor = vendor;
        });
    }
    table.row("no adapter", |facts| facts.adapters().clear());
    table.row("two GPUs", |facts| facts.second(|_| ()));
    table.row("two GPUs, containers get no variables", |facts| {
        facts.second(|_| ());
        facts.container().omit_environment_hints = true;
    });
    table.row("three GPUs", |facts| {
        facts.second(|_| ());
        let mut third = facts.adapter().clone();
        third.luid = Luid(3);
        third.pnp.as_mut().unwrap().id = PnpId::new(r"PCI\3");
        facts.adapters().push(third);
    });
    let file = "directx-visible-filter.dll";
    for (missing, visibility) in [
        (&[file][..], Visibility::Off),
        (&[], Visibility::Launcher),
        (&[file], Visibility::Launcher),
        (&[file], Visibility::Required),
    ] {
        table.row(format!("visibility {visibility}, missing: {missing:?}"), |facts| {
            facts.missing_launcher_files = missing.to_vec();
            facts.container().visibility = visibility;
        });
    }
    insta::assert_snapshot!(table.text());
}

/// The subjects that count GPUs agree on what is one.
#[test]
fn adapters_that_are_no_gpu() {
    let subjects = &[Subject::Device, Subject::Resources, Subject::Visibility];
    let mut table = Table::of(subjects);
    for (words, is_this_machine) in [("on this machine", true), ("in an inventory", false)] {
        table.row(format!("the only GPU has no PnP device, {words}"), |facts| {
            facts.adapter().pnp = None;
            facts.snapshot.host.is_this_machine = is_this_machine;
        });
    }
    let microsoft = |device| HardwareId { vendor: 0x1414, device, ..Default::default() };
    for device in [0x008C, 0x5353] {
        for has_pnp in [true, false] {
            let words = format!("only Microsoft's basic adapter {device:04X}, with PnP: {has_pnp}");
            table.row(words, |facts| {
                facts.snapshot.node.nvml = None;
                facts.adapter().hardware_id = microsoft(device);
                facts.adapter().pnp = facts.adapter().pnp.take().filter(|_| has_pnp);
            });
        }
    }
    table.row("Microsoft's basic adapter beside a GPU", |facts| {
        facts.second(|adapter| adapter.hardware_id = microsoft(0x5353));
    });
    // An administrator runs doctor in a remote session.
    let indirect_display = |facts: &mut NodeFacts, change: fn(&mut Adapter)| {
        facts.second(|adapter| {
            adapter.pnp.as_mut().unwrap().description = "Parsec Virtual Display Adapter".to_owned();
            change(adapter);
        });
        // What a live host could not read of it needs no fix.
        let luid = facts.adapters()[1].luid;
        warn(facts, luid, WarningEffect::Incomplete);
    };
    table.row("an indirect display, by its attribute", |facts| {
        indirect_display(facts, |adapter| adapter.indirect_display = true);
    });
    table.row("an indirect display, by its ID", |facts| {
        indirect_display(facts, |adapter| {
            adapter.pnp.as_mut().unwrap().id = PnpId::new(r"ROOT\DISPLAY\0000");
        });
    });
    table.row("only a management controller", |facts| management_controller(facts.adapter()));
    table.row("a management controller beside a GPU", |facts| facts.second(management_controller));
    // Nothing is wrong with the GPUs of a host whose virtual display is switched off.
    for id in [
        r"ROOT\DISPLAY\0000",
        r"swd\IddSampleDriver\1",
        r"VMBUS\{DA0A7802-E377-4AAC-8E77-0558EB1073F8}\1",
    ] {
        table.row(format!("only the virtual display {id} without an adapter"), |facts| {
            facts.adapters().clear();
            facts.snapshot.node.nvml = None;
            facts.without_adapter(id, 31);
        });
    }
    insta::assert_snapshot!(table.text());
}

#[test]
fn nvml_and_driver_modes() {
    let mut table = Table::of(&[Subject::Nvml]);
    for modes in [&["WDDM", "MCDM", "MCDM"][..], &["MCDM"], &[], &["WDDM", "TCC"], &["TCC", "TCC"]]
    {
        table.row(format!("GPUs in modes {modes:?}"), |facts| facts.set_nvml(nvml(modes)));
    }
    table.row("no library", |facts| facts.set_nvml(no_nvml()));
    table.row("no library and no adapter", |facts| {
        facts.adapters().clear();
        facts.set_nvml(no_nvml());
    });
    table.row("no library, and the adapters cannot be read", |facts| {
        facts.unreadable();
        facts.set_nvml(no_nvml());
    });
    let lost = |facts: &mut NodeFacts| {
        facts.set_nvml(Nvml { gpus: Err("NVML_ERROR_GPU_IS_LOST".to_owned()), ..nvml(&[]) });
    };
    table.row("NVML does not respond", lost);
    table.row("NVML does not respond, and AMD's device has no adapter", |facts| {
        lost(facts);
        facts.without_adapter(r"PCI\VEN_1002\1", 43);
    });
    // The fix is that of the cause.
    table.row("NVML does not respond, and the device has a problem", |facts| {
        lost(facts);
        facts.pnp().problem_code = 43;
    });
    table.row("NVML does not respond, and NVIDIA's other device has no adapter", |facts| {
        lost(facts);
        facts.without_adapter(r"PCI\VEN_10DE\1", 43);
    });
    table.row("NVML does not respond, and NVIDIA's only device has no adapter", |facts| {
        lost(facts);
        facts.adapters().clear();
        facts.without_adapter(r"PCI\VEN_10DE\1", 43);
    });
    insta::assert_snapshot!(table.text());
}

/// The advice never names a mode that this Windows, or a GPU of this host, cannot have.
#[test]
fn gpus_in_tcc_mode() {
    let mut table = Table::of(&[Subject::Nvml]);
    let mut row = |build: &str, names: &[&str]| {
        table.row(format!("in TCC mode on build {build}: {}", names.join(", ")), |facts| {
            facts.set_build(build);
            let mut nvml = nvml(&vec!["TCC"; names.len()]);
            for (gpu, name) in nvml.gpus.as_mut().unwrap().iter_mut().zip(names) {
                gpu.name = (*name).to_owned();
            }
            facts.set_nvml(nvml);
        });
    };
    let with_mcdm = [
        "Tesla T4",
        "NVIDIA A100-PCIE-40GB",
        "NVIDIA L4",
        "Quadro RTX 6000",
        "NVIDIA T1000",
        "NVIDIA GeForce GTX 1650",
        "NVIDIA TITAN RTX",
    ];
    row("10.0.18362.1", &with_mcdm);
    row("10.0.17763.6054", &with_mcdm);
    let older_than_turing = [
        "Tesla P4",
        "Tesla P100-PCIE-16GB",
        "Tesla V100-SXM2-16GB",
        "Tesla M60",
        "GRID M10-8Q",
        "Quadro P4000",
        "Quadro GP100",
        "Quadro GV100",
        "NVIDIA GeForce GTX 1080",
        "NVIDIA GeForce GT 1010",
        "NVIDIA TITAN V",
        "NVIDIA TITAN Xp",
        "Tesla K80",
        "P106-100",
    ];
    row("10.0.20348.2966", &[&with_mcdm[..], &older_than_turing].concat());
    insta::assert_snapshot!(table.text());
}

#[test]
fn licenses() {
    let mut table = Table::of(&[Subject::License]);
    let until = License::until("2026-12-01T10:00:00Z".parse().ok());
    let free = License::NOT_REQUIRED;
    for licenses in [
        [Some(free), Some(free)],
        [Some(until), Some(until)],
        [Some(until), Some(free)],
        [Some(until), None],
        [None, Some(License::MISSING)],
        [Some(until), Some(License::MISSING)],
    ] {
        let shown = licenses.map(|license| license.map_or("unknown".to_owned(), |l| l.to_string()));
        table.row(format!("two GPUs: {}", shown.join(" and ")), |facts| {
            facts.second(|_| ());
            for (adapter, license) in facts.adapters().iter_mut().zip(licenses) {
                adapter.nvidia.license = license;
            }
        });
    }
    table.row("an inventory without licenses", |facts| {
        facts.adapter().nvidia.license = None;
        facts.snapshot.node.nvml = None;
    });
    // Such a GPU is in TCC mode, or only the graphics kernel lists it.
    let of_nvml = [
        ("no NVML", no_nvml().gpus),
        ("NVML reports no GPU", Ok(vec![])),
        ("NVML reports a GPU in TCC mode", nvml(&["TCC"]).gpus),
    ];
    for (words, gpus) in of_nvml {
        table.row(format!("only AMD's adapter, {words}"), |facts| {
            facts.adapter().hardware_id.vendor = 0x1002;
            facts.set_nvml(Nvml { library: None, gpus });
        });
    }
    insta::assert_snapshot!(table.text());
}
