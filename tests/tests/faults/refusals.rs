//! Servers that refuse a share of all requests.

use std::time::Duration;

use anyhow::Result;
use configurator_tests::proxy::{Proxy, Rule, Seen};

use crate::scene::{Options, Scene};

/// Refusals of a server while the host works.
const REFUSALS: usize = 8;

/// What is left alone together: Vault as a whole, and of the API what one object asks for.
fn group(seen: &Seen) -> Option<String> {
    let is_of_every_object =
        seen.path.starts_with("/api/v1/namespaces/") && seen.path.matches('/').count() == 4;
    match seen.path.starts_with("/v1/") {
        true => Some("vault".into()),
        false => (!is_of_every_object).then(|| seen.to_string()),
    }
}

/// Lets these servers refuse requests while the host works.
pub async fn refuse(scene: &Scene, proxies: &[&Proxy], rule: Rule) -> Result<()> {
    proxies
        .iter()
        .for_each(|proxy| proxy.set_rule(rule.clone()));
    scene.work().await?;
    scene
        .world
        .until("enough was refused", || async {
            Ok(proxies.iter().all(|proxy| proxy.refused() >= REFUSALS))
        })
        .await?;
    scene.converges(0).await?;
    for proxy in proxies {
        let early = proxy.impatient(group);
        assert!(early.is_empty(), "{early:#?}");
    }
    Ok(())
}

/// Told with `Retry-After`.
pub const TOO_MANY: Rule = Rule::Refuse {
    percent: 30,
    statuses: &[429],
    retry_after: Some(Duration::from_secs(1)),
};

/// Told by whoever stands before a server, or by one in trouble.
const IN_TROUBLE: Rule = Rule::Refuse {
    percent: 30,
    statuses: &[500, 502, 503],
    retry_after: None,
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_has_too_many_requests() -> Result<()> {
    let scene = Scene::on_shared("api-429", Options::default()).await?;
    refuse(&scene, &[&scene.kubernetes], TOO_MANY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vault_has_too_many_requests() -> Result<()> {
    let scene = Scene::on_shared("vault-429", Options::default()).await?;
    refuse(&scene, &[&scene.vault], TOO_MANY).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_api_is_in_trouble() -> Result<()> {
    let scene = Scene::on_shared("api-5xx", Options::default()).await?;
    refuse(&scene, &[&scene.kubernetes], IN_TROUBLE).await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn vault_is_in_trouble() -> Result<()> {
    let scene = Scene::on_shared("vault-5xx", Options::default()).await?;
    refuse(&scene, &[&scene.vault], IN_TROUBLE).await
}
