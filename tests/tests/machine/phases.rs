//! Objects go from phase to phase.

use anyhow::Result;
use expect_test::expect;
use serde_json::json;

use super::things::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_goes_through_its_phases_to_the_end() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {
            "name": "PreFlight", "onDone": "InFlight", "onError": "Failed", "view": "CheckList",
            "parallel": [put("account", "1"), put("quota", "1")],
        },
        {"name": "InFlight", "onDone": "Succeeded", "onError": "Failed", "serial": [
            step("first", json!({
                "requests": [{"name": "put", "put": {"key": "first", "value": "{results}"}}],
                "output": {"made": "x"},
                "pass": {"to-second": 7},
            })),
            step("second", json!({
                "requests": [{"name": "put", "put": {"key": "second", "value": "{outputs} | {args}"}}],
                "details": {"of": "second"},
                "progress": [100, "there"],
            })),
        ]},
        {"name": "Succeeded", "terminal": true},
        {"name": "Failed", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Succeeded").await?;
    expect![[r#"
        Succeeded
          InFlight: done
            first: done
            second: done, progress {"message":"there","percent":100}, details {"of":"second"}
          PreFlight: done, view "CheckList"
            account: done
            quota: done
    "#]]
    .assert_eq(&things.drawn("one").await?);
    expect![[r#"[{"body":null,"error":null,"name":"put","objects":["{\"key\":\"basic/account\",\"value\":\"1\"}"],"status":null},{"body":null,"error":null,"name":"put","objects":["{\"key\":\"basic/quota\",\"value\":\"1\"}"],"status":null}]"#]].assert_eq(&things.key("first").await?.unwrap());
    expect![[r#"InFlight/first={"made":"x"} | to-second=7"#]]
        .assert_eq(&things.key("second").await?.unwrap());
    things.world.settled(&["things"]).await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_stable_phase_is_left_when_something_is_so() -> Result<()> {
    let things = Things::with(json!({
        "initialPhase": "Creating",
        "phases": [
            {"name": "Running", "stable": true, "events": [
                {"when": "object.spec.class != object.status.class", "to": "Modifying"},
            ]},
            {"name": "Creating", "onDone": "Running", "serial": [
                step("create", json!({"status": {"class": "small"}})),
            ]},
            {"name": "Modifying", "onDone": "Running", "serial": [
                step("modify", json!({"status": {"class": "large"}})),
            ]},
        ],
    }))
    .await?;
    things.until_phase("Running").await?;
    things.merge(json!({"spec": {"class": "small"}})).await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.phase("one").await?, "Running");
    things.merge(json!({"spec": {"class": "large"}})).await?;
    things
        .world
        .until("the class is large", || async {
            Ok(things.get("one").await?["status"]["class"] == "large")
        })
        .await?;
    things.until_phase("Running").await?;
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_at_the_end_is_left_alone_until_it_goes() -> Result<()> {
    let mut configurator = machine(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [put("work", "{run}")]},
        {"name": "Done", "terminal": true},
    ]}));
    let spec = &mut configurator["spec"];
    spec["deletion"] =
        json!({"by": "Finalizer", "phases": [{"name": "cleanup", "handler": "root"}]});
    spec["parameters"] = json!({
        "script": {"requests": [{"name": "put", "put": {"key": "gone", "value": "1"}}]},
    });
    let things = Things::declared(&configurator).await?;
    things.until_phase("Done").await?;
    let work = things.key("work").await?;
    things.drop_key("work").await?;
    things.merge(json!({"spec": {"changed": true}})).await?;
    things.world.settled(&["things"]).await?;
    assert!(work.is_some());
    assert_eq!(things.key("work").await?, None, "it is not entered again");
    things.delete().await?;
    things
        .world
        .until("it is gone", || async {
            Ok(things.all().await?.get_opt("one").await?.is_none())
        })
        .await?;
    assert!(things.key("gone").await?.is_some());
    assert_eq!(things.key("work").await?, None);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_handler_may_name_the_phase_that_follows() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "onError": "Elsewhere", "serial": [step("leap", json!({"next": "Elsewhere"})), put("after", "1")]},
        {"name": "Elsewhere", "terminal": true},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Elsewhere").await?;
    assert_eq!(things.key("after").await?, None);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_object_whose_first_phase_is_stable_shows_it() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Idle", "stable": true, "events": [{"when": "object.spec.go == true", "to": "Done"}]},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Idle").await?;
    things.merge(json!({"spec": {"go": true}})).await?;
    things.until_phase("Done").await?;
    for phase in ["Idle", "Done"] {
        let entered = format!(
            "configurator_phases_entered_total{{configurator_namespace=\"\",configurator=\"things\",phase=\"{phase}\"}}"
        );
        // A phase is counted after the server has answered, so others can see it in the object before.
        let is_counted = || async { Ok(!things.world.metric(&entered).is_empty()) };
        things
            .world
            .until("the phase is counted", is_counted)
            .await?;
        assert_eq!(things.world.metric(&entered), format!("{entered} 1"));
    }
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_handlers_say_of_the_status_adds_up() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "First", "onDone": "Second", "parallel": [
            step("a", json!({"status": {"made": {"a": 1, "both": "a"}, "gone": true}})),
            step("b", json!({"status": {"made": {"b": 2}}})),
        ]},
        {"name": "Second", "onDone": "Done", "serial": [
            step("c", json!({"status": {"made": {"both": "c"}, "gone": null}})),
        ]},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Done").await?;
    let thing = things.get("one").await?;
    let said = |field: &str| thing["status"][field].to_string();
    expect![[r#"{"a":1,"b":2,"both":"c"}"#]].assert_eq(&said("made"));
    expect!["null"].assert_eq(&said("gone"));
    things.world.stop().await
}
