//! What hosts did to objects, seen from where their requests arrive.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use async_trait::async_trait;
use configurator_core::authorization::AuthorizedOperation;
use configurator_core::fault::Fault;
use configurator_core::result::Answer;
use configurator_core::run::{Finish, Run};
use configurator_host::observer::{RunEnd, RunObserver};
use configurator_host::sinks::configstore::Fence;
use configurator_host::sinks::{Scope, Sink, Sinks};
use serde_json::Value;

/// How long a request is on its way, and so is its answer.
const LATENCY: Duration = Duration::from_secs(2);

/// What the hosts of a fleet did.
#[derive(Clone, Default)]
pub struct Journal {
    book: Arc<Mutex<Book>>,
}

#[derive(Default)]
struct Book {
    /// Who has a request for an object under way.
    under_way: HashMap<String, String>,
    /// The fences of each shard, in the order in which requests first came with them.
    tenures: HashMap<String, Vec<Fence>>,
    /// What was sent last for an object: with which fence, and what.
    sent: HashMap<String, (Fence, String)>,
    /// The number in an object with which a run of it ended well last, and where.
    done: BTreeMap<String, (u64, String)>,
    /// How many runs of new content ended well.
    loads: BTreeMap<String, usize>,
    hand_overs: usize,
    wrong: Vec<String>,
}

impl Journal {
    /// Looks at everything that a host sends.
    pub fn before(&self, host: &str, sinks: Sinks) -> Sinks {
        let watch = |inner| -> Arc<dyn Sink> {
            Arc::new(Watched {
                journal: self.clone(),
                host: host.to_owned(),
                inner,
            })
        };
        Sinks {
            configstore: watch(sinks.configstore),
            ..sinks
        }
    }

    /// Looks at how the runs of a host end.
    pub fn of(&self, host: &str) -> Ends {
        Ends {
            journal: self.clone(),
            host: host.to_owned(),
        }
    }

    /// The number with which a run of the object ended well last.
    pub fn done(&self, object: &str) -> Option<u64> {
        self.book().done.get(object).map(|(number, _)| *number)
    }

    /// How many runs of new content ended well on each host.
    pub fn loads(&self) -> BTreeMap<String, usize> {
        self.book().loads.clone()
    }

    /// How often a shard passed from one tenure to the next, as seen from what was sent.
    pub fn hand_overs(&self) -> usize {
        self.book().hand_overs
    }

    /// Nothing went wrong.
    pub fn check(&self) {
        let wrong = &self.book().wrong;
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap()
    }
}

struct Watched {
    journal: Journal,
    host: String,
    inner: Arc<dyn Sink>,
}

/// A request that is under way, until it is dropped.
struct UnderWay<'a> {
    journal: &'a Journal,
    object: &'a str,
}

impl Drop for UnderWay<'_> {
    fn drop(&mut self) {
        self.journal.book().under_way.remove(self.object);
    }
}

#[async_trait]
impl Sink for Watched {
    async fn execute(
        &self,
        operation: &AuthorizedOperation,
        scope: &Scope,
    ) -> Result<Answer, Fault> {
        if operation.is_mutating() {
            let mut book = self.journal.book();
            let other = book
                .under_way
                .insert(scope.object.clone(), self.host.clone());
            if let Some(other) = other {
                let at_once = format!("{} and {other} at once: {operation}", self.host);
                book.wrong.push(at_once);
            }
            let [fence] = scope.fences.as_slice() else {
                panic!("{operation} has the fences {:?}", scope.fences);
            };
            let tenures = book.tenures.entry(fence.key().to_owned()).or_default();
            match tenures.iter().position(|tenure| tenure == fence) {
                None => {
                    tenures.push(fence.clone());
                    book.hand_overs += 1;
                }
                Some(position) if position + 1 == tenures.len() => {}
                Some(_) => {
                    let late = format!("{} after its tenure: {operation}", self.host);
                    book.wrong.push(late);
                }
            }
            let sent = (fence.clone(), format!("{operation:?}"));
            if book.sent.get(&scope.object) == Some(&sent) {
                let doubled = format!("{} twice: {operation:?}", self.host);
                book.wrong.push(doubled);
            }
            book.sent.insert(scope.object.clone(), sent);
        }
        let _under_way = UnderWay {
            journal: &self.journal,
            object: &scope.object,
        };
        tokio::time::sleep(LATENCY).await;
        let answer = self.inner.execute(operation, scope).await;
        tokio::time::sleep(LATENCY).await;
        answer
    }

    async fn probe(&self) -> Result<(), Fault> {
        self.inner.probe().await
    }
}

/// How the runs of a host end.
pub struct Ends {
    journal: Journal,
    host: String,
}

impl RunObserver for Ends {
    fn ended(&self, run: &Run, end: &RunEnd) {
        if !matches!(end, RunEnd::Finished(Finish::Succeeded)) {
            return;
        }
        let mut book = self.journal.book();
        for member in run.members() {
            let object: Value = serde_json::from_str(member.object.as_str()).unwrap();
            let number = object["data"]["number"].as_str().map(str::parse);
            let Some(Ok(number)) = number else { continue };
            let done = (number, self.host.clone());
            let name = member.key.name.clone();
            let before = book.done.insert(name, done);
            if before.is_none_or(|(before, _)| before != number) {
                *book.loads.entry(self.host.clone()).or_default() += 1;
            }
        }
    }
}
