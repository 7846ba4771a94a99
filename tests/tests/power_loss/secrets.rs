//! The embedded secret store.

use std::collections::BTreeMap;

use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey, SecretStore as _};
use configurator_store::Store;
use configurator_store::testing::{Dice, Disk};

use crate::history::{Outcome, Subject, fail_each_operation, play_all};
use crate::linear::Model;
use crate::outcome;

const HISTORIES: u64 = 700;

#[test]
fn the_secret_store_keeps_its_word_over_faults_and_power_losses() {
    let (count, _) = play_all::<Secrets>(HISTORIES);
    crate::assert_all_happened(&count);
}

#[test]
fn the_secret_store_keeps_its_word_whichever_operation_fails() {
    assert!(fail_each_operation::<Secrets>() > 8);
}

struct Secrets {
    store: Store,
    secrets: EmbeddedSecretStore,
}

#[derive(Debug, Clone)]
enum Operation {
    Create(u64, u64),
    /// Of a name, from a version, to a number.
    Update(u64, u64, u64),
    Get(u64),
    Delete(u64),
    Names,
}

/// A secret: its version, and the number in it.
type Secret = (u64, u64);

#[derive(Debug, Clone)]
enum Answer {
    Created(Secret, bool),
    /// `None`: another version was stored.
    Updated(Option<Secret>),
    Got(Option<Secret>),
    Deleted(bool),
    Names(Vec<u64>),
}

/// The secrets, and the last version that was seen under each name.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
struct Names {
    /// Without a version if nobody knows it yet.
    secrets: BTreeMap<u64, (Option<u64>, u64)>,
    versions: BTreeMap<u64, u64>,
}

impl Names {
    /// Whether this can be the secret; if so, its version is known from now on.
    fn is(&mut self, name: u64, (version, number): Secret) -> bool {
        let newest = self.versions.get(&name).copied().unwrap_or_default();
        match self.secrets.get_mut(&name) {
            Some((known, stored)) if *stored == number => {
                let fits = known.map_or(version > newest, |known| known == version);
                *known = Some(version);
                self.versions.insert(name, version);
                fits
            }
            _ => false,
        }
    }

    /// Whether this version can be the stored one; 0 stands for none.
    fn can_be(&self, name: u64, version: u64) -> bool {
        let newest = self.versions.get(&name).copied().unwrap_or_default();
        match self.secrets.get(&name) {
            None => version == 0,
            Some((Some(known), _)) => *known == version,
            Some((None, _)) => version > newest,
        }
    }

    /// Whether this version can be another than the stored one.
    fn can_differ(&self, name: u64, version: u64) -> bool {
        match self.secrets.get(&name) {
            None => version != 0,
            Some((Some(known), _)) => *known != version,
            Some((None, _)) => true,
        }
    }

    /// Replaces a version.
    fn update(&mut self, name: u64, version: u64, number: u64) {
        let newest = self.versions.entry(name).or_default();
        *newest = version.max(*newest);
        self.secrets.insert(name, (None, number));
    }
}

impl Model for Names {
    type Operation = Operation;
    type Answer = Answer;

    fn step(&self, operation: &Operation, answer: Option<&Answer>) -> Option<Self> {
        let mut next = self.clone();
        let is_allowed = match (operation, answer) {
            (Operation::Create(name, number), answer) => {
                let is_new = !next.secrets.contains_key(name);
                next.secrets.entry(*name).or_insert((None, *number));
                match answer {
                    None => true,
                    Some(Answer::Created(secret, new)) => *new == is_new && next.is(*name, *secret),
                    Some(_) => false,
                }
            }
            (Operation::Update(name, version, number), answer) => {
                let can_be = next.can_be(*name, *version);
                match answer {
                    None => {
                        if can_be {
                            next.update(*name, *version, *number);
                        }
                        true
                    }
                    Some(Answer::Updated(None)) => next.can_differ(*name, *version),
                    Some(Answer::Updated(Some(secret))) => {
                        next.update(*name, *version, *number);
                        can_be && next.is(*name, *secret)
                    }
                    Some(_) => false,
                }
            }
            (Operation::Delete(name), answer) => {
                let was_there = next.secrets.remove(name).is_some();
                match answer {
                    None => true,
                    Some(Answer::Deleted(deleted)) => *deleted == was_there,
                    Some(_) => false,
                }
            }
            (Operation::Get(name), Some(Answer::Got(None))) => !next.secrets.contains_key(name),
            (Operation::Get(name), Some(Answer::Got(Some(secret)))) => next.is(*name, *secret),
            (Operation::Names, Some(Answer::Names(names))) => next.secrets.keys().eq(names),
            (Operation::Get(_) | Operation::Names, None) => true,
            (Operation::Get(_) | Operation::Names, Some(_)) => false,
        };
        is_allowed.then_some(next)
    }
}

impl Secrets {
    async fn answer(&self, operation: &Operation) -> Result<Answer, Fault> {
        let read = |secret: configurator_host::sinks::secretstore::Secret| {
            let text = secret.value.as_str().trim_matches('"').trim();
            (secret.version, text.parse().unwrap())
        };
        let name = |name: &u64| format!("name-{name}");
        Ok(match operation {
            Operation::Create(at, number) => {
                // So long that a value has a page of its own.
                let value = Document::of(&format!("{number:<2000}")).unwrap();
                let (secret, is_new) = self.secrets.create(&name(at), value).await?;
                Answer::Created(read(secret), is_new)
            }
            Operation::Update(at, version, number) => {
                let value = Document::of(&format!("{number:<2000}")).unwrap();
                match self.secrets.update(&name(at), *version, value).await {
                    Ok((secret, _)) => Answer::Updated(Some(read(secret))),
                    Err(fault) if fault.kind == FaultKind::ResourceConflict => {
                        Answer::Updated(None)
                    }
                    Err(fault) => return Err(fault),
                }
            }
            Operation::Get(at) => Answer::Got(self.secrets.get(&name(at)).await?.map(read)),
            Operation::Delete(at) => Answer::Deleted(self.secrets.delete(&name(at)).await?),
            Operation::Names => {
                let names = self.secrets.names().await?;
                let number = |name: &String| name.strip_prefix("name-").unwrap().parse().unwrap();
                Answer::Names(names.iter().map(number).collect())
            }
        })
    }
}

impl Subject for Secrets {
    type Model = Names;
    type Witness = ();

    async fn open(disk: &Disk) -> Result<Self, String> {
        let store = disk.store().map_err(|error| error.to_string())?;
        let key = SealingKey::from_text("QUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUFBQUE=", "a test")
            .map_err(|error| error.to_string())?;
        let secrets = EmbeddedSecretStore::on(store.clone(), &key).await;
        Ok(Self {
            secrets: secrets.map_err(|error| error.to_string())?,
            store,
        })
    }

    fn store(&self) -> &Store {
        &self.store
    }

    fn generate(dice: &mut Dice, number: u64) -> Operation {
        let name = dice.below(3);
        match dice.below(9) {
            0..3 => Operation::Create(name, number),
            3 | 4 => Operation::Update(name, dice.below(5), number),
            5 | 6 => Operation::Delete(name),
            7 => Operation::Get(name),
            _ => Operation::Names,
        }
    }

    fn read_all() -> Operation {
        Operation::Names
    }

    async fn call(&self, operation: &Operation) -> Outcome<Answer> {
        outcome(self.answer(operation).await)
    }

    async fn watch(&self, (): &mut ()) {}
}
