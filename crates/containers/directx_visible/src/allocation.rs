//! Errors about the container's devices: they are not known, or do not exist.

use gpu_probe::allocation::AllocationError;
use gpu_probe::failure::Failure;
use visibility_filter::AllowedLuids;

use crate::exit_codes::{NO_ALLOCATION, STALE};

/// The failure of a container whose variables do not name its devices.
pub(crate) fn unknown(error: &AllocationError) -> Failure {
    let hint = match error {
        AllocationError::Missing => {
            "request a device in the pod's resources, and set environmentHints: true in the \
             device plugin's configuration"
        }
        _ => {
            "do not set the variable in the pod; the device plugin writes LUIDs as decimal \
             numbers, separated by commas"
        }
    };
    Failure::new(NO_ALLOCATION, error.to_string(), hint)
}

/// The container's devices that Windows does not list. It is an error if Windows lists none of
/// them. LUIDs change when the host or an adapter restarts, but a container keeps its variables.
pub(crate) fn missing(allowed: &AllowedLuids, listed: &[i64]) -> Result<Vec<i64>, Failure> {
    let missing: Vec<i64> =
        allowed.as_slice().iter().copied().filter(|luid| !listed.contains(luid)).collect();
    if missing.len() == allowed.as_slice().len() {
        let message =
            format!("no adapter has the LUID {} of the container's devices", list(&missing));
        let hint = "LUIDs change when the host or an adapter restarts; delete the pod, so that \
                    its controller creates it again";
        return Err(Failure::new(STALE, message, hint));
    }
    Ok(missing)
}

/// Numbers, separated by commas.
pub(crate) fn list(luids: &[i64]) -> String {
    let words: Vec<String> = luids.iter().map(ToString::to_string).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_allocation_has_a_code_and_a_fix() {
        let failure = unknown(&AllocationError::Missing);
        assert_eq!(failure.code, NO_ALLOCATION);
        let start = "error: DIRECTX_VISIBLE_DEVICES is not set\nhint: request a device";
        assert!(failure.to_string().starts_with(start), "{failure}");
        let failure = unknown(&AllocationError::Empty("X".to_owned()));
        assert!(failure.to_string().starts_with("error: X is empty\nhint: do not"), "{failure}");
    }

    #[test]
    fn devices_that_no_longer_exist_are_never_replaced_by_others() {
        let allowed = AllowedLuids::new([1, 2]).unwrap();
        assert_eq!(missing(&allowed, &[2, 1, 9]), Ok(vec![]));
        assert_eq!(missing(&allowed, &[2, 9]), Ok(vec![1]));
        let failure = missing(&allowed, &[9]).unwrap_err();
        assert_eq!(failure.code, STALE);
        assert!(failure.to_string().starts_with("error: no adapter has the LUID 1, 2 of"));
    }
}
