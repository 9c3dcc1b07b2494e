//! The container's devices, from the variables that the device plugin sets.
//!
//! A container can request several resources. The kubelet merges their variables by name
//! and keeps one value of each, so every resource has a separate variable. Older plugins
//! set only `DIRECTX_VISIBLE_DEVICES`.

use thiserror::Error;
use visibility_filter::AllowedLuids;

/// The variable without a resource.
pub const VARIABLE: &str = "DIRECTX_VISIBLE_DEVICES";

/// Why the container's devices are not known.
#[derive(Error, Clone, PartialEq, Eq, Debug)]
pub enum AllocationError {
    #[error("{VARIABLE} is not set")]
    Missing,
    #[error("{0} is empty")]
    Empty(String),
    #[error("{name} has `{}`, which is not a LUID", word.escape_debug())]
    Malformed { name: String, word: String },
    #[error("the variables name more than 64 devices")]
    TooMany,
}

/// The devices of all resources, from the variables of this process.
pub fn allocated() -> Result<AllowedLuids, AllocationError> {
    let variables = std::env::vars_os().map(|(name, value)| {
        (name.to_string_lossy().into_owned(), value.to_string_lossy().into_owned())
    });
    of(variables.collect())
}

/// The devices of all resources, sorted, so that the result does not depend on the order of the
/// `variables`.
fn of(mut variables: Vec<(String, String)>) -> Result<AllowedLuids, AllocationError> {
    variables.retain(|(name, _)| is_list(name));
    variables.sort_unstable();
    if variables.is_empty() {
        return Err(AllocationError::Missing);
    }
    let mut luids = Vec::new();
    for (name, text) in variables {
        if text.trim().is_empty() {
            return Err(AllocationError::Empty(name));
        }
        for word in text.split(',').map(str::trim) {
            luids.push(word.parse().map_err(|_| AllocationError::Malformed {
                name: name.clone(),
                word: word.to_owned(),
            })?);
        }
    }
    AllowedLuids::new(luids).ok_or(AllocationError::TooMany)
}

/// Whether the variable lists devices. Windows ignores the case of names.
fn is_list(name: &str) -> bool {
    let starts =
        name.get(..VARIABLE.len()).is_some_and(|start| start.eq_ignore_ascii_case(VARIABLE));
    starts && matches!(name.as_bytes().get(VARIABLE.len()), None | Some(b'_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Vec<i64>, String> {
        let variables = variables.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned()));
        let allowed = super::of(variables.collect()).map_err(|error| error.to_string());
        allowed.map(|list| list.as_slice().to_vec())
    }

    #[test]
    fn the_devices_of_all_resources_are_visible() {
        assert_eq!(of(&[("PATH", "x"), (VARIABLE, "7, -8")]), Ok(vec![7, -8]));
        let several = [
            ("DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_DISPLAY", "1"),
            ("DIRECTX_VISIBLE_DEVICES_DIRECTX_MICROSOFT_COM_COMPUTE", "2"),
            ("DIRECTX_VISIBLE_DEVICES", "2"),
            ("DIRECTX_VISIBLE_DEVICESX", "3"),
            ("DIRECTX_VISIBLE_DEVICE", "4"),
        ];
        assert_eq!(of(&several), Ok(vec![2, 1]));
        assert_eq!(of(&[("directx_visible_devices", "1")]), Ok(vec![1]));
    }

    #[test]
    fn bad_variables_are_named() {
        let error = |variables: &[(&str, &str)]| of(variables).unwrap_err();
        for other in [&[][..], &[("DIRECTX_VISIBLE_DEVICESÄ", "1")], &[("Ä", "1")]] {
            assert_eq!(error(other), "DIRECTX_VISIBLE_DEVICES is not set");
        }
        assert_eq!(error(&[(VARIABLE, " ")]), "DIRECTX_VISIBLE_DEVICES is empty");
        let name = "DIRECTX_VISIBLE_DEVICES_A";
        for (text, word) in [
            ("all", "all"),
            ("1,", ""),
            ("1;2", "1;2"),
            ("99999999999999999999", "99999999999999999999"),
            ("a\u{1b}[0m", "a\\u{1b}[0m"),
        ] {
            assert_eq!(error(&[(name, text)]), format!("{name} has `{word}`, which is not a LUID"));
        }
        let many = (0..65).map(|n| n.to_string()).collect::<Vec<_>>().join(",");
        assert_eq!(error(&[(VARIABLE, &many)]), "the variables name more than 64 devices");
    }

    #[test]
    fn the_first_error_does_not_depend_on_the_order() {
        let a = ("DIRECTX_VISIBLE_DEVICES_A", "x");
        let b = ("DIRECTX_VISIBLE_DEVICES_B", "");
        assert_eq!(of(&[a, b]), of(&[b, a]));
    }
}
