//! People, and other controllers, tell machines what to do.

use anyhow::Result;
use expect_test::expect;
use serde_json::json;

use super::things::*;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_step_waits_for_a_signal() -> Result<()> {
    let things = Things::with(json!({"phases": [
        {"name": "Work", "onDone": "Done", "serial": [
            put("before", "1"),
            steps("pause", json!([
                {"wait": {"signals": ["go"]}, "progress": [0, "waits for a person"]},
                {"requests": [{"name": "put", "put": {"key": "pause", "value": "{cause}"}}]},
            ])),
            put("after", "1"),
        ]},
        {"name": "Done", "terminal": true},
    ]}))
    .await?;
    things
        .until_node("Work/pause", |node| node.get("progress").is_some())
        .await?;
    things.world.settled(&["things"]).await?;
    assert_eq!(things.key("after").await?, None);
    let told = things
        .command(
            "Signal",
            json!({"signal": {"name": "go", "data": {"by": "ann"}}}),
        )
        .await?;
    assert_eq!(told, "done");
    things.until_phase("Done").await?;
    expect![[r#"
        Some(
            "signal go {\"by\":\"ann\"}",
        )
    "#]].assert_debug_eq(&things.key("pause").await?);
    let told = things.command("Cancel", json!({})).await?;
    expect!["refused: nothing is under way"].assert_eq(&told);
    things.world.stop().await
}
