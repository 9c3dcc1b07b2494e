//! Whether an API works as it should.

use crate::api::Api;
use crate::outcome::{DeviceOutcome, Fault, Outcome};

/// What has to work for a successful test.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Demands {
    /// Whether devices that the CPU emulates count as working.
    pub(crate) allow_software: bool,
    /// Whether the user named the APIs, which must then be installed.
    pub(crate) are_named: bool,
}

/// The verdict about an API.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Verdict {
    /// At least one device works, and none fails. The library of a video encoder reports its
    /// version.
    Ok,
    /// The library or a device fails.
    Failed,
    /// Only the CPU computes.
    SoftwareOnly,
    /// The library lists no device.
    NoDevice,
    /// The library is not installed.
    Absent,
}

impl Verdict {
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verdict::Ok => "ok",
            Verdict::Failed => "failed",
            Verdict::SoftwareOnly => "software-only",
            Verdict::NoDevice => "no-device",
            Verdict::Absent => "absent",
        }
    }

    /// Whether it makes the whole test fail.
    pub(crate) fn is_failure(self, demands: Demands) -> bool {
        match self {
            Verdict::Ok => false,
            Verdict::Failed | Verdict::SoftwareOnly | Verdict::NoDevice => true,
            Verdict::Absent => demands.are_named,
        }
    }
}

/// Judges what the test of `api` found. The returned fault concerns the whole API, not a device.
pub(crate) fn judge(api: Api, outcome: &Outcome, allow_software: bool) -> (Verdict, Option<Fault>) {
    match outcome {
        Outcome::Absent(fault) => (Verdict::Absent, Some(fault.clone())),
        Outcome::Broken { fault, .. } => (Verdict::Failed, Some(fault.clone())),
        Outcome::Listed { .. } if api.is_encoder() => (Verdict::Ok, None),
        Outcome::Listed { devices, .. } => judge_devices(devices, allow_software),
    }
}

fn judge_devices(devices: &[DeviceOutcome], allow_software: bool) -> (Verdict, Option<Fault>) {
    let mut counted =
        devices.iter().filter(|device| device.info.kind.counts(allow_software)).peekable();
    if devices.is_empty() {
        let hint = concat!(
            "check that the container was allocated a device, and that the driver's files are \
             mounted: see ",
            page!("runtime-files")
        );
        (Verdict::NoDevice, Some(Fault::new("the library lists no device").hint(hint)))
    } else if counted.peek().is_none() {
        let fault = Fault::new("every device is a software device: the CPU computes").hint(
            "check that the container was allocated a device; `--allow-software` accepts this",
        );
        (Verdict::SoftwareOnly, Some(fault))
    } else if counted.any(|device| device.fault.is_some()) {
        (Verdict::Failed, None)
    } else {
        (Verdict::Ok, None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{DeviceInfo, Kind, Library};

    fn verdict(devices: &[(Kind, Option<&str>)], allow_software: bool) -> Verdict {
        let devices = devices.iter().map(|(kind, fault)| DeviceOutcome {
            info: DeviceInfo { kind: *kind, ..DeviceInfo::default() },
            fault: fault.map(Fault::new),
            first_run_milliseconds: None,
        });
        let outcome = Outcome::Listed { library: Library::new("x"), devices: devices.collect() };
        judge(Api::Vulkan, &outcome, allow_software).0
    }

    #[test]
    fn software_counts_only_if_it_is_allowed() {
        use Kind::{Hardware, Software as Cpu};
        let broken = Some("x");
        for (devices, refused, allowed) in [
            (&[][..], Verdict::NoDevice, Verdict::NoDevice),
            (&[(Cpu, None)], Verdict::SoftwareOnly, Verdict::Ok),
            (&[(Cpu, broken)], Verdict::SoftwareOnly, Verdict::Failed),
            (&[(Hardware, None)], Verdict::Ok, Verdict::Ok),
            (&[(Hardware, None), (Cpu, broken)], Verdict::Ok, Verdict::Failed),
            (&[(Hardware, broken), (Hardware, None)], Verdict::Failed, Verdict::Failed),
        ] {
            assert_eq!(verdict(devices, false), refused, "{devices:?}");
            assert_eq!(verdict(devices, true), allowed, "{devices:?}");
        }
    }

    #[test]
    fn an_encoder_needs_no_device() {
        let outcome = Outcome::Listed { library: Library::new("x"), devices: Vec::new() };
        assert_eq!(judge(Api::Nvenc, &outcome, false), (Verdict::Ok, None));
        let broken = Outcome::Broken { library: None, fault: Fault::new("x") };
        assert_eq!(judge(Api::Nvenc, &broken, false).0, Verdict::Failed);
    }

    #[test]
    fn an_absent_library_is_a_failure_only_if_it_was_named() {
        let outcome = Outcome::Absent(Fault::new("x"));
        let (verdict, _) = judge(Api::Vulkan, &outcome, false);
        for are_named in [false, true] {
            let demands = Demands { allow_software: false, are_named };
            assert_eq!(verdict.is_failure(demands), are_named);
        }
    }
}
