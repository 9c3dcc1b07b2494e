//! What vendors and Microsoft change: one table of the documentation, to whose rows hints refer.

use std::fmt;

use strum::VariantArray;

/// A row of the table "What depends on the GPU and its driver" in docs/drivers.md.
#[derive(Clone, Copy, PartialEq, Eq, Debug, VariantArray, strum::IntoStaticStr)]
pub(crate) enum Row {
    /// Which NVIDIA GPUs and drivers have which mode.
    #[strum(serialize = "driver mode")]
    DriverMode,
    /// GPUs of two generations in one host.
    #[strum(serialize = "two generations")]
    TwoGenerations,
    /// Which GPUs have a driver for Windows Server.
    #[strum(serialize = "Windows Server")]
    WindowsServer,
    /// The causes of code 43.
    #[strum(serialize = "code 43")]
    Code43,
    /// GPUs without Direct3D 12.
    #[strum(serialize = "Direct3D 12")]
    Direct3d12,
    /// Updates that Windows Server 2019 needs.
    #[strum(serialize = "Windows Server 2019")]
    Server2019,
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name: &str = self.into();
        write!(f, "docs/drivers.md, row `{name}`")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_has_exactly_these_rows() {
        let page = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../docs/drivers.md");
        let page = std::fs::read_to_string(page).unwrap();
        let (_, table) = page.split_once("## What depends on the GPU and its driver").unwrap();
        let table = table.split("\n## ").next().unwrap();
        let rows: Vec<&str> = table
            .lines()
            .filter_map(|line| line.strip_prefix("| **")?.split("**").next())
            .collect();
        let expected: Vec<&str> = Row::VARIANTS.iter().map(Into::into).collect();
        assert_eq!(rows, expected);
    }
}
