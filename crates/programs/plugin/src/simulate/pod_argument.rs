//! The value of `--pod`.

use std::str::FromStr;

use devices::ResourceName;

const EXAMPLE: &str = "one=directx.microsoft.com/display:1";

/// A pod whose only container requests devices: `NAME=RESOURCE:COUNT[,RESOURCE:COUNT]...`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct PodArgument {
    pub(crate) name: String,
    /// At least one. No resource occurs twice.
    pub(crate) requests: Vec<Request>,
}

/// How many devices of a resource a container requests.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Request {
    pub(crate) resource: ResourceName,
    /// At least 1.
    pub(crate) count: u32,
}

impl PodArgument {
    /// Lets the container also request `more`.
    pub(crate) fn add(&mut self, more: Request) {
        match self.requests.iter_mut().find(|known| known.resource == more.resource) {
            // A count at the limit is refused, as the exact sum would be.
            Some(known) => known.count = known.count.saturating_add(more.count),
            None => self.requests.push(more),
        }
    }
}

impl FromStr for PodArgument {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (name, requests) = text.split_once('=').ok_or_else(form)?;
        if name.is_empty() {
            return Err(form());
        }
        let mut pod = PodArgument { name: name.to_owned(), requests: Vec::new() };
        for request in requests.split(',') {
            if request.contains('=') {
                return Err(format!("`{request}` is another pod; write `--pod {request}` for it"));
            }
            pod.add(request.parse()?);
        }
        Ok(pod)
    }
}

impl FromStr for Request {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (resource, count) = text.rsplit_once(':').ok_or_else(form)?;
        let resource = resource.parse().map_err(|error| {
            let meant = if resource == "compute" { resource } else { "display" };
            format!("resource: {error}; write for example directx.microsoft.com/{meant}")
        })?;
        match count.parse() {
            Ok(0) | Err(_) => Err(format!(
                "invalid count `{count}`; the count is the number of devices the container \
                 requests, at least 1, such as {EXAMPLE}"
            )),
            Ok(count) => Ok(Request { resource, count }),
        }
    }
}

fn form() -> String {
    format!("expected NAME=RESOURCE:COUNT[,RESOURCE:COUNT]..., such as {EXAMPLE}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(text: &str) -> Vec<(String, u32)> {
        let pod: PodArgument = text.parse().unwrap();
        assert_eq!(pod.name, "one");
        pod.requests.iter().map(|r| (r.resource.to_string(), r.count)).collect()
    }

    #[test]
    fn name_resources_and_counts_are_parsed() {
        let of = |name: &str, count| (format!("directx.microsoft.com/{name}"), count);
        assert_eq!(requests(EXAMPLE), [of("display", 1)]);
        let two = format!("{EXAMPLE},directx.microsoft.com/compute:2");
        assert_eq!(requests(&two), [of("display", 1), of("compute", 2)]);
        let twice = format!("{two},directx.microsoft.com/display:3");
        assert_eq!(requests(&twice), [of("display", 4), of("compute", 2)]);
        assert_eq!(requests("one=a/b:4294967295,a/b:1"), [("a/b".to_owned(), u32::MAX)]);
    }

    #[test]
    fn an_invalid_count_is_explained_with_an_example() {
        for count in ["", "0", "-1", "1.5", "two", "4294967296"] {
            let text = format!("one=directx.microsoft.com/display:{count}");
            let error = text.parse::<PodArgument>().unwrap_err();
            assert!(error.starts_with(&format!("invalid count `{count}`; ")), "{error}");
            assert!(error.contains("number of devices the container requests"), "{error}");
            assert!(error.contains("at least 1") && error.ends_with(EXAMPLE), "{error}");
        }
    }

    #[test]
    fn a_resource_without_a_domain_is_explained_with_the_whole_name() {
        for (text, name) in
            [("a=display:1", "display"), ("a=compute:2", "compute"), ("a=gpu:1", "display")]
        {
            let error = text.parse::<PodArgument>().unwrap_err();
            let hint =
                format!("is not `domain/name`; write for example directx.microsoft.com/{name}");
            assert!(error.ends_with(&hint), "{error}");
        }
    }

    #[test]
    fn a_second_pod_needs_a_second_option() {
        let error = "a=a/b:1,b=a/b:1".parse::<PodArgument>().unwrap_err();
        assert_eq!(error, "`b=a/b:1` is another pod; write `--pod b=a/b:1` for it");
    }

    #[test]
    fn a_missing_part_is_explained_with_an_example() {
        for text in ["", "one", "one=directx.microsoft.com/display", "=a/b:1", "one=a/b:1,"] {
            assert_eq!(text.parse::<PodArgument>(), Err(form()), "{text}");
        }
    }
}
