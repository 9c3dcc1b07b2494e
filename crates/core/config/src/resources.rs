//! Checks that every use of a resource name has the same settings, and that no two resources have
//! the same variable in a container.

use devices::{DriverModel, ResourceOrigin, ResourceSpec, Visibility, visible_devices_variable};

use crate::ConfigError;
use crate::origin::Origin;
use crate::policy::ModelSettings;
use crate::rules::FileRule;

/// A use of a resource name.
struct Use {
    spec: ResourceSpec,
    /// The variable with the devices of the resource, if containers get one.
    variable: Option<String>,
    model: DriverModel,
    origin: Origin,
}

impl Use {
    fn text(&self) -> String {
        let Use { spec, model, origin, .. } = self;
        match (spec.origin, origin) {
            (ResourceOrigin::Model(_), Origin::Default) => format!("as the resource of {model}"),
            (ResourceOrigin::Model(_), _) => format!("as the resource of {model} ({origin})"),
            (ResourceOrigin::Rule(_), _) => format!("in the rule at {origin} ({model})"),
        }
    }
}

/// Refuses a resource name that two driver models or rules configure differently, two names for
/// which containers get the same variable, and `visibility: launcher` without variables.
pub(crate) fn check(models: &[ModelSettings]) -> Result<(), ConfigError> {
    models.iter().try_for_each(check_variables)?;
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

fn uses_of(settings: &ModelSettings) -> impl Iterator<Item = Use> {
    let policy = &settings.policy;
    let own = (policy.spec(), settings.resource_origin.clone());
    let rules = settings.rules.iter().map(|FileRule { rule, place }| {
        // The number of the rule is not compared.
        (rule.spec(policy, 0), Origin::File(place.clone()))
    });
    let has_variable = !policy.container.omit_environment_hints;
    std::iter::once(own).chain(rules).map(move |(spec, origin)| Use {
        variable: has_variable.then(|| visible_devices_variable(&spec.name)),
        model: policy.model,
        spec,
        origin,
    })
}

/// Checks that what applies to all devices of a resource is the same for both uses.
fn check_terms(first: &Use, second: &Use) -> Result<(), ConfigError> {
    let mut both = terms(&second.spec).into_iter().zip(terms(&first.spec));
    let Some(((key, ours), (_, theirs))) = both.find(|(ours, theirs)| ours != theirs) else {
        return Ok(());
    };
    let (name, here, there) = (&second.spec.name, second.text(), first.text());
    let what = format!("the resource `{name}` has {key} {ours} {here} and {theirs} {there}");
    Err(error_at(&second.origin, what, "use two names, or set the key to the same value for both"))
}

/// What applies to all devices of a resource, with the key of each value.
fn terms(spec: &ResourceSpec) -> [(&'static str, String); 5] {
    [
        ("multitenancy", spec.sharing.replicas.to_string()),
        ("allocationPolicy", spec.sharing.allocation.to_string()),
        ("sharedRequests", spec.sharing.shared_requests.to_string()),
        ("visibility", spec.visibility.to_string()),
        ("removalGraceSeconds", spec.removal_grace.as_secs().to_string()),
    ]
}

/// Refuses two resources with the same variable: one of them would hide the devices of the other.
fn same_variable(first: &Use, second: &Use) -> ConfigError {
    let what = format!(
        "the resources `{}` ({}) and `{}` ({}) have the same variable {}",
        first.spec.name,
        first.text(),
        second.spec.name,
        second.text(),
        second.variable.as_deref().unwrap_or_default()
    );
    error_at(&second.origin, what, "use names that differ in more than case, `.`, `-`, `_` and `/`")
}

/// Refuses `directx-visible` where containers get no variables, without which it starts nothing.
fn check_variables(settings: &ModelSettings) -> Result<(), ConfigError> {
    let container = &settings.policy.container;
    if !container.omit_environment_hints {
        return Ok(());
    }
    let own = settings
        .effective
        .iter()
        .find(|value| value.key == "visibility")
        .filter(|_| container.visibility == Visibility::Launcher)
        .map(|value| value.origin.clone());
    let rule = settings
        .rules
        .iter()
        .find(|r| r.rule.visibility == Some(Visibility::Launcher))
        .map(|r| Origin::File(r.place.clone()));
    let Some(origin) = own.or(rule) else { return Ok(()) };
    let what = "directx-visible needs the variables that environmentHints: false omits";
    Err(error_at(
        &origin,
        what.to_owned(),
        "remove environmentHints: false, or set visibility: off",
    ))
}

fn error_at(origin: &Origin, what: String, hint: &'static str) -> ConfigError {
    match origin {
        Origin::File(place) => place.error(what).with_hint(hint).into(),
        _ => ConfigError::Conflict { what, hint },
    }
}
