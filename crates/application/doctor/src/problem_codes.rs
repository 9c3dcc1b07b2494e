//! The `PnP` manager's problem codes (`CM_PROB_*` of cfg.h; Microsoft's "Device Manager
//! error messages"), as far as they concern display and compute devices.

use host::{HostFacts, Hypervisor, Vendor};

use crate::aging_facts::Row;

/// What to do about a paravirtualized GPU (GPU-PV) that does not start: it has no driver of the
/// vendor, only files of the driver on its host.
pub(crate) const UPDATE_GUEST: &str = "the GPU is paravirtualized (GPU-PV), so its driver files must be those of its host: \
     copy the host's current driver package to HostDriverStore of this virtual machine again, \
     as after each driver update of the host, and restart the virtual machine";

/// A device with a problem, as far as advice depends on it.
pub(crate) struct Affected<'a> {
    /// Its instance ID.
    pub(crate) id: &'a str,
    /// The name that Device Manager shows.
    pub(crate) name: &'a str,
    pub(crate) vendor: Option<Vendor>,
    pub(crate) is_paravirtualized: bool,
    pub(crate) host: &'a HostFacts,
    /// Another device of the vendor that has a driver, with the driver's version.
    pub(crate) other_of_vendor: Option<String>,
}

/// What to do about a problem.
enum Fix {
    Install,
    Reinstall,
    Restart,
    Stopped,
    Addresses,
    Text(&'static str),
}

/// What a code means, and how to fix it.
pub(crate) fn explain(code: u32, affected: &Affected<'_>) -> (&'static str, String) {
    if code == 22 {
        let id = affected.id;
        return (
            "the device is disabled",
            format!("enable it: `Enable-PnpDevice -InstanceId '{id}'`"),
        );
    }
    let (meaning, fix) = of_any_device(code);
    if affected.is_paravirtualized && matches!(fix, Fix::Reinstall | Fix::Stopped) {
        return (meaning, UPDATE_GUEST.to_owned());
    }
    let hint = match fix {
        Fix::Install => affected.install(),
        Fix::Reinstall => affected.reinstall(code),
        Fix::Restart => affected.restart().to_owned(),
        Fix::Stopped => affected.after_failure(),
        Fix::Addresses => affected.more_addresses().to_owned(),
        Fix::Text(text) => text.to_owned(),
    };
    (meaning, hint)
}

const fn of_any_device(code: u32) -> (&'static str, Fix) {
    match code {
        1 | 18 | 28 => ("no driver is installed", Fix::Install),
        3 => ("the driver had too little memory", Fix::Text("free memory and restart the host")),
        9 | 33 | 34 | 35 | 36 => (
            "the firmware describes the device incorrectly",
            Fix::Text("update the firmware; in a virtual machine, assign the device to it again"),
        ),
        10 => ("the driver cannot start the device", Fix::Reinstall),
        12 => ("too few free addresses for the device", Fix::Addresses),
        14 => ("the device needs a restart", Fix::Restart),
        19 => ("the registry entries of the device are damaged", Fix::Reinstall),
        21 | 47 => (
            "the device is being removed",
            Fix::Text("wait, then scan for hardware changes or restart the host"),
        ),
        24 | 45 => (
            "the device is not present",
            Fix::Text("check that it is plugged in, or assigned to the virtual machine"),
        ),
        29 => ("the firmware disabled the device", Fix::Text("enable it in the firmware settings")),
        31 | 37 | 39 | 40 => ("the driver cannot be loaded", Fix::Reinstall),
        32 => ("the service of the driver is disabled", Fix::Reinstall),
        38 => ("an earlier copy of the driver is still loaded", Fix::Restart),
        43 => ("the device stopped after it reported a failure", Fix::Stopped),
        44 => ("an application or a service shut down the device", Fix::Restart),
        48 => ("the driver is blocked on this Windows", Fix::Text("install a newer driver")),
        52 => (
            "the driver is not signed",
            Fix::Text("install a driver that is signed for this Windows"),
        ),
        54 => (
            "the device is being reset",
            Fix::Text("run doctor again in a minute; if the problem persists, restart the host"),
        ),
        _ => (
            "Windows reports a fault",
            Fix::Text("see Microsoft's `Device Manager error messages`"),
        ),
    }
}

impl Affected<'_> {
    fn install(&self) -> String {
        let mut parts = vec![format!("install {} driver for this Windows", self.vendor_name())];
        if let Some(other) = &self.other_of_vendor {
            let row = Row::TwoGenerations;
            parts.push(format!("it must also support {other}, whose driver it replaces ({row})"));
        }
        if self.may_lack_server_driver() {
            let row = Row::WindowsServer;
            parts.push(format!("not every GPU has one for Windows Server ({row})"));
        }
        parts.join("; ")
    }

    fn reinstall(&self, code: u32) -> String {
        let reinstall = format!("reinstall {} driver for this Windows", self.vendor_name());
        if self.needs_resizable_bar() && code == 10 {
            return format!("{reinstall}; Arc GPUs need Resizable BAR ({})", Row::Code43);
        }
        reinstall
    }

    fn restart(&self) -> &'static str {
        match self.host.hypervisor {
            Some(Hypervisor::Guest) => "restart this virtual machine",
            _ => "restart the host",
        }
    }

    /// Code 43 has many causes. Those that this host excludes are left out.
    fn after_failure(&self) -> String {
        let hypervisor = self.host.hypervisor;
        let mut causes = Vec::new();
        if hypervisor == Some(Hypervisor::Own) {
            causes.push(
                "turn off Hyper-V and Virtual Machine Platform in this Windows, which containers \
                 with process isolation do not need",
            );
        }
        if self.needs_resizable_bar() {
            causes.push("turn on Resizable BAR in the firmware, which Arc GPUs need");
        }
        if self.may_lack_server_driver() && self.vendor != Some(Vendor::Nvidia) {
            causes.push("check that the vendor has this driver for Windows Server");
        }
        if hypervisor != Some(Hypervisor::None) {
            causes.push("in a virtual machine, check whether the driver refuses to run there");
        }
        causes.push("check the hardware");
        let first = match (hypervisor, self.vendor) {
            (Some(Hypervisor::Guest), Some(Vendor::Amd)) => {
                "shut down this virtual machine and the machine that it runs on, and start both, \
                 because a restart of the virtual machine does not reset the GPU"
            }
            (Some(Hypervisor::Guest), _) => {
                "restart this virtual machine, then the machine that it runs on"
            }
            _ => "restart the host",
        };
        format!("{first}; if the problem persists: {} ({})", causes.join("; "), Row::Code43)
    }

    fn more_addresses(&self) -> &'static str {
        match self.host.hypervisor {
            Some(Hypervisor::None) => "enable `Above 4G decoding` in the firmware",
            _ => {
                "give the virtual machine enough high memory-mapped I/O space for the GPU \
                 (Hyper-V: Set-VM -HighMemoryMappedIoSpace), or enable `Above 4G decoding` in the \
                 firmware"
            }
        }
    }

    fn vendor_name(&self) -> &'static str {
        match self.vendor {
            Some(Vendor::Amd) => "AMD's",
            Some(Vendor::Intel) => "Intel's",
            Some(Vendor::Nvidia) => "NVIDIA's",
            Some(Vendor::Qualcomm) => "Qualcomm's",
            _ => "the vendor's",
        }
    }

    /// Whether it is one of Intel's cards: `Intel(R) Arc(TM) A770 Graphics`, `Data Center GPU Flex 170`.
    /// The graphics of processors have other names, such as `Intel(R) Arc(TM) Graphics`.
    fn needs_resizable_bar(&self) -> bool {
        let is_model = |word: &str| {
            let digits = word.strip_prefix(['A', 'B']).unwrap_or_default();
            digits.starts_with(|first: char| first.is_ascii_digit())
        };
        let is_card = self.name.contains("Data Center GPU")
            || self.name.contains("Arc") && self.name.split_whitespace().any(is_model);
        self.vendor == Some(Vendor::Intel) && is_card
    }

    /// Whether this is Windows Server, for which vendors have no driver for some GPUs.
    fn may_lack_server_driver(&self) -> bool {
        let is_server = self.host.product.as_deref().is_some_and(|name| name.contains("Server"));
        is_server && self.vendor.is_some_and(Vendor::makes_gpus)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn explained(code: u32, vendor: Option<Vendor>, name: &str) -> String {
        let product = Some("Microsoft Windows Server 2025 Standard".to_owned());
        let host = &HostFacts { product, ..HostFacts::default() };
        let is_paravirtualized = false;
        let affected =
            Affected { id: "ID", name, vendor, is_paravirtualized, host, other_of_vendor: None };
        let (meaning, hint) = explain(code, &affected);
        format!("{meaning}: {hint}")
    }

    #[test]
    fn every_code() {
        let other = explained(0, None, "GPU");
        let known = (1..=60).map(|code| (code, explained(code, None, "GPU")));
        let known = known.filter(|(_, text)| *text != other);
        let lines: Vec<String> = known.map(|(code, text)| format!("{code}: {text}")).collect();
        insta::assert_snapshot!(format!("{}\nother codes: {other}", lines.join("\n")));
    }

    #[test]
    fn only_intels_cards_need_resizable_bar() {
        let (intel, amd) = (Some(Vendor::Intel), Some(Vendor::Amd));
        for (vendor, name, is_card) in [
            (intel, "Intel(R) Arc(TM) B580 Graphics", true),
            (intel, "Intel(R) Data Center GPU Flex 170", true),
            (intel, "Intel(R) Arc(TM) Graphics", false),
            (intel, "Intel(R) B43 Express Chipset", false),
            (amd, "AMD Data Center GPU", false),
        ] {
            let needs = |code| explained(code, vendor, name).contains("Resizable BAR");
            assert_eq!((needs(10), needs(31)), (is_card, false), "{name}");
        }
    }

    #[test]
    fn the_driver_is_that_of_the_vendor() {
        for vendor in [Vendor::Amd, Vendor::Intel, Vendor::Nvidia, Vendor::Qualcomm] {
            let text = explained(32, Some(vendor), "GPU").to_lowercase();
            assert!(
                text.ends_with(&format!("reinstall {vendor}'s driver for this windows")),
                "{text}"
            );
        }
    }
}
