//! One suite for every implementation of a store: what holds for the embedded ones must hold for real servers.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeSet;
use std::sync::Arc;

use anyhow::Result;
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{MAX_OPERATIONS, Write};
use configurator_core::partition::Partition;
use configurator_core::request::{
    ConfigAppConf, ConfigBasic, ConfigOperation, ConfigRequest, ConfigResource, ConfigTwoLayers,
    ConfigType, ConfigVerb, Operation, SecretRequest, SecretVerb,
};
use configurator_host::sinks::Scope;
use configurator_host::sinks::configstore::etcd::EtcdConfigStore;
use configurator_host::sinks::configstore::{
    Companion, Condition, ConfigStore, ConfigTransaction, ConfigstoreSink, EmbeddedConfigStore,
    Fence, StandingFence,
};
use configurator_host::sinks::secretstore::vault::{VaultAuth, VaultOptions, VaultSecretStore};
use configurator_host::sinks::secretstore::{
    EmbeddedSecretStore, RandomSecrets, SealingKey, SecretStore, SecretstoreSink,
};
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::unlimited::execute;
use etcd_client::GetOptions;
use expect_test::{Expect, expect};
use futures::future::join_all;
use tokio::task::JoinSet;

use ConfigVerb::{Create, Delete, Get, Update};

async fn config_stores(
    folder: &std::path::Path,
) -> Result<Vec<(&'static str, Arc<dyn ConfigStore>)>> {
    Ok(vec![
        ("memory", Arc::new(EmbeddedConfigStore::memory())),
        (
            "file",
            Arc::new(EmbeddedConfigStore::open(&folder.join("config.redb"))?),
        ),
        (
            "etcd",
            Arc::new(ControlPlane::shared().await?.config_store()),
        ),
    ])
}

async fn secret_stores(
    folder: &std::path::Path,
) -> Result<Vec<(&'static str, Arc<dyn SecretStore>)>> {
    let key = SealingKey::random()?;
    Ok(vec![
        ("memory", Arc::new(EmbeddedSecretStore::memory(&key))),
        (
            "file",
            Arc::new(EmbeddedSecretStore::open(&folder.join("secrets.redb"), &key).await?),
        ),
        ("vault", Arc::new(vault(folder).await?)),
    ])
}

/// Vault, with names that no other folder's store has.
async fn vault(folder: &std::path::Path) -> Result<VaultSecretStore> {
    let about = ControlPlane::shared().await?;
    let auth = VaultAuth::token(about.vault.token);
    let prefix = folder.file_name().unwrap().to_string_lossy();
    Ok(VaultSecretStore::new(VaultOptions {
        prefix: format!("conformance/{prefix}"),
        ca: Some(about.ca),
        ..VaultOptions::new(vec![about.vault.url], auth)
    })?)
}

fn pod(verb: ConfigVerb, uid: &str, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::Resource(ConfigResource {
        config_type: ConfigType::Pod,
        verb,
        name: "web".into(),
        uid: Some(uid.into()),
        namespace: Some("shop".into()),
        workload_kind: None,
        value: value.map(Into::into),
    })
}

fn conf(verb: ConfigVerb, key: &str, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::AppConf(ConfigAppConf {
        verb,
        pod_name: "web".into(),
        namespace: None,
        key: key.into(),
        value: value.map(Into::into),
    })
}

fn basic(verb: ConfigVerb, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::Basic(ConfigBasic {
        verb,
        key: "a/b".into(),
        value: value.map(Into::into),
    })
}

fn two(verb: ConfigVerb, third: &str, value: Option<&str>) -> ConfigOperation {
    ConfigOperation::TwoLayers(ConfigTwoLayers {
        verb,
        second_path: "index".into(),
        third_path: third.into(),
        value: value.map(Into::into),
    })
}

/// Runs the transactions one after another on every store: what each answers, and what is stored at the end.
async fn check(transactions: &[Vec<ConfigOperation>], expected: Expect) -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        let sink = ConfigstoreSink::new(store.clone());
        let scope = Scope::default();
        let mut text = String::new();
        for operations in transactions {
            let request = ConfigRequest {
                is_transaction: true,
                operations: operations.clone(),
                partition: None,
            };
            text += &match execute(&sink, &Operation::Config(request), &scope).await {
                Ok(answer) => {
                    let objects: Vec<_> =
                        answer.query_objects.iter().map(Document::as_str).collect();
                    format!(
                        "{}{}\n",
                        objects.join(" "),
                        if answer.changed { " (changed)" } else { "" }
                    )
                }
                Err(fault) => format!("{fault}\n"),
            };
        }
        for (key, value) in store.scan("").await? {
            text += &format!("{key} = {value}\n");
        }
        println!("{name}");
        expected.assert_eq(&text);
    }
    Ok(())
}

#[tokio::test]
async fn a_transaction_writes_all_or_nothing() -> Result<()> {
    check(
        &[
            vec![pod(Update, "u1", Some("x")), conf(Update, "k", Some("1")), two(Create, "web", Some("{}"))],
            vec![basic(Update, Some("y")), pod(Get, "u2", None)],
            vec![basic(Get, None)],
            vec![pod(Update, "u1", Some("x")), conf(Update, "k", Some("1")), two(Create, "web", Some("{}"))],
        ],
        expect![[r#"
            {"key":"resources/pod/shop/web","uid":"u1","value":"x"} {"key":"appconf/shop/web/k","value":"1"} {"key":"two/index/web","value":"{}"} (changed)
            ResourceNotFound: the config store has no resources/pod/shop/web
            ResourceNotFound: the config store has no basic/a%2Fb
            {"key":"resources/pod/shop/web","uid":"u1","value":"x"} {"key":"appconf/shop/web/k","value":"1"} {"key":"two/index/web","value":"{}"}
            appconf/shop/web/k = 1
            resources/pod/shop/web = {"uid":"u1","value":"x"}
            two/index = {}
            two/index/web = {}
        "#]],
    )
    .await
}

#[tokio::test]
async fn a_new_uid_replaces_the_entry_and_what_hangs_on_it() -> Result<()> {
    check(
        &[
            vec![pod(Update, "u1", Some("x")), conf(Update, "k", Some("1"))],
            vec![pod(Create, "u2", Some("y"))],
            vec![pod(Delete, "u1", None)],
            vec![pod(Get, "u2", None)],
        ],
        expect![[r#"
            {"key":"resources/pod/shop/web","uid":"u1","value":"x"} {"key":"appconf/shop/web/k","value":"1"} (changed)
            {"key":"resources/pod/shop/web","uid":"u2","value":"y"} (changed)
            {"key":"resources/pod/shop/web"}
            {"key":"resources/pod/shop/web","uid":"u2","value":"y"}
            resources/pod/shop/web = {"uid":"u2","value":"y"}
        "#]],
    )
    .await
}

#[tokio::test]
async fn layers_come_and_go_with_their_leaves() -> Result<()> {
    check(
        &[
            vec![conf(Create, "k", Some("1")), two(Create, "a", Some("1")), two(Create, "b", Some("2"))],
            vec![conf(Delete, "k", None), two(Delete, "a", None), two(Delete, "b", None)],
            vec![conf(Delete, "k", None), two(Delete, "a", None)],
        ],
        expect![[r#"
            {"key":"appconf/shop/web/k","value":"1"} {"key":"two/index/a","value":"1"} {"key":"two/index/b","value":"2"} (changed)
            {"key":"appconf/shop/web/k"} {"key":"two/index/a"} {"key":"two/index/b"} (changed)
            {"key":"appconf/shop/web/k"} {"key":"two/index/a"}
        "#]],
    )
    .await
}

#[tokio::test]
async fn keys_outside_the_layout_are_written_together() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (_, store) in config_stores(folder.path()).await? {
        let put = |key: &str| Write::Put(key.into(), "v".into());
        store
            .write(
                vec![put("ledger/a/1"), put("ledger/a/2"), put("ledger/ab/1")],
                &[],
            )
            .await?;
        store
            .write(vec![Write::DeletePrefix("ledger/a/".into()), put("x")], &[])
            .await?;
        let keys: Vec<String> = store
            .scan("")
            .await?
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(keys, ["ledger/ab/1", "x"]);
        store.probe().await?;
    }
    Ok(())
}

#[tokio::test]
async fn keys_are_written_only_where_every_condition_holds() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        let put = |value: &str| vec![Write::Put("a/1".into(), value.into())];
        let absent = [Condition::is_absent("a/1")];
        assert!(store.write_if(put("1"), &absent, &[]).await?, "{name}");
        assert!(!store.write_if(put("2"), &absent, &[]).await?, "{name}");
        let is_two = [Condition::is("a/1", "2")];
        let remove = || vec![Write::Delete("a/1".into())];
        assert!(!store.write_if(remove(), &is_two, &[]).await?, "{name}");
        let one = Condition::is("a/1", "1");
        let both = [one.clone(), Condition::is("a/2", "1")];
        assert!(!store.write_if(remove(), &both, &[]).await?, "{name}");
        let standing = StandingFence::read(store.as_ref(), "ring/1").await?;
        let fence = [standing.next("one", 9)];
        let unraised = store.write_if(remove(), &both, &fence).await;
        assert!(unraised.is_err(), "{name}: {unraised:?}");
        assert_eq!(store.scan("a/").await?, [("a/1".into(), "1".into())]);
        assert!(store.write_if(remove(), &[one], &[]).await?, "{name}");
        assert_eq!(store.scan("a/").await?, [], "{name}");
    }
    Ok(())
}

/// The operations of a request and the keys beside them are written together, or neither is.
#[tokio::test]
async fn a_companion_is_written_in_the_transaction_of_its_request() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        let sink = ConfigstoreSink::new(store.clone());
        let send = async |operation: ConfigOperation, companion: Companion| {
            let request = Operation::Config(ConfigRequest {
                is_transaction: false,
                operations: vec![operation],
                partition: None,
            });
            let scope = Scope {
                companion,
                ..Scope::default()
            };
            match execute(&sink, &request, &scope).await {
                Ok(answer) => format!("changed: {}", answer.changed),
                Err(fault) => fault.to_string(),
            }
        };
        let put = |value: &str| Write::Put("members/a".into(), value.into());
        let create = |condition| Companion {
            conditions: vec![condition],
            writes: vec![put("1")],
            needs_change: true,
        };
        let is_absent = || Condition::is_absent("members/a");
        let said = [
            send(basic(Create, Some("x")), create(is_absent())).await,
            // The mark is there, and then it is not, but the key is.
            send(basic(Create, Some("y")), create(is_absent())).await,
            send(
                basic(Create, Some("y")),
                create(Condition::is("members/a", "1")),
            )
            .await,
            send(
                basic(Update, Some("x")),
                Companion {
                    writes: vec![put("1")],
                    conditions: vec![Condition::is("members/a", "1")],
                    ..Companion::default()
                },
            )
            .await,
            send(
                basic(Update, Some("x")),
                Companion {
                    writes: vec![put("2")],
                    ..Companion::default()
                },
            )
            .await,
            send(
                basic(Delete, None),
                Companion {
                    conditions: vec![Condition::is("members/a", "1")],
                    writes: vec![Write::Delete("members/a".into())],
                    ..Companion::default()
                },
            )
            .await,
        ];
        println!("{name}");
        expect![[r#"
            changed: true
            ResourceConflict: the config store: nothing was written, because members/a was changed by others meanwhile
            ResourceConflict: the config store: nothing was written, because it is there already
            changed: false
            changed: true
            ResourceConflict: the config store: nothing was written, because members/a was changed by others meanwhile"#]]
        .assert_eq(&said.join("\n"));
        let stored = store.scan("").await?;
        let expected = [("basic/a%2Fb", "x"), ("members/a", "2")];
        assert_eq!(
            stored,
            expected.map(|(key, value)| (key.to_owned(), value.to_owned())),
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn nothing_comes_through_past_a_later_fence() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        let write = async |fence: &Fence, value: &str| {
            let fences = std::slice::from_ref(fence);
            let leaf = two(Create, "leaf", Some(value));
            let transacted = store
                .transact(transaction(&[leaf]).fences(fences))
                .await
                .map(drop);
            let put = Write::Put("ledger/a/1".into(), value.into());
            let written = store.write(vec![put], fences).await;
            match (transacted, written) {
                (Ok(()), Ok(())) => "through".to_owned(),
                (Err(one), Err(other)) if one == other => one.to_string(),
                (one, other) => panic!("{name}: {one:?} {other:?}"),
            }
        };
        let read = async || StandingFence::read(store.as_ref(), "ring/1").await;
        let none = read().await?;
        let earlier = none.next("one", 100);
        let unraised = write(&earlier, "0").await;
        assert!(earlier.raise(store.as_ref(), &none).await?, "{name}");
        assert!(earlier.raise(store.as_ref(), &none).await?, "{name}");
        let first = write(&earlier, "1").await;
        // The right to write has gone back to an earlier state: the next holder knows of fewer hand-overs.
        let seen = read().await?;
        let later = seen.next("two", 5);
        assert!(seen.is_ahead_of(&later), "{name}");
        assert!(!seen.is_ahead_of(&seen.next("one", 5)), "{name}");
        assert!(!seen.is_ahead_of(&seen.next("two", 101)), "{name}");
        assert!(later.raise(store.as_ref(), &seen).await?, "{name}");
        let late = write(&earlier, "2").await;
        // Who has not seen the fence that stands replaces none.
        let stalled = none.next("three", 101);
        assert!(!stalled.raise(store.as_ref(), &none).await?, "{name}");
        assert!(!earlier.raise(store.as_ref(), &none).await?, "{name}");
        let second = write(&later, "3").await;
        expect![[r#"
            ConfigstoreUnavailable: the config store: nothing was written for "1 one 100", because fences/ring/1 names "nobody": another host has taken over
            through
            ConfigstoreUnavailable: the config store: nothing was written for "1 one 100", because fences/ring/1 names "2 two 5": another host has taken over
            through"#]]
        .assert_eq(&[unraised, first, late, second].join("\n"));
        let mut keys = store.scan("").await?;
        keys.retain(|(key, _)| key != "two/index");
        let expected = [
            ("fences/ring/1", "2 two 5"),
            ("ledger/a/1", "3"),
            ("two/index/leaf", "1"),
        ];
        let expected = expected.map(|(key, value)| (key.to_owned(), value.to_owned()));
        assert_eq!(keys, expected, "{name}");
    }
    Ok(())
}

/// Operations for an object of the namespace `shop`.
fn transaction(operations: &[ConfigOperation]) -> ConfigTransaction {
    ConfigTransaction::new(operations, "shop")
}

/// What so many come to that write at the same time, each in a task of its own.
async fn at_once<T, F>(writers: usize, write: impl Fn(usize) -> F) -> Result<Vec<T>, Fault>
where
    F: Future<Output = Result<T, Fault>> + Send + 'static,
    T: Send + 'static,
{
    let writing: JoinSet<_> = (0..writers).map(write).collect();
    writing.join_all().await.into_iter().collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_one_layer_lose_nothing() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        at_once(50, |number| {
            let store = store.clone();
            async move {
                let leaf = format!("leaf-{number}");
                store
                    .transact(transaction(&[two(Create, &leaf, Some("1"))]))
                    .await?;
                store
                    .transact(transaction(&[two(Delete, &leaf, None)]))
                    .await?;
                store
                    .transact(transaction(&[conf(Update, &leaf, Some("1"))]))
                    .await
            }
        })
        .await?;
        let keys: Vec<String> = store
            .scan("")
            .await?
            .into_iter()
            .map(|(key, _)| key)
            .collect();
        assert_eq!(
            keys.iter()
                .filter(|key| key.starts_with("appconf/shop/web/"))
                .count(),
            50,
            "{name}"
        );
        assert!(
            !keys.iter().any(|key| key.starts_with("two/")),
            "{name}: {keys:?}"
        );
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn many_writers_of_different_keys_do_not_disturb_each_other() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        let written = at_once(50, |number| {
            let store = store.clone();
            async move {
                let pod = |uid: &str| {
                    ConfigOperation::Resource(ConfigResource {
                        config_type: ConfigType::Pod,
                        verb: Update,
                        name: format!("web-{number}"),
                        uid: Some(uid.into()),
                        namespace: Some("shop".into()),
                        workload_kind: None,
                        value: Some(uid.into()),
                    })
                };
                let record = Write::Put(format!("ledger/{number}"), "{}".into());
                store.write(vec![record], &[]).await?;
                let mut changes = Vec::new();
                for uid in ["u1", "u1", "u2"] {
                    let written = store.transact(transaction(&[pod(uid)])).await?;
                    changes.push(written.changed);
                }
                Ok(changes)
            }
        })
        .await?;
        assert_eq!(written, vec![[true, false, true]; 50], "{name}");
        let stored = store.scan("").await?;
        let of = |prefix: &str, value: &str| {
            let is_right =
                |(key, found): &&(String, String)| key.starts_with(prefix) && found == value;
            stored.iter().filter(is_right).count()
        };
        let pods = of("resources/pod/shop/web-", r#"{"uid":"u2","value":"u2"}"#);
        assert_eq!(
            (pods, of("ledger/", "{}"), stored.len()),
            (50, 50, 100),
            "{name}"
        );
    }
    Ok(())
}

#[tokio::test]
async fn what_is_written_to_etcd_at_the_same_time_goes_in_few_requests() -> Result<()> {
    let about = ControlPlane::shared().await?;
    let prefix = format!("tests/{}/together/", std::process::id());
    let store = EtcdConfigStore::new(about.etcd_options(&prefix));
    let writes = (0..100).map(|number| {
        let record = Write::Put(format!("ledger/{number}"), "{}".into());
        store.write(vec![record], &[])
    });
    for written in join_all(writes).await {
        written?;
    }
    let everything = GetOptions::new().with_prefix();
    let mut etcd = about.etcd(&about.store.endpoints).await?;
    let stored = etcd.get(prefix, Some(everything)).await?;
    let revisions: BTreeSet<i64> = stored
        .kvs()
        .iter()
        .map(|pair| pair.mod_revision())
        .collect();
    // The first had gone when the others came.
    assert_eq!((stored.kvs().len(), revisions.len()), (100, 2));
    Ok(())
}

/// A leaf, its layer, and an entry with what hangs on it, in each of three partitions.
#[tokio::test]
async fn partitions_do_not_meet() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let partitions = [
        Partition::default(),
        Partition::of_namespace("shop", "uid-1"),
        Partition::of_namespace("shop", "uid-2"),
    ];
    let operations = |verb: ConfigVerb, value: Option<&str>| {
        [
            two(verb, "leaf", value),
            pod(verb, "uid", value),
            conf(verb, "key", value),
        ]
    };
    for (name, store) in config_stores(folder.path()).await? {
        for (number, partition) in partitions.iter().enumerate() {
            let value = number.to_string();
            let written = transaction(&operations(Create, Some(&value)));
            store.transact(written.partition(partition.clone())).await?;
        }
        let gone = &partitions[1];
        let deleted = transaction(&[two(Delete, "leaf", None), pod(Delete, "uid", None)]);
        store.transact(deleted.partition(gone.clone())).await?;
        assert_eq!(store.scan(gone.prefix()).await?, [], "{name}");
        for (number, partition) in partitions.iter().enumerate() {
            let read = transaction(&[two(Get, "leaf", None)]).partition(partition.clone());
            let answer = store.transact(read).await;
            match (number, answer) {
                (1, answer) => assert!(answer.is_err(), "{name}: {answer:?}"),
                (_, answer) => {
                    let answer = answer?.answers[0].to_value();
                    assert_eq!(answer["value"], number.to_string(), "{name}");
                    assert!(!answer["key"].as_str().unwrap().contains("uid-"), "{name}");
                }
            }
        }
    }
    Ok(())
}

/// Names that a store may hold in another form.
#[tokio::test]
async fn folders_of_secrets_are_listed_and_deleted() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in secret_stores(folder.path()).await? {
        let all = [
            "f/a/1/x",
            "f/a/1/y/z",
            "f/a/1/a b",
            "f/a/12/x",
            "f/b/1/x",
            "f/b",
            "f",
        ];
        for secret in all {
            store.create(secret, Document::of(&1)?).await?;
        }
        let folders: Vec<String> = store.folders("f/").await?.into_iter().collect();
        assert_eq!(folders, ["a", "b"], "{name}");
        assert_eq!(store.folders("none/").await?, BTreeSet::new(), "{name}");
        store.delete_all("f/a/1/").await?;
        store.delete_all("none/").await?;
        let mut left = Vec::new();
        for secret in all {
            if store.get(secret).await?.is_some() {
                left.push(secret);
            }
        }
        assert_eq!(left, ["f/a/12/x", "f/b/1/x", "f/b", "f"], "{name}");
        for secret in left {
            store.delete(secret).await?;
        }
    }
    Ok(())
}

/// An entry and its keys: everything that is written is also looked at.
#[tokio::test]
async fn a_pod_with_as_many_keys_as_there_may_be_is_replaced() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in config_stores(folder.path()).await? {
        for uid in ["u1", "u2"] {
            let mut operations = vec![pod(Update, uid, Some("x"))];
            operations.extend(
                (0..MAX_OPERATIONS - 1).map(|n| conf(Update, &format!("{n:03}"), Some(uid))),
            );
            let written = store.transact(transaction(&operations)).await?;
            assert!(written.changed, "{name}");
            let stored = store.scan("appconf/").await?;
            assert_eq!(stored.len(), MAX_OPERATIONS - 1, "{name}");
            assert!(stored.iter().all(|(_, value)| value == uid), "{name}");
        }
    }
    Ok(())
}

async fn secret(
    sink: &SecretstoreSink,
    name: &str,
    verb: SecretVerb,
    value: Option<&str>,
) -> String {
    let value = value.map(|value| Document::parse(value).unwrap());
    send_secret(sink, name, verb, value, None).await
}

async fn send_secret(
    sink: &SecretstoreSink,
    name: &str,
    verb: SecretVerb,
    value: Option<Document>,
    version: Option<u64>,
) -> String {
    let operation = Operation::Secret(SecretRequest {
        name: name.into(),
        verb,
        value,
        version,
        partition: None,
    });
    match execute(sink, &operation, &Scope::default()).await {
        Ok(answer) => {
            let objects: Vec<_> = answer.query_objects.iter().map(Document::as_str).collect();
            format!(
                "{}{}",
                objects.join(" "),
                if answer.changed { " (changed)" } else { "" }
            )
        }
        Err(fault) => fault.to_string(),
    }
}

#[tokio::test]
async fn an_update_replaces_one_version_of_a_secret() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in secret_stores(folder.path()).await? {
        println!("{name}");
        let sink = SecretstoreSink::new(store.clone(), Arc::new(RandomSecrets));
        let update = async |version: u64, value: &str| {
            let value = Document::parse(value).unwrap();
            send_secret(&sink, "u", SecretVerb::Update, Some(value), Some(version)).await
        };
        let found = [
            update(1, r#""early""#).await,
            update(0, r#""a""#).await,
            update(0, r#""b""#).await,
            // Sent again after a lost answer.
            update(0, r#""a""#).await,
            update(1, r#""b""#).await,
            update(1, r#""c""#).await,
            secret(&sink, "u", SecretVerb::Get, None).await,
            secret(&sink, "u", SecretVerb::Delete, None).await,
            update(2, r#""d""#).await,
            update(0, r#""d""#).await,
        ];
        expect![[r#"
            ResourceConflict: the secret "u" was to be updated from version 1, and the secret store has no such secret
            {"name":"u","version":1,"value":"a"} (changed)
            ResourceConflict: the secret "u" was to be updated from version 0, and the secret store has version 1
            {"name":"u","version":1,"value":"a"}
            {"name":"u","version":2,"value":"b"} (changed)
            ResourceConflict: the secret "u" was to be updated from version 1, and the secret store has version 2
            {"name":"u","version":2,"value":"b"}
             (changed)
            ResourceConflict: the secret "u" was to be updated from version 2, and the secret store has no such secret
            {"name":"u","version":3,"value":"d"} (changed)"#]]
        .assert_eq(&found.join("\n"));
        let generated = send_secret(&sink, "u", SecretVerb::Update, None, Some(3)).await;
        assert!(generated.contains(r#""version":4"#), "{generated}");
    }
    Ok(())
}

#[tokio::test]
async fn of_two_updates_of_a_version_one_succeeds() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in secret_stores(folder.path()).await? {
        println!("{name}");
        let sink = SecretstoreSink::new(store.clone(), Arc::new(RandomSecrets));
        secret(&sink, "race", SecretVerb::Create, Some("0")).await;
        let update = async |value: u32| {
            let value = Document::of(&value).unwrap();
            send_secret(&sink, "race", SecretVerb::Update, Some(value), Some(1)).await
        };
        let answers = join_all((1..=8).map(update)).await;
        let changed = answers
            .iter()
            .filter(|answer| answer.ends_with("(changed)"));
        assert_eq!(changed.count(), 1, "{answers:?}");
        let refused = answers
            .iter()
            .filter(|answer| answer.starts_with("ResourceConflict"));
        assert_eq!(refused.count(), 7, "{answers:?}");
    }
    Ok(())
}

#[tokio::test]
async fn a_create_never_overwrites_a_secret() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in secret_stores(folder.path()).await? {
        println!("{name}");
        let sink = SecretstoreSink::new(store.clone(), Arc::new(RandomSecrets));
        let found = [
            secret(&sink, "a", SecretVerb::Get, None).await,
            secret(&sink, "a", SecretVerb::Create, Some(r#"{"user":"x"}"#)).await,
            secret(&sink, "a", SecretVerb::Create, Some(r#""other""#)).await,
            secret(&sink, "a", SecretVerb::Delete, None).await,
            secret(&sink, "a", SecretVerb::Delete, None).await,
            secret(&sink, "a", SecretVerb::Create, Some(r#""new""#)).await,
        ];
        expect![[r#"
            ResourceNotFound: the secret store has no "a"
            {"name":"a","version":1,"value":{"user":"x"}} (changed)
            {"name":"a","version":1,"value":{"user":"x"}}
             (changed)

            {"name":"a","version":2,"value":"new"} (changed)"#]]
        .assert_eq(&found.join("\n"));
        let generated = secret(&sink, "generated", SecretVerb::Create, None).await;
        assert_eq!(
            secret(&sink, "generated", SecretVerb::Get, None).await,
            generated.replace(" (changed)", "")
        );
        assert_ne!(
            generated,
            secret(&sink, "another", SecretVerb::Create, None).await
        );
    }
    Ok(())
}

#[tokio::test]
async fn a_value_comes_back_as_it_went_in() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let long = format!("\"{}\"", "<é\\\"&>".repeat(70_000));
    for (store_name, store) in secret_stores(folder.path()).await? {
        for (number, text) in [
            "12345678901234567890123",
            "0.1000000000000000055511151231257827",
            "1.0",
            "-0",
            "null",
            "\"\"",
            "[]",
            r#"{"z": 1, "a" : {"é\u0000\ud83d\ude00": "<&>"}, "a": 2}"#,
            r#"{"json": "{}"}"#,
            r#"{"data": {"json": "1"}, "metadata": {"version": 7}}"#,
            "  \n[1 ,\t2]  ",
            &long,
        ]
        .into_iter()
        .enumerate()
        {
            let name = format!("value-{number}");
            let (made, is_new) = store.create(&name, Document::parse(text)?).await?;
            assert!(is_new, "{store_name}: {text}");
            let got = store.get(&name).await?.unwrap();
            assert_eq!(got.value.as_str(), text, "{store_name}");
            assert!(got == made && got.version == 1, "{store_name}: {text}");
        }
    }
    Ok(())
}

#[tokio::test]
async fn every_name_is_a_name_of_its_own() -> Result<()> {
    let names = [
        "a",
        "A",
        "a/",
        "/a",
        "a//b",
        "a/b",
        "a%2Fb",
        "a%252Fb",
        "a b",
        "a+b",
        "a%20b",
        " ",
        "%",
        "",
        "/",
        "//",
        ".",
        "..",
        "../a",
        "a/../b",
        "a/./b",
        "...",
        "a..b",
        "%2E%2E",
        "é",
        "e\u{301}",
        "😀",
        "\u{0}",
        "\u{7f}",
        "\n",
        "*",
        "+",
        "a?b=c#d",
        "a\\b",
        "a:b@c",
        "a;b,c=d&e",
        "data/a",
        "metadata/a",
        "\"'`",
        "secret/data/a",
    ];
    let folder = tempfile::tempdir()?;
    for (store_name, store) in secret_stores(folder.path()).await? {
        let value = |name: &str| Document::of(&name).unwrap();
        for name in names {
            let (secret, is_new) = store.create(name, value(name)).await?;
            assert!(is_new && secret.version == 1, "{store_name}: {name:?}");
        }
        for name in names {
            let found = store.get(name).await?.map(|secret| secret.value);
            assert_eq!(found, Some(value(name)), "{store_name}: {name:?}");
        }
        for (at, name) in names.into_iter().enumerate() {
            assert!(store.delete(name).await?, "{store_name}: {name:?}");
            assert_eq!(store.get(name).await?, None, "{store_name}: {name:?}");
            if let Some(next) = names.get(at + 1) {
                assert!(store.get(next).await?.is_some(), "{store_name}: {next:?}");
            }
        }
    }
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn of_many_that_create_a_secret_all_get_the_same() -> Result<()> {
    let folder = tempfile::tempdir()?;
    for (name, store) in secret_stores(folder.path()).await? {
        // The second time after a deletion.
        for version in 1..=2 {
            let created = at_once(20, |number| {
                let store = store.clone();
                async move { store.create("a", Document::of(&number).unwrap()).await }
            })
            .await?;
            let new = created.iter().filter(|(_, is_new)| *is_new).count();
            assert_eq!(new, 1, "{name}");
            assert!(
                created
                    .iter()
                    .all(|(secret, _)| *secret == created[0].0 && secret.version == version),
                "{name}: {created:?}"
            );
            assert!(store.delete("a").await?);
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_sealed_store_opens_with_its_own_key_only_and_holds_no_plain_text() -> Result<()> {
    let folder = tempfile::tempdir()?;
    let file = folder.path().join("secrets.redb");
    let key = SealingKey::random()?;
    let store = EmbeddedSecretStore::open(&file, &key).await?;
    store
        .create("name", Document::of(&"a very secret value")?)
        .await?;
    drop(store);
    let bytes = std::fs::read(&file)?;
    assert!(!bytes.windows(11).any(|window| window == b"very secret"));
    let wrong = EmbeddedSecretStore::open(&file, &SealingKey::random()?).await;
    assert!(
        wrong
            .err()
            .unwrap()
            .to_string()
            .contains("was sealed with another key")
    );
    let again = EmbeddedSecretStore::open(&file, &key).await?;
    assert_eq!(
        again.get("name").await?.unwrap().value.as_str(),
        r#""a very secret value""#
    );
    Ok(())
}

#[tokio::test]
async fn an_operation_for_another_sink_is_refused() -> Result<()> {
    let sink = ConfigstoreSink::new(Arc::new(EmbeddedConfigStore::memory()));
    let operation = Operation::Secret(SecretRequest {
        name: "a".into(),
        verb: SecretVerb::Get,
        value: None,
        version: None,
        partition: None,
    });
    let fault = execute(&sink, &operation, &Scope::default())
        .await
        .unwrap_err();
    assert_eq!(fault.kind, FaultKind::UnsupportedResourceOperation);
    Ok(())
}
