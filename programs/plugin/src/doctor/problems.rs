//! The `PnP` manager's problem codes (`CM_PROB_*` of cfg.h; Microsoft's "Device Manager
//! error messages"), as far as display and compute devices meet them.

/// What a problem code means and what to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Problem {
    /// What happened.
    pub(crate) what: &'static str,
    /// What to do.
    pub(crate) advice: &'static str,
}

const REINSTALL: &str = "reinstall the vendor's driver for this Windows";
const RESTART: &str = "restart the host";

/// Explains a code.
pub(crate) const fn explain(code: u32) -> Problem {
    let (what, advice) = match code {
        1 | 18 | 28 => ("no driver is installed", "install the vendor's driver for this Windows"),
        3 => ("the driver had not enough memory", "free memory and restart the host"),
        9 | 33 | 34 | 35 | 36 => (
            "the firmware describes it wrongly",
            "update the firmware; in a virtual machine, assign the device to it again",
        ),
        10 => ("its driver cannot start it", REINSTALL),
        12 => (
            "there are not enough free addresses for it",
            "give the virtual machine enough high memory-mapped I/O space for the GPU \
             (Hyper-V: Set-VM -HighMemoryMappedIoSpace), or turn on `Above 4G decoding` in the \
             firmware",
        ),
        14 => ("it waits for a restart", RESTART),
        19 => ("its registry entries are damaged", REINSTALL),
        21 | 47 => {
            ("it is being removed", "wait, then scan for hardware changes or restart the host")
        }
        22 => ("somebody turned it off", "turn it on: `Enable-PnpDevice -InstanceId <id>`"),
        24 | 45 => {
            ("it is not there", "see that it is plugged in, or assigned to the virtual machine")
        }
        29 => ("the firmware turned it off", "turn it on in the firmware's settings"),
        31 | 37 | 39 | 40 => ("its driver cannot be loaded", REINSTALL),
        32 => ("its driver's service is turned off", REINSTALL),
        38 => ("an earlier copy of its driver is still loaded", RESTART),
        43 => (
            "it stopped after it reported a failure",
            "restart the host; if it comes back, look for faults of the hardware, and in a virtual \
             machine for a driver that refuses to run there",
        ),
        44 => ("an application or a service shut it down", RESTART),
        48 => ("its driver is blocked on this Windows", "install a newer driver"),
        52 => ("its driver is not signed", "install a driver that is signed for this Windows"),
        54 => ("it is being reset", "look again in a minute; if it stays, restart the host"),
        _ => ("Windows found a fault", "look it up in Microsoft's `Device Manager error messages`"),
    };
    Problem { what, advice }
}
