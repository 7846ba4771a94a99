//! One suite for the Kubernetes API: what the embedded server answers, and a real one. The real one is right.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod mask;
mod page;
mod play;
mod server;
mod suite;

use std::collections::BTreeSet;
use std::fmt::Write as _;

use anyhow::Result;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_store::Store;
use configurator_tests::controlplane::{ControlPlane, Do, Plan};
use configurator_tests::guests::workspace;
use expect_test::expect_file;
use futures::{StreamExt as _, stream};
use kube::Client;
use similar::TextDiff;

use crate::mask::Mask;
use crate::play::Player;
use crate::suite::{Case, Topic};

/// Cases under way at a time.
const CONCURRENCY: usize = 12;

/// The two that are compared.
struct Servers {
    real: Client,
    embedded: Client,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_embedded_api_answers_as_a_real_one() -> Result<()> {
    // Part of a file's or a case's name, to run only some.
    let only = std::env::var("CONFORMANCE").unwrap_or_default();
    let topics = suite::read();
    let plane = ControlPlane::start(&Plan {
        audit: false,
        ..Plan::default()
    })
    .await?;
    let server =
        ApiServer::open(Store::memory(), ApiServerOptions::new(jiff::Timestamp::now)).await?;
    let servers = Servers {
        real: plane.about().client().await?,
        embedded: Client::new(server, "default"),
    };

    // Without the controllers an object has only what its clients write, which is what the embedded API promises.
    let mut failures = play(&servers, &topics, &only, true).await;
    plane.command(Do::Pause, "kube-controller-manager").await?;
    failures.extend(play(&servers, &topics, &only, false).await);

    failures.sort();
    assert!(
        failures.is_empty(),
        "{}\n{} cases fail (- real, + embedded); CONFORMANCE=<part of a name> runs only some",
        failures.join("\n"),
        failures.len()
    );
    Ok(())
}

#[test]
fn the_page_lists_every_case_once() {
    let topics = suite::read();
    let mut names = BTreeSet::new();
    for case in topics.iter().flat_map(|topic| &topic.cases) {
        assert!(names.insert(&case.name), "{:?} is there twice", case.name);
    }
    assert!(names.len() >= 300, "only {} cases", names.len());
    expect_file![workspace().join("docs/embedded.md")].assert_eq(&page::page(&topics));
}

/// What fails among the topics that want controllers, or want none.
async fn play(servers: &Servers, topics: &[Topic], only: &str, controllers: bool) -> Vec<String> {
    let mut cases = Vec::new();
    let mut failures = Vec::new();
    for topic in topics
        .iter()
        .filter(|topic| topic.controllers == controllers)
    {
        let chosen: Vec<_> = topic
            .cases
            .iter()
            .enumerate()
            .filter(|(_, case)| topic.file.contains(only) || case.name.contains(only))
            .collect();
        if chosen.is_empty() {
            continue;
        }
        failures.extend(set_up(servers, topic).await);
        cases.extend(chosen.into_iter().map(|(at, case)| (topic, at, case)));
    }
    let played = stream::iter(cases)
        .map(|(topic, at, case)| one(servers, topic, at, case))
        .buffer_unordered(CONCURRENCY);
    let played: Vec<Option<String>> = played.collect().await;
    failures.extend(played.into_iter().flatten());
    failures
}

async fn set_up(servers: &Servers, topic: &Topic) -> Option<String> {
    for client in [&servers.real, &servers.embedded] {
        let mut player = Player::new(client.clone(), topic, topic.file.clone());
        player.all(&topic.setup).await;
        let refused = player
            .entries
            .into_iter()
            .find(|entry| entry.answer.code >= 400);
        if let Some(entry) = refused {
            return Some(format!(
                "=== {}: the setup fails: {} {:?}",
                topic.file, entry.label, entry.answer
            ));
        }
    }
    None
}

async fn one(servers: &Servers, topic: &Topic, at: usize, case: &Case) -> Option<String> {
    let id = format!("{}-{}", topic.file, at + 1);
    let begun = std::time::Instant::now();
    let (real, embedded) = futures::join!(
        transcript(&servers.real, topic, case, &id),
        transcript(&servers.embedded, topic, case, &id)
    );
    if begun.elapsed().as_secs() > 10 {
        eprintln!("{id} took {} s: {}", begun.elapsed().as_secs(), case.name);
    }
    if std::env::var_os("CONFORMANCE_SHOW").is_some() {
        eprintln!("=== {id}: {}\n{real}", case.name);
    }
    match (real == embedded, &case.left_out) {
        (true, None) | (false, Some(_)) => None,
        (true, Some(_)) => Some(format!(
            "=== {id}: {}\nagrees, and needs no left_out any more\n",
            case.name
        )),
        (false, None) => {
            let mut text = format!("=== {id}: {}\n", case.name);
            let diff = TextDiff::from_lines(real.as_str(), embedded.as_str());
            write!(text, "{}", diff.unified_diff().context_radius(3)).unwrap();
            Some(text)
        }
    }
}

async fn transcript(client: &Client, topic: &Topic, case: &Case, id: &str) -> String {
    let mut player = Player::new(client.clone(), topic, id.to_owned());
    let text = format!("{:?} {:?}", case.steps, topic.lets);
    if text.contains("{ns}") {
        player.make_namespace().await;
    }
    player.all(&case.steps).await;
    Mask::new().transcript(&player.entries)
}
