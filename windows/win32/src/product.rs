//! The product name and version of Windows, from several sources.

/// The first build of Windows 11. Its registry still contains "Windows 10".
const FIRST_WINDOWS_11_BUILD: u32 = 22000;

/// The sources of the product name and version.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct ProductSources {
    /// What `winbrand.dll` returns for `%WINDOWS_LONG%`.
    pub(crate) branding: Option<String>,
    /// `ProductName` in the registry.
    pub(crate) product_name: Option<String>,
    /// `DisplayVersion` in the registry, which exists from 20H2 on.
    pub(crate) display_version: Option<String>,
    /// `ReleaseId` in the registry, which stays at 2009 in later versions.
    pub(crate) release_id: Option<String>,
}

impl ProductSources {
    /// The product name, such as `Microsoft Windows Server 2022 Datacenter`. It equals
    /// `Win32_OperatingSystem.Caption`.
    pub(crate) fn product(&self, build: u32) -> Option<String> {
        let branding = self.branding.as_deref().map(str::trim).filter(|text| is_name(text));
        let name = branding.map(str::to_owned).or_else(|| {
            let name = self.product_name.as_deref().map(str::trim).filter(|text| is_name(text))?;
            Some(match name.strip_prefix("Windows 10") {
                Some(edition) if build >= FIRST_WINDOWS_11_BUILD => format!("Windows 11{edition}"),
                _ => name.to_owned(),
            })
        })?;
        let has_manufacturer = name.starts_with("Microsoft ");
        Some(if has_manufacturer { name } else { format!("Microsoft {name}") })
    }

    /// The version, such as `21H2` or `1809`.
    pub(crate) fn version(&self) -> Option<String> {
        [&self.display_version, &self.release_id]
            .into_iter()
            .flatten()
            .map(|text| text.trim())
            .find(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

/// Whether a text is a name: not empty, and not an unexpanded placeholder.
fn is_name(text: &str) -> bool {
    !text.is_empty() && !text.contains('%')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branding_has_priority_and_the_manufacturer_is_added_once() {
        let sources = ProductSources {
            branding: Some("Windows Server 2022 Datacenter".to_owned()),
            product_name: Some("Windows Server".to_owned()),
            ..ProductSources::default()
        };
        let product = Some("Microsoft Windows Server 2022 Datacenter".to_owned());
        assert_eq!(sources.product(20348), product);
        let sources = ProductSources { branding: product.clone(), ..sources };
        assert_eq!(sources.product(20348), product);
    }

    #[test]
    fn the_registry_is_used_without_branding() {
        for branding in [None, Some(String::new()), Some("%WINDOWS_LONG%".to_owned())] {
            let sources = ProductSources {
                branding,
                product_name: Some("Windows 10 Pro".to_owned()),
                ..ProductSources::default()
            };
            assert_eq!(sources.product(19045), Some("Microsoft Windows 10 Pro".to_owned()));
            assert_eq!(sources.product(22621), Some("Microsoft Windows 11 Pro".to_owned()));
        }
        assert_eq!(ProductSources::default().product(20348), None);
    }

    #[test]
    fn display_version_has_priority_over_release_id() {
        let both = ProductSources {
            display_version: Some("21H2".to_owned()),
            release_id: Some("2009".to_owned()),
            ..ProductSources::default()
        };
        assert_eq!(both.version(), Some("21H2".to_owned()));
        let old = ProductSources { display_version: Some(String::new()), ..both };
        assert_eq!(old.version(), Some("2009".to_owned()));
        assert_eq!(ProductSources::default().version(), None);
    }
}
