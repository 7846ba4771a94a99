//! Keeps the states of objects with a machine: in the object's status, in a ConfigMap or in the config store.
//!
//! What is stored is the phase and the nodes, which people and programs read, and a text that only the host reads:
//! `2.<revision>.<base>.<seal>.<engine>`. The revision counts the writes. The seal is over the base, the object's uid, the revision, the
//! phase, the nodes and the engine's part, so that what somebody else wrote is noticed.
//!
//! A sealed state that was stored once can be put back, or copied to where another Configurator keeps its own. So the config store has an
//! entry for each object and Configurator (`revisions/<name of the Configurator>/<uid>`): the revision and the seal of a state that was
//! stored, the *booked* one. The base of a state is the seal of the one that was booked when it was stored. Accepted are the booked state,
//! and later ones whose base it is. An entry begins with a random number in the place of a seal, so no state of another
//! Configurator has a base here; and with each booking all that was stored before, or beside, is refused.
//!
//! Not every step is booked. A step that must not be repeated is booked before it is carried out.
//!
//! A state of more than [`MAX_IN_OBJECT`] bytes is kept in the config store, under `states/<name of the Configurator>/<uid>/<revision>`;
//! its place then has the phase and a memento without an engine's part.
//!
//! A flow goes on with the tree that it has begun with, whatever is declared meanwhile: before the first state is stored, the trees with
//! flows are, under `trees/<name of the Configurator>/<digest>`. They stay as long as the other books.

use std::sync::{Arc, Mutex, PoisonError};

use configurator_core::configurator::{Configurator, StatePlace};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::field_manager;
use configurator_core::machine::memento::Memento;
use configurator_core::machine::phase::Machine;
use configurator_core::machine::state::State;
use configurator_core::machine::tree::Node;
use configurator_core::request::ObjectRef;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, Patch, PatchParams};
use serde_json::{Map, Value, json};
use tokio::sync::OnceCell;

use super::commands::namespace_beside;
use super::state_books::{Entry, StateBooks};
use crate::kubernetes_faults::{fault_of, is_of_another};
use crate::objects;
use crate::seal::HostKey;
use crate::sinks::configstore::{ConfigStore, Fence};

/// What an object or ConfigMap carries at most, in bytes.
const MAX_IN_OBJECT: usize = 256 * 1024;
/// The form of the memento's text.
const FORM: &str = "2";
/// How often a write is tried again because somebody else wrote to the object meanwhile.
const CONFLICTS: usize = 10;

/// Keeps the states of one Configurator's objects.
pub(crate) struct StateStore {
    client: Client,
    resource: ApiResource,
    /// With the trees of earlier declarations that were met.
    machine: Mutex<Arc<Machine>>,
    /// Whether the trees are stored.
    kept: OnceCell<()>,
    place: StatePlace,
    configurator: ObjectRef,
    books: StateBooks,
    key: Arc<HostKey>,
}

/// An object, and what is known of its stored state.
#[derive(Debug, Clone)]
pub(crate) struct Held {
    key: ObjectRef,
    uid: String,
    /// The object, the newest that was seen.
    pub(crate) object: Value,
    /// Of what carries the state: the object or its ConfigMap. Empty where nothing does yet.
    version: String,
    revision: u64,
    /// The memento that is stored.
    stored: Option<String>,
    /// Its seal.
    seal: String,
    /// One whose write was not answered.
    attempted: Option<String>,
    /// The entry in the config store.
    booked: Option<Entry>,
    /// Whether the stored state is not trusted, so that no state may follow it.
    begins_anew: bool,
}

impl Held {
    /// Whether a state is stored that anybody can see.
    pub(crate) const fn is_stored(&self) -> bool {
        self.stored.is_some()
    }

    /// Whether what is known with this is still so, where `found` is what is stored: it is what this has stored, or tried to.
    pub(crate) fn goes_on_as(&self, found: &Self) -> bool {
        self.uid == found.uid
            && (self.stored == found.stored
                || self.attempted.is_some() && self.attempted == found.stored)
    }
}

/// What was found of a state.
pub(crate) enum Found {
    /// The object has gone.
    Gone,
    /// The state; the default where there is none yet.
    State(Box<Held>, Box<State>),
    /// What is there was not written by a host, or is an older state; and why.
    Untrusted(Box<Held>, String),
}

/// What a write came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Saved {
    /// It is stored.
    Stored,
    /// The object has gone.
    Gone,
    /// Somebody else has written a state meanwhile.
    Foreign,
}

/// The parts of a stored state.
#[derive(Default)]
struct Carried {
    version: String,
    phase: Option<String>,
    nodes: Option<Value>,
    memento: Option<String>,
}

impl StateStore {
    pub(crate) fn new(
        client: Client,
        resource: ApiResource,
        configurator: &Configurator,
        config: Arc<dyn ConfigStore>,
        key: Arc<HostKey>,
    ) -> Option<Self> {
        let mode = configurator.machine.as_ref()?;
        Some(Self {
            client,
            resource,
            machine: Mutex::new(mode.machine.clone()),
            kept: OnceCell::new(),
            place: mode.place.clone(),
            configurator: configurator.key.clone(),
            books: StateBooks::new(config, &configurator.key),
            key,
        })
    }

    /// The object as it is now, and its state.
    ///
    /// # Errors
    /// When a server that has a part of it cannot be asked.
    pub(crate) async fn load(&self, key: &ObjectRef, uid: &str) -> Result<Found, Fault> {
        let seals = self.key.get().await?;
        let Some(object) = self.object(key, uid).await? else {
            return Ok(Found::Gone);
        };
        let carried = self.carried(key, uid, &object).await?;
        let booked = self.books.entry(uid).await?;
        let mut held = Box::new(Held {
            key: key.clone(),
            uid: uid.to_owned(),
            object,
            version: carried.version.clone(),
            revision: booked.as_ref().map_or(0, Entry::revision),
            stored: carried.memento.clone(),
            seal: String::new(),
            attempted: None,
            booked,
            begins_anew: false,
        });
        let untrusted = |mut held: Box<Held>, why: &str| {
            held.begins_anew = true;
            Ok(Found::Untrusted(held, why.to_owned()))
        };
        let Some(text) = carried.memento else {
            let is_begun = carried
                .phase
                .is_some_and(|phase| phase != self.machine().initial && !phase.is_empty());
            return match (held.revision, is_begun || has_nodes(carried.nodes.as_ref())) {
                (0, false) => Ok(Found::State(held, Box::default())),
                (0, true) => untrusted(held, "it has a phase or nodes that no host has written"),
                _ => untrusted(held, "its memento was taken away"),
            };
        };
        let Some((revision, base, seal, engine)) = parts(&text) else {
            return untrusted(
                held,
                "its memento is none that a host of this version has written",
            );
        };
        let phase = carried.phase.unwrap_or_default();
        let (nodes, engine) = match engine {
            "" => match self.books.moved(uid, revision).await? {
                Some(moved) => moved,
                None => return untrusted(held, "the config store does not have the rest of it"),
            },
            engine => (
                carried.nodes.unwrap_or_else(|| json!({})),
                engine.to_owned(),
            ),
        };
        const CHANGED: &str =
            "its phase, its nodes or its memento were changed by somebody else than a host";
        let state = Document::parse(engine.as_str()).ok().and_then(|engine| {
            let memento = Memento {
                phase,
                nodes,
                engine,
            };
            memento.into_state().ok()
        });
        let Some(state) = state else {
            return untrusted(held, CHANGED);
        };
        let is_sealed = Memento::sealed_nodes(&state).is_ok_and(|nodes| {
            let number = revision.to_string();
            let parts = sealed(base, uid, &number, &state.phase, &nodes, &engine);
            seals.is_seal(&parts, seal)
        });
        if !is_sealed {
            return untrusted(held, CHANGED);
        }
        if let Err(why) = follows(held.booked.as_ref(), revision, base, seal) {
            return untrusted(held, &why);
        }
        let machine = self.machine();
        for (phase, root) in &state.nodes {
            let is_needed = *phase == state.phase || state.unfinished.as_ref() == Some(phase);
            if let Some(digest) = machine.lacks(phase, root)
                && !self.recall(digest).await?
                && is_needed
            {
                let why = format!(
                    "its phase {phase:?} began under an earlier declaration, whose tree {digest} the config store does not have as a host has stored it"
                );
                return untrusted(held, &why);
            }
        }
        held.revision = revision;
        held.seal = seal.to_owned();
        Ok(Found::State(held, Box::new(state)))
    }

    /// The machine as declared, with the trees of earlier declarations that were met.
    pub(crate) fn machine(&self) -> Arc<Machine> {
        let machine = self.machine.lock();
        machine.unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Makes a tree of an earlier declaration known. `false`: it is not there as a host has stored it.
    async fn recall(&self, digest: &str) -> Result<bool, Fault> {
        let tree = self.books.tree(digest).await?;
        let Some(tree) = tree.and_then(|tree| Node::restored(digest, &tree)) else {
            return Ok(false);
        };
        let mut machine = self.machine.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::make_mut(&mut machine).remember(digest.to_owned(), tree);
        Ok(true)
    }

    /// Stores the trees with flows that are declared.
    async fn keep_trees(&self, fences: &[Fence]) -> Result<(), Fault> {
        let machine = self.machine();
        let trees = machine
            .kept()
            .map(|(_, digest, tree)| (digest, tree.to_string()));
        self.books.keep_trees(trees, fences).await
    }

    /// Stores the state. On success, `held` is what is stored now.
    ///
    /// # Errors
    /// When a server cannot be asked. Whether the state is stored is then not known; to store it again is safe.
    pub(crate) async fn save(
        &self,
        held: &mut Held,
        state: &State,
        fences: &[Fence],
    ) -> Result<Saved, Fault> {
        let seals = self.key.get().await?;
        let revision = held.revision + 1;
        let deep = |error| {
            Fault::new(
                FaultKind::ResourceGeneric,
                format!("the state cannot be stored: {error}"),
            )
        };
        self.kept
            .get_or_try_init(|| self.keep_trees(fences))
            .await?;
        let (memento, bare) = Memento::of(&self.machine(), state).map_err(deep)?;
        let base = match &held.booked {
            Some(booked) if !held.begins_anew => booked.clone(),
            _ => self.begin(held, fences).await?,
        };
        let number = revision.to_string();
        let seal = seals.seal(&sealed(
            base.seal(),
            &held.uid,
            &number,
            &memento.phase,
            &bare,
            memento.engine.as_str(),
        ));
        let prefix = format!("{FORM}.{number}.{}.{seal}.", base.seal());
        if self.place == StatePlace::ConfigStore {
            return self.save_here(held, &memento, prefix, seal, fences).await;
        }
        let size = nodes_size(&memento.nodes) + memento.engine.size();
        let is_moved = size > MAX_IN_OBJECT;
        let (nodes, text) = if is_moved {
            self.books
                .move_out(&held.uid, revision, &memento, fences)
                .await?;
            (json!({}), prefix)
        } else {
            (memento.nodes, prefix + memento.engine.as_str())
        };
        let saved = self.write(held, &memento.phase, nodes, &text).await?;
        if saved == Saved::Stored {
            if is_moved && held.revision > 0 {
                self.books
                    .drop_moved(&held.uid, held.revision, fences)
                    .await;
            }
            held.revision = revision;
            held.seal = seal;
            held.stored = Some(text);
            held.attempted = None;
        }
        Ok(saved)
    }

    /// Stores a state whose place is the config store, and books it, all in one transaction.
    async fn save_here(
        &self,
        held: &mut Held,
        memento: &Memento,
        text: String,
        seal: String,
        fences: &[Fence],
    ) -> Result<Saved, Fault> {
        let revision = held.revision + 1;
        let Some(known) = &held.booked else {
            return Ok(Saved::Foreign);
        };
        let entry = known.follow(revision, &seal);
        let pointer = json!({"phase": memento.phase, "memento": text});
        let mut writes = vec![
            self.books.moving(&held.uid, revision, memento),
            self.books.pointing(&held.uid, &pointer),
        ];
        if held.revision > 0 {
            writes.push(self.books.dropping(&held.uid, held.revision));
        }
        held.attempted = Some(text.clone());
        let booked = self
            .books
            .book(&held.uid, Some(known), &entry, writes, fences);
        if !booked.await? {
            return Ok(Saved::Foreign);
        }
        held.revision = revision;
        held.seal = seal;
        held.stored = Some(text);
        held.attempted = None;
        held.booked = Some(entry);
        Ok(Saved::Stored)
    }

    /// Books that a state is about to be stored that follows no stored one. From then on, removing it is noticed.
    async fn begin(&self, held: &mut Held, fences: &[Fence]) -> Result<Entry, Fault> {
        let entry = Entry::begin(&held.key, held.revision)?;
        self.replace(held, entry.clone(), fences).await?;
        held.begins_anew = false;
        Ok(entry)
    }

    /// Books the state that is stored.
    ///
    /// # Errors
    /// When the config store cannot be written, or somebody else has booked a state of the object.
    pub(crate) async fn book(&self, held: &mut Held, fences: &[Fence]) -> Result<(), Fault> {
        let Some(booked) = &held.booked else {
            return Ok(());
        };
        if booked.revision() == held.revision {
            return Ok(());
        }
        let entry = booked.follow(held.revision, &held.seal);
        self.replace(held, entry, fences).await
    }

    async fn replace(&self, held: &mut Held, entry: Entry, fences: &[Fence]) -> Result<(), Fault> {
        let known = held.booked.as_ref();
        let booked = self
            .books
            .book(&held.uid, known, &entry, Vec::new(), fences);
        if !booked.await? {
            let message = format!(
                "somebody else has booked a state of {} meanwhile; it is read again",
                held.key
            );
            return Err(Fault::new(FaultKind::ResourceConflict, message));
        }
        held.booked = Some(entry);
        Ok(())
    }

    /// Returns the records in the config store.
    pub(crate) const fn books(&self) -> &StateBooks {
        &self.books
    }

    /// The object as it is now; `None`: it has gone.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn object(&self, key: &ObjectRef, uid: &str) -> Result<Option<Value>, Fault> {
        let api = objects::of(self.client.clone(), &self.resource, &key.namespace);
        let object = api.get_opt(&key.name).await;
        let object =
            object.map_err(|error| fault_of(&format!("the object {key}"), false, &error))?;
        let object = object.filter(|object| object.metadata.uid.as_deref() == Some(uid));
        object.map(|object| value_of(&object)).transpose()
    }

    /// The uid of the object of this name; `None` if there is none.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn uid(&self, key: &ObjectRef) -> Result<Option<String>, Fault> {
        let api = objects::of(self.client.clone(), &self.resource, &key.namespace);
        let object = api.get_metadata_opt(&key.name).await;
        let object =
            object.map_err(|error| fault_of(&format!("the object {key}"), false, &error))?;
        Ok(object.and_then(|object| object.metadata.uid))
    }

    /// The kind of the objects.
    pub(crate) fn kind(&self) -> &str {
        &self.resource.kind
    }

    /// Reads the object again. `false`: it has gone.
    ///
    /// # Errors
    /// When the API cannot be asked.
    pub(crate) async fn refresh(&self, held: &mut Held) -> Result<bool, Fault> {
        let Some(object) = self.object(&held.key, &held.uid).await? else {
            return Ok(false);
        };
        if let StatePlace::Status { memento, .. } = &self.place
            && at(&object, memento).and_then(Value::as_str) == held.stored.as_deref()
        {
            held.version = objects::text(&object, "/metadata/resourceVersion").to_owned();
        }
        held.object = object;
        Ok(true)
    }

    /// Whether the object is known anew with each write of its state.
    pub(crate) fn shows_objects(&self) -> bool {
        matches!(self.place, StatePlace::Status { .. })
    }

    /// The object as handlers see it: the declared fields, without the memento.
    ///
    /// # Errors
    /// When it is nested too deep.
    pub(crate) fn shown(
        &self,
        held: &Held,
        configurator: &Configurator,
    ) -> Result<Document, Fault> {
        let mut object = held.object.clone();
        if let StatePlace::Status { memento, .. } = &self.place
            && let Some((last, above)) = memento.split_last()
            && let Some(Value::Object(fields)) = at_mut(&mut object, above)
        {
            fields.remove(last);
        }
        if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
            metadata.remove("managedFields");
        }
        configurator.watch.fields.apply(&mut object);
        Document::of(&object).map_err(|error| {
            let message = format!(
                "the object {} cannot be shown to a handler: {error}",
                held.key
            );
            Fault::new(FaultKind::ResourceGeneric, message)
        })
    }

    async fn carried(&self, key: &ObjectRef, uid: &str, object: &Value) -> Result<Carried, Fault> {
        match &self.place {
            StatePlace::Status { .. } => Ok(carried_by(&self.place, object)),
            StatePlace::ConfigMap => {
                let name = config_map_name(&self.configurator, uid);
                let what = format!(
                    "the ConfigMap {}/{name}, which has the state",
                    namespace_beside(&key.namespace)
                );
                let map = self.config_maps(key).get_opt(&name).await;
                let map = map.map_err(|error| fault_of(&what, false, &error))?;
                let map = map.as_ref().map(value_of).transpose()?;
                Ok(map
                    .map(|map| carried_by(&self.place, &map))
                    .unwrap_or_default())
            }
            StatePlace::ConfigStore => {
                let Some(stored) = self.books.pointer(uid).await? else {
                    return Ok(Carried::default());
                };
                Ok(Carried {
                    phase: text_of(stored.get("phase")),
                    memento: text_of(stored.get("memento")),
                    ..Carried::default()
                })
            }
        }
    }

    async fn write(
        &self,
        held: &mut Held,
        phase: &str,
        nodes: Value,
        text: &str,
    ) -> Result<Saved, Fault> {
        let what = format!("the state of {}", held.key);
        for _ in 0..CONFLICTS {
            held.attempted = Some(text.to_owned());
            match self.send(held, phase, &nodes, text).await {
                Ok(carrier) => {
                    held.version = carrier
                        .metadata
                        .resource_version
                        .clone()
                        .unwrap_or_default();
                    if let StatePlace::Status { .. } = self.place {
                        held.object = value_of(&carrier)?;
                    }
                    return Ok(Saved::Stored);
                }
                Err(kube::Error::Api(status)) if status.code == 404 || is_of_another(&status) => {
                    return Ok(Saved::Gone);
                }
                Err(kube::Error::Api(status)) if status.code == 409 => {
                    let Some(object) = self.object(&held.key, &held.uid).await? else {
                        return Ok(Saved::Gone);
                    };
                    let carried = self.carried(&held.key, &held.uid, &object).await?;
                    held.object = object;
                    held.version = carried.version;
                    if carried.memento.as_deref() == Some(text) {
                        return Ok(Saved::Stored);
                    }
                    let is_own =
                        carried.memento == held.stored || carried.memento == held.attempted;
                    if !is_own {
                        return Ok(Saved::Foreign);
                    }
                }
                Err(error) => return Err(fault_of(&what, true, &error)),
            }
        }
        let message = format!("{what}: somebody else keeps writing to the object");
        Err(Fault::new(FaultKind::ResourceConflict, message))
    }

    async fn send(
        &self,
        held: &Held,
        phase: &str,
        nodes: &Value,
        text: &str,
    ) -> Result<DynamicObject, kube::Error> {
        let params = PatchParams::apply(&field_manager::of_states(&self.configurator)).force();
        let mut metadata = Map::new();
        if !held.version.is_empty() {
            metadata.insert("resourceVersion".into(), held.version.clone().into());
        }
        match &self.place {
            StatePlace::Status {
                phase: phase_path,
                state,
                memento,
            } => {
                metadata.insert("name".into(), held.key.name.clone().into());
                metadata.insert("uid".into(), held.uid.clone().into());
                let mut body = json!({
                    "apiVersion": self.resource.api_version,
                    "kind": self.resource.kind,
                    "metadata": metadata,
                });
                put(&mut body, phase_path, phase.into());
                put(&mut body, state, nodes.clone());
                put(&mut body, memento, text.into());
                let api = objects::of(self.client.clone(), &self.resource, &held.key.namespace);
                api.patch_status(&held.key.name, &params, &Patch::Apply(&body))
                    .await
            }
            StatePlace::ConfigMap | StatePlace::ConfigStore => {
                let name = config_map_name(&self.configurator, &held.uid);
                metadata.insert("name".into(), name.clone().into());
                let owner = json!({
                    "apiVersion": self.resource.api_version,
                    "kind": self.resource.kind,
                    "name": held.key.name,
                    "uid": held.uid,
                });
                metadata.insert("ownerReferences".into(), json!([owner]));
                let body = json!({
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": metadata,
                    "data": {"phase": phase, "state": nodes.to_string(), "memento": text},
                });
                self.config_maps(&held.key)
                    .patch(&name, &params, &Patch::Apply(&body))
                    .await
            }
        }
    }

    fn config_maps(&self, key: &ObjectRef) -> Api<DynamicObject> {
        let kind = ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
        Api::namespaced_with(self.client.clone(), namespace_beside(&key.namespace), &kind)
    }
}

/// The ConfigMap with the state of an object, in the namespace of the object. Other Configurators, of either kind, may keep a state of the
/// same object.
pub(crate) fn config_map_name(configurator: &ObjectRef, uid: &str) -> String {
    let kind = match configurator.namespace.as_str() {
        "" => "ccfgr",
        _ => "cfgr",
    };
    format!("{kind}-{}-{uid}", configurator.name)
}

/// The state that an object or its ConfigMap carries, whoever wrote it; for those who only look.
///
/// # Errors
/// When it is none, or is kept elsewhere.
pub(crate) fn read_unverified(place: &StatePlace, carrier: &Value) -> Result<State, String> {
    let carried = carried_by(place, carrier);
    let Some(text) = carried.memento else {
        return Ok(State::default());
    };
    let (_, _, _, engine) =
        parts(&text).ok_or("its memento is none that a host of this version has written")?;
    if engine.is_empty() {
        return Err("it is so large that it is kept in the config store".to_owned());
    }
    let document = |text: String| Document::parse(text).map_err(|error| error.to_string());
    let memento = Memento {
        phase: carried.phase.unwrap_or_default(),
        nodes: carried.nodes.unwrap_or_else(|| json!({})),
        engine: document(engine.to_owned())?,
    };
    memento.into_state().map_err(|error| error.to_string())
}

fn carried_by(place: &StatePlace, carrier: &Value) -> Carried {
    let version = objects::text(carrier, "/metadata/resourceVersion").to_owned();
    match place {
        StatePlace::Status {
            phase,
            state,
            memento,
        } => Carried {
            version,
            phase: text_of(at(carrier, phase)),
            nodes: at(carrier, state).cloned(),
            memento: text_of(at(carrier, memento)),
        },
        StatePlace::ConfigMap => {
            let field = |name: &str| text_of(carrier.get("data").and_then(|data| data.get(name)));
            Carried {
                version,
                phase: field("phase"),
                nodes: field("state").and_then(|text| serde_json::from_str(&text).ok()),
                memento: field("memento"),
            }
        }
        StatePlace::ConfigStore => Carried::default(),
    }
}

fn text_of(value: Option<&Value>) -> Option<String> {
    value.and_then(Value::as_str).map(str::to_owned)
}

/// What a seal is over.
fn sealed<'a>(
    base: &'a str,
    uid: &'a str,
    revision: &'a str,
    phase: &'a str,
    nodes: &'a Document,
    engine: &'a str,
) -> [&'a [u8]; 7] {
    [FORM, base, uid, revision, phase, nodes.as_str(), engine].map(str::as_bytes)
}

/// Revision, base, seal and engine's part.
fn parts(text: &str) -> Option<(u64, &str, &str, &str)> {
    let mut parts = text.splitn(5, '.');
    let form = parts.next()?;
    let revision = parts.next()?.parse().ok()?;
    let (base, seal, engine) = (parts.next()?, parts.next()?, parts.next()?);
    (form == FORM).then_some((revision, base, seal, engine))
}

/// Checks that a sealed state is the booked one or follows it; otherwise returns why it is refused.
fn follows(booked: Option<&Entry>, revision: u64, base: &str, seal: &str) -> Result<(), String> {
    let Some(booked) = booked else {
        return Err("the config store has no record of it: it is a state of another Configurator, or the record was removed".to_owned());
    };
    let newest = booked.revision();
    if (revision == newest && seal == booked.seal()) || (revision > newest && base == booked.seal())
    {
        return Ok(());
    }
    Err(match revision < newest {
        true => {
            format!("an older state was put back: revision {revision}, after {newest} was stored")
        }
        false => format!(
            "it does not follow revision {newest}, the newest on record: it is a state of another Configurator, or one that was replaced"
        ),
    })
}

/// In bytes, as text.
fn nodes_size(nodes: &Value) -> usize {
    serde_json::to_vec(nodes).map_or(usize::MAX, |text| text.len())
}

fn has_nodes(nodes: Option<&Value>) -> bool {
    match nodes {
        None | Some(Value::Null) => false,
        Some(Value::Object(nodes)) => !nodes.is_empty(),
        Some(_) => true,
    }
}

fn at<'v>(object: &'v Value, path: &[String]) -> Option<&'v Value> {
    path.iter().try_fold(object, |value, name| value.get(name))
}

fn at_mut<'v>(object: &'v mut Value, path: &[String]) -> Option<&'v mut Value> {
    path.iter()
        .try_fold(object, |value, name| value.get_mut(name))
}

fn put(object: &mut Value, path: &[String], value: Value) {
    let mut place = object;
    for name in path {
        if !place.is_object() {
            *place = json!({});
        }
        place = &mut place[name.as_str()];
    }
    *place = value;
}

fn value_of(object: &DynamicObject) -> Result<Value, Fault> {
    serde_json::to_value(object)
        .map_err(|error| Fault::new(FaultKind::ResourceGeneric, error.to_string()))
}

#[cfg(test)]
mod tests {
    use configurator_core::request::ObjectRef;
    use expect_test::expect;

    use super::*;

    #[test]
    fn a_state_is_accepted_only_where_it_follows_the_booked_one() {
        let object = ObjectRef {
            namespace: "shop".into(),
            name: "web".into(),
        };
        let begun = Entry::begin(&object, 0).unwrap();
        let booked = begun.follow(7, "seal-7");
        let states = [
            ("booked", 7, "seal-4", "seal-7"),
            ("later", 8, "seal-7", "seal-8"),
            ("much later", 11, "seal-7", "seal-11"),
            ("older", 3, "seal-2", "seal-3"),
            ("of another branch", 7, "seal-4", "other"),
            ("later, of another branch", 9, "seal-4", "seal-9"),
        ];
        let told = states.map(|(what, revision, base, seal)| {
            let follows = follows(Some(&booked), revision, base, seal);
            format!(
                "{what}: {}\n",
                follows.err().as_deref().unwrap_or("accepted")
            )
        });
        expect![[r#"
            booked: accepted
            later: accepted
            much later: accepted
            older: an older state was put back: revision 3, after 7 was stored
            of another branch: it does not follow revision 7, the newest on record: it is a state of another Configurator, or one that was replaced
            later, of another branch: it does not follow revision 7, the newest on record: it is a state of another Configurator, or one that was replaced
        "#]]
        .assert_eq(&told.concat());
        assert!(follows(Some(&begun), 1, begun.seal(), "seal-1").is_ok());
        assert!(follows(Some(&begun), 1, "", "seal-1").is_err());
        assert!(follows(None, 1, "", "seal-1").is_err());
    }
}
