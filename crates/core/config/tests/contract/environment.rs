//! An environment of variables and files for tests.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};

use config::{Config, ConfigError, Environment, Flags, ModelSummary, Trust};
use devices::DriverModel;

/// Variables and files; the working directory is `/here`.
#[derive(Default)]
pub(crate) struct TestEnvironment {
    pub(crate) variables: BTreeMap<String, OsString>,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
    /// The files that are missing or not trusted.
    pub(crate) distrusted: BTreeMap<PathBuf, Trust>,
    /// A file that cannot be read, beside those that are called `locked.yaml`.
    pub(crate) unreadable: PathBuf,
}

impl TestEnvironment {
    pub(crate) fn variable(mut self, name: &str, value: &str) -> TestEnvironment {
        self.variables.insert(name.to_owned(), value.into());
        self
    }

    pub(crate) fn file(mut self, path: &str, text: &str) -> TestEnvironment {
        self.files.insert(path.into(), text.into());
        self
    }

    pub(crate) fn trust(mut self, path: &str, trust: Trust) -> TestEnvironment {
        self.distrusted.insert(path.into(), trust);
        self
    }

    /// The environment in words, and the error with its hint.
    pub(crate) fn report(&self, models: &[DriverModel]) -> (String, String) {
        let variables =
            self.variables.iter().map(|(name, value)| format!("{name}={}", value.display()));
        let file = |(path, text): (&PathBuf, &Vec<u8>)| {
            format!("{}:\n{}", path.display(), String::from_utf8_lossy(text))
        };
        let input: Vec<String> = self.files.iter().map(file).chain(variables).collect();
        (input.join("\n"), report(self.load(models)))
    }

    pub(crate) fn load(&self, models: &[DriverModel]) -> Result<Config, ConfigError> {
        let flags = Flags { driver_models: models.to_vec(), ..Flags::default() };
        config::load(&flags, self)
    }
}

impl Environment for TestEnvironment {
    fn variable(&self, name: &str) -> Option<OsString> {
        self.variables.get(name).cloned()
    }

    fn variable_names(&self) -> Vec<String> {
        self.variables.keys().cloned().collect()
    }

    fn working_directory(&self) -> io::Result<PathBuf> {
        Ok("/here".into())
    }

    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        let is_locked =
            path.ends_with("locked.yaml") || path.to_string_lossy().ends_with(r"\locked.yaml");
        if is_locked || path == self.unreadable {
            return Err(io::ErrorKind::PermissionDenied.into());
        }
        self.files.get(path).cloned().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn is_file(&self, path: &Path) -> bool {
        self.files.contains_key(path)
    }

    fn trust(&self, path: &Path) -> Trust {
        self.distrusted.get(path).cloned().unwrap_or(Trust::Trusted)
    }
}

/// The configuration with `text` as the file of `--config`.
pub(crate) fn configured(text: &str, models: &[DriverModel]) -> Result<Config, ConfigError> {
    let made = TestEnvironment::default().file("c.yaml", text);
    let config = Some("c.yaml".into());
    config::load(&Flags { driver_models: models.to_vec(), config, ..Flags::default() }, &made)
}

/// An error and its hint, the same on every system.
pub(crate) fn report<T: std::fmt::Debug>(result: Result<T, ConfigError>) -> String {
    match result {
        Ok(value) => format!("accepted: {value:?}"),
        Err(error) => {
            let hint = error.hint().map(|hint| format!("\nhint: {hint}")).unwrap_or_default();
            format!("{error}{hint}").replace(r"/here\", "/here/")
        }
    }
}

/// Each input with its error and the hint below it.
pub(crate) fn reports<T: AsRef<str>>(inputs: impl IntoIterator<Item = T>) -> String {
    let report_of = |text: &str| report(configured(text, &[DriverModel::Wddm]));
    beside_inputs(
        inputs.into_iter().map(|text| (text.as_ref().to_owned(), report_of(text.as_ref()))),
    )
}

/// Each input, marked at the start of its lines, with what came of it below.
pub(crate) fn beside_inputs(table: impl IntoIterator<Item = (String, String)>) -> String {
    let mut seen = BTreeSet::new();
    let mut text = Vec::new();
    for (input, result) in table {
        let visible = input.trim_end_matches('\n').replace('\t', "<tab>").replace('\r', "<cr>");
        let marked: Vec<String> = visible.split('\n').map(|line| format!("> {line}")).collect();
        text.push(format!("{}\n{result}\n", marked.join("\n")));
        assert!(seen.insert(input), "an input occurs twice:\n{visible}");
    }
    text.join("\n")
}

/// Every value and where it may come from, one per line.
pub(crate) fn effective(config: &Config) -> String {
    let of_model = |summary: &ModelSummary| {
        let model = summary.model;
        let values = summary.settings.iter().map(move |setting| {
            let default = if setting.is_default { " (default)" } else { "" };
            format!("{model} {setting}{default}")
        });
        let head = format!("{model} sources: {:?}", summary.sources());
        std::iter::once(head).chain(values).collect::<Vec<_>>()
    };
    config.models.iter().flat_map(of_model).collect::<Vec<_>>().join("\n")
}

/// The keys that a file accepts after `start`, from the hint of the error about one that it
/// does not know.
pub(crate) fn keys(start: &str) -> Vec<String> {
    let error =
        configured(&format!("{start}zzzzzzzzzzzz: 1"), &[]).expect_err("there is no such key");
    let hint = error.hint().expect("the error lists the keys");
    let keys = hint.strip_prefix("the keys here are ").expect("no key is similar");
    keys.split(", ").map(str::to_owned).collect()
}

/// A file with the examples of all keys, whose names `spell` changes.
pub(crate) fn every_key(spell: fn(&str) -> String) -> String {
    let keys = config::reference().into_iter();
    let lines = keys.map(|key| format!("{}: {}", spell(key.key), key.example));
    lines.collect::<Vec<_>>().join("\n") + "\n"
}

/// The beginnings of every kind of mapping in a file, and where it is.
pub(crate) const SECTIONS: [(&str, &str); 4] = [
    ("", "at the top of the file"),
    ("resources:\n- ", "in a rule of `resources`"),
    ("resources:\n- name: a/b\n  match:\n    ", "in `match` of a rule"),
    ("additionalMounts:\n  amd:\n  - ", "in `additionalMounts` or in `additionalMountsWow64`"),
];
