//! Whatever happens to a Pod, the config store ends with its effective configuration and nothing else.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

use std::collections::BTreeMap;

use configurator_sdk::bindings::configurator::handler::requests::{
    ConfigAppConfVerb, ConfigOperation, ConfigTwoLayersVerb, ConfigVerb,
};
use configurator_sdk::{ErrorKind, Input, Operation, RequestResult, RequestSink};
use pod_config::HANDLERS;
use proptest::prelude::*;
use serde_json::{Value, json};

/// As much of a config store as one Pod needs.
#[derive(Debug, Default, PartialEq)]
struct Store {
    entry: Option<(String, String)>,
    app_conf: BTreeMap<String, String>,
    leaves: Vec<String>,
    writes: usize,
}

impl Store {
    fn read(&self) -> RequestResult {
        match &self.entry {
            Some((uid, value)) => RequestResult::answered(
                "entry",
                RequestSink::Configstore,
                [json!({"uid": uid, "value": value})],
            ),
            _ => RequestResult::failed(
                "entry",
                RequestSink::Configstore,
                ErrorKind::ResourceNotFound,
                "not found",
            ),
        }
    }

    fn carry_out(&mut self, operation: &Operation) {
        let Operation::ConfigTransaction(transaction) = operation else {
            return;
        };
        assert!(
            transaction.operations.len() <= 100,
            "{}",
            transaction.operations.len()
        );
        for operation in &transaction.operations {
            self.writes += 1;
            match operation {
                ConfigOperation::Resource(request) => {
                    let uid = request.resource_uid.clone().unwrap();
                    let is_other = self
                        .entry
                        .as_ref()
                        .is_some_and(|(stored, _)| *stored != uid);
                    match request.config_verb {
                        ConfigVerb::Update => {
                            if is_other {
                                self.app_conf.clear();
                            }
                            self.entry = Some((uid, request.value.clone().unwrap()));
                        }
                        ConfigVerb::Delete if is_other => {}
                        ConfigVerb::Delete => {
                            self.entry = None;
                            self.app_conf.clear();
                        }
                        other => panic!("{other:?}"),
                    }
                }
                ConfigOperation::AppConf(request) => match request.verb {
                    ConfigAppConfVerb::Update => {
                        self.app_conf
                            .insert(request.key.clone(), request.value.clone().unwrap());
                    }
                    ConfigAppConfVerb::Delete => {
                        assert!(
                            self.app_conf.remove(&request.key).is_some(),
                            "{} was not there",
                            request.key
                        );
                    }
                    other @ ConfigAppConfVerb::Create => panic!("{other:?}"),
                },
                ConfigOperation::TwoLayers(request) => match request.verb {
                    ConfigTwoLayersVerb::Update if self.leaves.contains(&request.second_path) => {}
                    ConfigTwoLayersVerb::Update => self.leaves.push(request.second_path.clone()),
                    ConfigTwoLayersVerb::Delete => {
                        self.leaves.retain(|leaf| *leaf != request.second_path)
                    }
                    other => panic!("{other:?}"),
                },
                other @ ConfigOperation::Basic(_) => panic!("{other:?}"),
            }
        }
    }
}

/// What a Pod is at one time.
#[derive(Clone, Debug)]
struct Version {
    uid: u8,
    owner: u8,
    config: BTreeMap<String, String>,
}

impl Version {
    fn object(&self) -> Value {
        let annotations: BTreeMap<String, &String> = self
            .config
            .iter()
            .map(|(key, value)| (format!("config.configurator.dev/{key}"), value))
            .collect();
        json!({"metadata": {
            "namespace": "n", "name": "p", "uid": format!("u-{}", self.uid), "annotations": annotations,
            "ownerReferences": [
                {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": format!("s-{}", self.owner), "controller": true},
            ],
        }})
    }

    fn run(&self, store: &mut Store) {
        let read = store.read();
        let input = Input::builder().object(self.object()).result(read).build();
        for request in &HANDLERS
            .call("write-config", &input)
            .unwrap()
            .requests
            .resource_requests
        {
            store.carry_out(&request.operation);
        }
    }

    fn go(&self, store: &mut Store) {
        let input = Input::builder()
            .object(self.object())
            .result(store.read())
            .build();
        for request in &HANDLERS
            .call("delete-config", &input)
            .unwrap()
            .requests
            .resource_requests
        {
            store.carry_out(&request.operation);
        }
    }
}

fn versions() -> impl Strategy<Value = Vec<Version>> {
    let few = proptest::collection::btree_map("[a-f]", "[0-3\"é]{0,2}", 0..6);
    let many = proptest::collection::btree_map("[a-z][a-z0-9]{1,2}", "[0-3]", 0..96);
    let config = prop_oneof![3 => few, 1 => many];
    let version =
        (0_u8..2, 0_u8..2, config).prop_map(|(uid, owner, config)| Version { uid, owner, config });
    proptest::collection::vec(version, 1..8)
}

proptest! {
    #[test]
    fn the_store_ends_with_the_last_version(versions in versions()) {
        let mut store = Store::default();
        let mut uid = None;
        for version in &versions {
            if uid.is_some_and(|uid| uid != version.uid) {
                // A new uid under an old name is a deletion, then an addition.
                let gone = Version { uid: uid.unwrap_or_default(), ..version.clone() };
                gone.go(&mut store);
                prop_assert_eq!((&store.entry, store.app_conf.len(), store.leaves.len()), (&None, 0, 0));
            }
            uid = Some(version.uid);
            version.run(&mut store);
            prop_assert_eq!(&store.app_conf, &version.config);
            prop_assert_eq!(&store.leaves, &vec![format!("pods.n.StatefulSet.s-{}", version.owner)]);

            let writes = store.writes;
            version.run(&mut store);
            prop_assert_eq!(store.writes, writes, "a second run wrote");
        }
    }

    #[test]
    fn a_deletion_that_comes_late_leaves_the_newer_pod_alone(older in versions(), newer in versions()) {
        let (mut older, mut newer) = (older[0].clone(), newer[0].clone());
        (older.uid, newer.uid) = (0, 1);
        let mut store = Store::default();
        older.run(&mut store);
        newer.run(&mut store);
        older.go(&mut store);
        prop_assert_eq!(&store.app_conf, &newer.config);
        prop_assert_eq!(&store.leaves, &vec![format!("pods.n.StatefulSet.s-{}", newer.owner)]);
        prop_assert_eq!(store.entry.as_ref().map(|(uid, _)| uid.as_str()), Some("u-1"));
    }
}
