//! Devices that an administrator takes out of service.

use std::fmt;
use std::str::FromStr;

use crate::case_folding::fold_case;
use crate::replica::split;
use crate::{LocationPath, ParseError, PnpId};

/// Names a device: its `PnP` instance ID, its location path, or the kubelet's ID of one of its
/// replicas. Compared without case.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct DeviceName(String);

impl DeviceName {
    pub(crate) fn names(&self, id: &PnpId, location_path: Option<&LocationPath>) -> bool {
        let (name, id) = (fold_case(&self.0), fold_case(id.as_str()));
        name == id
            || split(&name).is_some_and(|(device, _)| device == id)
            || location_path.is_some_and(|path| fold_case(path.as_str()) == name)
    }
}

impl FromStr for DeviceName {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, ParseError> {
        match text.trim() {
            "" => Err(ParseError::new(text, "a device ID or a location path")),
            name => Ok(DeviceName(name.to_owned())),
        }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Where a cordon comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CordonSource {
    /// `cordonedDevices` of the configuration.
    Configuration,
    /// The annotation of the node.
    NodeAnnotation,
}

impl fmt::Display for CordonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CordonSource::Configuration => "cordonedDevices of the configuration",
            CordonSource::NodeAnnotation => {
                "the node's annotation directx.microsoft.com/cordoned-devices"
            }
        })
    }
}

/// Takes a device out of service. It prints as a sentence if it names no device of the host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cordon {
    /// The device.
    pub device: DeviceName,
    /// Where it comes from.
    pub source: CordonSource,
}

impl fmt::Display for Cordon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {} names no device of this host", self.device, self.source)
    }
}
