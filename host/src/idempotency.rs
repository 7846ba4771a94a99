//! Makes every HTTP request that may change something take effect once.
//!
//! The `Idempotency-Key` of a request names its effect: a MAC over the Configurator, the object, the cause of the run, the
//! entry, the request's name, and its method, URL and body. The cause of a run is stored before its first such request
//! is sent, and replaced when the [trigger](configurator_core::trigger) is another one. The request is stored sealed, and sent again as it
//! was until an answer has come. Both are in the config store:
//!
//! ```text
//! effects/{uid of the configurator}/{uid of the object}/{scope}/cause      {"object", "trigger", "occasion", "cause"}
//! effects/{uid of the configurator}/{uid of the object}/{scope}/{entry}    a request that is not answered yet
//! ```

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use configurator_core::configurator::Configurator;
use configurator_core::digest::digest_of;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::layers::Write;
use configurator_core::plan::{Plan, PlannedAction, PlannedStep};
use configurator_core::request::{HttpRequest, ObjectRef, Operation};
use configurator_core::result::RequestResult;
use configurator_core::run::{Member, Run};
use configurator_core::time::Timestamp;
use configurator_core::trigger::Trigger;
use futures::{StreamExt as _, TryStreamExt as _, stream};
use serde::{Deserialize, Serialize};

use crate::cipher::Cipher;
use crate::clock::SharedClock;
use crate::controller::rollout::Rollout;
use crate::executor::IdempotencyKeys;
use crate::seal::HostKey;
use crate::sinks::configstore::{ConfigStore, Fence, segments_below};
use crate::sinks::is_safe;

/// The prefix of causes and requests in the config store.
const EFFECTS: &str = "effects/";
/// The last segment of the key of a cause.
const CAUSE: &str = "cause";
/// The header that carries the key.
const HEADER: &str = "idempotency-key";
/// The largest request that is stored, in bytes before it is sealed. For a larger one, the handler is called again.
const MAX_STORED: usize = 512 << 10;
/// Objects of a batch whose causes are read at a time.
const READS: usize = 16;

/// The effects of one Configurator's HTTP requests.
pub(crate) struct Effects {
    store: Arc<dyn ConfigStore>,
    key: Arc<HostKey>,
    prefix: String,
    /// Whether the Configurator may send HTTP requests.
    is_used: bool,
    clock: SharedClock,
    /// Keys of requests that were answered, and could not be removed.
    answered: Mutex<HashSet<String>>,
}

/// The effects of one run that were read so far.
#[derive(Default)]
pub(crate) struct RunEffects {
    /// The effects of each object, by its uid.
    objects: BTreeMap<String, ObjectEffects>,
}

struct ObjectEffects {
    /// The prefix of its requests in the config store.
    prefix: String,
    cause: String,
    /// The sealed requests without an answer, by their keys in the config store.
    unanswered: BTreeMap<String, String>,
}

/// The keys of a plan's HTTP requests.
#[derive(Debug, Default)]
pub(crate) struct KeyedPlan {
    /// The plan with earlier requests in place of those that are sent again. `None`: the plan is unchanged.
    pub(crate) plan: Option<Plan>,
    /// The `Idempotency-Key` of each request that has one, by name.
    pub(crate) keys: IdempotencyKeys,
    /// The requests that are stored, by name.
    stored: BTreeMap<String, Stored>,
}

#[derive(Debug)]
struct Stored {
    uid: String,
    key: String,
    /// Whether an earlier attempt may have sent it.
    is_resent: bool,
}

#[derive(Serialize, Deserialize)]
struct CauseRecord {
    object: ObjectRef,
    trigger: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    occasion: Option<Timestamp>,
    cause: String,
}

impl Effects {
    pub(crate) fn new(
        store: Arc<dyn ConfigStore>,
        key: Arc<HostKey>,
        configurator: &Configurator,
        clock: SharedClock,
    ) -> Self {
        Self {
            store,
            key,
            prefix: format!("{EFFECTS}{}/", configurator.uid),
            is_used: configurator.capabilities.allows_http(),
            clock,
            answered: Mutex::default(),
        }
    }

    /// Gives the HTTP requests of a plan their keys. When this returns, their cause is stored, and so is each request, which is sent
    /// again unchanged until it has an answer. Does nothing for a plan without such requests.
    ///
    /// # Errors
    /// When one of the stores cannot be used. Then nothing may be sent.
    pub(crate) async fn key(
        &self,
        plan: &Plan,
        run: &Run,
        rollout: &Rollout,
        known: &mut RunEffects,
        fences: &[Fence],
    ) -> Result<KeyedPlan, Fault> {
        let mut keyed = KeyedPlan::default();
        let requests: Vec<(usize, &PlannedStep, &HttpRequest)> = keyed_requests(plan).collect();
        if requests.is_empty() {
            return Ok(keyed);
        }
        let seals = self.key.get().await?;
        let cipher = Cipher::new(&seals.derive(b"http requests").into());
        let members = requests
            .iter()
            .flat_map(|(_, step, _)| members_of(step, run));
        let module = rollout.chosen(run.module()).digest().hex();
        let mut writes = self.learn(run, members, module.as_bytes(), known).await?;
        for (index, step, request) in requests {
            let members = members_of(step, run);
            let cause = known.cause_of(members);
            let owner = members.first().map(|owner| owner.uid.as_str());
            let Some((uid, object)) =
                owner.and_then(|uid| Some((uid, known.objects.get_mut(uid)?)))
            else {
                continue;
            };
            let name = &step.request.name;
            let key = format!("{}{}", object.prefix, entry_of(run, name));
            let bound = format!("{key} {cause}");
            let unanswered = object.unanswered.get(&key);
            let earlier = unanswered.and_then(|sealed| open(&cipher, &bound, sealed));
            let is_resent = earlier.is_some();
            let sent = match earlier {
                Some(earlier) => {
                    let again = resent(request, earlier);
                    let plan = keyed.plan.get_or_insert_with(|| plan.clone());
                    if let Some(step) = plan.steps.get_mut(index) {
                        *step = run.with_operation(step, Operation::Http(again.clone()));
                    }
                    again
                }
                None => {
                    let request = without_headers(request);
                    if !step.request.is_declarative
                        && let Some(sealed) = seal(&cipher, &bound, &request)?
                    {
                        writes.push(Write::Put(key.clone(), sealed.clone()));
                        object.unanswered.insert(key.clone(), sealed);
                    }
                    request
                }
            };
            let body = sent.body.as_deref().unwrap_or_default();
            let parts = ["idempotency-key", &bound, &sent.method, &sent.url];
            let parts: Vec<&[u8]> = parts.map(str::as_bytes).into_iter().chain([body]).collect();
            keyed.keys.insert(name.clone(), seals.seal(&parts));
            let stored = Stored {
                uid: uid.to_owned(),
                key,
                is_resent,
            };
            keyed.stored.insert(name.clone(), stored);
        }
        self.write(writes, fences).await?;
        Ok(keyed)
    }

    /// Removes the stored requests that have been answered. From then on, another request of the same name is another effect. If the
    /// store cannot be written, they are removed with the next write; after a crash before that, such a request is sent once more under
    /// its key.
    pub(crate) async fn settle(
        &self,
        keyed: &KeyedPlan,
        results: &[RequestResult],
        known: &mut RunEffects,
        fences: &[Fence],
    ) {
        let mut answered = Vec::new();
        for result in results {
            let Some(stored) = keyed.stored.get(&result.request_name) else {
                continue;
            };
            let is_open = match result.error.as_ref().map(|fault| fault.kind) {
                Some(FaultKind::HttpUnavailable) => true,
                Some(FaultKind::NotSent) => stored.is_resent,
                _ => false,
            };
            let unanswered = known.unanswered(&stored.uid);
            if !is_open && unanswered.is_some_and(|all| all.remove(&stored.key).is_some()) {
                answered.push(stored.key.clone());
            }
        }
        if answered.is_empty() {
            return;
        }
        self.answered().extend(answered);
        if let Err(fault) = self.write(Vec::new(), fences).await {
            tracing::warn!(%fault, "HTTP requests that were answered could not be removed from the config store; it is tried again with the next ones");
        }
    }

    /// Removes everything about an object.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn forget(&self, uid: &str, fences: &[Fence]) -> Result<(), Fault> {
        if !self.is_used {
            return Ok(());
        }
        let prefix = format!("{}{uid}/", self.prefix);
        self.answered().retain(|key| !key.starts_with(&prefix));
        self.store
            .write(vec![Write::DeletePrefix(prefix)], fences)
            .await
    }

    /// Returns whether the Configurator may send HTTP requests.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// Returns the objects that a cause is stored for, with their uids.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn objects(&self) -> Result<BTreeSet<(ObjectRef, String)>, Fault> {
        if !self.is_used {
            return Ok(BTreeSet::new());
        }
        let records = self.store.scan(&self.prefix).await?;
        let object = |(key, text): (String, String)| {
            let (uid, _) = key.strip_prefix(&self.prefix)?.split_once('/')?;
            let record: CauseRecord = serde_json::from_str(&text).ok()?;
            Some((record.object, uid.to_owned()))
        };
        Ok(records.into_iter().filter_map(object).collect())
    }

    /// Returns the uids of the Configurators that something is stored for.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn owners(store: &dyn ConfigStore) -> Result<BTreeSet<String>, Fault> {
        segments_below(store, EFFECTS).await
    }

    /// Removes everything about the objects of a Configurator that is gone.
    ///
    /// # Errors
    /// When the config store cannot be written.
    pub(crate) async fn close(
        store: &dyn ConfigStore,
        configurator_uid: &str,
        fences: &[Fence],
    ) -> Result<(), Fault> {
        let prefix = format!("{EFFECTS}{configurator_uid}/");
        store.write(vec![Write::DeletePrefix(prefix)], fences).await
    }

    /// Reads the effects of members that were not read yet. Returns the writes that must come before their requests are sent.
    async fn learn<'m>(
        &self,
        run: &Run,
        members: impl Iterator<Item = &'m Member>,
        module: &[u8],
        known: &mut RunEffects,
    ) -> Result<Vec<Write>, Fault> {
        let unknown: BTreeMap<&str, &Member> = members
            .filter(|member| !known.objects.contains_key(&member.uid))
            .map(|member| (member.uid.as_str(), member))
            .collect();
        let mut reads = Vec::with_capacity(unknown.len());
        for member in unknown.into_values() {
            reads.push(self.read(member, Trigger::of(run, member, module)));
        }
        let mut read = stream::iter(reads).buffer_unordered(READS);
        let mut all = Vec::new();
        while let Some((uid, effects, writes)) = read.try_next().await? {
            known.objects.insert(uid, effects);
            all.extend(writes);
        }
        Ok(all)
    }

    async fn read(
        &self,
        member: &Member,
        trigger: Trigger,
    ) -> Result<(String, ObjectEffects, Vec<Write>), Fault> {
        let uid = member.uid.clone();
        let prefix = format!("{}{uid}/{}/", self.prefix, trigger.scope);
        let mut unanswered: BTreeMap<String, String> =
            self.store.scan(&prefix).await?.into_iter().collect();
        unanswered.retain(|key, _| !self.answered().contains(key));
        let cause_key = format!("{prefix}{CAUSE}");
        let record = unanswered.remove(&cause_key);
        let record: Option<CauseRecord> =
            record.and_then(|record| serde_json::from_str(&record).ok());
        if let Some(record) = &record
            && trigger.is_same(&record.trigger, record.occasion)
        {
            let effects = ObjectEffects {
                prefix,
                cause: record.cause.clone(),
                unanswered,
            };
            return Ok((uid, effects, Vec::new()));
        }
        // The time makes each cause unique, even if the same happens again or the record of the object was removed meanwhile.
        let now = self.clock.now().to_string();
        let last = record.map(|record| record.cause).unwrap_or_default();
        let cause = digest_of([&trigger.digest, &last, &now].map(|part| part.as_bytes()));
        let record = CauseRecord {
            object: member.key.clone(),
            trigger: trigger.digest.clone(),
            occasion: trigger.occasion,
            cause: cause.clone(),
        };
        let text = serde_json::to_string(&record).map_err(|error| broken(&error))?;
        let writes = vec![
            Write::DeletePrefix(prefix.clone()),
            Write::Put(cause_key, text),
        ];
        let effects = ObjectEffects {
            prefix,
            cause,
            unanswered: BTreeMap::new(),
        };
        Ok((uid, effects, writes))
    }

    /// Writes, and removes answered requests in the same call.
    async fn write(&self, mut writes: Vec<Write>, fences: &[Fence]) -> Result<(), Fault> {
        let answered: Vec<String> = self.answered().iter().cloned().collect();
        let puts: HashSet<&String> = writes.iter().filter_map(put_key).collect();
        let deletes = answered.iter().filter(|key| !puts.contains(key));
        let deletes: Vec<Write> = deletes.cloned().map(Write::Delete).collect();
        writes.splice(0..0, deletes);
        if writes.is_empty() {
            return Ok(());
        }
        self.store.write(writes, fences).await?;
        let mut left = self.answered();
        answered.iter().for_each(|key| {
            left.remove(key);
        });
        Ok(())
    }

    fn answered(&self) -> MutexGuard<'_, HashSet<String>> {
        self.answered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl RunEffects {
    fn unanswered(&mut self, uid: &str) -> Option<&mut BTreeMap<String, String>> {
        Some(&mut self.objects.get_mut(uid)?.unanswered)
    }

    /// Returns the cause of a request for these objects. It changes when the cause of one of them does.
    fn cause_of(&self, members: &[Member]) -> String {
        let causes = members.iter().filter_map(|member| {
            let effects = self.objects.get(&member.uid)?;
            Some((member.uid.as_str(), effects.cause.as_str()))
        });
        let causes: BTreeMap<&str, &str> = causes.collect();
        digest_of(
            causes
                .iter()
                .flat_map(|(uid, cause)| [uid.as_bytes(), cause.as_bytes()]),
        )
    }
}

/// Returns the requests of a plan that get a key: those that may change something and have no key from the handler.
fn keyed_requests(plan: &Plan) -> impl Iterator<Item = (usize, &PlannedStep, &HttpRequest)> {
    plan.steps.iter().enumerate().filter_map(|(index, step)| {
        let (PlannedAction::Send(_), Operation::Http(request)) =
            (&step.action, &step.request.operation)
        else {
            return None;
        };
        let has_key = request
            .headers
            .iter()
            .any(|(name, _)| name.eq_ignore_ascii_case(HEADER));
        (!has_key && !is_safe(&request.method)).then_some((index, step, request))
    })
}

/// Names a request of the entry that the run is in, as a segment of a key.
fn entry_of(run: &Run, request: &str) -> String {
    let entry = run.entry_id();
    let number = entry.number.to_string();
    digest_of([entry.phase, &number, request].map(str::as_bytes))
}

/// Returns the objects that a request is made for.
fn members_of<'r>(step: &PlannedStep, run: &'r Run) -> &'r [Member] {
    let members = run.members();
    match &step.request.of {
        Some(of) => members
            .iter()
            .find(|member| member.key == *of)
            .map_or(&[], std::slice::from_ref),
        None => members,
    }
}

/// Returns the part of a request that stays the same. Headers are left out, since they may hold a credential that expires.
fn without_headers(request: &HttpRequest) -> HttpRequest {
    HttpRequest {
        headers: Vec::new(),
        ..request.clone()
    }
}

/// Returns the earlier request with the headers of the one that the handler has just returned.
fn resent(request: &HttpRequest, earlier: HttpRequest) -> HttpRequest {
    let mut headers = request.headers.clone();
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    HttpRequest { headers, ..earlier }
}

/// Returns `None` for a request that is too large to be stored.
fn seal(cipher: &Cipher, bound: &str, request: &HttpRequest) -> Result<Option<String>, Fault> {
    let text = serde_json::to_vec(request).map_err(|error| broken(&error))?;
    if text.len() > MAX_STORED {
        return Ok(None);
    }
    let sealed = cipher.seal(bound, &text).map_err(|error| broken(&error))?;
    Ok(Some(sealed))
}

/// Returns `None` for a request that was sealed for another cause, or with another key.
fn open(cipher: &Cipher, bound: &str, sealed: &str) -> Option<HttpRequest> {
    serde_json::from_slice(&cipher.open(bound, sealed)?).ok()
}

fn put_key(write: &Write) -> Option<&String> {
    match write {
        Write::Put(key, _) => Some(key),
        Write::Delete(_) | Write::DeletePrefix(_) => None,
    }
}

fn broken(error: &dyn std::fmt::Display) -> Fault {
    let message = format!("an HTTP request could not be stored before it is sent: {error}");
    Fault::new(FaultKind::ResourceGeneric, message)
}
