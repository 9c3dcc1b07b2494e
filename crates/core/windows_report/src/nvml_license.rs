//! The license of a GPU, as NVIDIA's management library (NVML) reports it.
//!
//! The structures are those of nvml.h. They carry no version, so each belongs to the function of
//! its version.

use host::{License, UtcTime};

/// `nvmlReturn_t`.
pub type Return = i32;

const SUCCESS: Return = 0;
const NOT_SUPPORTED: Return = 3;

/// `NVML_GRID_LICENSE_EXPIRY_VALID`: the time is the one at which the license expires.
const EXPIRY_VALID: u8 = 2;

/// The function that fills [`Features`], and the one of earlier drivers that fills
/// [`Features<EarlierFeature>`]. Still earlier ones do not report whether a feature is enabled.
pub const FUNCTION: &str = "nvmlDeviceGetGridLicensableFeatures_v4";
/// See [`FUNCTION`].
pub const EARLIER_FUNCTION: &str = "nvmlDeviceGetGridLicensableFeatures_v3";

/// `nvmlGridLicensableFeatures_t`: what can be licensed on a GPU.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Features<F = Feature> {
    /// `isGridLicenseSupported`.
    pub is_supported: i32,
    /// `licensableFeaturesCount`.
    pub count: u32,
    /// `gridLicensableFeatures`.
    pub features: [F; 3],
}

/// `nvmlGridLicensableFeature_t`: a product.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Feature {
    /// The beginning, which earlier drivers have, too.
    pub earlier: EarlierFeature,
    /// `licenseExpiry`.
    pub expiry: Expiry,
}

/// `nvmlGridLicensableFeature_t` of earlier drivers.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct EarlierFeature {
    /// `featureCode`.
    pub code: u32,
    /// `featureState`: not 0 if it is licensed now.
    pub state: u32,
    /// `licenseInfo` and `productName`, of 128 bytes each. They are not read.
    pub texts: [[u32; 32]; 2],
    /// `featureEnabled`: not 0 if the driver uses it, and so needs its license.
    pub enabled: u32,
}

/// `nvmlGridLicenseExpiry_t`.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default)]
pub struct Expiry {
    pub year: u32,
    pub month: u16,
    pub day: u16,
    pub hour: u16,
    pub minute: u16,
    pub second: u16,
    pub status: u8,
}

// The sizes that a C compiler gives the structures of nvml.h.
const _: () = assert!(size_of::<Features>() == 860);
const _: () = assert!(size_of::<Features<EarlierFeature>>() == 812);

/// Reads a license. Each function fills its structure; `None` if the library lacks it. The result
/// is `None` if it is not known.
pub fn read(
    newest: Option<impl FnOnce(&mut Features) -> Return>,
    earlier: Option<impl FnOnce(&mut Features<EarlierFeature>) -> Return>,
) -> Option<License> {
    if let Some(newest) = newest {
        let mut features = Features::default();
        return answer(newest(&mut features), &features);
    }
    let mut features = Features::default();
    let result = earlier?(&mut features);
    let Features { is_supported, count, features } = features;
    let features = features.map(|earlier| Feature { earlier, ..Feature::default() });
    answer(result, &Features { is_supported, count, features })
}

fn answer(result: Return, features: &Features) -> Option<License> {
    match result {
        SUCCESS => Some(license(features)),
        NOT_SUPPORTED => Some(License::NOT_REQUIRED),
        _ => None,
    }
}

/// A driver needs the license of a feature only if the feature is enabled.
fn license(features: &Features) -> License {
    let count = features.features.len().min(features.count as usize);
    let mut enabled = features.features[..count]
        .iter()
        .filter(|feature| features.is_supported != 0 && feature.earlier.enabled != 0)
        .peekable();
    if enabled.peek().is_none() {
        return License::NOT_REQUIRED;
    }
    match enabled.find(|feature| feature.earlier.state != 0) {
        Some(licensed) => License::until(licensed.expiry.time()),
        None => License::MISSING,
    }
}

impl Expiry {
    /// The time, if the license expires.
    fn time(self) -> Option<UtcTime> {
        let Expiry { year, month, day, hour, minute, second, status } = self;
        let [month, day, hour, minute, second] = [month, day, hour, minute, second].map(u32::from);
        let time = UtcTime::from_calendar([year, month, day, hour, minute, second]);
        time.filter(|_| status == EXPIRY_VALID)
    }
}

#[cfg(test)]
mod tests {
    use std::mem::offset_of;

    use host::LicenseState;

    use super::*;

    type Newest = fn(&mut Features) -> Return;
    type Earlier = fn(&mut Features<EarlierFeature>) -> Return;
    const NO_NEWEST: Option<Newest> = None;
    const NO_EARLIER: Option<Earlier> = None;

    fn feature(enabled: u32, state: u32, status: u8) -> Feature {
        Feature {
            earlier: EarlierFeature { code: 2, state, enabled, ..EarlierFeature::default() },
            expiry: Expiry {
                year: 2026,
                month: 12,
                day: 1,
                hour: 10,
                minute: 0,
                second: 1,
                status,
            },
        }
    }

    fn of(is_supported: i32, features: &[Feature]) -> Option<License> {
        let fill = |found: &mut Features| {
            found.is_supported = is_supported;
            found.count = u32::try_from(features.len()).unwrap();
            found.features[..features.len()].copy_from_slice(features);
            SUCCESS
        };
        read(Some(fill), NO_EARLIER)
    }

    /// What a C compiler makes of nvml.h.
    #[test]
    fn the_layout_is_that_of_nvml_h() {
        assert_eq!(size_of::<Expiry>(), 16);
        assert_eq!(size_of::<EarlierFeature>(), 268);
        assert_eq!(size_of::<Feature>(), 284);
        let of_expiry = [
            offset_of!(Expiry, month),
            offset_of!(Expiry, day),
            offset_of!(Expiry, hour),
            offset_of!(Expiry, minute),
            offset_of!(Expiry, second),
            offset_of!(Expiry, status),
        ];
        assert_eq!(of_expiry, [4, 6, 8, 10, 12, 14]);
        assert_eq!(offset_of!(EarlierFeature, state), 4);
        assert_eq!(offset_of!(EarlierFeature, enabled), 264);
        assert_eq!(offset_of!(Feature, expiry), 268);
        assert_eq!(offset_of!(Features, features), 8);
    }

    #[test]
    fn only_an_enabled_feature_needs_a_license() {
        for (is_supported, features, expected) in [
            (0, vec![], License::NOT_REQUIRED),
            (1, vec![], License::NOT_REQUIRED),
            (0, vec![feature(1, 0, 0)], License::NOT_REQUIRED),
            (1, vec![feature(0, 0, 0); 3], License::NOT_REQUIRED),
            (1, vec![feature(0, 1, 2)], License::NOT_REQUIRED),
            (1, vec![feature(1, 0, 0)], License::MISSING),
            (1, vec![feature(0, 1, 2), feature(1, 0, 2)], License::MISSING),
        ] {
            assert_eq!(of(is_supported, &features), Some(expected), "{features:?}");
        }
    }

    #[test]
    fn a_license_expires_only_at_a_time_that_is_valid() {
        let expires = UtcTime::from_calendar([2026, 12, 1, 10, 0, 1]);
        // Not available, invalid, valid, not applicable and permanent.
        for (status, expected) in [(0, None), (1, None), (2, expires), (3, None), (4, None)] {
            let license = of(1, &[feature(0, 0, 0), feature(1, 1, status)]);
            assert_eq!(license, Some(License::until(expected)), "{status}");
        }
        let mut no_day = feature(1, 1, EXPIRY_VALID);
        no_day.expiry.day = 31;
        no_day.expiry.month = 11;
        assert_eq!(of(1, &[no_day]), Some(License::until(None)));
    }

    #[test]
    fn a_count_beyond_the_structure_is_not_followed() {
        let fill = |found: &mut Features| {
            *found = Features { is_supported: 1, count: u32::MAX, features: [feature(1, 0, 0); 3] };
            SUCCESS
        };
        assert_eq!(read(Some(fill), NO_EARLIER), Some(License::MISSING));
    }

    #[test]
    fn an_earlier_driver_reports_no_time() {
        let earlier = |state| {
            let fill = move |found: &mut Features<EarlierFeature>| {
                let feature = EarlierFeature { state, enabled: 1, ..EarlierFeature::default() };
                *found = Features { is_supported: 1, count: 1, features: [feature; 3] };
                SUCCESS
            };
            read(NO_NEWEST, Some(fill))
        };
        assert_eq!(earlier(1), Some(License::until(None)));
        assert_eq!(earlier(0).map(|license| license.state), Some(LicenseState::Unlicensed));
    }

    #[test]
    fn without_a_function_or_an_answer_nothing_is_known() {
        assert_eq!(read(NO_NEWEST, NO_EARLIER), None);
        let refuse = |result| move |_: &mut Features| result;
        assert_eq!(read(Some(refuse(NOT_SUPPORTED)), NO_EARLIER), Some(License::NOT_REQUIRED));
        // Uninitialized, GPU is lost, unknown.
        for result in [1, 15, 999] {
            assert_eq!(read(Some(refuse(result)), NO_EARLIER), None, "{result}");
        }
    }
}
