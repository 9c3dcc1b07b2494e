//! The user's mounts and exclusions in a configuration file.

use devices::{AdditionalMount, AdditionalMounts, FileName, StorePath, Vendor};
use strict_yaml::{KeyCase, Node, ReadError};

/// `additionalMounts`: vendor → list of `{source, destination}`.
pub(crate) fn additional(node: &Node<'_>) -> Result<AdditionalMounts, ReadError> {
    let mut mounts = AdditionalMounts::new();
    for (name, list) in node.mapping(KeyCase::Ignored)?.entries() {
        let vendor: Vendor = name.parse().map_err(|error| list.error(format!("{error}")))?;
        let files = list.list()?.iter().map(mount).collect::<Result<_, _>>()?;
        if mounts.insert(vendor, files).is_some() {
            let hint = "a vendor's name and its vendor id are the same vendor";
            return Err(list.error(format!("the vendor {vendor} is there twice")).with_hint(hint));
        }
    }
    Ok(mounts)
}

/// `{source, destination}`; without a destination the file keeps its name.
fn mount(node: &Node<'_>) -> Result<AdditionalMount, ReadError> {
    let mut map = node.mapping(KeyCase::Ignored)?;
    let source = map.require("source")?;
    let source = StorePath::parse(source.text()?).map_err(|error| {
        let hint = r"write a path below the driver store folder, such as B026261\amfrt64.dll";
        source.error(error.to_string()).with_hint(hint)
    })?;
    let destination = match map.take("destination") {
        Some(node) => file_name(&node)?,
        None => source.file_name(),
    };
    map.finish()?;
    Ok(AdditionalMount { source, destination })
}

/// `excludeMounts`: destinations.
pub(crate) fn excluded(node: &Node<'_>) -> Result<Vec<FileName>, ReadError> {
    node.list()?.iter().map(file_name).collect()
}

fn file_name(node: &Node<'_>) -> Result<FileName, ReadError> {
    FileName::parse(node.text()?).map_err(|error| {
        node.error(error.to_string()).with_hint("write a bare file name, such as nvcuda.dll")
    })
}
