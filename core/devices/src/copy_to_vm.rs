//! The registry's `CopyToVm*` keys and values as read, before they are checked.

use std::fmt;
use std::str::FromStr;

use crate::ParseError;
use crate::case_folding::fold_case;

/// One of the four `CopyToVm*` key names.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum CopyToVmKind {
    /// `CopyToVmOverwrite`: files for System32.
    Overwrite,
    /// `CopyToVmWhenNewer`: files for System32.
    WhenNewer,
    /// `CopyToVmOverwriteWow64`: files for `SysWOW64`.
    OverwriteWow64,
    /// `CopyToVmWhenNewerWow64`: files for `SysWOW64`.
    WhenNewerWow64,
}

impl CopyToVmKind {
    /// All four, in the order in which their files take destinations.
    pub const ALL: [CopyToVmKind; 4] = [
        CopyToVmKind::Overwrite,
        CopyToVmKind::WhenNewer,
        CopyToVmKind::OverwriteWow64,
        CopyToVmKind::WhenNewerWow64,
    ];

    /// The registry key's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CopyToVmKind::Overwrite => "CopyToVmOverwrite",
            CopyToVmKind::WhenNewer => "CopyToVmWhenNewer",
            CopyToVmKind::OverwriteWow64 => "CopyToVmOverwriteWow64",
            CopyToVmKind::WhenNewerWow64 => "CopyToVmWhenNewerWow64",
        }
    }
}

/// A `CopyToVm*` key: one of the four names, in the driver key itself or in a
/// subkey named for the kernel driver (`softgpukmd\CopyToVmOverwrite`).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct CopyToVmKey {
    /// The name; the first field, so that keys sort in the order in which their files take
    /// destinations.
    pub kind: CopyToVmKind,
    /// The kernel driver's subkey, if there is one; `None` sorts first.
    pub subkey: Option<String>,
}

impl fmt::Display for CopyToVmKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.subkey {
            Some(subkey) => write!(f, "{subkey}\\{}", self.kind.name()),
            None => f.write_str(self.kind.name()),
        }
    }
}

/// What the text of a value should be.
const COPY_TO_VM_KEY: &str = "a CopyToVm key (CopyToVmOverwrite, CopyToVmWhenNewer, CopyToVmOverwriteWow64 or \
     CopyToVmWhenNewerWow64, with at most one subkey before it)";

impl FromStr for CopyToVmKey {
    type Err = ParseError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || ParseError::new(text, COPY_TO_VM_KEY);
        let (subkey, name) = match text.rsplit_once('\\') {
            Some((subkey, name)) => (Some(subkey), name),
            None => (None, text),
        };
        if subkey.is_some_and(|s| s.is_empty() || s.contains('\\')) {
            return Err(error());
        }
        let kind = CopyToVmKind::ALL.into_iter().find(|k| fold_case(k.name()) == fold_case(name));
        Ok(CopyToVmKey { kind: kind.ok_or_else(error)?, subkey: subkey.map(str::to_owned) })
    }
}

/// The data of one value below a `CopyToVm*` key, as stored in the registry.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum CopyToVmValue {
    /// `REG_MULTI_SZ`: source and optional destination.
    Multi(Vec<String>),
    /// `REG_SZ`: source.
    Single(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_sort_overwrite_first_and_the_driver_key_before_its_subkeys() {
        let mut keys: Vec<CopyToVmKey> = [
            "CopyToVmWhenNewer",
            r"softgpukmd\CopyToVmOverwrite",
            "CopyToVmOverwriteWow64",
            "CopyToVmOverwrite",
        ]
        .map(|k| k.parse().unwrap())
        .into();
        keys.sort();
        let names: Vec<String> = keys.iter().map(ToString::to_string).collect();
        assert_eq!(
            names,
            [
                "CopyToVmOverwrite",
                r"softgpukmd\CopyToVmOverwrite",
                "CopyToVmWhenNewer",
                "CopyToVmOverwriteWow64"
            ]
        );
    }

    #[test]
    fn other_key_names_are_rejected() {
        for bad in ["CopyToVm", r"a\b\CopyToVmOverwrite", r"\CopyToVmOverwrite", ""] {
            assert!(bad.parse::<CopyToVmKey>().is_err(), "{bad}");
        }
    }
}
