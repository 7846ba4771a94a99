//! The plan of a pipeline.

use configurator_core::desired as core;
use configurator_core::graph::deletion::TerminationPolicy;
use configurator_core::graph::entry as graph;
use configurator_core::request as req;

use super::super::bindings::configurator::handler::desired as wit;
use super::requests::{config_type, readiness, request, requests};
use super::{json, milliseconds};

pub(super) fn plan(plan: &core::PipelinePlan) -> wit::Plan {
    wit::Plan {
        requests: requests(&plan.requests),
        desired: plan.desired.as_ref().map(desired_set),
    }
}

fn desired_set(set: &core::DesiredSet) -> wit::DesiredSet {
    wit::DesiredSet {
        entries: set.entries.iter().map(desired_entry).collect(),
        allow_empty: set.allow_empty,
        termination_policy: set.termination_policy.as_ref().map(termination),
        orders: set.orders.as_ref().map(|orders| wit::Orders {
            provision: orders.provision.clone(),
            update: orders.update.clone(),
            terminate: orders.terminate.clone(),
        }),
        pre_terminate: set.pre_terminate.iter().map(request).collect(),
    }
}

fn desired_entry(entry: &core::DesiredEntry) -> wit::DesiredEntry {
    wit::DesiredEntry {
        name: entry.name.clone(),
        content: content(&entry.content),
        depends_on: entry.depends_on.clone(),
        ready_when: entry.ready_when.as_ref().map(readiness),
        failed_when: entry.failed_when.clone(),
        timeout: entry.timeout.map(milliseconds),
        on_existing: Some(match entry.on_existing {
            graph::OnExisting::Refuse => wit::OnExisting::Refuse,
            graph::OnExisting::Adopt => wit::OnExisting::Adopt,
            graph::OnExisting::CreateOnly => wit::OnExisting::CreateOnly,
        }),
        on_conflict: Some(match entry.on_conflict {
            core::OnConflict::Fail => wit::OnConflict::Fail,
            core::OnConflict::Force => wit::OnConflict::Force,
        }),
        on_immutable: Some(match entry.on_immutable {
            graph::OnImmutable::Fail => wit::OnImmutable::Fail,
            graph::OnImmutable::Recreate => wit::OnImmutable::Recreate,
        }),
        ignored_paths: entry.ignored_paths.clone(),
        on_delete: Some(match entry.on_delete {
            graph::OnDelete::WithOwner => wit::OnDelete::WithOwner,
            graph::OnDelete::Retain => wit::OnDelete::Retain,
            graph::OnDelete::OnlyUnderWipeOut => wit::OnDelete::OnlyUnderWipeOut,
        }),
    }
}

fn content(content: &core::Content) -> wit::Content {
    match content {
        core::Content::Kubernetes(object) => wit::Content::Kubernetes(json(object)),
        core::Content::Config(config) => wit::Content::Config(wit::ConfigContent {
            key: config_key(&config.write),
            value: config.write.value().unwrap_or_default().to_owned(),
            partition: config.partition.clone(),
        }),
        core::Content::Secret(secret) => wit::Content::Secret(wit::SecretContent {
            secret_name: secret.name.clone(),
            value: secret.value.as_ref().map(json),
            partition: secret.partition.clone(),
        }),
    }
}

fn config_key(write: &req::ConfigOperation) -> wit::ConfigKey {
    match write {
        req::ConfigOperation::Resource(own) => wit::ConfigKey::Resource(wit::ConfigResourceKey {
            config_type: config_type(own.config_type),
            resource_name: own.name.clone(),
            resource_uid: own.uid.clone(),
            namespace: own.namespace.clone(),
            workload_kind: own.workload_kind.clone(),
        }),
        req::ConfigOperation::AppConf(own) => wit::ConfigKey::AppConf(wit::ConfigAppConfKey {
            pod_name: own.pod_name.clone(),
            namespace: own.namespace.clone(),
            key: own.key.clone(),
        }),
        req::ConfigOperation::Basic(own) => wit::ConfigKey::Basic(own.key.clone()),
        req::ConfigOperation::TwoLayers(own) => {
            wit::ConfigKey::TwoLayers(wit::ConfigTwoLayersKey {
                second_path: own.second_path.clone(),
                third_path: own.third_path.clone(),
            })
        }
    }
}

fn termination(termination: &core::Termination) -> wit::Termination {
    use wit::TerminationPolicy as Wit;
    match termination {
        core::Termination::Policy(policy) => wit::Termination::Policy(match policy {
            TerminationPolicy::DoNotTerminate => Wit::DoNotTerminate,
            TerminationPolicy::KeepVolumes => Wit::KeepVolumes,
            TerminationPolicy::Delete => Wit::Delete,
            TerminationPolicy::WipeOut => Wit::WipeOut,
        }),
        core::Termination::Path(path) => wit::Termination::Path(path.clone()),
    }
}
