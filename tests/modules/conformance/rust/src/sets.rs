//! Desired sets, and the plan of a pipeline.

use std::time::Duration;

use configurator_sdk::configstore::{AppConf, Basic, Entry, TwoLayers};
use configurator_sdk::extension::Extension;
use configurator_sdk::kubernetes::POD;
use configurator_sdk::secretstore::Secret;
use configurator_sdk::{
    Content, DesiredEntry, DesiredSet, HandlerError, Input, OnConflict, OnDelete, OnExisting,
    OnImmutable, Output, Readiness, Request, TerminationPolicy,
};
use serde_json::{Value, json};

use crate::parameter;

pub fn desired(input: &Input) -> Result<Output, HandlerError> {
    let set = DesiredSet::new();
    Ok(
        Output::new().desired(match parameter(input, "set")?.as_str() {
            "dependencies" => set
                .entry(map("a"))
                .entry(map("b").depends_on("a"))
                .entry(map("c").depends_on("a"))
                .entry(map("d").depends_on("b").depends_on("c")),
            "readiness" => set
                .entry(map("a").ready_when(Readiness::Exists))
                .entry(map("b").ready_when(Readiness::Observed))
                .entry(map("c").ready_when(Readiness::Healthy))
                .entry(
                    map("d")
                        .ready_when(Readiness::Expression(
                            "object.data.ready == 'yes'".to_owned(),
                        ))
                        .failed_when("object.data.ready == 'never'")
                        .timeout(Duration::from_secs(90)),
                ),
            "policies" => set
                .entry(
                    map("a")
                        .on_existing(OnExisting::Refuse)
                        .on_conflict(OnConflict::Fail)
                        .on_immutable(OnImmutable::Fail)
                        .on_delete(OnDelete::WithOwner),
                )
                .entry(
                    map("b")
                        .on_existing(OnExisting::Adopt)
                        .on_conflict(OnConflict::Force)
                        .on_immutable(OnImmutable::Recreate)
                        .on_delete(OnDelete::Retain),
                )
                .entry(
                    map("c")
                        .on_existing(OnExisting::CreateOnly)
                        .on_delete(OnDelete::OnlyUnderWipeOut)
                        .ignore_path(".data.count")
                        .ignore_path(".metadata.labels['a/b']"),
                ),
            "config" => set
                .entry(DesiredEntry::new(
                    "pod",
                    Entry::pod("shop", "web").uid("6e2d").content("a"),
                ))
                .entry(DesiredEntry::new(
                    "node",
                    Entry::node("node-1").content("b"),
                ))
                .entry(DesiredEntry::new(
                    "namespace",
                    Entry::namespace("shop").content("c"),
                ))
                .entry(DesiredEntry::new(
                    "workload",
                    Entry::workload("shop", "Deployment", "web").content("d"),
                ))
                .entry(DesiredEntry::new(
                    "app-conf",
                    AppConf::new("web", "log.level").content("info"),
                ))
                .entry(DesiredEntry::new(
                    "app-conf-elsewhere",
                    AppConf::new("web", "log.level")
                        .namespace("shop")
                        .content("é"),
                ))
                .entry(DesiredEntry::new(
                    "basic",
                    Basic::new("region").content("north").partition("team-a"),
                ))
                .entry(DesiredEntry::new(
                    "two-layers",
                    TwoLayers::new("teams", "red").content(""),
                )),
            "secrets" => set
                .entry(DesiredEntry::new("generated", Secret::new("db").content()))
                .entry(DesiredEntry::new(
                    "given",
                    Secret::new("api").content_with(json!({"user": "a"})),
                ))
                .entry(DesiredEntry::new(
                    "elsewhere",
                    Secret::new("db").content().partition("team-a"),
                )),
            "empty" => set.allow_empty(),
            "orders" => set
                .entry(map("a"))
                .entry(map("b"))
                .entry(map("c"))
                .provision(&[&["a"], &["b", "c"]])
                .update(&[&["c"], &["a"]])
                .terminate(&[&["b"], &["a"]]),
            "policy" => set
                .entry(map("a"))
                .termination_policy(TerminationPolicy::WipeOut),
            "policy-path" => set
                .entry(map("a"))
                .termination_policy_at(".spec.terminationPolicy"),
            "pre-terminate" => set
                .entry(map("a"))
                .pre_terminate(Request::new("pod", POD.delete(("shop", "web"))))
                .pre_terminate(
                    Request::new("key", Basic::new("region").delete())
                        .depends_on("pod")
                        .ready_when(Readiness::Exists),
                ),
            other => return Err(HandlerError::fatal(format!("there is no set {other}"))),
        }),
    )
}

fn map(name: &str) -> DesiredEntry {
    let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"namespace": "shop", "name": name}});
    DesiredEntry::new(name, object)
}

/// Says what is planned, gives each object a label, and removes what is called `old`.
pub fn plan(input: &Input) -> Result<Output, HandlerError> {
    let Some(plan) = &input.plan else {
        return Output::new().pass("is-planned", &false);
    };
    let mut output = Output::new();
    let mut seen = Vec::new();
    for request in &plan.requests.resource_requests {
        seen.push(format!("request {}", request.request_name));
        match request.request_name.as_str() {
            "old" => output = output.remove_from_plan("old"),
            _ => output.push(request.clone()),
        }
    }
    let mut set = DesiredSet::new();
    for entry in plan.desired.iter().flat_map(|desired| &desired.entries) {
        seen.push(format!("entry {}", entry.name));
        if entry.name == "old" {
            output = output.remove_from_plan("old");
            continue;
        }
        let mut entry = entry.clone();
        if let Content::Kubernetes(object) = &entry.content {
            let mut object: Value = serde_json::from_str(object)
                .map_err(|error| HandlerError::fatal(error.to_string()))?;
            object["metadata"]["labels"]["planned"] = "yes".into();
            entry.content = object.into();
        }
        set.push(entry);
    }
    if let Some(desired) = &plan.desired {
        let rest = DesiredSet {
            entries: set.entries,
            ..desired.clone()
        };
        output = output.desired(rest);
    }
    output.pass("seen", &seen)
}

/// Reads before it plans.
pub fn plan_reads(input: &Input) -> Result<Output, HandlerError> {
    if let Some(answer) = input.answer("class") {
        return Output::new().pass("found", &answer.error.is_none());
    }
    Ok(Output::new()
        .read(Request::new("class", Basic::new("class").get()).catch_error())
        .read(Request::new("pods", POD.list("shop"))))
}

pub fn extension(_: &Input) -> Result<Output, HandlerError> {
    let dns = || Extension::new("dns");
    Ok(Output::new()
        .request(Request::new(
            "delete",
            dns().request("delete", "example.org/www"),
        ))
        .request(Request::new(
            "upsert",
            dns().request_with("upsert", "example.org/é", json!({"a": ["192.0.2.1"]})),
        )))
}
