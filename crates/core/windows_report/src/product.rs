//! The product name and version of Windows.

/// The first build of Windows 11. Its registry still contains "Windows 10".
const FIRST_WINDOWS_11_BUILD: u32 = 22000;

/// What the registry says about the product.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ProductSources {
    /// `ProductName`.
    pub product_name: Option<String>,
    /// `DisplayVersion`, which exists from 20H2 on.
    pub display_version: Option<String>,
    /// `ReleaseId`, which stays at 2009 in later versions.
    pub release_id: Option<String>,
}

impl ProductSources {
    /// The product name as in `Win32_OperatingSystem.Caption`, such as `Microsoft Windows Server
    /// 2022 Datacenter`.
    #[must_use]
    pub fn product(&self, build: u32) -> Option<String> {
        let full_name = self.product_name.as_deref()?.trim();
        let name = full_name.strip_prefix("Microsoft ").unwrap_or(full_name);
        match name.strip_prefix("Windows 10") {
            _ if name.is_empty() => None,
            Some(edition) if build >= FIRST_WINDOWS_11_BUILD => {
                Some(format!("Microsoft Windows 11{edition}"))
            }
            _ => Some(format!("Microsoft {name}")),
        }
    }

    /// The version, such as `21H2` or `1809`.
    #[must_use]
    pub fn version(&self) -> Option<String> {
        [&self.display_version, &self.release_id]
            .into_iter()
            .flatten()
            .map(|text| text.trim())
            .find(|text| !text.is_empty())
            .map(str::to_owned)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_name_has_its_manufacturer_once_and_that_of_windows_11_is_corrected() {
        let product = |name: &str, build| {
            let product_name = Some(name.to_owned());
            ProductSources { product_name, ..ProductSources::default() }.product(build)
        };
        let server = "Microsoft Windows Server 2022 Datacenter";
        assert_eq!(product("Windows Server 2022 Datacenter", 20348).as_deref(), Some(server));
        assert_eq!(product(server, 20348).as_deref(), Some(server));
        let name = "Windows 10 Pro";
        assert_eq!(product(name, 19045).as_deref(), Some("Microsoft Windows 10 Pro"));
        assert_eq!(product(name, 22621).as_deref(), Some("Microsoft Windows 11 Pro"));
        assert_eq!((product(" ", 20348), ProductSources::default().product(20348)), (None, None));
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
