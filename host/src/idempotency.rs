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

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
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

use crate::clock::SharedClock;
use crate::executor::IdempotencyKeys;
use crate::seal::{HostKey, StateKey};
use crate::sinks::configstore::{ConfigStore, Fence};
use crate::sinks::is_safe;

/// Where causes and requests are in the config store.
const EFFECTS: &str = "effects/";
/// The last segment of the key of a cause.
const CAUSE: &str = "cause";
/// The header that carries the key.
const HEADER: &str = "idempotency-key";
/// The largest request that is stored, in bytes before it is sealed. A larger one is made anew by the handler.
const MAX_STORED: usize = 512 << 10;
/// Objects of a batch whose causes are read at a time.
const READS: usize = 16;

/// The effects of one Configurator's HTTP requests.
pub(crate) struct Effects {
    store: Arc<dyn ConfigStore>,
    key: Arc<HostKey>,
    prefix: String,
    /// Whether there may be any.
    is_used: bool,
    clock: SharedClock,
    /// Keys of requests that were answered, and could not be removed.
    answered: Mutex<HashSet<String>>,
}

/// What is known of the effects of one run.
#[derive(Default)]
pub(crate) struct RunEffects {
    /// By uid of the object.
    objects: BTreeMap<String, ObjectEffects>,
}

struct ObjectEffects {
    cause: String,
    /// The sealed requests without an answer, by their keys in the config store.
    unanswered: BTreeMap<String, String>,
}

/// What the HTTP requests of a plan are sent with.
#[derive(Debug, Default)]
pub(crate) struct KeyedPlan {
    /// The plan with the requests that are sent again as they were; `None`: as it is.
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

    /// Gives the HTTP requests of a plan their keys. When this returns, their cause is stored, and so is each request that is to
    /// be sent again as it is until it has an answer. `module` is the digest of the run's module.
    ///
    /// # Errors
    /// When one of the stores cannot be used. Then nothing may be sent.
    pub(crate) async fn key(
        &self,
        plan: &Plan,
        run: &Run,
        module: &[u8],
        known: &mut RunEffects,
        fences: &[Fence],
    ) -> Result<KeyedPlan, Fault> {
        let mut keyed = KeyedPlan::default();
        let requests: Vec<(usize, &PlannedStep, &HttpRequest)> = keyed_requests(plan).collect();
        if requests.is_empty() {
            return Ok(keyed);
        }
        let seals = self.key.get().await?;
        let members = requests
            .iter()
            .flat_map(|(_, step, _)| members_of(step, run));
        let mut writes = self.learn(run, members, module, known).await?;
        for (index, step, request) in requests {
            let Some(owner) = members_of(step, run).first() else {
                continue;
            };
            let name = &step.request.name;
            let cause = known.cause_of(members_of(step, run));
            let key = self.request_key(run, owner, module, name);
            let bound = format!("{key} {cause}");
            let unanswered = known.unanswered(&owner.uid);
            let earlier = unanswered.and_then(|all| open(seals, &bound, all.get(&key)?));
            let is_resent = earlier.is_some();
            let request = match earlier {
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
                        && let Some(sealed) = seal(seals, &bound, &request)?
                    {
                        writes.push(Write::Put(key.clone(), sealed.clone()));
                        if let Some(all) = known.unanswered(&owner.uid) {
                            all.insert(key.clone(), sealed);
                        }
                    }
                    request
                }
            };
            let parts = ["idempotency-key", &bound, &request.method, &request.url];
            let body = request.body.as_deref().unwrap_or_default();
            let parts: Vec<&[u8]> = parts.map(str::as_bytes).into_iter().chain([body]).collect();
            keyed.keys.insert(name.clone(), seals.seal(&parts));
            let stored = Stored {
                uid: owner.uid.clone(),
                key,
                is_resent,
            };
            keyed.stored.insert(name.clone(), stored);
        }
        self.write(writes, fences).await?;
        Ok(keyed)
    }

    /// Notes which of the requests have their answers: another request of the same name is another effect from then on. What
    /// cannot be removed from the store is removed with the next write; after a crash before it, the request is sent once more
    /// under its key.
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

    /// Whether there may be any: the Configurator may send HTTP requests.
    pub(crate) fn is_used(&self) -> bool {
        self.is_used
    }

    /// The objects that a cause is stored for, with their uids.
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

    /// Uids of Configurators about whose objects something is stored.
    ///
    /// # Errors
    /// When the config store cannot be read.
    pub(crate) async fn kept_for(store: &dyn ConfigStore) -> Result<BTreeSet<String>, Fault> {
        let keys = store.scan(EFFECTS).await?;
        let segment = |key: &str| Some(key.strip_prefix(EFFECTS)?.split_once('/')?.0.to_owned());
        Ok(keys.iter().filter_map(|(key, _)| segment(key)).collect())
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

    /// Reads what is not known yet of these members. Returns what must be written before a request of them is sent.
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
            let cause = record.cause.clone();
            return Ok((uid, ObjectEffects { cause, unanswered }, Vec::new()));
        }
        // A cause is never used twice, also when everything happens again as it was, or after the record of an object was removed.
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
        let writes = vec![Write::DeletePrefix(prefix), Write::Put(cause_key, text)];
        let effects = ObjectEffects {
            cause,
            unanswered: BTreeMap::new(),
        };
        Ok((uid, effects, writes))
    }

    /// The key of a request in the config store.
    fn request_key(&self, run: &Run, owner: &Member, module: &[u8], name: &str) -> String {
        let scope = Trigger::of(run, owner, module).scope;
        let entry = run.entry_id();
        let number = entry.number.to_string();
        let entry = digest_of([entry.phase, &number, name].map(str::as_bytes));
        format!("{}{}/{scope}/{entry}", self.prefix, owner.uid)
    }

    /// Writes, and removes the requests that were answered.
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

    /// The cause of a request for these objects: another one as soon as one of theirs is.
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

/// The requests of a plan that get a key: those that may change something, unless the handler has given them one.
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

/// The objects that a request is made for.
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

/// What of a request stays the same: headers may hold a credential that has been replaced since.
fn without_headers(request: &HttpRequest) -> HttpRequest {
    HttpRequest {
        headers: Vec::new(),
        ..request.clone()
    }
}

/// The earlier request, with the headers of the one that the handler asks for now.
fn resent(request: &HttpRequest, earlier: HttpRequest) -> HttpRequest {
    let mut headers = request.headers.clone();
    headers.retain(|(name, _)| !name.eq_ignore_ascii_case("content-length"));
    HttpRequest { headers, ..earlier }
}

/// `None`: it is too large to be stored.
fn seal(seals: &StateKey, bound: &str, request: &HttpRequest) -> Result<Option<String>, Fault> {
    let text = serde_json::to_vec(request).map_err(|error| broken(&error))?;
    if text.len() > MAX_STORED {
        return Ok(None);
    }
    let mut nonce = [0; 24];
    getrandom::fill(&mut nonce).map_err(|error| broken(&error))?;
    let payload = Payload {
        msg: &text,
        aad: bound.as_bytes(),
    };
    let sealed = cipher(seals)
        .encrypt(&XNonce::from(nonce), payload)
        .map_err(|error| broken(&error))?;
    Ok(Some(STANDARD.encode([&nonce[..], &sealed].concat())))
}

/// `None`: it was sealed for another cause, or with another key.
fn open(seals: &StateKey, bound: &str, sealed: &str) -> Option<HttpRequest> {
    let bytes = STANDARD.decode(sealed).ok()?;
    let (nonce, sealed) = bytes.split_first_chunk::<24>()?;
    let payload = Payload {
        msg: sealed,
        aad: bound.as_bytes(),
    };
    let text = cipher(seals).decrypt(&XNonce::from(*nonce), payload).ok()?;
    serde_json::from_slice(&text).ok()
}

fn cipher(seals: &StateKey) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(&seals.derive(b"http requests").into())
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
