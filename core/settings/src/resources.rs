//! Checks that every use of a resource name agrees about how its devices are shared.

use std::time::Duration;

use devices::{DriverModel, ResourceName, Sharing};

use crate::SettingsError;
use crate::display::ValueText;
use crate::model::ModelSettings;
use crate::origin::Origin;

/// What applies to all devices of a resource.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Terms {
    sharing: Sharing,
    removal_grace: Duration,
}

/// A use of a resource name.
struct Use<'m> {
    name: &'m ResourceName,
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

/// Refuses a resource name that two driver models or rules configure differently.
pub(crate) fn check(models: &[ModelSettings]) -> Result<(), SettingsError> {
    let uses: Vec<Use<'_>> = models.iter().flat_map(uses_of).collect();
    for (n, this) in uses.iter().enumerate() {
        let other = uses[..n].iter().find(|o| o.name == this.name && o.terms != this.terms);
        if let Some(other) = other {
            return Err(contradiction(other, this));
        }
    }
    Ok(())
}

fn uses_of(settings: &ModelSettings) -> Vec<Use<'_>> {
    let policy = &settings.policy;
    let own = Terms { sharing: policy.sharing, removal_grace: policy.removal_grace };
    let mut uses = vec![Use {
        name: &policy.resource,
        terms: own,
        model: policy.model,
        user: User::Model,
        origin: settings.resource_origin.clone(),
    }];
    uses.extend(settings.rules.iter().map(|rule| {
        let sharing = Sharing {
            replicas: rule.rule.replicas.unwrap_or(own.sharing.replicas),
            allocation: rule.rule.allocation.unwrap_or(own.sharing.allocation),
            shared_requests: own.sharing.shared_requests,
        };
        Use {
            name: &rule.rule.name,
            terms: Terms { sharing, ..own },
            model: policy.model,
            user: User::Rule,
            origin: Origin::File(rule.place.clone()),
        }
    }));
    uses
}

fn contradiction(first: &Use<'_>, second: &Use<'_>) -> SettingsError {
    let (key, ours, theirs) = difference(second.terms, first.terms);
    let (name, here, there) = (second.name, second.text(), first.text());
    let what = format!("the resource `{name}` has {key} {ours} {here} and {theirs} {there}");
    let hint = "use two names, or set the key to the same value for both";
    match &second.origin {
        Origin::File(place) => place.error(what).with_hint(hint).into(),
        _ => SettingsError::Conflict { what, hint },
    }
}

/// The first key that differs, with its two values.
fn difference(ours: Terms, theirs: Terms) -> (&'static str, String, String) {
    let (a, b) = (ours.sharing, theirs.sharing);
    if a.replicas != b.replicas {
        ("multitenancy", a.replicas.text(), b.replicas.text())
    } else if a.allocation != b.allocation {
        ("allocationPolicy", a.allocation.text(), b.allocation.text())
    } else if a.shared_requests != b.shared_requests {
        ("sharedRequests", a.shared_requests.text(), b.shared_requests.text())
    } else {
        ("removalGraceSeconds", ours.removal_grace.text(), theirs.removal_grace.text())
    }
}
