//! Whether the API server checks who creates a Command.

use std::fmt::Debug;
use std::time::Duration;

use configurator_core::time::Timestamp;
use k8s_openapi::api::admissionregistration::v1::{
    ValidatingAdmissionPolicy, ValidatingAdmissionPolicyBinding,
};
use kube::api::{Api, ListParams};
use kube::{Client, Resource, ResourceExt as _};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Mutex;

use crate::clock::SharedClock;
use crate::resource::admission::{commands_binding, commands_policy};
use crate::resource::command::{Command, RequesterStatus};

/// How long an answer of the API counts.
const ASK_AGAIN: Duration = Duration::from_secs(10);
/// The longest wait for an answer of the API. Without one, requesters count as unverified.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time until all API servers know a policy that was created.
const SETTLES_WITHIN: Duration = Duration::from_secs(10);

/// Finds out whether the admission policy for Commands is in place.
pub(crate) struct Requesters {
    client: Client,
    clock: SharedClock,
    known: Mutex<Option<Known>>,
}

#[derive(Clone, Copy)]
struct Known {
    asked: Timestamp,
    /// Since when the policy is in place; `None` if it is not.
    since: Option<Timestamp>,
}

impl Requesters {
    pub(crate) fn new(client: Client, clock: SharedClock) -> Self {
        Self {
            client,
            clock,
            known: Mutex::new(None),
        }
    }

    /// Returns whether the API server checked the requester of the Command. What a host has written into its status counts.
    pub(crate) async fn are_verified(&self, command: &Command) -> bool {
        let status = command.status.as_ref();
        if let Some(known) = status.and_then(|status| status.requester) {
            return known == RequesterStatus::Verified;
        }
        let created = command
            .creation_timestamp()
            .and_then(|time| timestamp(&time));
        let since = self.in_place_since().await;
        since
            .zip(created)
            .is_some_and(|(since, created)| since.after(SETTLES_WITHIN) <= created)
    }

    async fn in_place_since(&self) -> Option<Timestamp> {
        let mut known = self.known.lock().await;
        let now = self.clock.now();
        if let Some(known) = *known
            && known.asked.after(ASK_AGAIN) > now
        {
            return known.since;
        }
        let since = tokio::time::timeout(PATIENCE, self.ask()).await;
        let since = since.unwrap_or_default();
        *known = Some(Known { asked: now, since });
        since
    }

    /// Since when a policy that is the wanted one, whatever its name, is bound.
    async fn ask(&self) -> Option<Timestamp> {
        let wanted = commands_policy();
        let policies = self.all::<ValidatingAdmissionPolicy>().await?;
        let bindings = self.all::<ValidatingAdmissionPolicyBinding>().await?;
        let policies = policies
            .iter()
            .filter(|policy| is_same(&policy.spec, &wanted));
        let in_place = policies.filter_map(|policy| {
            let wanted = commands_binding(&policy.name);
            let bindings = bindings
                .iter()
                .filter(|binding| is_same(&binding.spec, &wanted));
            let bound = bindings.map(|binding| binding.created).min()?;
            Some(policy.created.max(bound))
        });
        in_place.min()
    }

    /// All objects of a kind that are not being deleted; `None` if they cannot be listed.
    async fn all<K>(&self) -> Option<Vec<Stored>>
    where
        K: Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned + Serialize,
    {
        let api: Api<K> = Api::all(self.client.clone());
        let listed = api.list(&ListParams::default()).await;
        let listed = listed.inspect_err(|error| {
            tracing::debug!(%error, "the admission policies cannot be listed, so the requesters of Commands are shown as unverified");
        });
        let stored = listed.ok()?.items.into_iter().filter_map(|object| {
            let is_deleted = object.meta().deletion_timestamp.is_some();
            let created = timestamp(&object.creation_timestamp()?)?;
            let name = object.name_any();
            let mut object = serde_json::to_value(object).ok()?;
            let spec = object.get_mut("spec")?.take();
            (!is_deleted).then_some(Stored {
                name,
                created,
                spec,
            })
        });
        Some(stored.collect())
    }
}

/// A stored policy or binding.
struct Stored {
    name: String,
    created: Timestamp,
    spec: Value,
}

fn timestamp(time: &k8s_openapi::apimachinery::pkg::apis::meta::v1::Time) -> Option<Timestamp> {
    time.0.to_string().parse().ok()
}

/// Whether a stored value is the wanted one. An API server adds defaults, which change nothing; any other field may weaken the policy.
fn is_same(stored: &Value, wanted: &Value) -> bool {
    match (stored, wanted) {
        (Value::Object(stored), Value::Object(wanted)) => {
            wanted.keys().all(|name| stored.contains_key(name))
                && stored.iter().all(|(name, value)| match wanted.get(name) {
                    Some(wanted) => is_same(value, wanted),
                    None => is_default(name, value),
                })
        }
        (Value::Array(stored), Value::Array(wanted)) => {
            let mut pairs = stored.iter().zip(wanted);
            stored.len() == wanted.len() && pairs.all(|(stored, wanted)| is_same(stored, wanted))
        }
        _ => stored == wanted,
    }
}

/// Whether an API server adds this field itself.
fn is_default(name: &str, value: &Value) -> bool {
    match (name, value) {
        ("matchPolicy", value) => value == "Equivalent",
        ("scope", value) => value == "*",
        ("namespaceSelector" | "objectSelector", Value::Object(selector)) => selector.is_empty(),
        _ => value.is_null(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_manifests_are_the_wanted_ones() {
        let manifests = include_str!("../../../deploy/kustomize/base/commands.yaml");
        let manifests: Vec<Value> = serde_saphyr::from_multiple(manifests).unwrap();
        let name = manifests[0]["metadata"]["name"].as_str().unwrap();
        assert!(is_same(&manifests[0]["spec"], &commands_policy()));
        assert!(is_same(&manifests[1]["spec"], &commands_binding(name)));
    }

    #[test]
    fn a_weaker_policy_is_not_the_one() {
        let policy = commands_policy();
        let mut served = policy.clone();
        served["matchConstraints"]["matchPolicy"] = "Equivalent".into();
        served["matchConstraints"]["resourceRules"][0]["scope"] = "*".into();
        assert!(is_same(&served, &policy));
        for (pointer, weaker) in [
            ("/failurePolicy", json!("Ignore")),
            ("/validations", json!([])),
            ("/validations/0/expression", json!("true")),
            ("/matchConstraints/resourceRules/0/resources", json!([])),
        ] {
            let mut served = served.clone();
            *served.pointer_mut(pointer).unwrap() = weaker;
            assert!(!is_same(&served, &policy), "{pointer}");
        }
        served["matchConditions"] = json!([{"name": "never", "expression": "false"}]);
        assert!(!is_same(&served, &policy));
    }
}
