//! A host that goes leaves states, and another goes on from them.

use anyhow::Result;
use configurator_tests::world::Place;
use expect_test::expect;
use serde_json::json;

use super::things::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_waits_survives_a_restart() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let place = Place {
        folder: Some(folder.path().to_owned()),
    };
    let things = Things::start_at(&place).await?;
    let spec = json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            step("before", json!({
                "requests": [{"name": "put", "put": {"key": "before", "value": "{run}"}}],
                "output": 7,
            })),
            steps("pause", json!([
                {"wait": {"signals": ["go"]}, "data": {"noted": 1.0}},
                {"requests": [{"name": "put", "put": {"key": "pause", "value": "{cause} {last} {outputs}"}}]},
            ])),
        ]},
        {"name": "Done", "terminal": true},
    ]});
    things.world.apply(&machine(spec)).await?;
    things.world.apply(&thing("one", json!({}))).await?;
    things
        .until_node("Work/pause", |node| node.get("startTime").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    let before = things.key("before").await?;
    things.world.stop().await?;
    let things = Things::start_at(&place).await?;
    things.world.settled(&["things"]).await?;
    things
        .command("Signal", json!({"signal": {"name": "go"}}))
        .await?;
    things.until_phase("Done").await?;
    assert_eq!(
        things.key("before").await?,
        before,
        "what is done is not entered again"
    );
    expect![[r#"signal go  {"data":"{\"noted\":1.0}","failed":false,"results":[]} Work/before=7"#]]
        .assert_eq(&things.key("pause").await?.unwrap());
    things.world.stop().await
}
