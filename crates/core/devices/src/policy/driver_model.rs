//! Driver models: how devices are advertised.

use host::{ParseError, Vendor, named_value};
use strum::{Display, EnumString, IntoStaticStr, VariantArray, VariantNames};

/// How devices are advertised: by Windows driver model, or like the device plugin of 2019.
#[derive(
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Debug,
    Display,
    EnumString,
    IntoStaticStr,
    VariantArray,
    VariantNames,
)]
#[strum(serialize_all = "lowercase", ascii_case_insensitive, parse_err_ty = ParseError, parse_err_fn = not_a_driver_model)]
pub enum DriverModel {
    /// Windows Display Driver Model: hardware with display and compute.
    Wddm,
    /// Microsoft Compute Driver Model: hardware with compute and without display, which are neural
    /// processors, other accelerators, and GPUs in this mode.
    Mcdm,
    /// One class device for all adapters, as the resource `microsoft.com/directx` was.
    Legacy,
}

impl DriverModel {
    pub const ALL: &'static [DriverModel] = <DriverModel as VariantArray>::VARIANTS;

    /// The prefix of the sockets of the driver model's resource, as in the earlier plugins.
    #[must_use]
    pub fn socket_prefix(self) -> &'static str {
        match self {
            DriverModel::Legacy => "directx",
            named => named.into(),
        }
    }

    /// What to write instead of a word that people mistake for a driver model.
    #[must_use]
    pub fn advice(word: &str) -> Option<&'static str> {
        let word = word.to_ascii_lowercase();
        Some(match word.as_str() {
            "tcc" => {
                "TCC is a mode of NVIDIA's driver that has no DirectX: switch the GPU to WDDM or \
                 MCDM, as docs/installation.md describes"
            }
            "display" | "graphics" => "the driver model of devices with a display is wddm",
            "compute" | "npu" => "the driver model of devices that only compute is mcdm",
            "gpu" => "a GPU has the driver model wddm, or mcdm if it only computes",
            "all" | "any" | "both" | "auto" => "without a driver model, both wddm and mcdm apply",
            _ if word.parse::<Vendor>().is_ok() => {
                "a vendor is a condition of a rule in the configuration, such as \
                 `match: {vendor: nvidia}`"
            }
            _ if word.contains("wddm") && word.contains("mcdm") => {
                "several driver models are separated by commas, such as wddm,mcdm"
            }
            _ if is_version_of("wddm", &word) => "write wddm, without a version",
            _ if is_version_of("mcdm", &word) => "write mcdm, without a version",
            _ => return None,
        })
    }

    /// The lock that a daemon holds while it advertises devices of this driver model. `legacy` and
    /// `wddm` have the same lock, because devices that `legacy` advertises are devices of WDDM.
    #[must_use]
    pub const fn lock(self) -> &'static str {
        match self {
            DriverModel::Wddm | DriverModel::Legacy => "directx-wddm",
            DriverModel::Mcdm => "directx-mcdm",
        }
    }
}

named_value!(DriverModel);

/// Whether the text is a name with a version, such as `wddm 2.7`.
fn is_version_of(name: &str, text: &str) -> bool {
    let is_of_version = |c: char| c.is_ascii_digit() || [' ', '.', '-', '_', 'v'].contains(&c);
    text.strip_prefix(name).is_some_and(|rest| rest.chars().all(is_of_version))
}

fn not_a_driver_model(text: &str) -> ParseError {
    let error = ParseError::new(text, "a driver model (wddm, mcdm or legacy)");
    match DriverModel::advice(text) {
        Some(advice) => error.with_advice(advice),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_for_a_driver_model_have_advice() {
        for (word, advice) in [
            ("TCC", "TCC is a mode of NVIDIA's driver"),
            ("wddm 2.7", "write wddm, without"),
            ("WDDM3", "write wddm, without"),
            ("mcdm 2", "write mcdm, without"),
            ("wddm_v2-7", "write wddm, without"),
            ("Display", "the driver model of devices with a display is wddm"),
            ("npu", "the driver model of devices that only compute is mcdm"),
            ("GPU", "a GPU has the driver model wddm, or mcdm"),
            ("wddm+mcdm", "several driver models"),
            ("both", "without a driver model"),
            ("nvidia", "a vendor is a condition"),
        ] {
            let found = DriverModel::advice(word).unwrap_or_default();
            assert!(found.starts_with(advice), "{word}: {found}");
            let error = word.parse::<DriverModel>().unwrap_err().to_string();
            assert!(error.ends_with(found), "{error}");
        }
        assert_eq!(DriverModel::advice("wddmx"), None);
    }
}
