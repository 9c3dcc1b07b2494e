//! Device interface classes: a container that cannot get its devices individually gets
//! every device of the host that registers one class.

use std::fmt;
use std::str::FromStr;

use host::ParseError;

use crate::DriverModel;

/// The GUID of a device interface class.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct DeviceClass(u128);

impl DeviceClass {
    /// `GUID_DEVINTERFACE_DISPLAY_ADAPTER`, which containerd and hcsshim document for
    /// "every GPU of the host". Microsoft defines it for display views.
    pub const DISPLAY_ADAPTER: DeviceClass = DeviceClass(0x5B45_201D_F2F2_4F3B_85BB_30FF_1F95_3599);

    /// `GUID_COMPUTE_DEVICE_ARRIVAL`, which every adapter registers. Whether the Host Compute
    /// Service accepts it is not known, so that nothing uses it without a configuration.
    pub(crate) const EVERY_ADAPTER: DeviceClass =
        DeviceClass(0x1024_E4C9_47C9_48D3_B4A8_F9DF_7852_3B53);

    /// The class for the devices of `model` if the configuration names none. Compute-only devices have
    /// no default class: from Windows Server 2025 on, devices of the setup class
    /// `ComputeAccelerator` do not register `GUID_DISPLAY_DEVICE_ARRIVAL`.
    #[must_use]
    pub const fn default_for(model: DriverModel) -> Option<DeviceClass> {
        match model {
            DriverModel::Wddm | DriverModel::Legacy => Some(DeviceClass::DISPLAY_ADAPTER),
            DriverModel::Mcdm => None,
        }
    }

    /// What a container with this class gets.
    #[must_use]
    pub fn content(self) -> String {
        match self {
            DeviceClass::DISPLAY_ADAPTER => {
                "the class of all display adapters of the host".to_owned()
            }
            other => format!("all devices of the class {other} of the host"),
        }
    }
}

/// Prints the GUID without braces, in capitals, as containerd's documentation does.
impl fmt::Display for DeviceClass {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let digits = format!("{:032X}", self.0);
        let groups = [0..8, 8..12, 12..16, 16..20, 20..32].map(|group| &digits[group]);
        f.write_str(&groups.join("-"))
    }
}

/// Accepts a GUID with or without braces, in any case.
impl FromStr for DeviceClass {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let inner = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}'));
        let groups: Vec<&str> = inner.unwrap_or_default().split('-').collect();
        let lengths: Vec<usize> = groups.iter().map(|group| group.len()).collect();
        let digits = groups.concat();
        let is_guid = lengths == [8, 4, 4, 4, 12] && digits.bytes().all(|b| b.is_ascii_hexdigit());
        let number = u128::from_str_radix(&digits, 16).ok().filter(|_| is_guid);
        number
            .map(DeviceClass)
            .ok_or_else(|| ParseError::new(text, "the GUID of a device interface class"))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_display_adapter_class_is_the_documented_one() {
        let text = "5B45201D-F2F2-4F3B-85BB-30FF1F953599";
        assert_eq!(DeviceClass::DISPLAY_ADAPTER.to_string(), text);
    }

    #[test]
    fn braces_and_case_do_not_matter() {
        let class = "1024e4c9-47c9-48d3-b4a8-f9df78523b53".parse::<DeviceClass>().unwrap();
        assert_eq!(class.to_string(), "1024E4C9-47C9-48D3-B4A8-F9DF78523B53");
        assert_eq!("{1024E4C9-47C9-48d3-B4A8-F9DF78523B53}".parse(), Ok(class));
    }

    #[test]
    fn other_text_is_not_a_guid() {
        for bad in [
            "",
            "{}",
            "5B45201D",
            "5B45201DF2F24F3B85BB30FF1F953599",
            "{5B45201D-F2F2-4F3B-85BB-30FF1F953599",
            "5B45201D-F2F2-4F3B-85BB-30FF1F953599}",
            "(5B45201D-F2F2-4F3B-85BB-30FF1F953599)",
            "5B45201D-F2F2-4F3B-85BB-30FF1F95359",
            "+B45201D-F2F2-4F3B-85BB-30FF1F953599",
            "GB45201D-F2F2-4F3B-85BB-30FF1F953599",
            "5B45201-DF2F2-4F3B-85BB-30FF1F953599",
            "5B45201D-F2F2-4F3B-85BB-30FF1F953599-",
        ] {
            assert!(bad.parse::<DeviceClass>().is_err(), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn a_class_round_trips(number: u128) {
            let class = DeviceClass(number);
            prop_assert_eq!(class.to_string().parse(), Ok(class));
        }
    }
}
