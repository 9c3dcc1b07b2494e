//! `docs/configuration.md` describes every key, default and range of the code, and
//! `docs/reference/inventory.md` is the documentation of the format.

use devices::DriverModel;

use crate::environment::{TestEnvironment, configured, keys};

const REFERENCE: &str = include_str!("../../../../../docs/configuration.md");

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
fn every_key_and_variable_is_described_and_no_other() {
    let mut all = keys("");
    all.extend(keys("additionalMounts:\n  amd:\n  - "));
    all.extend(keys("resources:\n- "));
    assert_eq!(names("key"), all);
    assert_eq!(names("condition"), keys("resources:\n- name: a/b\n  match:\n    "));
    assert_eq!(names("variable"), config::VARIABLES);
    let flags = [
        "--driver-model",
        "--config",
        "--inventory",
        "--device-plugin-dir",
        "--listen",
        "--pod-resources",
    ];
    assert_eq!(names("flag"), flags);
}

#[test]
fn the_described_defaults_are_the_effective_ones() {
    let config = TestEnvironment::default().load(&[DriverModel::Wddm]).unwrap();
    let described = table("key").into_iter().filter(|row| row.len() == 4);
    let described: Vec<(&str, &str)> = described.map(|row| (row[0], row[2])).collect();
    let (rules, others) = described.split_last().unwrap();
    assert_eq!(*rules, ("resources", "none"));
    let settings = config.models[0].settings.iter();
    let actual: Vec<(&str, &str)> = settings.map(|s| (s.key, s.value.as_str())).collect();
    assert_eq!(others, actual);
}

#[test]
fn the_described_ranges_are_the_checked_ones() {
    let range = |low: u64, high: u64| format!("a whole number from {low} to {high}");
    let value = |head: &str, key: &str| {
        table(head).into_iter().find(|row| row[0] == key).map(|row| row[1].to_owned())
    };
    let multitenancy = range(0, config::MAX_MULTITENANCY);
    assert_eq!(value("key", "multitenancy"), Some(multitenancy));
    assert_eq!(value("key", "removalGraceSeconds"), Some(range(0, config::MAX_REMOVAL_GRACE)));
    let resets = format!(
        "`{{count: …, minutes: …}}`: whole numbers from 1 to {} and from 1 to {}",
        config::MAX_RESETS,
        config::MAX_RESET_MINUTES
    );
    assert_eq!(value("key", "unhealthyAfterResets"), Some(resets.trim_matches('`').to_owned()));
    assert_eq!(value("condition", "minMemoryMiB"), Some(range(1, config::MAX_MEMORY_MIB)));
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
    let [smallest, whole] = files.as_slice() else { panic!("{page}") };
    assert!(smallest.lines().count() <= 12, "{smallest}");
    assert_eq!(config::inventory::parse("smallest", smallest).unwrap().adapters.len(), 1);
    config::inventory::parse("whole", whole).unwrap();
}
