//! Others who write the same objects at the same time.

use anyhow::Result;
use configurator_core::backoff::mix;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use crate::scene::{Options, Scene, pod};

/// Others who write.
const WRITERS: usize = 8;
/// Objects that they write, of those that the host writes.
const CONTESTED: usize = 8;
/// Conflicts that the host meets.
const CONFLICTS: usize = 8;

/// Eight others take the same field of the same objects again and again, and let it go at the end.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn eight_others_write_the_same_objects() -> Result<()> {
    let options = Options {
        // As long as others do not let go, there is nothing but to try again.
        retry: json!({"maxAttempts": 100, "initialDelay": "200ms", "maxDelay": "1s"}),
        ..Options::default()
    };
    let scene = Scene::on_shared("storm", options).await?;
    let is_over = CancellationToken::new();
    let mut writers = Vec::new();
    for writer in 0..WRITERS {
        let (config_maps, is_over) = (scene.config_maps(), is_over.clone());
        writers.push(tokio::spawn(async move {
            let params = PatchParams::apply(&format!("writer-{writer}")).force();
            let write = async |object: usize, data: Option<Value>| {
                let name = format!("{}-config", pod(object));
                let mut body =
                    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
                // Who applies an empty map owns that it is empty.
                if let Some(data) = data {
                    body["data"] = data;
                }
                match config_maps
                    .patch(&name, &params, &Patch::Apply(&body))
                    .await
                {
                    // The others are in each other's way as well.
                    Err(kube::Error::Api(status)) if status.code == 409 => Ok(()),
                    written => written.map(drop),
                }
            };
            let mut round = writer as u64;
            while !is_over.is_cancelled() {
                round = mix(round);
                let data = json!({"level": format!("writer {writer}")});
                write((round % CONTESTED as u64) as usize, Some(data)).await?;
            }
            for object in 0..CONTESTED {
                write(object, None).await?;
            }
            anyhow::Ok(())
        }));
    }
    scene.create().await?;
    let stormy = scene
        .world
        .until("conflicts", || async {
            Ok(scene.answers(409)? >= CONFLICTS)
        })
        .await;
    is_over.cancel();
    for writer in writers {
        writer.await??;
    }
    stormy?;
    scene.go_on().await?;
    scene.converges(0).await
}
