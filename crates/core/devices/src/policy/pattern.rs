//! Patterns in a rule's conditions, parsed once from the configuration.

use std::str::FromStr;

use host::ParseError;
use host::fold_case;
use host::{HardwareId, LocationPath};

/// A regular expression that is searched for in a device's description,
/// case-insensitively.
#[derive(Clone, Debug)]
pub struct DescriptionPattern(regex_lite::Regex);

impl DescriptionPattern {
    /// Whether `description` contains a match.
    #[must_use]
    pub fn matches(&self, description: &str) -> bool {
        self.0.is_match(description)
    }
}

impl PartialEq for DescriptionPattern {
    fn eq(&self, other: &Self) -> bool {
        self.0.as_str() == other.0.as_str()
    }
}

impl FromStr for DescriptionPattern {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        if text.is_empty() {
            return Err("an empty pattern matches every description".to_owned());
        }
        let regex = regex_lite::RegexBuilder::new(text).case_insensitive(true).build();
        regex
            .map(DescriptionPattern)
            .map_err(|error| format!("`{text}` is not a regular expression: {error}"))
    }
}

/// PCI vendor and device, written `10de:1eb8`, or `10de:*` for every device of a vendor except
/// Microsoft's basic adapters.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PciPattern {
    vendor: u16,
    device: Option<u16>,
}

impl PciPattern {
    /// Whether `self` matches all IDs that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &PciPattern) -> bool {
        let is_in_all = self.device.is_none() && !other.names_basic_adapter();
        self.vendor == other.vendor && (is_in_all || self.device == other.device)
    }

    /// Whether the IDs match.
    #[must_use]
    pub fn matches(&self, id: HardwareId) -> bool {
        let matches_device = match self.device {
            Some(device) => u32::from(device) == id.device,
            None => !id.is_basic_adapter(),
        };
        u32::from(self.vendor) == id.vendor && matches_device
    }

    /// Whether the pattern is the ID of one of Microsoft's basic adapters.
    #[must_use]
    pub fn names_basic_adapter(&self) -> bool {
        let vendor = u32::from(self.vendor);
        let id = |device| HardwareId { vendor, device, ..HardwareId::default() };
        self.device.is_some_and(|device| id(device.into()).is_basic_adapter())
    }
}

impl FromStr for PciPattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a PCI ID (four hexadecimal digits, a colon, and four more or `*`)";
        text.split_once(':')
            .and_then(|(vendor, device)| {
                let device = if device == "*" { None } else { Some(four_hex_digits(device)?) };
                Some(PciPattern { vendor: four_hex_digits(vendor)?, device })
            })
            .ok_or_else(|| ParseError::new(text, expected))
    }
}

fn four_hex_digits(text: &str) -> Option<u16> {
    let is_number = text.len() == 4 && text.bytes().all(|b| b.is_ascii_hexdigit());
    u16::from_str_radix(text, 16).ok().filter(|_| is_number)
}

/// A location path, compared case-insensitively. With `*` at the end, it matches every
/// path that begins with the text before it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LocationPattern {
    folded: String,
}

impl LocationPattern {
    /// Whether `path` matches.
    #[must_use]
    pub fn matches(&self, path: &LocationPath) -> bool {
        let path = fold_case(path.as_str());
        match self.prefix() {
            Some(start) => path.starts_with(start),
            None => path == self.folded,
        }
    }

    /// Whether `self` matches every path that `other` matches.
    #[must_use]
    pub fn covers(&self, other: &LocationPattern) -> bool {
        match self.prefix() {
            Some(start) => other.prefix().unwrap_or(&other.folded).starts_with(start),
            None => other.folded == self.folded,
        }
    }

    /// The beginning of every path that matches, if the pattern ends with `*`.
    fn prefix(&self) -> Option<&str> {
        self.folded.strip_suffix('*')
    }
}

impl FromStr for LocationPattern {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected = "a location path (text such as PCIROOT(0)#PCI(1B00), `*` only at its end)";
        let body = text.strip_suffix('*').unwrap_or(text);
        if body.is_empty() || body.contains('*') {
            return Err(ParseError::new(text, expected));
        }
        Ok(LocationPattern { folded: fold_case(text) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pci_patterns_match_one_device_or_all_of_a_vendor() {
        let matches = |pattern: &str, vendor, device| {
            let id = HardwareId { vendor, device, ..HardwareId::default() };
            pattern.parse::<PciPattern>().unwrap().matches(id)
        };
        assert!(matches("10de:1EB8", 0x10DE, 0x1EB8) && !matches("10de:1EB8", 0x10DE, 0x1EB9));
        assert!(matches("10de:*", 0x10DE, 7) && !matches("10de:*", 0x1002, 7));
        // A basic adapter must be named.
        assert!(matches("1414:008c", 0x1414, 0x008C) && matches("1414:5353", 0x1414, 0x5353));
        assert!(matches("1414:*", 0x1414, 0x008E) && !matches("1414:*", 0x1414, 0x008C));
        for bad in ["", "10de", "10de:", "10de:1eb", "*:1eb8", "10de:+eb8", "10de:1eb8:0"] {
            assert!(bad.parse::<PciPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn a_pattern_covers_another_one_whose_matches_are_all_its_own() {
        fn parsed<P: FromStr<Err: std::fmt::Debug>>(text: &str) -> P {
            text.parse().unwrap()
        }
        for (wide, narrow, is_covered) in [
            ("10de:*", "10de:1eb8", true),
            ("10de:1eb8", "10de:*", false),
            ("10de:*", "1002:1eb8", false),
            ("10de:1eb8", "1002:1eb8", false),
            ("1414:*", "1414:008c", false),
            ("1414:008c", "1414:008c", true),
        ] {
            let covers = parsed::<PciPattern>(wide).covers(&parsed(narrow));
            assert_eq!(covers, is_covered, "{wide} {narrow}");
        }
        for (wide, narrow, is_covered) in [
            ("PCIROOT(0)*", "pciroot(0)#pci(1B00)", true),
            ("PCIROOT(0)*", "PCIROOT(0)#*", true),
            ("PCIROOT(0)#*", "PCIROOT(0)*", false),
            ("PCIROOT(0)", "PCIROOT(0)#PCI(1B00)", false),
        ] {
            let covers = parsed::<LocationPattern>(wide).covers(&parsed(narrow));
            assert_eq!(covers, is_covered, "{wide} {narrow}");
        }
    }

    #[test]
    fn location_patterns_match_a_path_or_its_beginning() {
        let path = LocationPath::new("PCIROOT(0)#PCI(1B00)");
        let matches = |p: &str| p.parse::<LocationPattern>().unwrap().matches(&path);
        assert!(
            matches("pciroot(0)#pci(1b00)") && matches("PCIROOT(0)*") && !matches("PCIROOT(0)")
        );
        for bad in ["", "*", "a*b"] {
            assert!(bad.parse::<LocationPattern>().is_err(), "{bad}");
        }
    }

    #[test]
    fn description_patterns_ignore_case_and_reject_invalid_expressions() {
        let pattern: DescriptionPattern = "tesla t[0-9]+".parse().unwrap();
        assert!(pattern.matches("NVIDIA Tesla T4") && !pattern.matches("NVIDIA A10"));
        let error = "T4(".parse::<DescriptionPattern>().unwrap_err();
        assert!(error.starts_with("`T4(` is not a regular expression: "), "{error}");
        assert!("".parse::<DescriptionPattern>().is_err());
    }
}
