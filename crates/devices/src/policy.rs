//! The policy: everything that selection, slots and plans need from the
//! configuration. `settings` builds it; nothing here knows where it came from.

use std::collections::BTreeMap;
use std::fmt;
use std::num::NonZeroU32;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use crate::text::fold;
use crate::{DriverModel, FileName, LocationPath, StorePath, Vendor};

/// What is offered and how, per driver model.
#[derive(Clone, Debug)]
pub struct Policy {
    /// At least one; each driver model at most once. A device that fits several
    /// belongs to the first.
    pub models: Vec<ModelPolicy>,
}

/// The policy for the devices of one driver model.
#[derive(Clone, Debug)]
pub struct ModelPolicy {
    /// The driver model.
    pub model: DriverModel,
    /// The resource of the devices that no rule claims.
    pub resource: ResourceName,
    /// How that resource is shared and spread; rules inherit what they do not set.
    pub sharing: Sharing,
    /// Integrated adapters: left out unless asked for.
    pub integrated: DeviceScope,
    /// Detachable adapters: left out unless asked for.
    pub detachable: DeviceScope,
    /// `legacy` only: the text that an adapter's description must contain, without case.
    pub match_name: Option<String>,
    /// In order: the first rule that matches a device claims it.
    pub rules: Arc<[ResourceRule]>,
    /// What a container is given with a device.
    pub container: Arc<ContainerPolicy>,
    /// Whether devices carry their NUMA node to the kubelet.
    pub numa: NumaTopology,
    /// How long a device that went away is listed Unhealthy before it is dropped.
    pub removal_grace: Duration,
}

/// Whether a kind of adapter is offered.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum DeviceScope {
    /// Left out, with a reason.
    #[default]
    Exclude,
    /// Offered like any other.
    Include,
}

/// How one resource's devices are shared.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Sharing {
    /// Slots per device; 1 is exclusive use.
    pub replicas: NonZeroU32,
    /// How containers are spread over devices.
    pub allocation: AllocationPolicy,
}

/// How containers are spread over the devices of a resource.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum AllocationPolicy {
    /// The device with the fewest slots in use first.
    #[default]
    Distributed,
    /// The device with the most slots in use first.
    Packed,
}

/// A resource that claims the devices which match.
#[derive(Clone, PartialEq, Debug)]
pub struct ResourceRule {
    /// The extended resource's name. Two rules may share it if they agree on sharing.
    pub name: ResourceName,
    /// What a device must be.
    pub matches: DeviceMatch,
    /// Slots per device, where the rule sets it.
    pub replicas: Option<NonZeroU32>,
    /// Spreading, where the rule sets it.
    pub allocation: Option<AllocationPolicy>,
}

/// What a device must be for a rule to claim it: every condition that is there.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct DeviceMatch {
    /// The vendor, by PCI id.
    pub vendor: Option<Vendor>,
    /// A pattern that the description contains.
    pub description: Option<DescriptionPattern>,
    /// PCI vendor and device.
    pub pci: Option<PciPattern>,
    /// The least dedicated memory, in MiB.
    pub min_memory_mib: Option<u64>,
    /// The driver model.
    pub model: Option<DriverModel>,
    /// The location path.
    pub location: Option<LocationPattern>,
}

/// A regular expression searched for in a device's description, without case.
#[derive(Clone)]
pub struct DescriptionPattern {
    text: String,
    regex: regex_lite::Regex,
}

impl DescriptionPattern {
    /// Whether `description` contains a match.
    #[must_use]
    pub fn matches(&self, description: &str) -> bool {
        self.regex.is_match(description)
    }
}

impl PartialEq for DescriptionPattern {
    fn eq(&self, other: &Self) -> bool {
        self.text == other.text
    }
}

impl fmt::Display for DescriptionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl fmt::Debug for DescriptionPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "DescriptionPattern({:?})", self.text)
    }
}

/// The text is not a regular expression.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{pattern}` is not a regular expression: {why}")]
pub struct DescriptionPatternError {
    pattern: String,
    why: String,
}

impl FromStr for DescriptionPattern {
    type Err = DescriptionPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match regex_lite::RegexBuilder::new(text).case_insensitive(true).build() {
            Ok(regex) => Ok(DescriptionPattern { text: text.to_owned(), regex }),
            Err(e) => Err(DescriptionPatternError { pattern: text.to_owned(), why: e.to_string() }),
        }
    }
}

/// PCI vendor and device, written `10de:1eb8`, or `10de:*` for every device of a vendor.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciPattern {
    vendor: u16,
    device: Option<u16>,
}

impl PciPattern {
    /// Whether the ids fit.
    #[must_use]
    pub fn matches(&self, vendor: u32, device: u32) -> bool {
        u32::from(self.vendor) == vendor && self.device.is_none_or(|d| u32::from(d) == device)
    }
}

impl fmt::Display for PciPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.device {
            Some(device) => write!(f, "{:04x}:{device:04x}", self.vendor),
            None => write!(f, "{:04x}:*", self.vendor),
        }
    }
}

/// The text is not a PCI id pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a PCI id (four hexadecimal digits, a colon, and four more or `*`)")]
pub struct PciPatternError(String);

impl FromStr for PciPattern {
    type Err = PciPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let hex = |part: &str| {
            (part.len() == 4 && part.bytes().all(|b| b.is_ascii_hexdigit()))
                .then(|| u16::from_str_radix(part, 16).ok())
                .flatten()
        };
        text.split_once(':')
            .and_then(|(vendor, device)| {
                let device = if device == "*" { None } else { Some(hex(device)?) };
                Some(PciPattern { vendor: hex(vendor)?, device })
            })
            .ok_or_else(|| PciPatternError(text.to_owned()))
    }
}

/// A location path, compared without case; with `*` at the end, its beginning.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocationPattern(String);

impl LocationPattern {
    /// Whether `path` fits.
    #[must_use]
    pub fn matches(&self, path: &LocationPath) -> bool {
        let path = fold(path.as_str());
        match self.0.strip_suffix('*') {
            Some(start) => path.starts_with(&fold(start)),
            None => path == fold(&self.0),
        }
    }
}

impl fmt::Display for LocationPattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The text is not a location path pattern.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("`{0}` is not a location path (text such as PCIROOT(0)#PCI(1B00), `*` only at its end)")]
pub struct LocationPatternError(String);

impl FromStr for LocationPattern {
    type Err = LocationPatternError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let body = text.strip_suffix('*').unwrap_or(text);
        if body.is_empty() || body.contains('*') {
            return Err(LocationPatternError(text.to_owned()));
        }
        Ok(LocationPattern(text.to_owned()))
    }
}

/// What a container is given with its device.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ContainerPolicy {
    /// Whether the registry's runtime files and the extras are mounted.
    pub runtime_mounts: RuntimeMounts,
    /// Destinations that are never mounted, compared without case.
    pub exclude_mounts: Vec<FileName>,
    /// The user's mounts into System32.
    pub additional: AdditionalMounts,
    /// The user's mounts into `SysWOW64`.
    pub additional_wow64: AdditionalMounts,
    /// What a request for several physical devices gets.
    pub multi_device: MultiDevice,
    /// Whether containers learn which devices are their own.
    pub hints: Hints,
}

/// Whether runtime files are mounted.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum RuntimeMounts {
    /// Below build 26100, where containers do not get them by themselves.
    #[default]
    Auto,
    /// On every build.
    Always,
    /// On none.
    Never,
}

/// The user's mounts: vendor → files, in the order of the configuration.
pub type AdditionalMounts = BTreeMap<Vendor, Vec<AdditionalMount>>;

/// A file of the driver store that the user wants mounted where it exists.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct AdditionalMount {
    /// The file in the driver store folder.
    pub source: StorePath,
    /// Its name in System32 or `SysWOW64`.
    pub destination: FileName,
}

/// What a request for several physical devices gets. A container on Windows keeps
/// only one device, so several cannot be given one by one.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum MultiDevice {
    /// The class GUID: every device of the host, with a warning.
    #[default]
    Class,
    /// A refusal that says why.
    Reject,
}

/// Whether `DIRECTX_VISIBLE_DEVICES` and its companions are set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Hints {
    /// They are.
    #[default]
    Set,
    /// They are not.
    Omit,
}

/// Whether devices carry their NUMA node to the kubelet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum NumaTopology {
    /// They do.
    Publish,
    /// They do not: most Windows kubelets ignore it, and some refuse pods for it.
    #[default]
    Withhold,
}

/// An extended resource's name, `domain/name`, as the kubelet accepts it.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct ResourceName(Arc<str>);

impl ResourceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for ResourceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// Why the kubelet would refuse a resource name.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ResourceNameError {
    /// Not `domain/name`.
    #[error("`{0}` is not `domain/name`")]
    Form(String),
    /// Names in these domains are Kubernetes' own.
    #[error("`{0}` lies in kubernetes.io, which is reserved for Kubernetes itself")]
    Reserved(String),
    /// Quotas would read it as a request for another resource.
    #[error("`{0}` begins with `requests.`, which quotas reserve")]
    Requests(String),
    /// The part before the slash is no DNS subdomain.
    #[error(
        "`{0}` has a domain that is not a DNS subdomain (lower-case letters, digits, `-` and `.`, \
         at most 253 characters with `requests.` before it)"
    )]
    Domain(String),
    /// The part after the slash is no qualified name.
    #[error(
        "`{0}` has a name that is not 1 to 63 letters, digits, `-`, `_` and `.` with a letter or \
         digit at both ends"
    )]
    Name(String),
}

impl FromStr for ResourceName {
    type Err = ResourceNameError;

    /// Follows `IsExtendedResourceName` of Kubernetes: the name, with `requests.`
    /// before it, must be a qualified name, and must not be one of Kubernetes' own.
    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let owned = || text.to_owned();
        let Some((domain, name)) = text.split_once('/') else {
            return Err(ResourceNameError::Form(owned()));
        };
        if name.contains('/') {
            return Err(ResourceNameError::Form(owned()));
        }
        if text.contains("kubernetes.io/") {
            return Err(ResourceNameError::Reserved(owned()));
        }
        if text.starts_with("requests.") {
            return Err(ResourceNameError::Requests(owned()));
        }
        let label_ok = |label: &str| {
            let bytes = label.as_bytes();
            let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
            edge(bytes.first())
                && edge(bytes.last())
                && bytes.iter().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || *b == b'-')
        };
        if domain.len() + "requests.".len() > 253 || !domain.split('.').all(label_ok) {
            return Err(ResourceNameError::Domain(owned()));
        }
        let bytes = name.as_bytes();
        let edge = |b: Option<&u8>| b.is_some_and(u8::is_ascii_alphanumeric);
        let inner = |b: &u8| b.is_ascii_alphanumeric() || b"-_.".contains(b);
        if name.len() > 63
            || !edge(bytes.first())
            || !edge(bytes.last())
            || !bytes.iter().all(inner)
        {
            return Err(ResourceNameError::Name(owned()));
        }
        Ok(ResourceName(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn resource_names_are_what_the_kubelet_accepts() {
        for good in [
            "directx.microsoft.com/display",
            "nvidia.com/gpu",
            "a/B_c.d-1",
            "microsoft.com/directx",
        ] {
            assert_eq!(good.parse::<ResourceName>().map(|n| n.to_string()), Ok(good.to_owned()));
        }
        for bad in [
            "",
            "gpu",
            "a/b/c",
            "/gpu",
            "nvidia.com/",
            "kubernetes.io/gpu",
            "x.kubernetes.io/gpu",
            "requests.nvidia.com/gpu",
            "Nvidia.com/gpu",
            "-a/gpu",
            "a-/gpu",
            "a..b/gpu",
            "a/-gpu",
            "a/gpu-",
            "a/g pu",
        ] {
            assert!(bad.parse::<ResourceName>().is_err(), "{bad}");
        }
        let long = "a".repeat(64);
        assert!(format!("a/{long}").parse::<ResourceName>().is_err());
        assert!(format!("a/{}", &long[1..]).parse::<ResourceName>().is_ok());
        let domain = vec!["a".repeat(60); 5].join(".");
        assert!(format!("{domain}/gpu").parse::<ResourceName>().is_err());
    }

    #[test]
    fn pci_patterns() {
        let one: PciPattern = "10de:1EB8".parse().unwrap();
        assert!(one.matches(0x10DE, 0x1EB8) && !one.matches(0x10DE, 0x1EB9));
        let all: PciPattern = "10de:*".parse().unwrap();
        assert!(all.matches(0x10DE, 7) && !all.matches(0x1002, 7));
        assert_eq!(one.to_string(), "10de:1eb8");
        for bad in ["", "10de", "10de:", "10de:1eb", "*:1eb8", "10de:+eb8", "10de:1eb8:0"] {
            assert!(bad.parse::<PciPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn location_patterns() {
        let path = LocationPath::new("PCIROOT(0)#PCI(1B00)");
        let fits = |p: &str| p.parse::<LocationPattern>().unwrap().matches(&path);
        assert!(fits("pciroot(0)#pci(1b00)") && fits("PCIROOT(0)*") && !fits("PCIROOT(0)"));
        for bad in ["", "*", "a*b"] {
            assert!(bad.parse::<LocationPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn description_patterns_ignore_case_and_refuse_what_does_not_compile() {
        let pattern: DescriptionPattern = "tesla t[0-9]+".parse().unwrap();
        assert!(pattern.matches("NVIDIA Tesla T4") && !pattern.matches("NVIDIA A10"));
        let error = "T4(".parse::<DescriptionPattern>().unwrap_err().to_string();
        assert!(error.starts_with("`T4(` is not a regular expression: "), "{error}");
    }
}
