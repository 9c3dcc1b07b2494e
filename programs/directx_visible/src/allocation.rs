//! The container's devices, from the variables that the device plugin sets.
//!
//! A container can request several resources. The kubelet merges their variables by name
//! and keeps one value of each, so every resource has a variable of its own. Older plugins
//! set only `DIRECTX_VISIBLE_DEVICES`.

#![cfg_attr(not(windows), allow(dead_code, reason = "used on Windows"))]

use thiserror::Error;
use visibility::AllowedLuids;

use crate::failure::{Failure, NO_ALLOCATION, STALE};

/// The variable without a resource.
pub(crate) const VARIABLE: &str = "DIRECTX_VISIBLE_DEVICES";

/// Why the container's devices are not known.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub(crate) enum AllocationError {
    #[error("{VARIABLE} is not set")]
    Missing,
    #[error("{0} is empty")]
    Empty(String),
    #[error("{name} has `{word}`, which is not a LUID")]
    Malformed { name: String, word: String },
    #[error("the variables name more than 64 devices")]
    TooMany,
}

impl From<AllocationError> for Failure {
    fn from(error: AllocationError) -> Failure {
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
}

/// The devices that `variables` name, of all resources.
pub(crate) fn allowed(
    variables: impl IntoIterator<Item = (String, String)>,
) -> Result<AllowedLuids, AllocationError> {
    let mut lists: Vec<_> = variables.into_iter().filter(|(name, _)| is_list(name)).collect();
    if lists.is_empty() {
        return Err(AllocationError::Missing);
    }
    // The first error does not depend on the order of the environment.
    lists.sort();
    let mut luids = Vec::new();
    for (name, text) in lists {
        if text.trim().is_empty() {
            return Err(AllocationError::Empty(name));
        }
        for word in text.split(',').map(str::trim) {
            let malformed = || AllocationError::Malformed {
                name: name.clone(),
                word: word.escape_debug().to_string(),
            };
            luids.push(word.parse().map_err(|_| malformed())?);
        }
    }
    AllowedLuids::new(luids).map_err(|_| AllocationError::TooMany)
}

/// Whether the variable lists devices. Windows ignores the case of names.
fn is_list(name: &str) -> bool {
    let name = name.to_ascii_uppercase();
    let rest = name.strip_prefix(VARIABLE);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
}

/// Which of the container's devices exist.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Existing {
    All,
    /// These do not.
    Missing(Vec<i64>),
}

/// Compares the container's devices with the adapters that Windows lists. LUIDs change when
/// the host or an adapter restarts; a container keeps its variables.
pub(crate) fn existing(allowed: &AllowedLuids, listed: &[i64]) -> Result<Existing, Failure> {
    let missing: Vec<i64> =
        allowed.as_slice().iter().copied().filter(|luid| !listed.contains(luid)).collect();
    if missing.len() == allowed.as_slice().len() {
        let message =
            format!("no adapter has the LUID {} of the container's devices", list(&missing));
        let hint = "LUIDs change when the host or an adapter restarts; delete the pod, so that \
                    its controller creates it again";
        return Err(Failure::new(STALE, message, hint));
    }
    Ok(if missing.is_empty() { Existing::All } else { Existing::Missing(missing) })
}

/// Numbers, separated by commas.
pub(crate) fn list(luids: &[i64]) -> String {
    let words: Vec<String> = luids.iter().map(ToString::to_string).collect();
    words.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Vec<i64>, AllocationError> {
        let variables = variables.iter().map(|(name, text)| ((*name).into(), (*text).into()));
        allowed(variables).map(|list| list.as_slice().to_vec())
    }

    #[test]
    fn the_devices_of_all_resources_are_visible() {
        let one = [("PATH", "x"), (VARIABLE, "7, -8")];
        assert_eq!(of(&one), Ok(vec![7, -8]));
        let several = [
            ("DIRECTX_VISIBLE_DEVICES", "2"),
            ("DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_DISPLAY", "1"),
            ("DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_COMPUTE", "2"),
            ("DIRECTX_VISIBLE_DEVICESX", "3"),
        ];
        assert_eq!(of(&several), Ok(vec![2, 1]));
        assert_eq!(of(&[("directx_visible_devices", "1")]), Ok(vec![1]));
    }

    #[test]
    fn bad_variables_are_errors_with_a_code_of_their_own() {
        let message = |variables: &[(&str, &str)]| {
            let failure = Failure::from(of(variables).unwrap_err());
            assert_eq!(failure.code, NO_ALLOCATION);
            failure.to_string()
        };
        assert!(
            message(&[]).starts_with("error: DIRECTX_VISIBLE_DEVICES is not set\nhint: request")
        );
        assert!(
            message(&[(VARIABLE, " ")]).starts_with("error: DIRECTX_VISIBLE_DEVICES is empty\n")
        );
        for text in ["all", "1,", "1;2", "99999999999999999999", "a\u{1b}[0m"] {
            let error = message(&[("DIRECTX_VISIBLE_DEVICES_A", text)]);
            assert!(error.starts_with("error: DIRECTX_VISIBLE_DEVICES_A has `"), "{error}");
            assert!(error.contains("which is not a LUID\nhint: do not set"), "{error}");
            assert!(!error.contains('\u{1b}'));
        }
        let many = (0..65).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert!(message(&[(VARIABLE, &many)]).contains("more than 64 devices"));
    }

    #[test]
    fn devices_that_no_longer_exist_are_never_replaced_by_others() {
        let allowed = AllowedLuids::new([1, 2]).unwrap();
        assert_eq!(existing(&allowed, &[2, 1, 9]), Ok(Existing::All));
        assert_eq!(existing(&allowed, &[2, 9]), Ok(Existing::Missing(vec![1])));
        let failure = existing(&allowed, &[9]).unwrap_err();
        assert_eq!(failure.code, STALE);
        assert!(failure.to_string().starts_with("error: no adapter has the LUID 1, 2 of"));
    }
}
