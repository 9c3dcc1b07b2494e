//! Devices that an administrator takes out of service.

use std::collections::BTreeSet;
use std::fmt;
use std::str::FromStr;

use crate::text::text_newtype::{caseless, text};
use crate::{LocationPath, ParseError, PnpId, ReplicaId};

/// The annotation of a node that takes devices out of service, as [`DeviceName::list`] reads it.
pub const CORDON_ANNOTATION: &str = "directx.microsoft.com/cordoned-devices";

/// Names a device: its `PnP` instance ID, its location path, or the kubelet's ID of one of its
/// replicas. Compared without case.
#[derive(Clone, Debug)]
pub struct DeviceName(String);

text!(DeviceName);
caseless!(DeviceName);

impl DeviceName {
    /// The names in a text, sorted, each once. Commas or line breaks separate them; an ID of a
    /// device contains neither ("Device Instance IDs", Microsoft Learn).
    #[must_use]
    pub fn list(text: &str) -> Vec<DeviceName> {
        let names = text.split([',', '\n', '\r']).filter_map(|name| name.parse().ok());
        Vec::from_iter(names.collect::<BTreeSet<_>>())
    }

    /// Whether it names the device with this ID and location path.
    #[must_use]
    pub fn names(&self, id: &PnpId, location_path: Option<&LocationPath>) -> bool {
        *id == PnpId::new(self.as_str())
            || ReplicaId::parse(self.as_str()).is_some_and(|replica| replica.device == *id)
            || location_path.is_some_and(|path| *path == LocationPath::new(self.as_str()))
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

/// What is known of the devices that the node's annotation takes out of service.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Cordons {
    /// Their names.
    Known(Vec<DeviceName>),
    /// The names cannot be read, for this reason. Each device may be one of them.
    Unknown(String),
}

impl Cordons {
    /// The names that are known.
    #[must_use]
    pub fn names(&self) -> &[DeviceName] {
        match self {
            Cordons::Known(names) => names,
            Cordons::Unknown(_) => &[],
        }
    }
}

/// No device is out of service.
impl Default for Cordons {
    fn default() -> Cordons {
        Cordons::Known(Vec::new())
    }
}

/// Where a cordon comes from.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum CordonSource {
    /// `cordonedDevices` of the configuration.
    #[default]
    Configuration,
    NodeAnnotation,
}

impl fmt::Display for CordonSource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CordonSource::Configuration => f.write_str("cordonedDevices of the configuration"),
            CordonSource::NodeAnnotation => write!(f, "the node's annotation {CORDON_ANNOTATION}"),
        }
    }
}

/// Takes a device out of service. It prints as a sentence if it names no device of the host.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Cordon {
    pub device: DeviceName,
    pub source: CordonSource,
}

impl fmt::Display for Cordon {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` in {} names no device of this host", self.device, self.source)
    }
}
