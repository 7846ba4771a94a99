//! `configurators/move-to-vpc` and a cloud that throttles, has quotas, and does things by halves.

use std::time::Duration;

use anyhow::Result;
use configurator_tests::cloud::{self, Manners};
use configurator_tests::world::{Place, Servers};
use expect_test::{Expect, expect};
use serde_json::{Value, json};

use super::migration::Migration;

async fn embedded(instances: usize, manners: Manners) -> Result<Migration> {
    Migration::start(Place::default().open().await?, instances, manners).await
}

fn waits(object: &Value) -> bool {
    let pause = &object["status"]["state"]["InFlight"]["state"]["pause"];
    pause["progress"]["percent"] == 0
}

fn lines(mut lines: Vec<String>) -> String {
    lines.sort();
    lines.join("\n")
}

/// What takes effect when two instances are moved: each thing once.
fn moved() -> Expect {
    expect![[r#"
        attach 10.0.2.11 to ins-1
        attach 10.0.2.12 to ins-2
        bind eip-1
        bind eip-2
        detach eni-1-second from ins-1
        detach eni-2-second from ins-2
        make interface 10.0.2.11 in vpc-new
        make interface 10.0.2.12 in vpc-new
        migrate ins-1 to vpc-new
        migrate ins-2 to vpc-new
        unbind eip-1
        unbind eip-2"#]]
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn instances_are_moved_with_all_they_have() -> Result<()> {
    instances_move(Place::default().open().await?).await
}

pub async fn instances_move(servers: Servers) -> Result<()> {
    let migration = Migration::start(servers, 2, Manners::default()).await?;
    migration.ask(json!({"manuallyConfirm": true})).await?;
    migration.moves.until("web", "it waits", waits).await?;
    expect![[r#"
        InFlight
          InFlight: begun, view "ObjectDetail", description "Move"
            pause: begun, progress {"message":"waits for an approval","percent":0}, description "Confirmation"
          Initializing: done, description "Initialization"
          PreFlight: done, view "CheckList", description "Precheck"
            prechkAccount: done, description "Account checks"
              prechkSecretAppId: done, description "The access key belongs to the account"
            prechkInstance: done, description "Instance checks"
              prechkInsInSrcVpc: done, description "All instances are in the source network"
              prechkInsStateRunning: done, description "All instances exist and run"
            prechkNetwork: done, description "Network checks"
              prechkCIDR: done, description "The networks have matching subnets"
              prechkIPsNotOccupied: done, description "No address is taken in the target network"
              prechkVpcAppId: done, description "Both networks belong to the account"
    "#]].assert_eq(&migration.moves.drawn("web").await?);
    assert_eq!(migration.cloud.effects(), Vec::<String>::new());
    let answer = migration.moves.command("web", "Approve", json!({})).await?;
    assert_eq!(answer, "done");
    migration.until("Succeeded").await?;
    expect![[r#"
        Succeeded
          InFlight: done, view "ObjectDetail", description "Move"
            attachENIs: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"ins-1":"done","ins-2":"done"}}, description "Attach network interfaces"
            bindEIPs: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"eip-1":"done","eip-2":"done"}}, description "Bind public addresses"
            cloneENIs: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"eni-1-second":"done","eni-2-second":"done"}}, description "Clone network interfaces"
            detachENIs: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"eni-1-second":"done","eni-2-second":"done"}}, description "Detach network interfaces"
            migrateInstances: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"ins-1":"done","ins-2":"done"}}, description "Change the network of the instances"
            pause: done, progress {"message":"approved","percent":100}, description "Confirmation"
            unbindEIPs: done, progress {"message":"2 of 2","percent":100}, details {"objects":{"eip-1":"done","eip-2":"done"}}, description "Unbind public addresses"
          Initializing: done, description "Initialization"
          PreFlight: done, view "CheckList", description "Precheck"
            prechkAccount: done, description "Account checks"
              prechkSecretAppId: done, description "The access key belongs to the account"
            prechkInstance: done, description "Instance checks"
              prechkInsInSrcVpc: done, description "All instances are in the source network"
              prechkInsStateRunning: done, description "All instances exist and run"
            prechkNetwork: done, description "Network checks"
              prechkCIDR: done, description "The networks have matching subnets"
              prechkIPsNotOccupied: done, description "No address is taken in the target network"
              prechkVpcAppId: done, description "Both networks belong to the account"
    "#]].assert_eq(&migration.moves.drawn("web").await?);
    expect![[r#"
        ins-1: vpc-new, 10.0.1.11, 10.0.2.11 (eip-1)
        ins-2: vpc-new, 10.0.2.12 (eip-2), 10.0.1.12"#]]
    .assert_eq(&lines(migration.cloud.instances()));
    moved().assert_eq(&lines(migration.cloud.effects()));
    let mut status = migration.status().await?;
    assert!(!status.to_string().contains(cloud::SECRET_KEY));
    for field in ["state", "memento"] {
        status.as_object_mut().unwrap().remove(field);
    }
    expect![[r#"
        {
          "confirmed": true,
          "instances": {
            "ins-1": {
              "interfaces": {
                "eni-1-second": {
                  "ip": "10.0.2.11",
                  "new": "eni-10-0-2-11",
                  "publicAddress": "eip-1"
                }
              },
              "ip": "10.0.1.11",
              "state": "Moved",
              "vpcId": "vpc-old"
            },
            "ins-2": {
              "interfaces": {
                "eni-2-second": {
                  "ip": "10.0.2.12",
                  "new": "eni-10-0-2-12",
                  "publicAddress": "eip-2"
                }
              },
              "ip": "10.0.1.12",
              "state": "Moved",
              "vpcId": "vpc-old"
            }
          },
          "phase": "Succeeded",
          "subnets": {
            "old-a": {
              "cidr": "10.0.1.0/24",
              "dstSubnetId": "new-a",
              "zone": "north-1"
            },
            "old-b": {
              "cidr": "10.0.2.0/24",
              "dstSubnetId": "new-b",
              "zone": "north-1"
            }
          },
          "uin": "100000000001"
        }"#]]
    .assert_eq(&serde_json::to_string_pretty(&status)?);
    migration.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cloud_that_is_slow_throttles_and_attaches_by_halves_is_coped_with() -> Result<()> {
    let manners = Manners {
        latency: Duration::from_millis(60),
        throttle_every: 7,
        partial_attachments: 1,
        quota: 1,
    };
    let migration = embedded(2, manners).await?;
    migration.ask(json!({"keepIps": false})).await?;
    migration.until("Succeeded").await?;
    // Who gets which of the free addresses, chance decides.
    let free = regex::Regex::new(r"10\.0\.1\.10\d")?;
    let masked = |found: Vec<String>| {
        let found = found.iter().map(|line| free.replace_all(line, "FREE"));
        lines(found.map(String::from).collect())
    };
    expect![[r#"
        ins-1: vpc-new, FREE, FREE (eip-1)
        ins-2: vpc-new, FREE (eip-2), FREE"#]]
    .assert_eq(&masked(migration.cloud.instances()));
    expect![[r#"
        attach FREE to ins-1
        attach FREE to ins-2
        bind eip-1
        bind eip-2
        detach eni-1-second from ins-1
        detach eni-2-second from ins-2
        make interface FREE in vpc-new
        make interface FREE in vpc-new
        migrate ins-1 to vpc-new
        migrate ins-2 to vpc-new
        raise quota to 200
        unbind eip-1
        unbind eip-2"#]]
    .assert_eq(&masked(migration.cloud.effects()));
    migration.world.stop().await
}

/// What comes of a move in which something is not as it should be.
async fn check_failed(
    more: Value,
    wrong: impl FnOnce(&Migration),
    phase: &str,
    reasons: Expect,
) -> Result<()> {
    let migration = embedded(2, Manners::default()).await?;
    wrong(&migration);
    migration.ask(more).await?;
    migration.until(phase).await?;
    let status = migration.status().await?;
    reasons.assert_eq(&status["reasons"].to_string());
    assert_eq!(migration.cloud.effects(), Vec::<String>::new());
    migration.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_begun_where_a_check_fails() -> Result<()> {
    check_failed(
        json!({"instances": ["ins-1", "ins-3"]}),
        |_| {},
        "PreFailed",
        expect![[r#"{"PreFlight":"ins-3 do not exist"}"#]],
    )
    .await?;
    check_failed(
        json!({}),
        |migration| {
            migration
                .cloud
                .change("ins-2", |instance| instance.is_running = false)
        },
        "PreFailed",
        expect![[r#"{"PreFlight":"ins-2 do not run"}"#]],
    )
    .await?;
    check_failed(
        json!({"appId": "1"}),
        |migration| migration.cloud.give_networks_to("1"),
        "PreFailed",
        expect![[r#"{"PreFlight":"the access key AKID-of-the-test belongs to the account 1250000001, not to 1"}"#]],
    )
    .await?;
    check_failed(
        json!({}),
        |migration| migration.cloud.occupy("vpc-new", "10.0.2.12"),
        "PreFailed",
        expect![[r#"{"PreFlight":"10.0.2.12 are taken in the target network"}"#]],
    )
    .await?;
    check_failed(
        json!({"dstVpcId": "vpc-none"}),
        |_| {},
        "InitializeFailed",
        expect![[r#"{"Initializing":"there is no VPC vpc-none"}"#]],
    )
    .await?;
    check_failed(
        json!({"secretId": "somebody"}),
        |_| {},
        "InitializeFailed",
        expect![[r#"{"Initializing":"the cloud does not accept the access key: the key is not accepted"}"#]],
    )
    .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_person_who_is_told_what_to_do_does_it_and_resumes() -> Result<()> {
    let migration = embedded(2, Manners::default()).await?;
    migration.ask(json!({"manuallyConfirm": true})).await?;
    migration.moves.until("web", "it waits", waits).await?;
    migration.cloud.occupy("vpc-new", "10.0.2.12");
    migration.moves.command("web", "Approve", json!({})).await?;
    migration.until("InFlightFailed").await?;
    let status = migration.status().await?;
    expect![[r#"{"InFlight":"10.0.2.12 is taken in vpc-new"}"#]]
        .assert_eq(&status["reasons"].to_string());
    let clone = &status["state"]["InFlight"]["state"]["cloneENIs"];
    expect![[r#"
        A private address was taken in the target network after the check. Free it in the console, then resume.
    "#]].assert_eq(clone["guidance"].as_str().unwrap_or_default());
    migration.cloud.free("vpc-new", "10.0.2.12");
    let answer = migration.moves.command("web", "Resume", json!({})).await?;
    assert_eq!(answer, "done");
    migration.until("Succeeded").await?;
    assert_eq!(migration.status().await?["reasons"], json!({}));
    // What was made before the failure was not made again.
    moved().assert_eq(&lines(migration.cloud.effects()));
    migration.world.stop().await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_cannot_be_changed() -> Result<()> {
    let migration = embedded(1, Manners::default()).await?;
    migration.ask(json!({})).await?;
    let error = migration.ask(json!({"keepIps": false})).await.unwrap_err();
    expect![[r#"MoveToVpc.network.example.org "web" is invalid: spec: Invalid value: a move cannot be changed; make another"#]].assert_eq(&error.to_string());
    migration.world.stop().await
}
