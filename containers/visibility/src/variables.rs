//! The container's devices, from the variables that the device plugin sets.
//!
//! A container can request several resources. The kubelet merges their variables by name
//! and keeps one value of each, so every resource has a variable of its own. Older plugins
//! set only `DIRECTX_VISIBLE_DEVICES`.

use core::fmt;

use crate::AllowedLuids;

/// The variable without a resource.
pub const VARIABLE: &str = "DIRECTX_VISIBLE_DEVICES";

/// Why the container's devices are not known.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum AllocationError<'a> {
    /// No variable lists devices.
    Missing,
    /// The variable with this name has no value.
    Empty(&'a str),
    /// A variable has something else than numbers and commas.
    Malformed {
        /// The name of the variable.
        name: &'a str,
        /// What is not a LUID.
        word: &'a str,
    },
    /// The variables name more devices than [`AllowedLuids`] can have.
    TooMany,
}

impl fmt::Display for AllocationError<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            AllocationError::Missing => write!(f, "{VARIABLE} is not set"),
            AllocationError::Empty(name) => write!(f, "{name} is empty"),
            AllocationError::Malformed { name, word } => {
                write!(f, "{name} has `{}`, which is not a LUID", word.escape_debug())
            }
            AllocationError::TooMany => f.write_str("the variables name more than 64 devices"),
        }
    }
}

impl core::error::Error for AllocationError<'_> {}

/// The devices of all resources, from the names and values of all `variables`. They are
/// sorted, so that the result does not depend on the order of the environment.
pub fn allocated<Text: AsRef<str> + Ord>(
    variables: &mut [(Text, Text)],
) -> Result<AllowedLuids, AllocationError<'_>> {
    variables.sort_unstable();
    let mut lists = variables
        .iter()
        .map(|(name, text)| (name.as_ref(), text.as_ref()))
        .filter(|(name, _)| is_list(name))
        .peekable();
    if lists.peek().is_none() {
        return Err(AllocationError::Missing);
    }
    let mut allowed = AllowedLuids::NONE;
    for (name, text) in lists {
        if text.trim().is_empty() {
            return Err(AllocationError::Empty(name));
        }
        for word in text.split(',').map(str::trim) {
            let luid = word.parse().map_err(|_| AllocationError::Malformed { name, word })?;
            allowed.insert(luid).map_err(|_| AllocationError::TooMany)?;
        }
    }
    Ok(allowed)
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
        let mut variables = variables.to_vec();
        let allowed = allocated(&mut variables).map_err(|error| error.to_string());
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
        let (a, b) = (("DIRECTX_VISIBLE_DEVICES_A", "x"), ("DIRECTX_VISIBLE_DEVICES_B", ""));
        assert_eq!(of(&[a, b]), of(&[b, a]));
    }
}
