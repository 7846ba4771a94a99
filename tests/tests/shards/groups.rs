//! Groups of hosts with scopes that overlap, or that change.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::Result;
use configurator_host::resource::{ClusterConfigurator, Configurator};
use configurator_host::scope::HostScope;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams, Patch, PatchParams};
use kube::core::{Expression, Selector};
use serde_json::{Value, json};

use crate::fleet::Fleet;

/// The groups and their hosts.
const GROUPS: [(&str, [&str; 2]); 2] = [("gold", ["a", "b"]), ("silver", ["c", "d"])];
/// The number of times that the group that runs the Configurator is killed or cut off.
const ROUNDS: usize = 6;

fn of_tier(tier: &str) -> HostScope {
    HostScope::default().selector(Expression::Equal("tier".into(), tier.into()).into())
}

async fn groups(scope: impl Fn(&str) -> HostScope) -> Result<Fleet> {
    let mut fleet = Fleet::open(2).await?;
    for (group, hosts) in GROUPS {
        for host in hosts {
            fleet.join_group(group, host, scope(group)).await?;
        }
    }
    fleet.shared_out().await?;
    Ok(fleet)
}

/// Returns the index of the group that has handled objects since `before`. Panics if both have.
fn runner(fleet: &Fleet, before: &[usize; 2]) -> usize {
    let now = loads(fleet);
    let done = [now[0] - before[0], now[1] - before[1]];
    assert!(
        done[0] == 0 || done[1] == 0,
        "both groups have done something: {done:?}"
    );
    usize::from(done[0] == 0)
}

/// Returns the number of runs of new content that each group has completed.
fn loads(fleet: &Fleet) -> [usize; 2] {
    let loads = fleet.journal.loads();
    GROUPS.map(|(_, hosts)| {
        let of = hosts.iter().map(|host| loads.get(*host).copied());
        of.map(Option::unwrap_or_default).sum()
    })
}

fn labels(tier: &str) -> Patch<Value> {
    Patch::Merge(json!({"metadata": {"labels": {"tier": tier}}}))
}

/// The hosts of one group are killed or cut off in turn, while objects change.
#[tokio::test(start_paused = true)]
async fn two_groups_never_run_a_configurator_at_once() -> Result<()> {
    let mut fleet = groups(|_| HostScope::default()).await?;
    fleet.make(20).await?;
    fleet.done().await?;
    let mut at = runner(&fleet, &[0, 0]);
    for round in 0..ROUNDS {
        let before = loads(&fleet);
        fleet.change_all().await?;
        fleet.done().await?;
        assert_eq!(runner(&fleet, &before), at, "round {round}");
        let (group, hosts) = GROUPS[at];
        if round % 2 == 0 {
            for host in hosts {
                fleet.kill(host).await?;
            }
            fleet.change_all().await?;
            fleet.done().await?;
            for host in hosts {
                fleet.join_group(group, host, HostScope::default()).await?;
            }
        } else {
            for host in hosts {
                fleet.cut_off(host);
            }
            // Runs are under way at whatever moment the leases end.
            for _ in 0..6 {
                fleet.change_all().await?;
                tokio::time::sleep(Duration::from_secs(3)).await;
            }
            fleet.done().await?;
            fleet.change_all().await?;
            for host in hosts {
                fleet.reconnect(host);
            }
        }
        fleet.shared_out().await?;
        fleet.done().await?;
        at = 1 - at;
    }
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn one_host_that_is_left_keeps_the_claim() -> Result<()> {
    let mut fleet = groups(|_| HostScope::default()).await?;
    fleet.make(20).await?;
    fleet.done().await?;
    let at = runner(&fleet, &[0, 0]);
    let (group, [first, second]) = GROUPS[at];
    fleet.leave(first).await?;
    let before = loads(&fleet);
    fleet.change_all().await?;
    fleet.done().await?;
    assert_eq!(runner(&fleet, &before), at);
    // A host that is gone is removed from the claim by the next that comes.
    fleet.join_group(group, first, HostScope::default()).await?;
    fleet.shared_out().await?;
    fleet
        .until_claims(&format!("shared: {group}, hosts {first} {second}"))
        .await?;
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_cluster_configurator_moves_with_its_labels() -> Result<()> {
    let mut fleet = groups(of_tier).await?;
    fleet
        .configure(|shared| shared["metadata"]["labels"] = json!({"tier": "gold"}))
        .await?;
    fleet.make(20).await?;
    fleet.done().await?;
    assert_eq!(runner(&fleet, &[0, 0]), 0);
    fleet.until_claims("shared: gold, hosts a b").await?;
    let outside = |fleet: &Fleet| ["a", "c"].map(|host| fleet.outside(host).len());
    assert_eq!(outside(&fleet), [0, 1]);

    // Runs are under way when it moves.
    fleet.change_all().await?;
    tokio::time::sleep(Duration::from_secs(3)).await;
    let all: Api<ClusterConfigurator> = Api::all(fleet.client());
    let params = PatchParams::default();
    all.patch("shared", &params, &labels("silver")).await?;
    fleet.until_claims("shared: silver, hosts c d").await?;
    fleet.done().await?;
    let before = loads(&fleet);
    fleet.change_all().await?;
    fleet.done().await?;
    assert_eq!(runner(&fleet, &before), 1);
    assert_eq!(outside(&fleet), [1, 0]);
    fleet
        .until_status("only the hosts that run it speak of it", |status| {
            let hosts: BTreeSet<&str> = status.hosts.iter().map(|host| &host.name[..1]).collect();
            hosts == BTreeSet::from(["c", "d"])
        })
        .await?;

    // Nobody's labels: nobody runs it.
    all.patch("shared", &params, &labels("bronze")).await?;
    fleet.until_claims("").await?;
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_configurator_moves_with_the_labels_of_its_namespace_alone() -> Result<()> {
    let mut fleet = groups(of_tier).await?;
    let namespaces: Api<Namespace> = Api::all(fleet.client());
    let params = PatchParams::default();
    let of_default = |tier: &str| {
        let patch = labels(tier);
        let namespaces = namespaces.clone();
        let params = params.clone();
        async move { namespaces.patch("default", &params, &patch).await }
    };
    of_default("gold").await?;
    fleet
        .configure(|shared| {
            shared["kind"] = json!("Configurator");
            shared["metadata"]["namespace"] = json!("default");
            // A team would like other hosts.
            shared["metadata"]["labels"] = json!({"tier": "silver"});
        })
        .await?;
    fleet.make(20).await?;
    fleet.done().await?;
    assert_eq!(runner(&fleet, &[0, 0]), 0);
    fleet
        .until_claims("default/shared: gold, hosts a b")
        .await?;

    of_default("silver").await?;
    fleet
        .until_claims("default/shared: silver, hosts c d")
        .await?;
    let before = loads(&fleet);
    fleet.change_all().await?;
    fleet.done().await?;
    assert_eq!(runner(&fleet, &before), 1);

    let all: Api<Configurator> = Api::default_namespaced(fleet.client());
    all.delete("shared", &DeleteParams::default()).await?;
    fleet.until_claims("").await?;
    fleet.stop().await
}

#[tokio::test(start_paused = true)]
async fn a_claim_of_a_configurator_that_went_while_no_host_was_there_is_removed() -> Result<()> {
    let mut fleet = Fleet::open(2).await?;
    fleet.join("a").await?;
    fleet.until_claims("shared: configurator, hosts a").await?;
    fleet.kill("a").await?;
    let all: Api<ClusterConfigurator> = Api::all(fleet.client());
    all.delete("shared", &DeleteParams::default()).await?;
    fleet
        .join_group(
            "configurator",
            "b",
            HostScope::default().selector(Selector::from(Expression::Exists("x".into()))),
        )
        .await?;
    fleet.until_claims("").await?;
    fleet.stop().await
}
