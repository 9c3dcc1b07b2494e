//! The policy of one driver model, from its settings and rules.

use std::num::NonZeroU32;

use devices::{DriverModel, ModelPolicy, ResourceName};

use crate::config_files::ConfigFile;
use crate::rules::FileRule;
use crate::settings::{SetValues, Settings};
use crate::variables::{Variables, match_name};
use crate::{ConfigError, ModelSummary, Place, SettingText};

/// The policy of a driver model, and where its parts come from.
pub(crate) struct ModelSettings {
    pub(crate) policy: ModelPolicy,
    /// The rules of the policy with their places, in the order of the policy.
    pub(crate) rules: Vec<FileRule>,
    /// The file's rules for other driver models.
    pub(crate) foreign_rules: Vec<FileRule>,
    /// Where a file sets the resource's name.
    pub(crate) name_place: Option<Place>,
    /// The variable that sets the resource's name.
    pub(crate) name_variable: Option<String>,
    /// Where a file sets the visibility.
    pub(crate) visibility_place: Option<Place>,
    pub(crate) summary: ModelSummary,
    /// Warnings about keys that have no effect.
    pub(crate) notices: Vec<String>,
}

pub(crate) fn model_settings(
    variables: &Variables<'_>,
    file: ConfigFile,
) -> Result<ModelSettings, ConfigError> {
    let model = variables.model;
    let path = file.path.as_deref();
    let notices = notices(model, path, &file.values);
    let set = variables.values()?;
    let name_variable = set.resource_name.as_ref().map(|_| variables.resource_name());
    let set = set.or(file.values);
    let name_place = set.resource_name.as_ref().and_then(|name| name.place(path, "resourceName"));
    let visibility_place =
        set.visibility.as_ref().and_then(|visibility| visibility.place(path, "visibility"));
    let rename_place =
        set.rename_shared.as_ref().and_then(|rename| rename.place(path, "renameShared"));
    let mut settings = Settings::defaults(model);
    set.apply(&mut settings);
    if model == DriverModel::Legacy
        && let Some(name) = match_name(variables.environment)?
    {
        settings.policy.match_name = Some(name);
    }
    let shared_name = |name: &ConfiguredName<'_>, replicas: NonZeroU32| {
        if settings.rename_shared && replicas != NonZeroU32::MIN {
            shared_name(name, rename_place.as_ref())
        } else {
            Ok(name.name.clone())
        }
    };
    let replicas = settings.policy.sharing.replicas;
    let (mut rules, foreign_rules): (Vec<FileRule>, Vec<FileRule>) =
        file.rules.into_iter().partition(|rule| rule.is_for(model));
    for FileRule { rule, place } in &mut rules {
        let name = ConfiguredName { name: &rule.name, place: Some(&*place), variable: None };
        rule.name = shared_name(&name, rule.replicas.unwrap_or(replicas))?;
    }
    let name = ConfiguredName {
        name: &settings.policy.resource,
        place: name_place.as_ref(),
        variable: name_variable.as_deref(),
    };
    let resource = shared_name(&name, replicas)?;
    Ok(ModelSettings {
        summary: ModelSummary {
            model,
            file: file.path.clone(),
            variables: variables.names_of_set(),
            settings: texts(&settings, &rules),
        },
        name_place,
        name_variable,
        visibility_place,
        policy: ModelPolicy {
            resource,
            rules: rules.iter().map(|r| r.rule.clone()).collect(),
            ..settings.policy
        },
        rules,
        foreign_rules,
        notices,
    })
}

/// Every setting, the name that `legacy` requires and the rules, as text.
fn texts(settings: &Settings, rules: &[FileRule]) -> Vec<SettingText> {
    let default = Settings::defaults(settings.policy.model);
    let values = settings.texts().into_iter().zip(default.texts());
    let values = values.map(|((key, value), (_, default))| {
        let is_default = value == default;
        SettingText { key, value, is_default }
    });
    let match_name = settings.policy.match_name.as_ref().map(|name| SettingText {
        key: "DIRECTX_GPU_MATCH_NAME",
        // Without quotes, blanks at its ends could not be seen.
        value: if name.trim() == name { name.clone() } else { format!("{name:?}") },
        is_default: default.policy.match_name.as_ref() == Some(name),
    });
    let rules = rules.iter().map(|FileRule { rule, .. }| SettingText {
        key: "resources",
        value: rule.name.to_string(),
        is_default: false,
    });
    values.chain(match_name).chain(rules).collect()
}

/// The name of a resource, and where it is set.
struct ConfiguredName<'a> {
    name: &'a ResourceName,
    /// The place in a file, if a file sets it.
    place: Option<&'a Place>,
    /// The variable, if one sets it.
    variable: Option<&'a str>,
}

/// The name of a resource whose devices are shared. `rename_place` is where a file says so.
fn shared_name(
    configured: &ConfiguredName<'_>,
    rename_place: Option<&Place>,
) -> Result<ResourceName, ConfigError> {
    if configured.name.is_shared() {
        return Err(renamed_twice(configured));
    }
    configured.name.shared().map_err(|error| {
        ConfigError::at(rename_place, error.to_string(), "choose a shorter resource name")
    })
}

/// An error about a name that already has the suffix of shared resources.
fn renamed_twice(ConfiguredName { name, place, variable }: &ConfiguredName<'_>) -> ConfigError {
    let what = format!(
        "the name `{name}` already ends with `.shared`; renameShared would make it `{name}.shared`"
    );
    let hint =
        "remove `.shared` from the name, because renameShared appends it, or remove renameShared";
    match variable {
        Some(variable) => ConfigError::Variable {
            name: (*variable).to_owned(),
            value: name.to_string(),
            what,
            hint,
        },
        None => ConfigError::at(*place, what, hint),
    }
}

/// Warnings about what the file sets without effect.
fn notices(model: DriverModel, file: Option<&str>, values: &SetValues) -> Vec<String> {
    let Some(file) = file else { return Vec::new() };
    let keys = values.ignored_by(model).into_iter();
    keys.map(|key| format!("{file}: {key} has no effect with the driver model {model}")).collect()
}
