//! The part of a published status that is needed later.

use configurator_core::digest::digest_of;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

use super::conditions;
use crate::resource::ConfiguratorStatus;

/// A published status, in little memory: enough to notice that another one differs, and to keep the times of its conditions.
pub struct Published {
    digest: String,
    transitions: Box<[Transition]>,
}

/// Since when a condition has its status.
pub struct Transition {
    condition: &'static str,
    status: &'static str,
    since: Time,
}

impl Published {
    /// Keeps of a status what is needed later.
    #[must_use]
    pub fn new(status: &ConfiguratorStatus) -> Self {
        Self {
            digest: digest(status),
            transitions: transitions(status),
        }
    }

    /// Whether it was this status.
    #[must_use]
    pub fn is(&self, status: &ConfiguratorStatus) -> bool {
        self.digest == digest(status)
    }

    /// Since when its conditions have had their statuses.
    #[must_use]
    pub fn transitions(&self) -> &[Transition] {
        &self.transitions
    }
}

impl Transition {
    /// When the condition got this status. `None`: it has another one.
    pub(super) fn of<'a>(all: &'a [Self], condition: &str, status: &str) -> Option<&'a Time> {
        let found = all
            .iter()
            .find(|one| one.condition == condition && one.status == status);
        found.map(|one| &one.since)
    }
}

/// Since when the conditions of a status have had theirs. Conditions that a host does not publish are left out.
#[must_use]
pub fn transitions(status: &ConfiguratorStatus) -> Box<[Transition]> {
    const STATUSES: [&str; 3] = ["True", "False", "Unknown"];
    let same = |all: &[&'static str], text: &str| all.iter().copied().find(|one| *one == text);
    let transitions = status.conditions.iter().filter_map(|condition| {
        Some(Transition {
            condition: same(&conditions::ALL, &condition.type_)?,
            status: same(&STATUSES, &condition.status)?,
            since: condition.last_transition_time.clone(),
        })
    });
    transitions.collect()
}

fn digest(status: &ConfiguratorStatus) -> String {
    let text = serde_json::to_vec(status).unwrap_or_default();
    digest_of([text.as_slice()])
}
