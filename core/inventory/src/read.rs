//! The text of an inventory into a snapshot.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use devices::{
    Adapter, AdapterKind, Attachment, Attribute, Attributes, CopyToVmKey, CopyToVmValue, DriverKey,
    DriverStore, HardwareId, HostFacts, HostSnapshot, LocationPath, Luid, Placement, PnpDevice,
    PnpId, StoreFiles,
};
use strict_yaml::{Document, KeyCase, Kind, Node, ReadError, closest};

use crate::{InventoryError, SCHEMA};

/// Reads the inventory in the file `path`.
pub fn read(path: &Path) -> Result<HostSnapshot, InventoryError> {
    let bytes = strict_yaml::read_bytes(path)
        .map_err(|source| InventoryError::File { path: path.to_owned(), source })?;
    let name = path.display().to_string();
    parse(&name, &strict_yaml::decode(&name, &bytes)?)
}

/// Reads an inventory, YAML or JSON; `name` is what errors call it.
pub fn parse(name: &str, text: &str) -> Result<HostSnapshot, InventoryError> {
    let document = Document::parse(name, text)?;
    Ok(snapshot(&document.root())?)
}

fn snapshot(root: &Node<'_>) -> Result<HostSnapshot, ReadError> {
    let mut map = root.mapping(KeyCase::Exact)?;
    schema(&map.require("schema")?)?;
    let host = map.take("host").map(|n| host(&n)).transpose()?.unwrap_or_default();
    let list = map.require("adapters")?.list()?;
    map.finish()?;
    let mut seen = Seen::default();
    let adapters = list.iter().map(|n| adapter(n, &mut seen)).collect::<Result<_, _>>()?;
    Ok(HostSnapshot { host, adapters, ..HostSnapshot::default() })
}

fn schema(node: &Node<'_>) -> Result<(), ReadError> {
    let schema = node.text()?;
    if schema == SCHEMA {
        return Ok(());
    }
    let what = format!("unknown schema {schema:?}");
    Err(node.error(what).with_hint(format!("this program reads `{SCHEMA}`")))
}

fn host(node: &Node<'_>) -> Result<HostFacts, ReadError> {
    let mut map = node.mapping(KeyCase::Exact)?;
    let facts = HostFacts {
        product: map.take("product").map(|n| owned(&n)).transpose()?,
        display_version: map.take("displayVersion").map(|n| owned(&n)).transpose()?,
        build: map.take("build").map(|n| n.parsed()).transpose()?,
        hcs_schemas: map
            .take("hcsSchemas")
            .map(|n| n.list()?.iter().map(Node::parsed).collect())
            .transpose()?
            .unwrap_or_default(),
        ..HostFacts::default()
    };
    map.finish()?;
    Ok(facts)
}

fn adapter(node: &Node<'_>, seen: &mut Seen) -> Result<Adapter, ReadError> {
    let mut map = node.mapping(KeyCase::Exact)?;
    let luid = map.require("luid")?;
    seen.luid(&luid)?;
    let adapter = Adapter {
        luid: Luid(luid.integer(i64::MIN..=i64::MAX)?),
        attributes: attributes(&map.require("attributes")?)?,
        kind: kind(map.require("hardware")?.boolean()?),
        placement: placement(flag(map.take("integrated"))?),
        attachment: attachment(flag(map.take("detachable"))?),
        hardware_id: hardware_id(&map.require("hardwareId")?)?,
        driver_description: text_or_empty(map.take("driverDescription"))?,
        driver_version: map.take("driverVersion").map(|n| n.parsed()).transpose()?,
        dedicated_memory_mib: map
            .take("dedicatedMemoryMiB")
            .map(|n| n.integer(0..=u64::MAX))
            .transpose()?,
        pnp: map.take("pnp").map(|n| pnp(&n, seen)).transpose()?,
        driver_store: map.take("driverStore").map(|n| driver_store(&n)).transpose()?,
    };
    map.finish()?;
    Ok(adapter)
}

fn kind(hardware: bool) -> AdapterKind {
    if hardware { AdapterKind::Hardware } else { AdapterKind::Software }
}

fn placement(integrated: bool) -> Placement {
    if integrated { Placement::Integrated } else { Placement::Discrete }
}

fn attachment(detachable: bool) -> Attachment {
    if detachable { Attachment::Detachable } else { Attachment::Fixed }
}

fn attributes(node: &Node<'_>) -> Result<Attributes, ReadError> {
    node.list()?.iter().map(attribute).collect()
}

fn attribute(node: &Node<'_>) -> Result<Attribute, ReadError> {
    let name = node.text()?;
    let names = || Attribute::ALL.map(Attribute::name);
    Attribute::from_name(name).ok_or_else(|| {
        let hint = match closest(name, names()) {
            Some(meant) => format!("did you mean `{meant}`?"),
            None => format!("the attributes are {}", names().join(", ")),
        };
        node.error(format!("unknown attribute {name:?}")).with_hint(hint)
    })
}

fn hardware_id(node: &Node<'_>) -> Result<HardwareId, ReadError> {
    let number = |n: &Node<'_>| n.integer(0..=u32::MAX);
    let mut map = node.mapping(KeyCase::Exact)?;
    let id = HardwareId {
        vendor: number(&map.require("vendor")?)?,
        device: number(&map.require("device")?)?,
        subsystem: map.take("subsystem").map(|n| number(&n)).transpose()?.unwrap_or_default(),
        revision: map.take("revision").map(|n| number(&n)).transpose()?.unwrap_or_default(),
    };
    map.finish()?;
    Ok(id)
}

fn pnp(node: &Node<'_>, seen: &mut Seen) -> Result<PnpDevice, ReadError> {
    let number = |n: Node<'_>| n.integer(0..=u32::MAX);
    let mut map = node.mapping(KeyCase::Exact)?;
    let id = map.require("id")?;
    seen.pnp_id(&id)?;
    let device = PnpDevice {
        id: PnpId::new(filled(&id)?),
        description: text_or_empty(map.take("description"))?,
        manufacturer: text_or_empty(map.take("manufacturer"))?,
        driver_key: map.take("driverKey").map(|n| filled(&n).map(DriverKey::new)).transpose()?,
        location_paths: map
            .take("locationPaths")
            .map(|n| n.list()?.iter().map(|n| Ok(LocationPath::new(filled(n)?))).collect())
            .transpose()?
            .unwrap_or_default(),
        numa_node: map.take("numaNode").map(number).transpose()?,
        problem_code: map.take("problemCode").map(number).transpose()?.unwrap_or_default(),
    };
    map.finish()?;
    Ok(device)
}

fn driver_store(node: &Node<'_>) -> Result<DriverStore, ReadError> {
    let mut map = node.mapping(KeyCase::Exact)?;
    let store = DriverStore {
        path: filled(&map.require("path")?)?.to_owned(),
        files: match map.take("files") {
            Some(list) => {
                StoreFiles::Listed(list.list()?.iter().map(owned).collect::<Result<_, _>>()?)
            }
            None => StoreFiles::EveryNamed,
        },
        copy_to_vm: map.take("copyToVm").map(|n| copy_to_vm(&n)).transpose()?.unwrap_or_default(),
    };
    map.finish()?;
    Ok(store)
}

type CopyToVm = BTreeMap<CopyToVmKey, BTreeMap<String, CopyToVmValue>>;

/// The registry compares the names of keys and values without case.
fn copy_to_vm(node: &Node<'_>) -> Result<CopyToVm, ReadError> {
    let mut keys = CopyToVm::new();
    for (name, node) in node.mapping(KeyCase::Ignored)?.entries() {
        let key: CopyToVmKey = name.parse().map_err(|e| node.error(format!("{e}")))?;
        let mut values = BTreeMap::new();
        for (name, node) in node.mapping(KeyCase::Ignored)?.entries() {
            values.insert(name.to_owned(), copy_to_vm_value(&node)?);
        }
        keys.insert(key, values);
    }
    Ok(keys)
}

fn copy_to_vm_value(node: &Node<'_>) -> Result<CopyToVmValue, ReadError> {
    if node.kind() != Kind::List {
        return Ok(CopyToVmValue::Single(owned(node)?));
    }
    let strings: Vec<String> = node.list()?.iter().map(owned).collect::<Result<_, _>>()?;
    if strings.is_empty() || strings.len() > 2 {
        let what = format!("expected one or two strings, found {}", strings.len());
        return Err(node.error(what).with_hint("the source, then perhaps the destination"));
    }
    Ok(CopyToVmValue::Multi(strings))
}

fn owned(node: &Node<'_>) -> Result<String, ReadError> {
    node.text().map(str::to_owned)
}

fn filled<'d>(node: &Node<'d>) -> Result<&'d str, ReadError> {
    match node.text()? {
        "" => Err(node.error("expected text, found none in the quotes")),
        text => Ok(text),
    }
}

fn text_or_empty(node: Option<Node<'_>>) -> Result<String, ReadError> {
    node.map_or_else(|| Ok(String::new()), |n| owned(&n))
}

fn flag(node: Option<Node<'_>>) -> Result<bool, ReadError> {
    node.map_or(Ok(false), |n| n.boolean())
}

/// What may be there only once, with the line it was first seen on.
#[derive(Default)]
struct Seen {
    luids: HashMap<i64, u32>,
    pnp_ids: HashMap<String, u32>,
}

impl Seen {
    fn luid(&mut self, node: &Node<'_>) -> Result<(), ReadError> {
        let luid = node.integer(i64::MIN..=i64::MAX)?;
        once(node, self.luids.insert(luid, node.line()), &format!("the LUID {luid}"))
    }

    /// Windows compares instance ids without case.
    fn pnp_id(&mut self, node: &Node<'_>) -> Result<(), ReadError> {
        let id = node.text()?;
        let folded = id.chars().flat_map(char::to_uppercase).collect();
        once(node, self.pnp_ids.insert(folded, node.line()), &format!("the PnP id {id:?}"))
    }
}

fn once(node: &Node<'_>, before: Option<u32>, what: &str) -> Result<(), ReadError> {
    match before {
        Some(line) => Err(node
            .error(format!("{what} is there twice"))
            .with_hint(format!("the adapter at line {line} has it already"))),
        None => Ok(()),
    }
}
