//! A thousand reloads while objects change all the time: no run is dropped, doubled or of two modules.

use std::collections::BTreeMap;

use anyhow::Result;
use configurator_host::observer::Notice;
use configurator_tests::guests::{digest, variant};
use configurator_tests::witness::Witness;
use serde_json::json;

use crate::fixture::{Guest, handler};
use crate::swap::{config_map, configurator, scripted, world};
use configurator_tests::shelf::Shelf;

const RELOADS: usize = 1000;
const OBJECTS: usize = 8;

/// What comes next: most are good, each good one another than the one before.
fn next(number: usize, good: &[Vec<u8>]) -> (Result<Vec<u8>, String>, bool) {
    let whole = &good[number % good.len()];
    match number % 8 {
        1 => (Ok(whole[..whole.len() - 7].to_vec()), false),
        3 => (Ok(format!("garbage {number}").into_bytes()), false),
        5 => match number % 3 {
            0 => (Ok(Guest::new().describe_body("unreachable").build()), false),
            1 => (Ok(b"\0asm\x0d\0\x01\0".to_vec()), false),
            _ => {
                let other = json!({"handlers": [handler("other")]});
                (Ok(Guest::new().describe(other).build()), false)
            }
        },
        7 => (Err(format!("away {number}")), false),
        _ => (Ok(whole.clone()), true),
    }
}

#[tokio::test]
async fn a_thousand_reloads_under_load() -> Result<()> {
    let good: Vec<Vec<u8>> = (0..6).map(|number| variant(&scripted(), number)).collect();
    let (shelf, witness) = (Shelf::with(good[5].clone()), Witness::new());
    let world = world(&shelf, &witness).await?;
    world.apply(&configurator()).await?;
    let mut changes = BTreeMap::new();
    let mut swaps = 0;
    let mut running = digest(&good[5]);
    for number in 0..RELOADS {
        let object = format!("o{}", number % OBJECTS);
        let content = number.to_string();
        world.apply(&config_map(&object, &content)).await?;
        let contents: &mut Vec<String> = changes.entry(object).or_default();
        contents.push(content);

        let seen = witness.notices().len();
        let (module, is_good) = next(number, &good);
        let wanted = module.as_ref().map(|module| digest(module)).ok();
        shelf.put(module);
        if is_good {
            let wanted = wanted.unwrap();
            if running != wanted {
                let is_it = |notice: &Notice| matches!(notice, Notice::Swapped { digest, .. } if *digest == wanted);
                witness.next(seen, is_it).await;
                running = wanted;
                swaps += 1;
            }
        } else {
            let is_it =
                |notice: &Notice| matches!(notice, Notice::Refused { .. } | Notice::Waiting { .. });
            witness.next(seen, is_it).await;
        }
    }
    world.settled(&["scripted"]).await?;
    assert!(swaps > RELOADS / 3, "{swaps}");
    witness.check_whole(&changes, &["root", "write"], &running);
    world.stop().await
}
