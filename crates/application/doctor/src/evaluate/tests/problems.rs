use host::Hypervisor;

use super::*;

const NVIDIA: &str = r"PCI\VEN_10DE&DEV_2684\1";

#[test]
fn a_device_without_an_adapter() {
    let mut table = Table::of(&[Subject::Device]);
    for code in [43, 31, 28, 22] {
        table.row(format!("code {code} beside another GPU of the vendor"), |facts| {
            facts.without_adapter(NVIDIA, code);
        });
        table.row(format!("code {code} of the only device"), |facts| {
            facts.without_adapter(NVIDIA, code);
            facts.adapters().clear();
        });
    }
    insta::assert_snapshot!(table.text());
}

/// The hint of a code leaves out what this host excludes.
#[test]
fn the_advice_that_a_host_can_follow() {
    use Hypervisor::{Guest, None as NoHypervisor, Own};
    let mut table = Table::of(&[Subject::Device]);
    let amd = (r"PCI\VEN_1002&DEV_7590\1", "AMD Radeon");
    let intel = (r"PCI\VEN_8086&DEV_56A0\1", "Intel(R) Arc(TM) A770 Graphics");
    let nvidia = (NVIDIA, "NVIDIA GeForce RTX 4090");
    let (server, client) = ("Microsoft Windows Server 2025 Standard", "Microsoft Windows 11 Pro");
    for (code, (id, name), product, hypervisor) in [
        (43, amd, client, Some(Own)),
        (43, amd, server, Some(NoHypervisor)),
        (43, amd, client, Some(Guest)),
        (43, intel, server, Some(Own)),
        (43, nvidia, server, Some(Guest)),
        (43, nvidia, client, Some(NoHypervisor)),
        (43, nvidia, client, None),
        (28, amd, server, None),
        (28, amd, client, None),
        (14, nvidia, client, Some(Guest)),
        (14, nvidia, client, Some(NoHypervisor)),
        (12, nvidia, client, Some(NoHypervisor)),
        (12, nvidia, client, Some(Guest)),
    ] {
        let words = format!("code {code} of {name} on {product}, hypervisor: {hypervisor:?}");
        table.row(words, |facts| {
            facts.snapshot.host.product = Some(product.to_owned());
            facts.snapshot.host.hypervisor = hypervisor;
            facts.without_adapter(id, code);
            facts.snapshot.devices_without_adapter[0].description = name.to_owned();
            facts.adapters().clear();
        });
    }
    insta::assert_snapshot!(table.text());
}

/// It needs the driver of its host.
#[test]
fn a_paravirtualized_gpu() {
    let mut table = Table::of(&[Subject::Device, Subject::Nvml]);
    let by_id = |facts: &mut NodeFacts| {
        let id = r"PCI\VEN_1414&DEV_008E&SUBSYS_00000000&REV_00\5&3A1CC9D5&0&0";
        facts.pnp().id = PnpId::new(id);
    };
    let by_folder = |facts: &mut NodeFacts| {
        facts.store().path =
            r"C:\Windows\System32\HostDriverStore\FileRepository\nv.inf_amd64_1".to_owned();
    };
    let in_a_container = |facts: &mut NodeFacts| {
        by_folder(facts);
        facts.snapshot.host.inside_container = true;
    };
    let make: [&dyn Fn(&mut NodeFacts); 4] = [&by_id, &by_folder, &in_a_container, &|_| ()];
    let words = [
        "paravirtualized by its ID",
        "paravirtualized by its folder",
        "with the folder of a container",
        "not paravirtualized",
    ];
    for (words, make) in words.into_iter().zip(make) {
        for code in [43, 31, 10, 12] {
            table.row(format!("{words}, code {code}"), |facts| {
                make(facts);
                facts.pnp().problem_code = code;
            });
        }
        table.row(format!("{words}, no nvml.dll and no files"), |facts| {
            make(facts);
            facts.set_nvml(no_nvml());
            facts.store().files = StoreFiles::Listed([].into());
        });
    }
    insta::assert_snapshot!(table.text());
}

/// Both findings have the hint that fits what is known.
#[test]
fn a_host_without_devices() {
    let mut table = Table::of(&[Subject::Device, Subject::Resources]);
    let mut row = |words: &str, change: fn(&mut NodeFacts)| {
        table.row(format!("no adapter, {words}"), |facts| {
            facts.adapters().clear();
            change(facts);
        });
    };
    row("NVML reports a GPU", |_| ());
    row("doctor runs inside a container", |facts| facts.snapshot.host.inside_container = true);
    row("a device without an adapter", |facts| {
        facts.without_adapter(NVIDIA, 28);
    });
    row("no NVML", |facts| facts.snapshot.node.nvml = None);
    row("no NVML, a virtual machine", |facts| {
        facts.snapshot.node.nvml = None;
        facts.snapshot.host.hypervisor = Some(Hypervisor::Guest);
    });
    row("no NVML, a physical machine", |facts| {
        facts.snapshot.node.nvml = None;
        facts.snapshot.host.hypervisor = Some(Hypervisor::None);
    });
    // NVIDIA's driver is installed, so no hint asks to install it.
    row("a GPU in TCC mode", |facts| facts.set_nvml(nvml(&["TCC"])));
    table.row("a GPU in TCC mode beside a management controller", |facts| {
        management_controller(facts.adapter());
        facts.set_nvml(nvml(&["TCC"]));
    });
    insta::assert_snapshot!(table.text());
}
