//! Checks that every use of a resource name has the same settings, and that no two resources have
//! the same variable in a container.

use std::time::Duration;

use devices::{DriverModel, ResourceName, Sharing, Visibility, visible_devices_variable};

use crate::ConfigError;
use crate::origin::Origin;
use crate::policy::ModelSettings;
use crate::rules::FileRule;
use crate::values::Choice;

/// What applies to all devices of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Terms {
    sharing: Sharing,
    removal_grace: Duration,
    visibility: Visibility,
}

/// A use of a resource name.
struct Use<'m> {
    name: &'m ResourceName,
    /// The variable with the devices of the resource, if containers get one.
    variable: Option<String>,
    terms: Terms,
    model: DriverModel,
    user: User,
    origin: Origin,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum User {
    Model,
    Rule,
}

impl Use<'_> {
    fn text(&self) -> String {
        match (self.user, &self.origin) {
            (User::Model, Origin::Default) => format!("as the resource of {}", self.model),
            (User::Model, origin) => format!("as the resource of {} ({origin})", self.model),
            (User::Rule, origin) => format!("in the rule at {origin} ({})", self.model),
        }
    }
}

/// Refuses a resource name that two driver models or rules configure differently, two names for
/// which containers get the same variable, and `visibility: launcher` without variables.
pub(crate) fn check(models: &[ModelSettings]) -> Result<(), ConfigError> {
    models.iter().try_for_each(check_variables)?;
    let uses: Vec<Use<'_>> = models.iter().flat_map(uses_of).collect();
    for (n, this) in uses.iter().enumerate() {
        for other in &uses[..n] {
            if other.name == this.name {
                if other.terms != this.terms {
                    return Err(contradiction(other, this));
                }
            } else if this.variable.is_some() && other.variable == this.variable {
                return Err(same_variable(other, this));
            }
        }
    }
    Ok(())
}

fn uses_of(settings: &ModelSettings) -> Vec<Use<'_>> {
    let policy = &settings.policy;
    let container = &policy.container;
    let own = Terms {
        sharing: policy.sharing,
        removal_grace: policy.removal_grace,
        visibility: container.visibility,
    };
    let named = |name| Use {
        name,
        variable: (!container.omit_environment_hints).then(|| visible_devices_variable(name)),
        terms: own,
        model: policy.model,
        user: User::Model,
        origin: settings.resource_origin.clone(),
    };
    let mut uses = vec![named(&policy.resource)];
    uses.extend(settings.rules.iter().map(|FileRule { rule, place }| {
        let sharing = Sharing {
            replicas: rule.replicas.unwrap_or(own.sharing.replicas),
            allocation: rule.allocation.unwrap_or(own.sharing.allocation),
            shared_requests: own.sharing.shared_requests,
        };
        let visibility = rule.visibility.unwrap_or(own.visibility);
        Use {
            terms: Terms { sharing, visibility, ..own },
            user: User::Rule,
            origin: Origin::File(place.clone()),
            ..named(&rule.name)
        }
    }));
    uses
}

fn contradiction(first: &Use<'_>, second: &Use<'_>) -> ConfigError {
    let (key, ours, theirs) = difference(second.terms, first.terms);
    let (name, here, there) = (second.name, second.text(), first.text());
    let what = format!("the resource `{name}` has {key} {ours} {here} and {theirs} {there}");
    error_at(&second.origin, what, "use two names, or set the key to the same value for both")
}

/// One of two variables with the same name would hide the devices of the other.
fn same_variable(first: &Use<'_>, second: &Use<'_>) -> ConfigError {
    let what = format!(
        "the resources `{}` ({}) and `{}` ({}) have the same variable {}",
        first.name,
        first.text(),
        second.name,
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
    let own = settings.effective.iter().find(|value| value.key == "visibility");
    let own = own.filter(|_| container.visibility == Visibility::Launcher);
    let rule = settings.rules.iter().find(|r| r.rule.visibility == Some(Visibility::Launcher));
    let rule = rule.map(|rule| Origin::File(rule.place.clone()));
    let Some(origin) = own.map(|value| value.origin.clone()).or(rule) else { return Ok(()) };
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

/// The first key that differs, with its two values.
fn difference(ours: Terms, theirs: Terms) -> (&'static str, String, String) {
    let keys = |terms: Terms| {
        [
            ("multitenancy", terms.sharing.replicas.to_string()),
            ("allocationPolicy", Choice(terms.sharing.allocation).to_string()),
            ("sharedRequests", Choice(terms.sharing.shared_requests).to_string()),
            ("visibility", Choice(terms.visibility).to_string()),
            ("removalGraceSeconds", terms.removal_grace.as_secs().to_string()),
        ]
    };
    let mut both = keys(ours).into_iter().zip(keys(theirs));
    let differing = both.find(|(ours, theirs)| ours != theirs);
    let ((key, ours), (_, theirs)) = differing.expect("the terms differ");
    (key, ours, theirs)
}
