//! The value of `--pod`.

use std::str::FromStr;

use devices::ResourceName;

const EXAMPLE: &str = "one=directx.microsoft.com/display:1";

/// `NAME=RESOURCE:COUNT`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodArgument {
    pub(crate) name: String,
    pub(crate) resource: ResourceName,
    /// How many devices the container requests; at least 1.
    pub(crate) count: u32,
}

impl FromStr for PodArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let form = || format!("expected NAME=RESOURCE:COUNT, such as {EXAMPLE}");
        let (name, request) = text.split_once('=').ok_or_else(form)?;
        let (resource, count) = request.rsplit_once(':').ok_or_else(form)?;
        if name.is_empty() {
            return Err(form());
        }
        let resource = resource.parse().map_err(|error| format!("resource: {error}"))?;
        let count = match count.parse() {
            Ok(0) | Err(_) => return Err(invalid_count(count)),
            Ok(count) => count,
        };
        Ok(PodArgument { name: name.to_owned(), resource, count })
    }
}

fn invalid_count(count: &str) -> String {
    format!(
        "invalid count `{count}`; the count is the number of devices the container requests, \
         from 1 to {}, such as {EXAMPLE}",
        u32::MAX
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn name_resource_and_count_are_parsed() {
        let pod: PodArgument = EXAMPLE.parse().unwrap();
        assert_eq!(pod.name, "one");
        assert_eq!(pod.resource.to_string(), "directx.microsoft.com/display");
        assert_eq!(pod.count, 1);
    }

    #[test]
    fn an_invalid_count_is_explained_with_an_example() {
        for count in ["", "0", "-1", "1.5", "two", "4294967296"] {
            let text = format!("one=directx.microsoft.com/display:{count}");
            let error = text.parse::<PodArgument>().unwrap_err();
            assert!(error.starts_with(&format!("invalid count `{count}`; ")), "{error}");
            assert!(error.contains("number of devices the container requests"), "{error}");
            assert!(error.contains("from 1 to 4294967295") && error.ends_with(EXAMPLE), "{error}");
        }
    }

    #[test]
    fn a_missing_part_is_explained_with_an_example() {
        for text in ["", "one", "one=directx.microsoft.com/display", "=a/b:1"] {
            let error = text.parse::<PodArgument>().unwrap_err();
            assert_eq!(error, format!("expected NAME=RESOURCE:COUNT, such as {EXAMPLE}"));
        }
    }
}
