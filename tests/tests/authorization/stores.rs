//! Requests to the config store and to the secret store.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use configurator_core::authorization::Caller;
use configurator_core::capability::{Capabilities, ConfigstoreRule, SecretstoreRule};
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::partition::Partition;
use configurator_core::request::{
    ConfigAppConf, ConfigBasic, ConfigOperation, ConfigRequest, ConfigResource, ConfigTwoLayers,
    ConfigType, ConfigVerb, Operation, SecretRequest, SecretVerb,
};
use configurator_core::result::Answer;
use configurator_host::sinks::configstore::{
    Condition, ConfigStore, ConfigTransaction, ConfigstoreSink, Fence, Transacted,
};
use configurator_host::sinks::partitions::Partitions;
use configurator_host::sinks::secretstore::{RandomSecrets, Secret, SecretStore, SecretstoreSink};
use configurator_host::sinks::{Scope, Sink};

use super::chance::Chance;
use super::server::CONTENT;
use super::{Rules, scope};

const NAMES: [&str; 14] = [
    "a", "b", "pod-a", "a/b", "../a", "..", ".", "a%2Fb", "%", "ä", "日本", "a b", "*", "~._-",
];

/// A config store that writes down the keys that it is asked for.
#[derive(Clone, Default)]
struct Recorded(Arc<Mutex<Vec<String>>>);

fn answer(text: &str) -> Document {
    Document::parse(text).unwrap()
}

#[async_trait]
impl ConfigStore for Recorded {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        let operations = transaction.operations();
        let namespace = transaction.default_namespace();
        let prefix = transaction.prefix();
        let key =
            |operation: &ConfigOperation| prefix.to_owned() + &key(operation, namespace).unwrap();
        *self.0.lock().unwrap() = operations.iter().map(key).collect();
        let value = format!(r#"{{"key":"k","uid":"u","value":"{CONTENT}"}}"#);
        Ok(Transacted {
            answers: operations.iter().map(|_| answer(&value)).collect(),
            changed: true,
        })
    }

    async fn scan(&self, _: &str) -> Result<Vec<(String, String)>, Fault> {
        panic!("no request scans")
    }

    async fn write(&self, _: Vec<Write>, _: &[Fence]) -> Result<(), Fault> {
        panic!("no request writes outside the layout")
    }

    async fn write_if(&self, _: Vec<Write>, _: &[Condition], _: &[Fence]) -> Result<bool, Fault> {
        panic!("no request writes outside the layout")
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

#[async_trait]
impl SecretStore for Recorded {
    async fn get(&self, name: &str) -> Result<Option<Secret>, Fault> {
        self.0.lock().unwrap().push(name.to_owned());
        Ok(Some(secret()))
    }

    async fn create(&self, name: &str, _: Document) -> Result<(Secret, bool), Fault> {
        self.0.lock().unwrap().push(name.to_owned());
        Ok((secret(), false))
    }

    async fn update(&self, name: &str, _: u64, _: Document) -> Result<(Secret, bool), Fault> {
        self.0.lock().unwrap().push(name.to_owned());
        Ok((secret(), true))
    }

    async fn delete(&self, name: &str) -> Result<bool, Fault> {
        self.0.lock().unwrap().push(name.to_owned());
        Ok(true)
    }

    async fn delete_all(&self, _: &str) -> Result<(), Fault> {
        panic!("no request deletes a folder")
    }

    async fn folders(&self, _: &str) -> Result<BTreeSet<String>, Fault> {
        panic!("no request lists folders")
    }

    async fn probe(&self) -> Result<(), Fault> {
        Ok(())
    }
}

fn secret() -> Secret {
    Secret {
        version: 3,
        value: answer(&format!("{CONTENT:?}")),
    }
}

fn encoded(segment: &str) -> String {
    segment
        .bytes()
        .map(
            |byte| match byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
                true => char::from(byte).to_string(),
                false => format!("%{byte:02X}"),
            },
        )
        .collect()
}

/// The key that the protocol gives an operation; `None` where a part is missing.
fn key(operation: &ConfigOperation, namespace: &str) -> Option<String> {
    let parts: Vec<&str> = match operation {
        ConfigOperation::Basic(it) => vec!["basic", &it.key],
        ConfigOperation::TwoLayers(it) => vec!["two", &it.second_path, &it.third_path],
        ConfigOperation::AppConf(it) => {
            let namespace = it.namespace.as_deref().unwrap_or(namespace);
            vec!["appconf", namespace, &it.pod_name, &it.key]
        }
        ConfigOperation::Resource(it) => {
            let namespace = it.namespace.as_deref().unwrap_or_default();
            let kind = it.workload_kind.as_deref().unwrap_or_default();
            match it.config_type {
                ConfigType::Pod => vec!["resources", "pod", namespace, &it.name],
                ConfigType::Node => vec!["resources", "node", &it.name],
                ConfigType::Namespace => vec!["resources", "namespace", &it.name],
                ConfigType::Workload => vec!["resources", "workload", namespace, kind, &it.name],
            }
        }
    };
    let is_whole = parts.iter().all(|part| !part.is_empty());
    let segments: Vec<String> = parts.into_iter().map(encoded).collect();
    is_whole.then(|| segments.join("/"))
}

fn operation(chance: &mut Chance) -> ConfigOperation {
    let name = |chance: &mut Chance| chance.pick(&NAMES).to_owned();
    let value = Some("v".to_owned());
    match chance.below(4) {
        0 => ConfigOperation::Basic(ConfigBasic {
            verb: [ConfigVerb::Get, ConfigVerb::Update, ConfigVerb::Delete][chance.below(3)],
            key: name(chance),
            value,
        }),
        1 => ConfigOperation::TwoLayers(ConfigTwoLayers {
            verb: ConfigVerb::ALL[chance.below(4)],
            second_path: name(chance),
            third_path: name(chance),
            value,
        }),
        2 => ConfigOperation::AppConf(ConfigAppConf {
            verb: [ConfigVerb::Create, ConfigVerb::Update, ConfigVerb::Delete][chance.below(3)],
            pod_name: name(chance),
            namespace: chance.one_in(2).then(|| name(chance)),
            key: name(chance),
            value,
        }),
        _ => ConfigOperation::Resource(ConfigResource {
            config_type: ConfigType::ALL[chance.below(4)],
            verb: ConfigVerb::ALL[chance.below(4)],
            name: name(chance),
            uid: chance.one_in(2).then(|| "u".to_owned()),
            namespace: chance
                .one_in(4)
                .then(String::new)
                .or_else(|| Some(name(chance))),
            workload_kind: Some("Deployment".to_owned()),
            value,
        }),
    }
}

fn config_rules(
    chance: &mut Chance,
    operations: &[ConfigOperation],
    named: Option<&String>,
) -> Capabilities {
    if chance.one_in(6) {
        return Capabilities::everything();
    }
    let rules = (0..=chance.below(3)).map(|_| {
        let own = &operations[chance.below(operations.len())];
        let own = key(own, "shop").unwrap_or_default();
        let end = own.floor_char_boundary(chance.below(own.len() + 1));
        ConfigstoreRule {
            namespaces: namespaces(chance, named),
            prefixes: vec![
                own[..end].to_owned(),
                chance
                    .pick(&["basic/a", "resources/pod/", "two/", "appconf/shop/"])
                    .to_owned(),
            ],
            verbs: ConfigVerb::ALL
                .into_iter()
                .filter(|_| !chance.one_in(3))
                .collect(),
        }
    });
    Capabilities {
        configstore: rules.collect(),
        ..Capabilities::default()
    }
}

/// The partitions of namespaces as of now.
struct Found;

#[async_trait]
impl Partitions for Found {
    async fn of_namespace(&self, namespace: &str) -> Result<Partition, Fault> {
        Ok(Partition::of_namespace(namespace, "now"))
    }
}

/// The namespace whose partition a request names, if it names one.
fn partition(chance: &mut Chance) -> Option<String> {
    chance
        .one_in(4)
        .then(|| chance.pick(&["team-a", "shop"]).to_owned())
}

/// Namespaces that a rule is for. Most rules are for the partition that the request is for.
fn namespaces(chance: &mut Chance, named: Option<&String>) -> Vec<String> {
    let other = |chance: &mut Chance| {
        let other = chance.pick(&["team-a", "shop", "*", ""]);
        vec![other.to_owned()]
    };
    match named {
        _ if chance.one_in(8) => other(chance),
        None => Vec::new(),
        Some(named) => vec![chance.pick(&["*", named.as_str()]).to_owned()],
    }
}

/// Whether a rule for these namespaces is for a partition.
fn is_for(namespaces: &[String], partition: Option<&String>) -> bool {
    match partition {
        None => namespaces.is_empty(),
        Some(named) => namespaces.iter().any(|it| it == named || it == "*"),
    }
}

async fn execute(
    sink: &dyn Sink,
    operation: &Operation,
    rules: &Rules,
    scope: &Scope,
) -> Result<Answer, Fault> {
    let caller = Caller {
        namespace: "shop",
        ..Caller::default()
    };
    let authorized = rules.authorize(operation, caller)?;
    let answer = sink.execute(&authorized, scope).await?;
    Ok(authorized.visible(answer))
}

#[tokio::test]
async fn the_config_store_is_asked_for_nothing_that_no_rule_allows() {
    let seed = super::seed();
    let store = Recorded::default();
    let sink = ConfigstoreSink::new(Arc::new(store.clone())).partitions(Arc::new(Found));
    let (mut sent, mut refused) = (0, 0);
    for number in 0..super::STORE_CASES {
        let mut chance = Chance::of(seed, number);
        let operations: Vec<ConfigOperation> = (0..=chance.below(2))
            .map(|_| operation(&mut chance))
            .collect();
        let named = partition(&mut chance);
        let rules = Rules::new(&mut chance, |chance| {
            config_rules(chance, &operations, named.as_ref())
        });
        let scope = scope(&mut chance);
        let by = |operation: &ConfigOperation| {
            let key = key(operation, "shop");
            let named = named.clone();
            move |rules: &Capabilities, verb: &ConfigVerb| {
                let Some(key) = &key else {
                    return false;
                };
                rules.configstore.iter().any(|rule| {
                    let begins = |prefix: &String| key.as_bytes().starts_with(prefix.as_bytes());
                    rule.verbs.contains(verb)
                        && is_for(&rule.namespaces, named.as_ref())
                        && rule.prefixes.iter().any(begins)
                })
            }
        };
        let allows = |it: &ConfigOperation| rules.allow(it.verb(), ConfigVerb::Get, by(it));
        let is_allowed = operations.iter().all(allows);
        let request = Operation::Config(ConfigRequest {
            is_transaction: true,
            operations: operations.clone(),
            partition: named.clone(),
        });
        let answer = execute(&sink, &request, &rules, &scope).await;
        let asked = std::mem::take(&mut *store.0.lock().unwrap());
        let told = || format!("case {number}: {operations:#?}\n{rules:#?}\n{answer:#?}\n{asked:?}");
        assert_eq!(answer.is_ok(), is_allowed, "{}", told());
        let Ok(answer) = &answer else {
            assert!(asked.is_empty(), "{}", told());
            refused += 1;
            continue;
        };
        let prefix = match &named {
            None => scope.partition.prefix().to_owned(),
            Some(named) => format!("namespaces/{named}/now/"),
        };
        let keys: Vec<String> = operations
            .iter()
            .map(|it| prefix.clone() + &key(it, "shop").unwrap())
            .collect();
        assert_eq!(asked, keys, "{}", told());
        for (operation, object) in operations.iter().zip(&answer.query_objects) {
            let is_shown = object.as_str().contains(CONTENT);
            let is_visible = rules.show(ConfigVerb::Get, by(operation));
            assert_eq!(is_shown, is_visible, "{}", told());
        }
        sent += 1;
    }
    println!("{sent} sent, {refused} refused");
    assert!(sent > 300 && refused > 300, "the cases are one-sided");
}

#[tokio::test]
async fn the_secret_store_is_asked_for_nothing_that_no_rule_allows() {
    const OWN: &str = "configurator.dev/";
    const OF_NAMESPACES: &str = "namespaces/";
    let seed = super::seed();
    let store = Recorded::default();
    let sink = SecretstoreSink::new(Arc::new(store.clone()), Arc::new(RandomSecrets))
        .partitions(Arc::new(Found));
    let (mut sent, mut refused) = (0, 0);
    for number in 0..super::STORE_CASES {
        let mut chance = Chance::of(seed, number);
        let mut name = chance.pick(&NAMES).to_owned();
        if chance.one_in(4) {
            name.insert_str(
                0,
                chance.pick(&[OWN, OF_NAMESPACES, "configurator.dev", "namespaces", "pod-"]),
            );
        }
        let verb = SecretVerb::ALL[chance.below(SecretVerb::ALL.len())];
        let named = partition(&mut chance);
        let rules = Rules::new(&mut chance, |chance| {
            let rule = |chance: &mut Chance| SecretstoreRule {
                namespaces: namespaces(chance, named.as_ref()),
                names: vec![
                    chance
                        .pick(&["*", "pod-a", name.as_str(), OWN, OF_NAMESPACES])
                        .to_owned(),
                ],
                verbs: SecretVerb::ALL
                    .into_iter()
                    .filter(|_| !chance.one_in(3))
                    .collect(),
            };
            let number = 1 + chance.below(2);
            Capabilities {
                secretstore: (0..number).map(|_| rule(chance)).collect(),
                ..Capabilities::default()
            }
        });
        let scope = scope(&mut chance);
        let by = |rules: &Capabilities, verb: &SecretVerb| {
            ![OWN, OF_NAMESPACES].iter().any(|it| name.starts_with(it))
                && rules.secretstore.iter().any(|rule| {
                    let names = |pattern: &String| *pattern == "*" || *pattern == name;
                    rule.verbs.contains(verb)
                        && is_for(&rule.namespaces, named.as_ref())
                        && rule.names.iter().any(names)
                })
        };
        let request = Operation::Secret(SecretRequest {
            name: name.clone(),
            verb,
            value: None,
            version: (verb == SecretVerb::Update).then_some(3),
            partition: named.clone(),
        });
        let answer = execute(&sink, &request, &rules, &scope).await;
        let asked = std::mem::take(&mut *store.0.lock().unwrap());
        let told =
            || format!("case {number}: {verb:?} {name:?}\n{rules:#?}\n{answer:#?}\n{asked:?}");
        let is_allowed = rules.allow(verb, SecretVerb::Get, by);
        assert_eq!(answer.is_ok(), is_allowed, "{}", told());
        let Ok(answer) = &answer else {
            assert!(asked.is_empty(), "{}", told());
            refused += 1;
            continue;
        };
        let expected = match &named {
            None => scope.partition.secret(&name),
            Some(named) => format!("namespaces/{named}/now/{name}"),
        };
        assert_eq!(asked, [expected], "{}", told());
        let is_shown = answer
            .query_objects
            .iter()
            .any(|it| it.as_str().contains(CONTENT));
        let has_content = verb != SecretVerb::Delete;
        assert_eq!(
            is_shown,
            has_content && rules.show(SecretVerb::Get, by),
            "{}",
            told()
        );
        sent += 1;
    }
    println!("{sent} sent, {refused} refused");
    assert!(sent > 200 && refused > 200, "the cases are one-sided");
}
