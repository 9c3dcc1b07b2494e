//! `docs/configuration.md` describes every key, default and range of the code, and
//! `docs/reference/inventory.md` is the documentation of the format.

use std::fmt::Write as _;

use config::KeyReference;
use devices::{Criteria, Device, DeviceClass, DriverModel, ModelPolicy, discover};
use host::Attribute;

use crate::environment::{SECTIONS, configured, every_key, keys};

const REFERENCE: &str = include_str!("../../../../../docs/configuration.md");
const BEGIN: &str =
    "<!-- generated from crates/core/config/src/settings.rs by cargo xtask update -->\n";

/// The cells of the table whose first column is headed `head`.
fn table(head: &str) -> Vec<Vec<&'static str>> {
    let header = format!("| {head} |");
    let tables: Vec<Vec<Vec<&str>>> = REFERENCE
        .split("\n\n")
        .filter(|block| block.starts_with(&header))
        .map(|block| block.lines().skip(2).map(cells).collect())
        .collect();
    assert!(!tables.is_empty(), "{head}");
    tables.concat()
}

fn cells(row: &'static str) -> Vec<&'static str> {
    row.trim_matches('|').split(" | ").map(|cell| cell.trim().trim_matches('`')).collect()
}

fn names(head: &str) -> Vec<&'static str> {
    table(head).iter().map(|row| row[0]).collect()
}

#[test]
fn the_page_lists_every_key() {
    let mut table = String::from("| key | value | default | meaning |\n|---|---|---|---|\n");
    for KeyReference { key, values, default, meaning, .. } in config::reference() {
        let default = default.map_or("none".to_owned(), |default| format!("`{default}`"));
        writeln!(table, "| `{key}` | {values} | {default} | {meaning} |").unwrap();
    }
    doc_pages::assert_part("configuration.md", BEGIN, &table);
}

#[test]
fn every_key_in_a_mapping_and_every_variable_is_described_and_no_other() {
    let mut all = keys("additionalMounts:\n  amd:\n  - ");
    all.extend(keys("resources:\n- "));
    assert_eq!(names("key"), all);
    assert_eq!(names("condition"), keys("resources:\n- name: a/b\n  match:\n    "));
    assert_eq!(names("variable"), config::VARIABLES);
}

#[test]
fn the_described_range_of_a_condition_is_the_checked_one() {
    let conditions = table("condition").into_iter();
    let memory = conditions.filter(|row| row[0] == "minMemoryMiB").map(|row| row[1]);
    let range = format!("a whole number from 1 to {}", config::MAX_MEMORY_MIB);
    assert_eq!(memory.collect::<Vec<_>>(), [range]);
}

#[test]
fn the_page_names_every_key_that_legacy_ignores() {
    let config = configured(&every_key(str::to_owned), &[DriverModel::Legacy]).unwrap();
    let ignored = config.notices.iter().filter_map(|notice| {
        notice.strip_suffix(" has no effect with the driver model legacy")?.split(' ').next_back()
    });
    let ignored: Vec<String> = ignored.map(|key| format!("`{key}`")).collect();
    let (last, others) = ignored.split_last().unwrap();
    let sentence = format!("{} and {last} have no effect", others.join(", "));
    assert!(in_one_line(REFERENCE).contains(&sentence), "{sentence}");
}

fn in_one_line(page: &str) -> String {
    page.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// In addition to the defaults of `wddm`, which are in the table of keys.
#[test]
fn the_pages_name_the_defaults_of_each_driver_model() {
    const MIGRATION: &str = include_str!("../../../../../docs/migration.md");
    let default = ModelPolicy::for_model;
    let [wddm, mcdm, legacy] =
        [DriverModel::Wddm, DriverModel::Mcdm, DriverModel::Legacy].map(default);
    let without_file = format!(
        "each WDDM device is then `{}` and each MCDM device `{}`, for one container at a time",
        wddm.resource, mcdm.resource
    );
    let names =
        format!("`mcdm` has the default `{}`, and `legacy` `{}`", mcdm.resource, legacy.resource);
    let legacy_name = format!("the resource `{}`", legacy.resource);
    let match_name = legacy.match_name.as_ref().unwrap();
    let match_name = format!("`DIRECTX_GPU_MATCH_NAME` (default `{match_name}`)");
    for (page, sentence) in [
        (REFERENCE, &*without_file),
        (REFERENCE, &names),
        (REFERENCE, "The default class of `wddm` and `legacy` contains all display adapters"),
        (REFERENCE, "`mcdm` has no default"),
        (MIGRATION, &legacy_name),
        (MIGRATION, &match_name),
    ] {
        assert!(in_one_line(page).contains(sentence), "{sentence}");
    }
    assert_eq!([&wddm, &mcdm].map(|policy| policy.sharing.replicas.get()), [1, 1]);
    let display = Some(DeviceClass::DISPLAY_ADAPTER);
    assert_eq!([&wddm, &legacy, &mcdm].map(ModelPolicy::device_class), [display, display, None]);
}

/// The fuzz target for configurations begins with it.
#[test]
fn the_seed_of_the_fuzz_target_has_every_key() {
    let text = every_key(str::to_owned);
    for (start, _) in SECTIONS {
        for key in keys(start) {
            assert!(text.contains(&format!("{key}: ")), "{key}");
        }
    }
    doc_pages::assert_file("testing/fuzz/seeds/configurations/every-key.yaml", &text);
}

#[test]
fn every_example_is_accepted() {
    let examples: Vec<&str> = REFERENCE
        .split("```yaml\n")
        .skip(1)
        .map(|rest| rest.split("```").next().expect("a split has a first part"))
        .collect();
    assert!(examples.len() >= 3);
    for example in examples {
        let config = configured(example, &[DriverModel::Wddm, DriverModel::Mcdm]);
        assert_eq!(config.map(|c| c.notices).map_err(|e| e.to_string()), Ok(vec![]), "{example}");
    }
}

/// The page, whose text is the documentation of the module `inventory`.
fn inventory_page() -> String {
    let documentation: String = include_str!("../../src/inventory/mod.rs")
        .lines()
        .map_while(|line| line.strip_prefix("//!"))
        .flat_map(|line| [line.strip_prefix(' ').unwrap_or(line), "\n"])
        .collect();
    format!("# Inventories\n\n{}", documentation.replace("\n# ", "\n## "))
}

#[test]
fn the_page_about_inventories_matches_the_code_and_its_files_are_read() {
    let page = inventory_page();
    doc_pages::assert_page("reference/inventory.md", &page);
    let files: Vec<&str> =
        page.split("```yaml\n").skip(1).filter_map(|rest| rest.split("```").next()).collect();
    let [smallest, others, whole] = files.as_slice() else { panic!("{page}") };
    assert!(smallest.lines().count() <= 12, "{smallest}");
    assert_eq!(config::inventory::parse("smallest", smallest).unwrap().adapters.len(), 1);
    assert_eq!(config::inventory::parse("others", others).unwrap().adapters.len(), 3);
    config::inventory::parse("whole", whole).unwrap();
}

/// The devices of a host whose only adapter has one attribute.
fn with_attribute(attribute: Attribute, vendor: u32) -> Vec<Device> {
    let text = format!(
        "schema: directx-inventory/v1\nadapters:\n- luid: 1\n  attributes: [{attribute}]\n  \
         hardware: true\n  hardwareId: {{vendor: {vendor}, device: 1}}\n  pnp: {{id: 'PCI\\A', \
         locationPaths: [L]}}\n"
    );
    let snapshot = config::inventory::parse("one attribute", &text).expect("a valid inventory");
    discover(&snapshot, Criteria::ALL).devices
}

#[test]
fn the_table_of_attributes_says_what_each_makes() {
    const VENDORS: [u32; 6] = [0x1002, 0x8086, 0x10DE, 0x5143, 0x1A03, 0x1414];
    let page = inventory_page();
    for attribute in Attribute::ALL {
        let devices: Vec<Device> =
            VENDORS.iter().flat_map(|vendor| with_attribute(*attribute, *vendor)).collect();
        let display = match devices.iter().filter(|device| device.display).count() {
            0 => "",
            6 => "yes ",
            _ => "some ",
        };
        let compute: Vec<bool> = devices.iter().map(|device| device.compute).collect();
        let compute = match compute.as_slice() {
            [false, false, false, false, false, false] => "",
            [true, true, true, true, true, true] => "yes ",
            [true, true, true, true, false, false] => "of AMD, Intel, NVIDIA and Qualcomm ",
            _ => "other ",
        };
        let kinds: Vec<String> = devices.iter().map(|device| device.kind.to_string()).collect();
        let [amd, intel, nvidia, qualcomm, others @ ..] = kinds.as_slice() else {
            panic!("{attribute}: {kinds:?}")
        };
        // Without a kind, the vendor decides, as the text below the table says.
        let by_vendor = ["npu", "npu", "gpu", "npu", "accelerator", "accelerator"];
        let kind = if kinds == by_vendor { String::new() } else { format!("{amd} ") };
        if kinds != by_vendor {
            assert!([intel, qualcomm, &others[0], &others[1]].iter().all(|kind| *kind == amd));
            assert!(nvidia == amd || nvidia == "gpu" && amd != "npu", "{attribute}: {kinds:?}");
        }
        let row = format!("\n| `{attribute}` | {display}| {compute}| {kind}|\n");
        assert!(page.contains(&row), "the page lacks {row}");
    }
    let rows = page.lines().filter(|line| line.starts_with("| `")).count();
    assert_eq!(rows, Attribute::ALL.len());
}
