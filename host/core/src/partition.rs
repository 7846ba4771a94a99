//! Partitions of the config store and the secret store.
//!
//! The Configurators of a namespace share a partition, and so do all ClusterConfigurators. Keys and names of a request are those within the
//! partition. A request of a ClusterConfigurator can name the namespace of another partition, if a rule grants that.

use std::borrow::Cow;
use std::collections::BTreeMap;

use crate::layers::{Read, Write};
use crate::text::quoted;

/// The prefix of the partitions of namespaces. No key of the other partition begins with it, and no request may name a secret that does.
pub const NAMESPACES: &str = "namespaces/";

/// The longest name of a namespace, in bytes.
const MAX_NAMESPACE: usize = 63;

/// A partition. The default is that of the ClusterConfigurators.
#[derive(Debug, Clone, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Partition {
    prefix: String,
}

impl Partition {
    /// The partition of a namespace, by its name and uid. A namespace that is created again has another uid, so another partition.
    #[must_use]
    pub fn of_namespace(name: &str, uid: &str) -> Self {
        Self {
            prefix: format!("{NAMESPACES}{name}/{uid}/"),
        }
    }

    /// Returns the prefix of the keys and names of the partition in a store.
    #[must_use]
    pub fn prefix(&self) -> &str {
        &self.prefix
    }

    /// Returns the name of a secret in the store.
    #[must_use]
    pub fn secret(&self, name: &str) -> String {
        format!("{}{name}", self.prefix)
    }

    /// Translates a read to keys of the store.
    #[must_use]
    pub fn read(&self, read: Read) -> Read {
        match read {
            Read::Key(key) => Read::Key(self.prefix.clone() + &key),
            Read::First { prefix, limit } => Read::First {
                prefix: self.prefix.clone() + &prefix,
                limit,
            },
        }
    }

    /// Translates a write to keys of the store.
    #[must_use]
    pub fn write(&self, write: Write) -> Write {
        let place = |key: String| self.prefix.clone() + &key;
        match write {
            Write::Put(key, value) => Write::Put(place(key), value),
            Write::Delete(key) => Write::Delete(place(key)),
            Write::DeletePrefix(prefix) => Write::DeletePrefix(place(prefix)),
        }
    }

    /// Returns the entries of the partition, by their keys within it.
    #[must_use]
    pub fn stored<'s>(
        &self,
        stored: &'s BTreeMap<String, String>,
    ) -> Cow<'s, BTreeMap<String, String>> {
        if self.prefix.is_empty() {
            return Cow::Borrowed(stored);
        }
        let own = stored.iter().filter_map(|(key, value)| {
            let key = key.strip_prefix(&self.prefix)?;
            Some((key.to_owned(), value.clone()))
        });
        Cow::Owned(own.collect())
    }
}

/// Returns a key of the store as it is within its partition.
#[must_use]
pub fn within(key: &str) -> &str {
    let in_namespace = key.strip_prefix(NAMESPACES);
    let within = in_namespace.and_then(|rest| rest.splitn(3, '/').nth(2));
    within.unwrap_or(key)
}

/// Checks the namespace that a request or an entry names in `partition`.
///
/// # Errors
/// The text for a person, if no namespace can have this name.
pub(crate) fn check_name(namespace: &str) -> Result<(), String> {
    match is_namespace(namespace) {
        true => Ok(()),
        false => Err(format!(
            "`partition` is no name of a namespace: {}",
            quoted(namespace)
        )),
    }
}

/// Returns whether a namespace can have this name: 1 to 63 lower-case letters, digits and `-`, which is neither first nor last (RFC 1123).
#[must_use]
pub fn is_namespace(name: &str) -> bool {
    let is_plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    (1..=MAX_NAMESPACE).contains(&name.len())
        && !name.starts_with('-')
        && !name.ends_with('-')
        && name.bytes().all(is_plain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_has_its_own_keys() {
        let team = Partition::of_namespace("team-a", "uid-1");
        let again = Partition::of_namespace("team-a", "uid-2");
        let stored: BTreeMap<String, String> = [&Partition::default(), &team, &again]
            .into_iter()
            .filter_map(|partition| {
                match partition.write(Write::Put("basic/a".into(), partition.prefix().into())) {
                    Write::Put(key, value) => Some((key, value)),
                    Write::Delete(_) | Write::DeletePrefix(_) => None,
                }
            })
            .collect();
        assert_eq!(stored.len(), 3);
        let own = team.stored(&stored).into_owned();
        let expected = [("basic/a".to_owned(), "namespaces/team-a/uid-1/".to_owned())];
        assert_eq!(own, BTreeMap::from(expected));
        for key in stored.keys() {
            assert_eq!(within(key), "basic/a");
        }
        assert_eq!(
            team.read(Read::Key("basic/a".into())),
            Read::Key("namespaces/team-a/uid-1/basic/a".into())
        );
    }
}
