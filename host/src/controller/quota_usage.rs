//! Records what the Configurators of each namespace use of its quotas, from the oldest to the youngest.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use configurator_core::request::ObjectRef;
use k8s_openapi::jiff::Timestamp;
use kube::api::ObjectMeta;
use tokio::sync::watch;

use super::namespace_changes::{NamespaceChanges, NamespaceReceiver};

/// The longest wait for the list of all Configurators.
const LIST_TIMEOUT: Duration = Duration::from_secs(5);

/// When a Configurator was created, and its uid, which orders those of the same second.
type Age = (Option<Timestamp>, String);

/// The usage of all namespaces. Clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct QuotaUsage {
    /// The number of objects of each Configurator.
    objects: Arc<Mutex<HashMap<String, BTreeMap<Age, u64>>>>,
    is_listed: Arc<watch::Sender<bool>>,
    changes: NamespaceChanges,
}

impl QuotaUsage {
    /// Adds a Configurator without objects. ClusterConfigurators have no quotas.
    pub(crate) fn add(&self, key: &ObjectRef, metadata: &ObjectMeta) {
        if key.namespace.is_empty() {
            return;
        }
        let mut objects = self.objects();
        let of_namespace = objects.entry(key.namespace.clone()).or_default();
        of_namespace.entry(age(metadata)).or_default();
        drop(objects);
        self.changes.notify(&key.namespace);
    }

    /// Removes a Configurator.
    pub(crate) fn remove(&self, key: &ObjectRef, metadata: &ObjectMeta) {
        let mut objects = self.objects();
        let Some(of_namespace) = objects.get_mut(&key.namespace) else {
            return;
        };
        of_namespace.remove(&age(metadata));
        if of_namespace.is_empty() {
            objects.remove(&key.namespace);
        }
        drop(objects);
        self.changes.notify(&key.namespace);
    }

    /// Sets the number of objects of a Configurator that was added.
    pub(crate) fn set_objects(&self, key: &ObjectRef, metadata: &ObjectMeta, number: u64) {
        let mut objects = self.objects();
        let of_namespace = objects.get_mut(&key.namespace);
        let Some(before) = of_namespace.and_then(|all| all.get_mut(&age(metadata))) else {
            return;
        };
        let has_changed = std::mem::replace(before, number) != number;
        drop(objects);
        if has_changed {
            self.changes.notify(&key.namespace);
        }
    }

    /// Records that all Configurators of the cluster have been added.
    pub(crate) fn set_listed(&self) {
        self.is_listed.send_replace(true);
    }

    /// Waits up to 5 s until all Configurators of the cluster have been added.
    pub(crate) async fn wait_until_listed(&self) {
        let mut is_listed = self.is_listed.subscribe();
        let listed = is_listed.wait_for(|is_listed| *is_listed);
        // If this times out, later additions are notified.
        let _ = tokio::time::timeout(LIST_TIMEOUT, listed).await;
    }

    /// Returns the number of older Configurators in the same namespace.
    pub(crate) fn older(&self, key: &ObjectRef, metadata: &ObjectMeta) -> usize {
        let objects = self.objects();
        let of_namespace = objects.get(&key.namespace);
        of_namespace.map_or(0, |all| all.range(..age(metadata)).count())
    }

    /// Returns the number of objects of all older Configurators in the same namespace.
    pub(crate) fn objects_of_older(&self, key: &ObjectRef, metadata: &ObjectMeta) -> u64 {
        let objects = self.objects();
        let of_namespace = objects.get(&key.namespace);
        let older = of_namespace.map(|all| all.range(..age(metadata)));
        let numbers = older.into_iter().flatten().map(|(_, number)| *number);
        numbers.fold(0, u64::saturating_add)
    }

    /// Subscribes to changes of the usage of this namespace.
    pub(crate) fn subscribe(&self, namespace: &str) -> NamespaceReceiver {
        self.changes.subscribe(namespace)
    }

    fn objects(&self) -> MutexGuard<'_, HashMap<String, BTreeMap<Age, u64>>> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn age(metadata: &ObjectMeta) -> Age {
    let created = metadata.creation_timestamp.as_ref().map(|time| time.0);
    (created, metadata.uid.clone().unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn older_configurators_are_counted() {
        let usage = QuotaUsage::default();
        let one = |namespace: &str, second: i64, uid: &str| {
            let created = Timestamp::from_second(second).unwrap();
            let metadata = ObjectMeta {
                uid: Some(uid.to_owned()),
                creation_timestamp: Some(k8s_openapi::apimachinery::pkg::apis::meta::v1::Time(
                    created,
                )),
                ..ObjectMeta::default()
            };
            let key = ObjectRef {
                namespace: namespace.to_owned(),
                name: uid.to_owned(),
            };
            (key, metadata)
        };
        let all = [
            one("team-a", 2, "b"),
            one("team-a", 2, "a"),
            one("team-a", 1, "z"),
            one("team-b", 0, "y"),
        ];
        for (key, metadata) in &all {
            usage.add(key, metadata);
        }
        let older = || {
            all.each_ref()
                .map(|(key, metadata)| usage.older(key, metadata))
        };
        assert_eq!(older(), [2, 1, 0, 0]);
        for (key, metadata) in &all {
            usage.set_objects(key, metadata, 10);
        }
        let objects = || {
            all.each_ref()
                .map(|(key, metadata)| usage.objects_of_older(key, metadata))
        };
        assert_eq!(objects(), [20, 10, 0, 0]);
        let (key, metadata) = &all[2];
        usage.remove(key, metadata);
        assert_eq!((older(), objects()), ([1, 0, 0, 0], [10, 0, 0, 0]));
    }
}
