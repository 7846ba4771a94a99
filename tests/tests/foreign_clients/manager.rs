//! A manager of controller-runtime: it leads by a Lease, holds by a finalizer, owns, writes statuses and Events.

use std::collections::BTreeSet;
use std::time::{Duration, Instant};

use configurator_tests::world::PATIENCE;
use expect_test::expect;
use kube::api::PostParams;
use serde_json::{Value, json};

use crate::cluster::{Cluster, merge, widget};
use crate::program::{Ended, Program};

impl Program {
    /// Returns when it has done this to that Widget so often.
    #[track_caller]
    fn has_done(&self, count: usize, what: &str, widget: &str) {
        self.until(count, &format!("{what} {widget}"), |said| {
            said["did"] == what && said["widget"] == widget
        });
    }

    /// Returns when it has written a status that says how many Widgets are alike.
    #[track_caller]
    fn has_counted(&self, widget: &str, generation: u64, alike: u64) {
        self.until(1, &format!("status of {widget}"), |said| {
            said["did"] == "status"
                && said["widget"] == widget
                && said["generation"] == generation
                && said["alike"] == alike
        });
    }
}

async fn check(cluster: Cluster) {
    let widgets = cluster.widgets().await;
    let maps = cluster.config_maps().await;
    let accounts = cluster.api("v1", "ServiceAccount").await;
    let secrets = cluster.api("v1", "Secret").await;
    cluster
        .create(
            json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "palette"},
            "stringData": {"red": "#f00", "green": "#0f0"}}),
        )
        .await;
    cluster.create(widget("first", "red")).await;

    // The first manager leads, the second waits for its turn.
    let leader = Program::start(&cluster, "manager", &[]);
    leader.until(1, "to lead", |said| said["did"] == "lead");
    leader.has_counted("first", 1, 1);
    let waiting = Program::start(&cluster, "manager", &[]);
    waiting.until(1, "to start", |said| said["did"] == "start");

    // What one object says depends on others, by an index of the cache.
    cluster.create(widget("second", "red")).await;
    leader.has_counted("first", 1, 2);
    leader.has_counted("second", 1, 2);

    // What it owns comes back, however it was spoilt.
    merge(&maps, "first", json!({"data": {"rgb": "none"}})).await;
    leader.has_done(2, "write", "first");
    cluster.delete(&maps, "second").await;
    leader.has_done(2, "write", "second");
    cluster.delete(&accounts, "second").await;
    cluster
        .until(&accounts, "second", |found| {
            found.is_some_and(|found| found.metadata.deletion_timestamp.is_none())
        })
        .await;

    // A Secret that it watches by its name alone changes what it writes.
    merge(&secrets, "palette", json!({"stringData": {"red": "#e00"}})).await;
    leader.has_done(3, "write", "first");
    leader.has_done(3, "write", "second");

    merge(
        &widgets,
        "second",
        json!({"spec": {"color": "green", "size": 5}}),
    )
    .await;
    leader.has_counted("second", 2, 1);
    merge(
        &widgets,
        "first",
        json!({"metadata": {"annotations": {"seen": "yes"}}}),
    )
    .await;
    let wrong = serde_json::from_value(widget("third", "purple")).unwrap();
    let refused = widgets.create(&PostParams::default(), &wrong).await;
    let kube::Error::Api(refused) = refused.unwrap_err() else {
        panic!("the server has not refused it");
    };
    expect![[r#"Widget.clients.configurator.dev "third" is invalid: spec.color: Unsupported value: "purple": supported values: "red", "green", "blue""#]].assert_eq(&refused.message);

    // The first lets go of its lease when it ends, and the second goes on.
    let first = leader.end();
    waiting.until(1, "to lead", |said| said["did"] == "lead");
    cluster.create(widget("third", "green")).await;
    waiting.has_counted("third", 1, 2);
    cluster.delete(&widgets, "first").await;
    waiting.has_done(1, "release", "first");
    for api in [&maps, &accounts] {
        cluster.until(api, "first", |found| found.is_none()).await;
    }
    // Events are sent when there is time.
    let deadline = Instant::now() + PATIENCE;
    while events(&cluster, "v1", "involvedObject", "message")
        .await
        .len()
        < 11
    {
        assert!(Instant::now() < deadline, "{}", state(&cluster).await);
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    let second = waiting.end();

    expect![[r##"
        Widget second: green of size 5, generation 2 of which 2 is seen, 2 alike, Ready True (it is green), held by ["clients.configurator.dev/manager"]
          Update by clients
          Update by clients of status
          Update by unknown
        Widget third: green of size 3, generation 1 of which 1 is seen, 2 alike, Ready True (it is green), held by ["clients.configurator.dev/manager"]
          Update by clients
          Update by clients of status
          Update by unknown
        ConfigMap second: {"color":"green","rgb":"#0f0","size":"5"} of Widget second
          Update by clients
        ConfigMap third: {"color":"green","rgb":"#0f0","size":"3"} of Widget third
          Update by clients
        ServiceAccount second: {"app.kubernetes.io/managed-by":"widget-manager","color":"green"} of Widget second
          Apply by widget-manager
        ServiceAccount third: {"app.kubernetes.io/managed-by":"widget-manager","color":"green"} of Widget third
          Apply by widget-manager
        Lease widget-manager: held by "", 1 transitions
        v1 Event: Lease widget-manager: Normal LeaderElection: someone became leader
        v1 Event: Widget first: Normal Ready: it is red
        v1 Event: Widget first: Normal Released: it may go
        v1 Event: Widget first: Normal Written: ConfigMap first is created
        v1 Event: Widget first: Normal Written: ConfigMap first is updated
        v1 Event: Widget second: Normal Ready: it is green
        v1 Event: Widget second: Normal Ready: it is red
        v1 Event: Widget second: Normal Written: ConfigMap second is created
        v1 Event: Widget second: Normal Written: ConfigMap second is updated
        v1 Event: Widget third: Normal Ready: it is green
        v1 Event: Widget third: Normal Written: ConfigMap third is created
        events.k8s.io/v1 Event: Lease widget-manager: Normal LeaderElection: someone became leader
        events.k8s.io/v1 Event: Widget first: Normal Ready: it is red
        events.k8s.io/v1 Event: Widget first: Normal Released: it may go
        events.k8s.io/v1 Event: Widget first: Normal Written: ConfigMap first is created
        events.k8s.io/v1 Event: Widget first: Normal Written: ConfigMap first is updated
        events.k8s.io/v1 Event: Widget second: Normal Ready: it is green
        events.k8s.io/v1 Event: Widget second: Normal Ready: it is red
        events.k8s.io/v1 Event: Widget second: Normal Written: ConfigMap second is created
        events.k8s.io/v1 Event: Widget second: Normal Written: ConfigMap second is updated
        events.k8s.io/v1 Event: Widget third: Normal Ready: it is green
        events.k8s.io/v1 Event: Widget third: Normal Written: ConfigMap third is created"##]]
    .assert_eq(&state(&cluster).await);
    for ended in [first, second] {
        is_calm(&ended);
    }
}

#[track_caller]
fn is_calm(ended: &Ended) {
    let errors: Vec<_> = ended
        .said
        .iter()
        .filter(|said| !said["error"].is_null())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
    // A manager that ends lets go of its lease and of requests under way, and may be told of that while it ends.
    let lost = "error received after stop sequence was engaged: leader election lost";
    let mut complaints = ended.complaints();
    complaints.retain(|complaint| complaint != lost && !complaint.ends_with("context canceled"));
    assert_eq!(complaints, [""; 0]);
}

/// What the managers have left behind.
async fn state(cluster: &Cluster) -> String {
    let mut lines = Vec::new();
    for widget in cluster.list("clients.configurator.dev/v1", "Widget").await {
        let (spec, status) = (&widget["spec"], &widget["status"]);
        let ready = &status["conditions"][0];
        lines.push(format!(
            "Widget {}: {} of size {}, generation {} of which {} is seen, {} alike, {} {} ({}), held by {}",
            name(&widget), text(&spec["color"]), spec["size"], widget["metadata"]["generation"],
            status["observedGeneration"], status["alike"], text(&ready["type"]), text(&ready["status"]),
            text(&ready["message"]), widget["metadata"]["finalizers"],
        ));
        lines.extend(managers(&widget));
    }
    for kind in ["ConfigMap", "ServiceAccount"] {
        for object in cluster.list("v1", kind).await {
            let labels = &object["metadata"]["labels"];
            if labels["app.kubernetes.io/managed-by"] != "widget-manager" {
                continue;
            }
            let owner = &object["metadata"]["ownerReferences"][0];
            lines.push(format!(
                "{kind} {}: {} of {} {}",
                name(&object),
                if kind == "ConfigMap" {
                    &object["data"]
                } else {
                    labels
                },
                text(&owner["kind"]),
                text(&owner["name"]),
            ));
            lines.extend(managers(&object));
        }
    }
    for lease in cluster.list("coordination.k8s.io/v1", "Lease").await {
        let spec = &lease["spec"];
        lines.push(format!(
            "Lease {}: held by {:?}, {} transitions",
            name(&lease),
            text(&spec["holderIdentity"]),
            spec["leaseTransitions"]
        ));
    }
    // Either form of an Event is seen in either API.
    lines.extend(events(cluster, "v1", "involvedObject", "message").await);
    lines.extend(events(cluster, "events.k8s.io/v1", "regarding", "note").await);
    lines.join("\n")
}

/// What the Events of an API say, each once.
async fn events(cluster: &Cluster, api: &str, about: &str, note: &str) -> BTreeSet<String> {
    let events = cluster.list(api, "Event").await;
    // A manager that ends stops leading, and says so if it has the time.
    let is_last_word = |event: &&Value| text(&event[note]).ends_with(" stopped leading");
    let told = events
        .iter()
        .filter(|event| !is_last_word(event))
        .map(|event| {
            let about = &event[about];
            let mut note = text(&event[note]).to_owned();
            // A manager that leads says so under a name made up by chance.
            if let Some(end) = note.find(" became leader") {
                note.replace_range(..end, "someone");
            }
            format!(
                "{api} Event: {} {}: {} {}: {note}",
                text(&about["kind"]),
                text(&about["name"]),
                text(&event["type"]),
                text(&event["reason"])
            )
        });
    told.collect()
}

/// Who has written which part of an object.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array();
    let mut entries: Vec<String> = entries
        .into_iter()
        .flatten()
        .map(|entry| {
            let subresource = entry["subresource"]
                .as_str()
                .map(|name| format!(" of {name}"));
            format!(
                "  {} by {}{}",
                text(&entry["operation"]),
                text(&entry["manager"]),
                subresource.unwrap_or_default()
            )
        })
        .collect();
    entries.sort();
    entries
}

fn name(object: &Value) -> &str {
    text(&object["metadata"]["name"])
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_works_on_the_embedded_api() {
    check(Cluster::embedded().await).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_manager_works_on_a_real_control_plane_alike() {
    check(Cluster::shared().await).await;
}
