//! The `PnP` manager's problem codes (`CM_PROB_*` of cfg.h; Microsoft's "Device Manager
//! error messages"), as far as they concern display and compute devices.

const REINSTALL: &str = "reinstall the vendor's driver for this Windows";
const RESTART: &str = "restart the host";

/// What to do about a paravirtualized GPU (GPU-PV) that does not start: it has no driver of the
/// vendor, only files of the driver on its host.
pub(crate) const UPDATE_GUEST: &str = "the GPU is paravirtualized (GPU-PV), so its driver files must be those of its host: \
     copy the host's current driver package to HostDriverStore of this virtual machine again, \
     as after each driver update of the host, and restart the virtual machine";

/// What a code means, and how to fix it.
pub(crate) fn explain(code: u32, is_paravirtualized: bool) -> (&'static str, &'static str) {
    let (meaning, hint) = of_any_device(code);
    let is_of_driver = code == 43 || hint == REINSTALL;
    (meaning, if is_paravirtualized && is_of_driver { UPDATE_GUEST } else { hint })
}

const fn of_any_device(code: u32) -> (&'static str, &'static str) {
    match code {
        1 | 18 | 28 => ("no driver is installed", "install the vendor's driver for this Windows"),
        3 => ("the driver had too little memory", "free memory and restart the host"),
        9 | 33 | 34 | 35 | 36 => (
            "the firmware describes the device incorrectly",
            "update the firmware; in a virtual machine, assign the device to it again",
        ),
        10 => ("the driver cannot start the device", REINSTALL),
        12 => (
            "too few free addresses for the device",
            "give the virtual machine enough high memory-mapped I/O space for the GPU \
             (Hyper-V: Set-VM -HighMemoryMappedIoSpace), or enable `Above 4G decoding` in the \
             firmware",
        ),
        14 => ("the device needs a restart", RESTART),
        19 => ("the registry entries of the device are damaged", REINSTALL),
        21 | 47 => (
            "the device is being removed",
            "wait, then scan for hardware changes or restart the host",
        ),
        22 => ("the device is disabled", "enable it: `Enable-PnpDevice -InstanceId <id>`"),
        24 | 45 => (
            "the device is not present",
            "check that it is plugged in, or assigned to the virtual machine",
        ),
        29 => ("the firmware disabled the device", "enable it in the firmware settings"),
        31 | 37 | 39 | 40 => ("the driver cannot be loaded", REINSTALL),
        32 => ("the service of the driver is disabled", REINSTALL),
        38 => ("an earlier copy of the driver is still loaded", RESTART),
        43 => (
            "the device stopped after it reported a failure",
            "restart the host; if the problem persists, check the hardware, and in a virtual \
             machine whether the driver refuses to run there",
        ),
        44 => ("an application or a service shut down the device", RESTART),
        48 => ("the driver is blocked on this Windows", "install a newer driver"),
        52 => ("the driver is not signed", "install a driver that is signed for this Windows"),
        54 => (
            "the device is being reset",
            "run doctor again in a minute; if the problem persists, restart the host",
        ),
        _ => ("Windows reports a fault", "see Microsoft's `Device Manager error messages`"),
    }
}
