//! The embedded config store.

use std::collections::BTreeMap;

use configurator_core::fault::Fault;
use configurator_core::request::{ConfigOperation, ConfigTwoLayers, ConfigVerb};
use configurator_host::sinks::configstore::{
    ConfigStore as _, ConfigTransaction, EmbeddedConfigStore,
};
use configurator_store::Store;
use configurator_store::testing::{Dice, Disk};

use crate::history::{Outcome, Subject, fail_each_operation, play_all};
use crate::linear::Model;
use crate::outcome;

const HISTORIES: u64 = 800;

#[test]
fn the_config_store_keeps_its_word_over_faults_and_power_losses() {
    let (count, _) = play_all::<Config>(HISTORIES);
    crate::assert_all_happened(&count);
}

#[test]
fn the_config_store_keeps_its_word_whichever_operation_fails() {
    assert!(fail_each_operation::<Config>() > 8);
}

struct Config {
    store: Store,
    config: EmbeddedConfigStore,
}

#[derive(Debug, Clone)]
enum Operation {
    /// Writes the number under all of the keys.
    Set(Vec<u64>, u64),
    /// Writes the number where there is none.
    Create(u64, u64),
    Delete(u64),
    ReadAll,
}

#[derive(Debug, Clone, PartialEq)]
enum Answer {
    Set,
    Created(u64),
    Deleted,
    All(BTreeMap<u64, u64>),
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Keys(BTreeMap<u64, u64>);

impl Model for Keys {
    type Operation = Operation;
    type Answer = Answer;

    fn step(&self, operation: &Operation, answer: Option<&Answer>) -> Option<Self> {
        let mut next = self.clone();
        let allowed = match operation {
            Operation::Set(keys, number) => {
                next.0.extend(keys.iter().map(|key| (*key, *number)));
                Answer::Set
            }
            Operation::Create(key, number) => {
                Answer::Created(*next.0.entry(*key).or_insert(*number))
            }
            Operation::Delete(key) => {
                next.0.remove(key);
                Answer::Deleted
            }
            Operation::ReadAll => Answer::All(next.0.clone()),
        };
        answer
            .is_none_or(|answer| *answer == allowed)
            .then_some(next)
    }
}

fn request(verb: ConfigVerb, key: u64, value: Option<u64>) -> ConfigOperation {
    ConfigOperation::TwoLayers(ConfigTwoLayers {
        verb,
        second_path: "index".into(),
        third_path: key.to_string(),
        // So long that a value has a page of its own.
        value: value.map(|value| format!("{value:<3000}")),
    })
}

fn number(text: &str) -> u64 {
    text.trim().parse().unwrap()
}

impl Config {
    async fn answer(&self, operation: &Operation) -> Result<Answer, Fault> {
        let transact = async |operations: Vec<ConfigOperation>| {
            let transacted = self
                .config
                .transact(ConfigTransaction::new(&operations, ""))
                .await?;
            Ok::<_, Fault>(transacted.answers)
        };
        Ok(match operation {
            Operation::Set(keys, number) => {
                let set = |key: &u64| request(ConfigVerb::Update, *key, Some(*number));
                transact(keys.iter().map(set).collect()).await?;
                Answer::Set
            }
            Operation::Create(key, value) => {
                let answers =
                    transact(vec![request(ConfigVerb::Create, *key, Some(*value))]).await?;
                let answer: serde_json::Value = serde_json::from_str(answers[0].as_str()).unwrap();
                Answer::Created(number(answer["value"].as_str().unwrap()))
            }
            Operation::Delete(key) => {
                transact(vec![request(ConfigVerb::Delete, *key, None)]).await?;
                Answer::Deleted
            }
            Operation::ReadAll => {
                let prefix = "two/index/";
                let found = self.config.scan(prefix).await?;
                let read = |(key, value): &(String, String)| {
                    (number(key.strip_prefix(prefix).unwrap()), number(value))
                };
                Answer::All(found.iter().map(read).collect())
            }
        })
    }
}

impl Subject for Config {
    type Model = Keys;
    type Witness = ();

    async fn open(disk: &Disk) -> Result<Self, String> {
        let store = disk.store().map_err(|error| error.to_string())?;
        Ok(Self {
            config: EmbeddedConfigStore::on(store.clone()),
            store,
        })
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn generate(dice: &mut Dice, number: u64) -> Operation {
        let key = dice.below(3);
        match dice.below(6) {
            0 => Operation::Set(vec![key], number),
            1 => Operation::Set(vec![0, 1, 2], number),
            2 | 3 => Operation::Create(key, number),
            4 => Operation::Delete(key),
            _ => Operation::ReadAll,
        }
    }

    fn read_all() -> Operation {
        Operation::ReadAll
    }

    async fn call(&self, operation: &Operation) -> Outcome<Answer> {
        outcome(self.answer(operation).await)
    }

    async fn watch(&self, (): &mut ()) {}
}
