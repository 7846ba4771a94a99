//! The config store on etcd.
//!
//! A transaction reads what it needs at one revision, decides, and writes in one etcd transaction that holds only if
//! nothing that the decision rests on has changed meanwhile (etcd's "API guarantees": transactions are atomic and
//! serializable). So layers, cascades and uid rules are as those of the embedded store, and no part of them is ever seen
//! without the rest. What several read or write at the same time goes in one request.

mod commit;
mod connection;
mod errors;
mod options;
mod snapshot;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::backoff::jittered;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::{MAX_READS, Read, Write};
use etcd_client::{Compare, CompareOp, GetOptions, KvClient, Txn, TxnOp, TxnResponse};
use tokio::time::Instant;

use self::commit::{Commit, Committed, Cure, Failed, MAX_TXN_OPS};
use self::connection::Connection;
use self::errors::RequestError;
pub use self::options::EtcdOptions;
use self::snapshot::Snapshot;
use super::{Condition, ConfigStore, ConfigTransaction, Fence, Transacted};
use crate::gather::{Gather, Question};

/// How often a transaction is decided anew because others changed what it rests on.
const MAX_CONFLICTS: u32 = 16;
/// The first wait before a request is sent again.
const FIRST_WAIT: Duration = Duration::from_millis(50);
/// The longest.
const MAX_WAIT: Duration = Duration::from_secs(1);
/// Keys of one page of a scan.
const PAGE: i64 = 1000;
/// Which cluster the keys under the prefix belong to.
const OWNER: &str = "owner";

/// A config store on etcd.
pub struct EtcdConfigStore {
    connection: Connection,
    prefix: String,
    patience: Duration,
    reads: Gather<Arc<[Read]>, Result<Snapshot, Fault>>,
    commits: Gather<Arc<Commit>, Result<Committed, Failed>>,
}

impl Question for Arc<[Read]> {
    type Load = usize;

    fn fits(&self, load: &usize) -> bool {
        self.len() + load <= MAX_READS
    }

    fn add_to(&self, load: &mut usize) {
        *load += self.len();
    }
}

impl EtcdConfigStore {
    /// A store on these servers. Nothing is connected before the first request.
    #[must_use]
    pub fn new(options: EtcdOptions) -> Self {
        Self {
            prefix: options.prefix.clone(),
            patience: options.timeout,
            connection: Connection::new(options),
            reads: Gather::new(),
            commits: Gather::new(),
        }
    }

    fn key(&self, key: &str) -> String {
        format!("{}{key}", self.prefix)
    }

    /// Sends one request. The limit counts the wait for a connection, too.
    async fn within<T>(
        &self,
        request: impl Future<Output = Result<T, etcd_client::Error>>,
    ) -> Result<T, RequestError> {
        match tokio::time::timeout(self.patience, request).await {
            Ok(answer) => answer.map_err(RequestError::Etcd),
            Err(_) => Err(RequestError::Timeout(self.patience)),
        }
    }

    /// Asks until there is an answer, for at most the time that one request may take. For what may be asked twice.
    async fn ask<T, F>(&self, mut question: impl FnMut(KvClient) -> F) -> Result<T, Fault>
    where
        F: Future<Output = Result<T, etcd_client::Error>>,
    {
        let mut retry = Retry::new(self.patience);
        loop {
            let client = self.connection.client().await?;
            match self.within(question(client)).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.is_transient() && retry.wait().await => {}
                Err(error) => return Err(error.fault()),
            }
        }
    }

    async fn read(&self, reads: &[Read]) -> Result<Snapshot, Fault> {
        let answer = self.answer(reads).await?;
        Ok(self.snapshot(reads, &answer))
    }

    async fn answer(&self, reads: &[Read]) -> Result<TxnResponse, Fault> {
        let questions = snapshot::questions(&self.prefix, reads);
        self.ask(|mut client| {
            let txn = Txn::new().and_then(questions.clone());
            async move { client.txn(txn).await }
        })
        .await
    }

    /// As [`read`](Self::read), in one request with what others read at the same time.
    async fn read_together(&self, reads: &Arc<[Read]>) -> Result<Snapshot, Fault> {
        let read = async |asked: &[Arc<[Read]>]| match self.answer(&asked.concat()).await {
            Ok(answer) => Snapshot::each(&self.prefix, asked, &answer)
                .into_iter()
                .map(Ok)
                .collect(),
            Err(fault) => asked.iter().map(|_| Err(fault.clone())).collect(),
        };
        match self.reads.ask(reads, read).await {
            Some(Err(fault)) if fault.kind == FaultKind::ConfigstoreUnavailable => Err(fault),
            Some(Ok(snapshot)) => Ok(snapshot),
            // What is wrong may be with what another reads.
            Some(Err(_)) | None => self.read(reads).await,
        }
    }

    fn snapshot(&self, reads: &[Read], answer: &TxnResponse) -> Snapshot {
        Snapshot::of(&self.prefix, reads, answer)
    }

    /// Commits, in one request with what others commit at the same time.
    async fn commit(&self, commit: Arc<Commit>) -> Result<Committed, Failed> {
        let send = async |commits: &[Arc<Commit>]| match self.send(commits).await {
            Ok(answer) => Commit::outcomes(commits.len(), &answer)
                .into_iter()
                .map(Ok)
                .collect(),
            Err(failed) => commits.iter().map(|_| Err(failed.clone())).collect(),
        };
        let failed = match self.commits.ask(&commit, send).await {
            Some(Ok(committed)) => return Ok(committed),
            Some(Err(failed)) => failed,
            None => Failed {
                fault: Fault::new(
                    FaultKind::ConfigstoreUnavailable,
                    "the config store: etcd did not answer to every part of a transaction",
                ),
                cure: Cure::Alone,
            },
        };
        if failed.cure != Cure::Alone {
            return Err(failed);
        }
        let alone = [commit];
        let answer = self.send(&alone).await?;
        let outcome = Commit::outcomes(alone.len(), &answer).pop();
        outcome.ok_or(failed)
    }

    /// Commits where the conditions hold and the fences stand. `false`: a condition does not hold.
    async fn commit_if(
        &self,
        writes: &[Write],
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        let stands =
            |fence: &Fence| Compare::value(self.key(fence.key()), CompareOp::Equal, fence.value());
        let holds = |condition: &Condition| {
            let key = self.key(&condition.key);
            match &condition.value {
                Some(value) => Compare::value(key, CompareOp::Equal, value.as_str()),
                None => Compare::version(key, CompareOp::Equal, 0),
            }
        };
        let compares = fences.iter().map(stands);
        let compares = compares.chain(conditions.iter().map(holds)).collect();
        let reads: Vec<Read> = fences
            .iter()
            .map(Fence::read)
            .chain(conditions.iter().map(Condition::read))
            .collect();
        let commit = Commit::new(&self.prefix, &reads, compares, writes);
        let commit = Arc::new(commit);
        let mut retry = Retry::new(self.patience);
        let committed = loop {
            match self.commit(commit.clone()).await {
                Ok(committed) => break committed,
                Err(failed) if failed.cure == Cure::Later && retry.wait().await => {}
                Err(failed) => return Err(failed.fault),
            }
        };
        if !committed.succeeded {
            let stored = Snapshot::instead(&self.prefix, &[], &committed).stored;
            Fence::check(fences, &stored)?;
        }
        Ok(committed.succeeded)
    }

    async fn send(&self, commits: &[Arc<Commit>]) -> Result<TxnResponse, Failed> {
        let client = self.connection.client().await;
        let mut client = client.map_err(|fault| Failed {
            fault,
            cure: Cure::None,
        })?;
        let answer = self.within(client.txn(Commit::request(commits))).await;
        answer.map_err(|error| Failed::of(&error, commits.len()))
    }
}

#[async_trait]
impl ConfigStore for EtcdConfigStore {
    async fn transact(&self, transaction: ConfigTransaction) -> Result<Transacted, Fault> {
        let reads = transaction.reads()?.into();
        let mut snapshot = self.read_together(&reads).await?;
        let mut conflicts = 0;
        let mut retry = Retry::new(self.patience);
        // An earlier attempt may have been carried out although its answer was lost.
        let mut may_be_written = false;
        loop {
            let plan = transaction.plan(&snapshot.stored)?;
            if plan.writes.is_empty() {
                return Ok(Transacted {
                    answers: plan.answers,
                    changed: may_be_written,
                });
            }
            let conditions = snapshot.conditions(&self.prefix, &plan.writes);
            let commit = Commit::new(&self.prefix, &reads, conditions, &plan.writes);
            match self.commit(Arc::new(commit)).await {
                Ok(committed) if committed.succeeded => {
                    return Ok(Transacted {
                        answers: plan.answers,
                        changed: true,
                    });
                }
                Ok(committed) => {
                    conflicts += 1;
                    if conflicts >= MAX_CONFLICTS {
                        return Err(Fault::new(
                            FaultKind::ResourceConflict,
                            format!(
                                "the config store: others changed the same keys {conflicts} times while they were written"
                            ),
                        ));
                    }
                    // Whoever sent it for all may have sent it before and gone.
                    may_be_written = true;
                    snapshot = Snapshot::instead(&self.prefix, &reads, &committed);
                }
                Err(failed) if failed.cure == Cure::Later && retry.wait().await => {
                    may_be_written = true;
                    snapshot = self.read(&reads).await?;
                }
                Err(failed) => return Err(failed.fault),
            }
        }
    }

    async fn scan(&self, prefix: &str) -> Result<Vec<(String, String)>, Fault> {
        let from = self.key(prefix);
        let end = snapshot::prefix_end(&from);
        let mut start = from.into_bytes();
        let mut found = Vec::new();
        loop {
            let options = GetOptions::new().with_range(end.clone()).with_limit(PAGE);
            let page = self
                .ask(|mut client| {
                    let (start, options) = (start.clone(), options.clone());
                    async move { client.get(start, Some(options)).await }
                })
                .await?;
            for pair in page.kvs() {
                let key = text(pair.key());
                let key = key.strip_prefix(&self.prefix).unwrap_or(&key).to_owned();
                if key != OWNER {
                    found.push((key, text(pair.value())));
                }
            }
            match page.kvs().last() {
                Some(last) if page.more() => {
                    start = [last.key(), &[0]].concat();
                }
                _ => return Ok(found),
            }
        }
    }

    async fn get(&self, key: &str) -> Result<Option<String>, Fault> {
        let reads = Arc::from([Read::Key(key.to_owned())]);
        let mut snapshot = self.read_together(&reads).await?;
        Ok(snapshot.stored.remove(key))
    }

    async fn write(&self, writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        for part in writes.chunks(MAX_TXN_OPS) {
            self.commit_if(part, &[], fences).await?;
        }
        Ok(())
    }

    async fn write_if(
        &self,
        writes: Vec<Write>,
        conditions: &[Condition],
        fences: &[Fence],
    ) -> Result<bool, Fault> {
        self.commit_if(&writes, conditions, fences).await
    }

    fn is_shared(&self) -> bool {
        true
    }

    async fn claim(&self, owner: &str) -> Result<(), Fault> {
        let key = self.key(OWNER);
        let answer = self
            .ask(|mut client| {
                let txn = Txn::new()
                    .when([Compare::version(key.as_str(), CompareOp::Equal, 0)])
                    .and_then([TxnOp::put(key.as_str(), owner, None)])
                    .or_else([TxnOp::get(key.as_str(), None)]);
                async move { client.txn(txn).await }
            })
            .await?;
        if answer.succeeded() {
            return Ok(());
        }
        let found = Snapshot::of(&self.prefix, &[Read::Key(OWNER.into())], &answer);
        match found.stored.get(OWNER) {
            Some(found) if found != owner => Err(Fault::new(
                FaultKind::ConfigstoreUnavailable,
                format!(
                    "the config store: the keys under {:?} belong to the cluster {found}, and this is {owner}: give this host another prefix",
                    self.prefix
                ),
            )),
            _ => Ok(()),
        }
    }

    async fn probe(&self) -> Result<(), Fault> {
        // A linearizable read needs a majority.
        let mut client = self.connection.client().await?;
        let options = GetOptions::new().with_keys_only();
        self.within(client.get(self.key(OWNER), Some(options)))
            .await
            .map(drop)
            .map_err(|error| error.fault())
    }
}

/// Waits between attempts, each longer than the one before, until there is no time left.
struct Retry {
    until: Instant,
    wait: Duration,
    attempts: u64,
}

impl Retry {
    fn new(patience: Duration) -> Self {
        Self {
            until: Instant::now() + patience,
            wait: FIRST_WAIT,
            attempts: 0,
        }
    }

    /// Waits; whether there is time for another attempt.
    async fn wait(&mut self) -> bool {
        let wait = jittered(self.wait, self.attempts ^ u64::from(std::process::id()));
        self.attempts += 1;
        self.wait = (self.wait * 2).min(MAX_WAIT);
        if Instant::now() + wait >= self.until {
            return false;
        }
        tokio::time::sleep(wait).await;
        true
    }
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What is stored, by key without the prefix.
type Stored = BTreeMap<String, String>;

#[cfg(test)]
mod tests {
    use tokio::net::TcpListener;

    use super::*;

    /// Longer than every limit of the store.
    const LONG: Duration = Duration::from_secs(3600);

    #[tokio::test(start_paused = true)]
    async fn a_server_that_accepts_and_says_nothing_is_unavailable() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let endpoint = format!("https://{}", listener.local_addr().unwrap());
        let store = EtcdConfigStore::new(EtcdOptions {
            endpoints: vec![endpoint],
            ..EtcdOptions::default()
        });
        let write = Write::Delete("key".into());
        let asking = async {
            let probed = store.probe().await;
            let read = store.get("key").await.map(drop);
            let written = store.write(vec![write], &[]).await;
            [probed, read, written].map(|answer| answer.unwrap_err().kind)
        };
        let faults = tokio::time::timeout(LONG, asking).await.unwrap();
        assert_eq!(faults, [FaultKind::ConfigstoreUnavailable; 3]);
    }
}
