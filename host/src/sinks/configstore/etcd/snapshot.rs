//! What a transaction saw, and the conditions under which it still holds.

use std::collections::BTreeMap;
use std::sync::Arc;

use configurator_core::layers::{Read, Write};
use etcd_client::{
    Compare, CompareOp, DeleteOptions, GetOptions, TxnOp, TxnOpResponse, TxnResponse,
};

use super::commit::Committed;
use super::{Stored, text};

/// What was stored at one revision under the keys that were read.
pub struct Snapshot {
    /// Values by key, without the prefix.
    pub stored: Stored,
    /// The revision at which each was last written.
    revisions: BTreeMap<String, i64>,
    reads: Vec<Read>,
    revision: i64,
}

/// The operations that read this.
pub fn questions(prefix: &str, reads: &[Read]) -> Vec<TxnOp> {
    let question = |read: &Read| match read {
        Read::Key(key) => TxnOp::get(format!("{prefix}{key}"), None),
        Read::First {
            prefix: layer,
            limit,
        } => {
            let limit = i64::try_from(*limit).unwrap_or(i64::MAX);
            let options = GetOptions::new().with_prefix().with_limit(limit);
            TxnOp::get(format!("{prefix}{layer}"), Some(options))
        }
    };
    reads.iter().map(question).collect()
}

impl Snapshot {
    /// What a transaction answered to the [`questions`] for these reads.
    pub fn of(prefix: &str, reads: &[Read], answer: &TxnResponse) -> Self {
        Self::among(prefix, reads, &answer.op_responses(), revision_of(answer))
    }

    /// What became of a commit that was answered with those questions.
    pub fn instead(prefix: &str, reads: &[Read], committed: &Committed) -> Self {
        Self::among(prefix, reads, &committed.responses, committed.revision)
    }

    /// The same for several who have asked together: what each has asked for.
    pub fn each(prefix: &str, asked: &[Arc<[Read]>], answer: &TxnResponse) -> Vec<Self> {
        let revision = revision_of(answer);
        let responses = answer.op_responses();
        let mut responses = responses.as_slice();
        let mut snapshots = Vec::with_capacity(asked.len());
        for reads in asked {
            let (own, others) = responses.split_at(reads.len().min(responses.len()));
            snapshots.push(Self::among(prefix, reads, own, revision));
            responses = others;
        }
        snapshots
    }

    fn among(prefix: &str, reads: &[Read], responses: &[TxnOpResponse], revision: i64) -> Self {
        let mut stored = BTreeMap::new();
        let mut revisions = BTreeMap::new();
        for response in responses {
            let TxnOpResponse::Get(found) = response else {
                continue;
            };
            for pair in found.kvs() {
                let key = text(pair.key());
                let key = key.strip_prefix(prefix).unwrap_or(&key).to_owned();
                stored.insert(key.clone(), text(pair.value()));
                revisions.insert(key, pair.mod_revision());
            }
        }
        Self {
            stored,
            revisions,
            reads: reads.to_vec(),
            revision,
        }
    }

    /// What must still be so for these writes to be right.
    ///
    /// Of a layer only one thing matters: whether a key is left in it. One that is and stays is a witness, whatever
    /// becomes of the others; without a witness nothing may have been added.
    pub fn conditions(&self, prefix: &str, writes: &[Write]) -> Vec<Compare> {
        self.reads
            .iter()
            .filter_map(|read| match read {
                Read::Key(key) => {
                    let revision = self.revisions.get(key).copied().unwrap_or_default();
                    let key = format!("{prefix}{key}");
                    Some(Compare::mod_revision(key, CompareOp::Equal, revision))
                }
                Read::First { prefix: layer, .. } => {
                    if is_dropped(layer, writes) {
                        return None;
                    }
                    let witness = self
                        .stored
                        .range(layer.clone()..)
                        .map(|(key, _)| key)
                        .take_while(|key| key.starts_with(layer))
                        .find(|key| !is_deleted(key, writes));
                    Some(match witness {
                        Some(key) => {
                            let key = format!("{prefix}{key}");
                            Compare::create_revision(key, CompareOp::Greater, 0)
                        }
                        None => {
                            let layer = format!("{prefix}{layer}");
                            let since = self.revision.saturating_add(1);
                            Compare::mod_revision(layer, CompareOp::Less, since).with_prefix()
                        }
                    })
                }
            })
            .collect()
    }
}

/// That of the store when it answered.
pub fn revision_of(answer: &TxnResponse) -> i64 {
    answer.header().map_or(0, |header| header.revision())
}

fn is_dropped(layer: &str, writes: &[Write]) -> bool {
    writes
        .iter()
        .any(|write| matches!(write, Write::DeletePrefix(dropped) if dropped == layer))
}

fn is_deleted(key: &str, writes: &[Write]) -> bool {
    writes
        .iter()
        .any(|write| matches!(write, Write::Delete(deleted) if deleted == key))
}

/// Deletes everything that begins so, except these keys.
pub fn gaps(prefix: &str, except: impl Iterator<Item = String>) -> Vec<TxnOp> {
    let mut except: Vec<String> = except.collect();
    except.sort();
    let mut operations = Vec::with_capacity(except.len() + 1);
    let mut start = prefix.as_bytes().to_vec();
    let delete = |start: &[u8], end: Vec<u8>| {
        (start < end.as_slice())
            .then(|| TxnOp::delete(start, Some(DeleteOptions::new().with_range(end))))
    };
    for key in except {
        operations.extend(delete(&start, key.clone().into_bytes()));
        start = [key.as_bytes(), &[0]].concat();
    }
    operations.extend(delete(&start, prefix_end(prefix)));
    operations
}

/// The first key after all that begin so.
pub fn prefix_end(prefix: &str) -> Vec<u8> {
    let mut end = prefix.as_bytes().to_vec();
    while let Some(last) = end.pop() {
        if let Some(next) = last.checked_add(1) {
            end.push(next);
            return end;
        }
    }
    // etcd's sign for "to the end".
    vec![0]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_prefix_is_the_next_key() {
        assert_eq!(prefix_end("a/"), b"a0");
        assert_eq!(prefix_end(""), [0]);
    }

    #[test]
    fn a_range_is_deleted_around_the_keys_that_are_written() {
        let keys = ["a/1".to_owned(), "a/0".to_owned()];
        assert_eq!(gaps("a/", keys.into_iter()).len(), 3);
        assert_eq!(gaps("a/", ["a/".to_owned()].into_iter()).len(), 1);
        assert_eq!(gaps("a/", std::iter::empty()).len(), 1);
    }
}
