//! What transactions write. Those that come at the same time go in one request, each under its own conditions.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::Arc;

use configurator_core::fault::Fault;
use configurator_core::layers::{Read, Write};
use etcd_client::{Compare, Txn, TxnOp, TxnOpResponse, TxnResponse};

use super::errors::RequestError;
use super::snapshot::{gaps, questions, revision_of};
use crate::gather::Question;

/// Operations of a transaction, the longest of each level together; etcd's `max-txn-ops`.
pub const MAX_TXN_OPS: usize = 128;
/// Bytes of keys and values in one request; etcd's `max-request-bytes` is 1.5 MiB.
const MAX_BYTES: usize = 1 << 20;

/// Writes, and what must be so for them to be right.
pub struct Commit {
    txn: Txn,
    /// As [`MAX_TXN_OPS`] counts them.
    operations: usize,
    bytes: usize,
    /// Marks of the keys that it writes, and of the layers that these are in.
    writes: Vec<u64>,
    /// Marks of the keys and layers that it rests on, and of the keys that it writes.
    rests_on: Vec<u64>,
    is_alone: bool,
}

/// What is in a request already.
#[derive(Default)]
pub struct Load {
    commits: usize,
    operations: usize,
    bytes: usize,
    writes: HashSet<u64>,
    rests_on: HashSet<u64>,
    is_alone: bool,
}

/// What became of a commit.
pub struct Committed {
    /// Whether it was carried out; else what it rests on has changed.
    pub succeeded: bool,
    /// The answers to its questions, where it was not.
    pub responses: Vec<TxnOpResponse>,
    /// That of the store.
    pub revision: i64,
}

/// Why nobody knows, or nothing came, of a commit.
#[derive(Clone)]
pub struct Failed {
    /// What to say.
    pub fault: Fault,
    /// What can be done.
    pub cure: Cure,
}

/// What can be done when a request failed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Cure {
    /// It may have been carried out, and can go well in a moment.
    Later,
    /// It was refused, perhaps for what it had of others.
    Alone,
    /// Nothing.
    None,
}

impl Commit {
    /// `conditions` are on what `reads` tell; where they do not hold, it is read anew.
    pub fn new(prefix: &str, reads: &[Read], conditions: Vec<Compare>, writes: &[Write]) -> Self {
        let questions = questions(prefix, reads);
        let level = conditions.len().max(questions.len());
        let (operations, part) = in_parts(operations(prefix, writes), level);
        let mut commit = Self {
            operations: level.max(operations.len()) + part,
            txn: Txn::new()
                .when(conditions)
                .and_then(operations)
                .or_else(questions),
            bytes: 0,
            writes: Vec::new(),
            rests_on: Vec::new(),
            is_alone: false,
        };
        for read in reads {
            let key = match read {
                Read::Key(key) => key,
                Read::First { prefix, .. } => {
                    commit.is_alone |= !prefix.ends_with('/');
                    prefix
                }
            };
            // It is in a condition and in a question.
            commit.bytes += 2 * key.len();
            commit.rests_on.push(mark(key));
        }
        for write in writes {
            match write {
                Write::Put(key, value) => {
                    commit.bytes += value.len();
                    commit.writes_key(key);
                }
                Write::Delete(key) => commit.writes_key(key),
                // It is seldom, and what it touches has no marks.
                Write::DeletePrefix(_) => commit.is_alone = true,
            }
        }
        commit
    }

    fn writes_key(&mut self, key: &str) {
        self.bytes += key.len();
        self.rests_on.push(mark(key));
        self.writes.push(mark(key));
        let layers = key.match_indices('/').map(|(at, _)| at + 1);
        self.writes
            .extend(layers.filter_map(|end| Some(mark(key.get(..end)?))));
    }

    /// One request for all of them.
    pub fn request(commits: &[Arc<Self>]) -> Txn {
        match commits {
            [commit] => commit.txn.clone(),
            commits => {
                let each = commits.iter().map(|commit| TxnOp::txn(commit.txn.clone()));
                Txn::new().and_then(each.collect::<Vec<_>>())
            }
        }
    }

    /// What an answer to that says of each.
    pub fn outcomes(commits: usize, answer: &TxnResponse) -> Vec<Committed> {
        // Answers within an answer do not tell the revision.
        let revision = revision_of(answer);
        let outcome = |answer: &TxnResponse| Committed {
            succeeded: answer.succeeded(),
            responses: if answer.succeeded() {
                Vec::new()
            } else {
                answer.op_responses()
            },
            revision,
        };
        if commits == 1 {
            return vec![outcome(answer)];
        }
        let of_commit = |response| match response {
            TxnOpResponse::Txn(answer) => Some(outcome(&answer)),
            _ => None,
        };
        answer
            .op_responses()
            .into_iter()
            .filter_map(of_commit)
            .collect()
    }
}

/// All conditions of a request are looked at before anything of it is written, and etcd refuses one that writes a key
/// twice. So none may write what another rests on.
impl Question for Arc<Commit> {
    type Load = Load;

    fn fits(&self, load: &Load) -> bool {
        let operations = self.operations.max(load.operations);
        !self.is_alone
            && !load.is_alone
            && operations + load.commits < MAX_TXN_OPS
            && self.bytes + load.bytes <= MAX_BYTES
            && self.writes.iter().all(|mark| !load.rests_on.contains(mark))
            && self.rests_on.iter().all(|mark| !load.writes.contains(mark))
    }

    fn add_to(&self, load: &mut Load) {
        load.commits += 1;
        load.operations = load.operations.max(self.operations);
        load.bytes += self.bytes;
        load.writes.extend(&self.writes);
        load.rests_on.extend(&self.rests_on);
        load.is_alone |= self.is_alone;
    }
}

impl Failed {
    /// By this error, of a request for so many commits.
    pub fn of(error: &RequestError, commits: usize) -> Self {
        Self {
            fault: error.fault(),
            cure: match commits {
                _ if error.is_transient() => Cure::Later,
                0 | 1 => Cure::None,
                _ => Cure::Alone,
            },
        }
    }
}

/// The operations of etcd for these writes.
///
/// etcd refuses a transaction that both writes a key and deletes a range with it: such a range is deleted in the
/// parts between the keys that are written.
fn operations(prefix: &str, writes: &[Write]) -> Vec<TxnOp> {
    let full = |key: &str| format!("{prefix}{key}");
    let mut operations = Vec::with_capacity(writes.len());
    for write in writes {
        match write {
            Write::Put(key, value) => operations.push(TxnOp::put(full(key), value.as_str(), None)),
            Write::Delete(key) => operations.push(TxnOp::delete(full(key), None)),
            Write::DeletePrefix(layer) => {
                let written = writes.iter().filter_map(|write| match write {
                    Write::Put(key, _) | Write::Delete(key) if key.starts_with(layer) => {
                        Some(full(key))
                    }
                    _ => None,
                });
                operations.extend(gaps(&full(layer), written));
            }
        }
    }
    operations
}

/// The operations on a level that has so many of others, or on the next, and how many these then have.
fn in_parts(operations: Vec<TxnOp>, level: usize) -> (Vec<TxnOp>, usize) {
    if operations.len() <= MAX_TXN_OPS {
        return (operations, 0);
    }
    let part = MAX_TXN_OPS.saturating_sub(level).max(1);
    let parts = operations
        .chunks(part)
        .map(|part| TxnOp::txn(Txn::new().and_then(part)))
        .collect();
    (parts, part)
}

/// Two that are the same have the same; that two others have the same only keeps them apart.
fn mark(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commit(reads: &[Read], writes: &[Write]) -> Arc<Commit> {
        Arc::new(Commit::new("", reads, Vec::new(), writes))
    }

    fn put(key: &str) -> Write {
        Write::Put(key.into(), "value".into())
    }

    fn key(key: &str) -> Read {
        Read::Key(key.into())
    }

    fn layer(prefix: &str) -> Read {
        let (prefix, limit) = (prefix.into(), 2);
        Read::First { prefix, limit }
    }

    #[test]
    fn none_writes_what_another_rests_on() {
        let together = |one: &Arc<Commit>, other: &Arc<Commit>| {
            let mut load = Load::default();
            one.add_to(&mut load);
            let fits = other.fits(&load);
            let mut load = Load::default();
            other.add_to(&mut load);
            assert_eq!(fits, one.fits(&load), "the order does not matter");
            fits
        };
        let one = commit(&[key("fence"), key("index"), layer("a/")], &[put("a/1")]);
        for (reads, writes, is_together) in [
            (vec![], vec![put("b/1")], true),
            // Both rest on the same, and neither writes it.
            (vec![key("fence"), key("index")], vec![put("b/1")], true),
            (vec![], vec![put("index")], false),
            (vec![key("a/1")], vec![put("b/1")], false),
            (vec![], vec![put("a/1")], false),
            (vec![], vec![Write::Delete("a/1".into())], false),
            // What is in a layer that the other looks at.
            (vec![], vec![put("a/2")], false),
            (vec![], vec![put("a/2/3")], false),
            (vec![layer("a/")], vec![put("b/1")], false),
            (vec![], vec![put("ab")], true),
            // Nobody knows what these touch.
            (vec![], vec![Write::DeletePrefix("c/".into())], false),
            (vec![layer("c")], vec![put("d")], false),
        ] {
            let other = commit(&reads, &writes);
            assert_eq!(together(&one, &other), is_together, "{reads:?} {writes:?}");
        }
    }

    #[test]
    fn a_request_stays_within_the_limits_of_etcd() {
        let mut load = Load::default();
        let mut number = 0;
        let mut next = |operations: usize| {
            let writes: Vec<Write> = (0..operations)
                .map(|n| put(&format!("{number}/{n}")))
                .collect();
            number += 1;
            commit(&[], &writes)
        };
        for _ in 0..28 {
            let commit = next(100);
            assert!(commit.fits(&load));
            commit.add_to(&mut load);
        }
        // 28 parts on one level and 100 operations on the next.
        assert!(!next(1).fits(&load));

        let mut load = Load::default();
        let large = Write::Put("large".into(), "x".repeat(MAX_BYTES));
        commit(&[], &[large]).add_to(&mut load);
        assert!(!next(1).fits(&load));
    }
}
