//! The desired set of an output.

use std::time::Duration;

use configurator_core::desired as core;
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::graph::entry as graph;
use configurator_core::request as req;

use super::super::bindings::configurator::handler::desired as wit;
use super::requests::config_type;
use super::{Read, Reader};

impl Reader {
    pub(super) fn desired_set(&mut self, set: wit::DesiredSet) -> Read<core::DesiredSet> {
        Ok(core::DesiredSet {
            entries: self.list(set.entries, Self::desired_entry)?,
            allow_empty: set.allow_empty,
            termination_policy: self.optional(set.termination_policy, Self::termination)?,
            orders: self.optional(set.orders, Self::orders)?,
            pre_terminate: self.list(set.pre_terminate, Self::request)?,
        })
    }

    fn desired_entry(&mut self, entry: wit::DesiredEntry) -> Read<core::DesiredEntry> {
        let name = self.text(entry.name)?;
        Ok(core::DesiredEntry {
            content: self.content(entry.content, &name)?,
            depends_on: self.list(entry.depends_on, Self::text)?,
            ready_when: self.optional(entry.ready_when, Self::readiness)?,
            failed_when: self.optional_text(entry.failed_when)?,
            timeout: entry.timeout.map(Duration::from_millis),
            on_existing: match entry.on_existing {
                Some(wit::OnExisting::Refuse) | None => graph::OnExisting::Refuse,
                Some(wit::OnExisting::Adopt) => graph::OnExisting::Adopt,
                Some(wit::OnExisting::CreateOnly) => graph::OnExisting::CreateOnly,
            },
            on_conflict: match entry.on_conflict {
                Some(wit::OnConflict::Fail) | None => core::OnConflict::Fail,
                Some(wit::OnConflict::Force) => core::OnConflict::Force,
            },
            on_immutable: match entry.on_immutable {
                Some(wit::OnImmutable::Fail) | None => graph::OnImmutable::Fail,
                Some(wit::OnImmutable::Recreate) => graph::OnImmutable::Recreate,
            },
            ignored_paths: self.list(entry.ignored_paths, Self::text)?,
            on_delete: match entry.on_delete {
                Some(wit::OnDelete::WithOwner) | None => graph::OnDelete::WithOwner,
                Some(wit::OnDelete::Retain) => graph::OnDelete::Retain,
                Some(wit::OnDelete::OnlyUnderWipeOut) => graph::OnDelete::OnlyUnderWipeOut,
            },
            name,
        })
    }

    fn content(&mut self, content: wit::Content, entry: &str) -> Read<core::Content> {
        Ok(match content {
            wit::Content::Kubernetes(object) => {
                core::Content::Kubernetes(self.json(object, || format!("entry {entry:?}: object"))?)
            }
            wit::Content::Config(config) => core::Content::Config(core::ConfigContent {
                write: self.config_write(config.key, config.value)?,
                partition: self.optional_text(config.partition)?,
            }),
            wit::Content::Secret(secret) => core::Content::Secret(core::SecretContent {
                name: self.text(secret.secret_name)?,
                value: self.optional_json(secret.value, || format!("entry {entry:?}: value"))?,
                partition: self.optional_text(secret.partition)?,
            }),
        })
    }

    /// The operation that writes a value under a key.
    fn config_write(&mut self, key: wit::ConfigKey, value: String) -> Read<req::ConfigOperation> {
        let verb = req::ConfigVerb::Update;
        let value = Some(self.text(value)?);
        Ok(match key {
            wit::ConfigKey::Resource(key) => req::ConfigOperation::Resource(req::ConfigResource {
                config_type: config_type(key.config_type),
                verb,
                name: self.text(key.resource_name)?,
                uid: self.optional_text(key.resource_uid)?,
                namespace: self.optional_text(key.namespace)?,
                workload_kind: self.optional_text(key.workload_kind)?,
                value,
            }),
            wit::ConfigKey::AppConf(key) => req::ConfigOperation::AppConf(req::ConfigAppConf {
                verb,
                pod_name: self.text(key.pod_name)?,
                namespace: self.optional_text(key.namespace)?,
                key: self.text(key.key)?,
                value,
            }),
            wit::ConfigKey::Basic(key) => req::ConfigOperation::Basic(req::ConfigBasic {
                verb,
                key: self.text(key)?,
                value,
            }),
            wit::ConfigKey::TwoLayers(key) => {
                req::ConfigOperation::TwoLayers(req::ConfigTwoLayers {
                    verb,
                    second_path: self.text(key.second_path)?,
                    third_path: self.text(key.third_path)?,
                    value,
                })
            }
        })
    }

    fn termination(&mut self, termination: wit::Termination) -> Read<core::Termination> {
        use wit::TerminationPolicy as Wit;
        Ok(match termination {
            wit::Termination::Policy(policy) => core::Termination::Policy(match policy {
                Wit::DoNotTerminate => TerminationPolicy::DoNotTerminate,
                Wit::KeepVolumes => TerminationPolicy::KeepVolumes,
                Wit::Delete => TerminationPolicy::Delete,
                Wit::WipeOut => TerminationPolicy::WipeOut,
            }),
            wit::Termination::Path(path) => core::Termination::Path(self.text(path)?),
        })
    }

    fn orders(&mut self, orders: wit::Orders) -> Read<graph::Orders> {
        Ok(graph::Orders {
            provision: self.list(orders.provision, Self::names)?,
            update: self.list(orders.update, Self::names)?,
            terminate: self.list(orders.terminate, Self::names)?,
        })
    }

    fn names(&mut self, names: Vec<String>) -> Read<Vec<String>> {
        self.list(names, Self::text)
    }
}
