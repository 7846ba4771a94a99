//! What fails is tried again, ends the phase, or is a person's to decide.

use anyhow::Result;
use configurator_tests::gate::{Gate, Pass};
use configurator_tests::machine::definition;
use configurator_tests::world::{Place, World};
use expect_test::expect;
use serde_json::{Value, json};

use super::things::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn past_its_threshold_a_step_fails_for_good_and_can_be_resumed() -> Result<()> {
    let spec = |second: Value| {
        json!({
            "phases": [
                {"name": "Work", "onDone": "Done", "onError": "Interrupted", "flow": "work"},
                {"name": "Interrupted", "stable": true},
                {"name": "Done", "terminal": true},
            ],
            "flows": {"work": {"serial": [put("first", "{run}"), {
                "name": "second", "handler": "root", "retry": {"threshold": 3, "delay": "10ms"},
                "parameters": {"script": second},
            }]}},
        })
    };
    let failing = json!({"fail": {"message": "attempt {attempt}"}});
    let things = Things::with(spec(failing)).await?;
    things.until_phase("Interrupted").await?;
    expect![[r#"
        Interrupted
          Work: fatal, error "still failing after 3 attempts: attempt 3"
            first: done
            second: fatal, error "still failing after 3 attempts: attempt 3"
    "#]]
    .assert_eq(&things.drawn("one").await?);
    let first = things.key("first").await?;
    let well = json!({"requests": [{"name": "put", "put": {"key": "second", "value": "{attempt} {cause}"}}]});
    things.world.apply(&machine(spec(well))).await?;
    things.until_generation().await?;
    assert_eq!(things.command("Resume", json!({})).await?, "done");
    things.until_phase("Done").await?;
    expect!["1 recovered"].assert_eq(&things.key("second").await?.unwrap());
    assert_eq!(things.key("first").await?, first);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_error_code_has_a_remedy_or_guidance_for_a_person() -> Result<()> {
    let things = Things::with(json!({
        "requeueAfter": "20ms",
        "phases": [
            {"name": "Work", "onDone": "Done", "onError": "Interrupted", "serial": [
                {
                    "name": "quota", "handler": "root",
                    "parameters": {
                        "script": {"fail": {"message": "quota", "code": "QUOTA", "causes": ["entered"]}},
                        "remedy": {"requests": [{"name": "put", "put": {"key": "remedy", "value": "{node}"}}]},
                    },
                },
                step("busy", json!({"fail": {"message": "busy", "code": "ENI_BUSY"}})),
            ]},
            {"name": "Interrupted", "stable": true},
            {"name": "Done", "terminal": true},
        ],
        "errorCodes": {
            "QUOTA": {"action": "Remediate", "handler": "remedy", "attempts": 2},
            "ENI_BUSY": {"guidance": "Detach it in the **console**, then resume."},
        },
    }))
    .await?;
    things.until_phase("Interrupted").await?;
    expect![[r#"
        Interrupted
          Work: fatal, error {"code":"ENI_BUSY","message":"busy"}
            busy: fatal, error {"code":"ENI_BUSY","message":"busy"}, guidance "Detach it in the **console**, then resume."
            quota: done
    "#]]
    .assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_that_lasts_too_long_has_failed() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "onError": "Interrupted", "serial": [{
            "name": "slow", "handler": "root", "timeout": "100ms",
            "parameters": {"script": {"wait": {"signals": ["never"]}}},
        }]},
        {"name": "Interrupted", "stable": true},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things.until_phase("Interrupted").await?;
    expect![[r#"
        Interrupted
          Work: fatal, error "\"slow\" took longer than 100ms"
            slow: fatal, error "\"slow\" took longer than 100ms"
    "#]]
    .assert_eq(&things.drawn("one").await?);
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn where_the_answer_was_lost_what_may_be_sent_but_once_is_unknown() -> Result<()> {
    let gate = Gate::new(Pass::Away);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    let mut once = put("bind", "1");
    once["once"] = json!(true);
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "onError": "Interrupted", "serial": [once]},
        {"name": "Interrupted", "stable": true},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things.until_phase("Interrupted").await?;
    expect![[r#"
        Interrupted
          Work: fatal, error "nobody knows what became of its requests, which may be sent but once: see at the server, then skip the step or resume"
            bind: fatal, error "nobody knows what became of its requests, which may be sent but once: see at the server, then skip the step or resume"
    "#]].assert_eq(&things.drawn("one").await?);
    assert_eq!(gate.refused(), 1, "it is not sent again");
    things.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_waits_for_a_sink_that_is_away() -> Result<()> {
    let gate = Gate::new(Pass::Away);
    let before = gate.clone();
    let world = World::start_at(&Place::default(), |builder| {
        builder.decorate_sinks(move |sinks| before.before_configstore(sinks))
    })
    .await?;
    let things = Things { world };
    things.world.apply(&definition("Thing")).await?;
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [put("first", "1"), put("second", "1")]},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things
        .world
        .until("it was refused", || async { Ok(gate.refused() > 0) })
        .await?;
    gate.set(Pass::Open);
    things.until_phase("Done").await?;
    things.world.stop().await
}
