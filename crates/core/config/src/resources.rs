//! Checks that every use of a resource name has the same settings, and that no two resources have
//! the same variable in a container.

use devices::{LAUNCHER_FILES, ResourceSpec, Sharing, Visibility, visible_devices_variable};

use crate::policy::ModelSettings;
use crate::rules::FileRule;
use crate::{ConfigError, Place};

/// A use of a resource name.
struct Use {
    spec: ResourceSpec,
    /// The variable with the devices of the resource, if containers get one.
    variable: Option<String>,
    /// The place in a file, if the name is in a file.
    place: Option<Place>,
    /// The use in words.
    text: String,
}

/// Refuses a resource name that two driver models or rules configure differently, two names for
/// which containers get the same variable, and `visibility` with settings that rule it out.
pub(crate) fn check(models: &[ModelSettings]) -> Result<(), ConfigError> {
    models.iter().try_for_each(check_variables)?;
    models.iter().try_for_each(check_required_files)?;
    let uses: Vec<Use> = models.iter().flat_map(uses_of).collect();
    for (n, this) in uses.iter().enumerate() {
        for other in &uses[..n] {
            if other.spec.name == this.spec.name {
                check_terms(other, this)?;
            } else if this.variable.is_some() && other.variable == this.variable {
                return Err(same_variable(other, this));
            }
        }
    }
    Ok(())
}

fn uses_of(settings: &ModelSettings) -> Vec<Use> {
    let policy = &settings.policy;
    let new_use = |spec: ResourceSpec, place: Option<Place>, text: String| {
        let has_variable = !policy.container.omit_environment_hints;
        let variable = has_variable.then(|| visible_devices_variable(&spec.name));
        Use { spec, variable, place, text }
    };
    let own = new_use(policy.spec(), settings.name_place.clone(), own_text(settings));
    let rules = settings.rules.iter().map(|FileRule { rule, place }| {
        let text = format!("in the rule at {place} ({})", policy.model);
        // The number of the rule is not compared.
        new_use(rule.spec(policy, 0), Some(place.clone()), text)
    });
    std::iter::once(own).chain(rules).collect()
}

/// The resource of the driver model in words, with the file or variable that sets its name.
fn own_text(settings: &ModelSettings) -> String {
    let model = settings.policy.model;
    match (&settings.name_variable, &settings.name_place) {
        (Some(name), _) => format!("as the resource of {model} (variable {name})"),
        (None, Some(place)) => format!("as the resource of {model} ({place})"),
        (None, None) => format!("as the resource of {model}"),
    }
}

/// Checks that what applies to all devices of a resource is the same for both uses.
fn check_terms(first: &Use, second: &Use) -> Result<(), ConfigError> {
    let mut both = terms(&second.spec).into_iter().zip(terms(&first.spec));
    let Some(((key, ours), (_, theirs))) = both.find(|(ours, theirs)| ours != theirs) else {
        return Ok(());
    };
    let what = format!(
        "the resource `{}` has {key} {ours} {} and {theirs} {}",
        second.spec.name, second.text, first.text
    );
    let hint = "use two names, or set the key to the same value for both";
    Err(ConfigError::at(second.place.as_ref(), what, hint))
}

/// What applies to all devices of a resource, with the key of each value.
fn terms(spec: &ResourceSpec) -> [(&'static str, String); 5] {
    // Without `..`, so that each new field is either compared or named here.
    let ResourceSpec { name: _, sharing, removal_grace, visibility, origin: _, models: _ } = spec;
    let Sharing { replicas, allocation, shared_requests } = sharing;
    [
        ("multitenancy", replicas.to_string()),
        ("allocationPolicy", allocation.to_string()),
        ("sharedRequests", shared_requests.to_string()),
        ("visibility", visibility.to_string()),
        ("removalGraceSeconds", removal_grace.as_secs().to_string()),
    ]
}

/// Refuses two resources with the same variable: one of them would hide the devices of the other.
fn same_variable(first: &Use, second: &Use) -> ConfigError {
    let what = format!(
        "the resources `{}` ({}) and `{}` ({}) have the same variable {}",
        first.spec.name,
        first.text,
        second.spec.name,
        second.text,
        second.variable.as_deref().unwrap_or_default()
    );
    let hint = "use names that differ in more than case, `.`, `-`, `_` and `/`";
    ConfigError::at(second.place.as_ref(), what, hint)
}

/// Refuses `directx-visible` in a demonstration, whose containers get no files.
pub(crate) fn check_demonstration(settings: &ModelSettings) -> Result<(), ConfigError> {
    if !has(settings, gives_files) {
        return Ok(());
    }
    let what = "a demonstration has no `visibility`, because its containers get no files";
    let hint = "remove visibility, or set it to off";
    Err(ConfigError::at(place_of(settings, gives_files), what.to_owned(), hint))
}

fn gives_files(visibility: Visibility) -> bool {
    visibility != Visibility::Off
}

/// Refuses `directx-visible` where containers get no variables, without which it starts nothing.
fn check_variables(settings: &ModelSettings) -> Result<(), ConfigError> {
    if !settings.policy.container.omit_environment_hints || !has(settings, gives_files) {
        return Ok(());
    }
    let what = "directx-visible needs the variables that environmentHints: false omits";
    let hint = "remove environmentHints: false, or set visibility: off";
    Err(ConfigError::at(place_of(settings, gives_files), what.to_owned(), hint))
}

/// Refuses `visibility: required` where the configuration itself keeps `directx-visible` out of
/// containers, so that no container could ever start.
fn check_required_files(settings: &ModelSettings) -> Result<(), ConfigError> {
    let container = &settings.policy.container;
    let is_required = |visibility| visibility == Visibility::Required;
    if !has(settings, is_required) {
        return Ok(());
    }
    // Without the third file, only 32-bit programs are not filtered.
    let is_needed =
        |name: &str| LAUNCHER_FILES[..2].iter().any(|file| file.eq_ignore_ascii_case(name));
    let excluded = container.exclude_mounts.iter().map(|name| ("excludeMounts", name.to_string()));
    let additional = container.additional.values().flatten();
    let additional = additional.map(|file| ("additionalMounts", file.destination.to_string()));
    let mut names = excluded.chain(additional);
    let Some((key, name)) = names.find(|(_, name)| is_needed(name)) else { return Ok(()) };
    let what = format!("directx-visible is required, and {key} keeps `{name}` out of containers");
    let hint = "remove the name there, or set visibility: launcher or off";
    Err(ConfigError::at(place_of(settings, is_required), what, hint))
}

/// Whether the visibility of a driver model or of one of its rules is one of these.
fn has(settings: &ModelSettings, is_one: impl Fn(Visibility) -> bool) -> bool {
    let of_rules = settings.rules.iter().filter_map(|rule| rule.rule.visibility);
    of_rules.chain([settings.policy.container.visibility]).any(is_one)
}

/// Where the visibility of a driver model or of one of its rules is set, if it is one of these.
/// `None`: it is not in a file.
fn place_of(settings: &ModelSettings, is_one: impl Fn(Visibility) -> bool) -> Option<&Place> {
    if is_one(settings.policy.container.visibility) {
        return settings.visibility_place.as_ref();
    }
    let rule = settings.rules.iter().find(|rule| rule.rule.visibility.is_some_and(&is_one))?;
    Some(&rule.place)
}
