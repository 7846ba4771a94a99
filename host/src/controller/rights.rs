//! Asks the cluster whether it will refuse what a Configurator needs.
//!
//! A keeper asks beside its worker: nothing waits for the answer, and nothing is stopped by it. It is for people, who so
//! learn of a missing right before an object fails for it; and for the objects that were given up, which are tried again
//! once it is there.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use configurator_core::backoff::jittered;
use configurator_core::configurator::Configurator;
use configurator_core::fault::FaultKind;
use configurator_core::service_account::ServiceAccount;
use configurator_core::time::Timestamp;
use futures::future::BoxFuture;
use futures::{FutureExt as _, StreamExt as _, TryStreamExt as _, stream};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::Client;
use kube::api::{Api, PostParams};
use tokio::sync::Semaphore;

use super::worker::{MAX_LISTED, WorkerReport};
use crate::clock::{SharedClock, until};
use crate::impersonation::acting_as;
use crate::objects;
use crate::resource::FailureStatus;
use crate::rights::{Right, Rights, Watched};

/// Questions under way at the same time.
const CONCURRENCY: usize = 8;
/// Reviews of a host under way at the same time. A change of one role can concern all of its Configurators.
pub const MAX_REVIEWS: usize = 4;
/// Questions of one review; what a Configurator needs beyond that is not asked for.
pub const MAX_QUESTIONS: usize = 256;
/// Refused rights that the condition names.
const NAMED: usize = 10;
/// The wait before the next review.
const AGAIN: Duration = Duration::from_secs(300);
/// The wait while something is refused, or the cluster cannot be asked.
const REFUSED_AGAIN: Duration = Duration::from_secs(20);

/// A right, and who needs it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NeededRight {
    /// What is needed.
    pub right: Right,
    /// `None`: the host.
    pub account: Option<ServiceAccount>,
}

impl fmt::Display for NeededRight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.right.fmt(f)?;
        match &self.account {
            Some(account) => write!(f, " for the {account}"),
            None => Ok(()),
        }
    }
}

/// The wait after a change of rights, which often come several at a time.
const CHANGED_AGAIN: Duration = Duration::from_secs(1);

/// What came of asking the cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// All that was asked for is allowed.
    Allowed {
        /// Rights that are needed.
        needed: usize,
    },
    /// Something is not.
    Refused {
        /// What.
        rights: Vec<NeededRight>,
        /// Rights that are needed.
        needed: usize,
    },
    /// The cluster could not be asked.
    CannotAsk {
        /// Why.
        message: String,
    },
}

impl Verdict {
    /// Status, reason and message of the condition.
    #[must_use]
    pub fn condition(&self) -> (&'static str, &'static str, String) {
        match self {
            Self::Allowed { needed } => {
                let message = format!("the cluster allows {}", asked(*needed));
                ("True", "AllAllowed", message)
            }
            Self::Refused { rights, needed } => {
                let mut named: Vec<String> = rights
                    .iter()
                    .take(NAMED)
                    .map(NeededRight::to_string)
                    .collect();
                if let Some(more @ 1..) = rights.len().checked_sub(NAMED) {
                    named.push(format!("{more} more"));
                }
                let message = format!(
                    "the cluster refuses {} of {}: {}; `configurator rbac -f FILE` prints the roles that grant them",
                    rights.len(),
                    asked(*needed),
                    named.join(", ")
                );
                ("False", "Refused", message)
            }
            Self::CannotAsk { message } => {
                let message = format!(
                    "the cluster cannot be asked what it allows; it is asked again: {message}"
                );
                ("Unknown", "CannotAsk", message)
            }
        }
    }
}

fn asked(needed: usize) -> String {
    match needed.checked_sub(MAX_QUESTIONS) {
        Some(more @ 1..) => {
            format!("the {MAX_QUESTIONS} rights that it was asked for; {more} more are needed")
        }
        _ => format!("the {needed} rights that are needed"),
    }
}

/// What a review has changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reviewed {
    /// Whether something is allowed now that was refused before.
    pub has_granted: bool,
    /// Whether the verdict is another one.
    pub is_news: bool,
}

/// Whose rights are asked for.
#[derive(Clone)]
struct Subject {
    configurator: Arc<Configurator>,
    watched: Watched,
    /// Whether a status was refused. Which handlers write one is only known when they do.
    writes_statuses: bool,
}

/// The reviews of one Configurator.
pub struct RightsReview {
    client: Client,
    /// Limits the reviews of all Configurators.
    turns: Arc<Semaphore>,
    clock: SharedClock,
    seed: u64,
    subject: Option<Subject>,
    verdict: Option<Verdict>,
    /// What was refused when the cluster could last be asked.
    refused: Vec<NeededRight>,
    /// In a mutex that is never locked, since such a future cannot be shared between threads, and a keeper is.
    under_way: Option<Mutex<BoxFuture<'static, Verdict>>>,
    due: Option<Timestamp>,
    /// Whether rights have changed since the one under way began.
    is_outdated: bool,
    /// When the last one ended.
    last: Timestamp,
    /// Objects that were given up for a missing right, as far as they are known.
    given_up: usize,
}

impl RightsReview {
    /// Nothing is asked for until it begins.
    #[must_use]
    pub fn new(client: Client, turns: Arc<Semaphore>, clock: SharedClock, seed: u64) -> Self {
        Self {
            client,
            turns,
            clock,
            seed,
            subject: None,
            verdict: None,
            refused: Vec::new(),
            under_way: None,
            due: None,
            is_outdated: false,
            last: Timestamp::default(),
            given_up: 0,
        }
    }

    /// This generation runs: its rights are asked for at once.
    pub fn begin(&mut self, configurator: Arc<Configurator>, watched: Watched) {
        self.subject = Some(Subject {
            configurator,
            watched,
            writes_statuses: false,
        });
        self.under_way = None;
        self.due = Some(self.clock.now());
        self.given_up = 0;
    }

    /// It does not run any more.
    pub fn end(&mut self) {
        self.subject = None;
        self.refused.clear();
        self.verdict = None;
        self.under_way = None;
        self.due = None;
    }

    /// What came of the last review.
    #[must_use]
    pub fn verdict(&self) -> Option<&Verdict> {
        self.verdict.as_ref()
    }

    /// Looks at what the worker has given up: a right may have gone since it was asked for.
    pub fn look_at(&mut self, report: &WorkerReport) {
        let Some(subject) = &mut self.subject else {
            return;
        };
        let refused = || report.failures.iter().filter(|failed| is_refusal(failed));
        // The run names its own write of statuses so.
        subject.writes_statuses |= refused().any(|failed| failed.request == "status");
        let given_up = refused().count();
        let is_more = given_up > std::mem::replace(&mut self.given_up, given_up);
        if is_more && let Some(due) = self.due {
            let soon = self.last.after(REFUSED_AGAIN).max(self.clock.now());
            self.due = Some(due.min(soon));
        }
    }

    /// Rights may have changed: they are asked for again, at most every second.
    pub fn look_again(&mut self) {
        self.is_outdated = self.under_way.is_some();
        let soon = self.last.after(CHANGED_AGAIN).max(self.clock.now());
        self.due = self.due.map(|due| due.min(soon));
    }

    /// Whether the ServiceAccount may not read the watched objects any more. Of the host itself this is never said: its watch ends by itself.
    #[must_use]
    pub fn refuse_watching(&self) -> bool {
        let Some(subject) = &self.subject else {
            return false;
        };
        let mut reads = Rights::default();
        reads.reads(&subject.configurator, &subject.watched);
        let reads = reads.each();
        let is_read =
            |needed: &NeededRight| needed.account.is_some() && reads.contains(&needed.right);
        self.refused.iter().any(is_read)
    }

    /// Returns when a review has ended. What was under way when this is dropped goes on with the next call.
    pub async fn next(&mut self) -> Reviewed {
        let verdict = loop {
            match (&mut self.under_way, &self.subject) {
                (Some(under_way), _) => {
                    let under_way = under_way.get_mut();
                    break under_way.unwrap_or_else(PoisonError::into_inner).await;
                }
                (None, Some(subject)) => {
                    let subject = subject.clone();
                    until(self.clock.clone(), self.due).await;
                    let (client, turns) = (self.client.clone(), self.turns.clone());
                    let review = async move {
                        // The semaphore is never closed.
                        let _turn = turns.acquire().await;
                        review(client, subject).await
                    };
                    self.under_way = Some(Mutex::new(review.boxed()));
                }
                (None, None) => std::future::pending().await,
            }
        };
        self.under_way = None;
        self.last = self.clock.now();
        let (wait, refused) = match &verdict {
            Verdict::Allowed { .. } => (AGAIN, Vec::new()),
            Verdict::Refused { rights, .. } => (REFUSED_AGAIN, rights.clone()),
            // Nothing is known to be granted.
            Verdict::CannotAsk { .. } => (REFUSED_AGAIN, self.refused.clone()),
        };
        // Many Configurators, and many hosts of one cluster, must not ask at the same moment.
        let jitter = self.seed ^ self.last.as_millis().unsigned_abs();
        let wait = match std::mem::take(&mut self.is_outdated) {
            true => CHANGED_AGAIN,
            false => jittered(wait, jitter),
        };
        self.due = Some(self.last.after(wait));
        let has_granted = self.refused.iter().any(|right| !refused.contains(right));
        self.refused = refused;
        let is_news = self.verdict.as_ref() != Some(&verdict);
        self.verdict = Some(verdict);
        Reviewed {
            has_granted,
            is_news,
        }
    }
}

/// Whether objects wait for a right: among those that are shown, or perhaps among those that are not.
#[must_use]
pub fn wait_for_rights(report: &WorkerReport) -> bool {
    report.failures.iter().any(is_refusal) || report.counts.failed > MAX_LISTED
}

fn is_refusal(failed: &FailureStatus) -> bool {
    failed.kind == FaultKind::ResourcePermission.name()
}

/// What is asked for: what the host needs for itself, then what watching needs, then what the capabilities list.
fn needed(subject: &Subject) -> Vec<NeededRight> {
    let Subject {
        configurator,
        watched,
        writes_statuses,
    } = subject;
    let mut host = Rights::default();
    host.configurator(configurator, watched);
    let account = &configurator.service_account;
    // Without a ServiceAccount, all of them are rights of the host.
    let mut rights = match account {
        Some(_) => Rights::default(),
        None => host.clone(),
    };
    rights.watch(configurator, watched, *writes_statuses);
    let own = rights.each();
    for (index, rule) in configurator.capabilities.kubernetes.iter().enumerate() {
        let path = format!("spec.capabilities.kubernetes[{index}]");
        rights.capability(&configurator.key.to_string(), &path, rule);
    }
    rights.simplify();
    let mut all = rights.each();
    all.sort_by_key(|right| !own.contains(right));
    let all = all.into_iter().map(|right| NeededRight {
        right,
        account: account.clone(),
    });
    let of_host = match account {
        Some(_) => host.each(),
        None => Vec::new(),
    };
    let of_host = of_host.into_iter().map(|right| NeededRight {
        right,
        account: None,
    });
    of_host.chain(all).collect()
}

async fn review(client: Client, subject: Subject) -> Verdict {
    let mut rights = needed(&subject);
    let needed = rights.len();
    rights.truncate(MAX_QUESTIONS);
    let asking = stream::iter(rights).map(|right| {
        let client = acting_as(&client, right.account.as_ref());
        async move {
            let is_allowed = is_allowed(&client, &right.right).await?;
            Ok::<_, kube::Error>((!is_allowed).then_some(right))
        }
    });
    // In their order, so that the same refusals read the same.
    let refused: Result<Vec<Option<NeededRight>>, _> =
        asking.buffered(CONCURRENCY).try_collect().await;
    match refused {
        Ok(refused) => {
            let rights: Vec<NeededRight> = refused.into_iter().flatten().collect();
            match rights.is_empty() {
                true => Verdict::Allowed { needed },
                false => Verdict::Refused { rights, needed },
            }
        }
        Err(error) => Verdict::CannotAsk {
            message: objects::explained(&error),
        },
    }
}

/// Asks the API server whether it allows this to the user of the client.
pub(super) async fn is_allowed(client: &Client, right: &Right) -> Result<bool, kube::Error> {
    let some = |text: &str| (!text.is_empty()).then(|| text.to_owned());
    let review = SelfSubjectAccessReview {
        spec: SelfSubjectAccessReviewSpec {
            resource_attributes: Some(ResourceAttributes {
                namespace: some(&right.namespace),
                group: some(&right.group),
                resource: some(&right.resource),
                subresource: some(&right.subresource),
                name: some(&right.name),
                verb: some(right.verb),
                ..ResourceAttributes::default()
            }),
            ..SelfSubjectAccessReviewSpec::default()
        },
        ..SelfSubjectAccessReview::default()
    };
    let answer = Api::all(client.clone())
        .create(&PostParams::default(), &review)
        .await?;
    Ok(answer.status.is_some_and(|status| status.allowed))
}
