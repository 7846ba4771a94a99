//! Plays a scenario.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use configurator_apiserver::{ApiServer, ApiServerOptions};
use configurator_core::backoff::mix;
use configurator_core::desired::marks;
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::layers::Write;
use configurator_core::partition::NAMESPACES;
use configurator_core::request::{ObjectRef, api_version};
use configurator_core::run::LONGEST_WAIT;
use configurator_core::time::Timestamp;
use configurator_guest::bytes::ModuleBytes;
use configurator_guest::runtime::GuestRuntime;
use configurator_store::Store;
use k8s_openapi::api::events::v1::Event;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams,
    ValidationDirective,
};
use kube::{Client, ResourceExt as _, discovery};
use serde_json::{Value, json};
use tokio_util::sync::CancellationToken;

use super::SimulatorError;
use super::extensions::ScriptedExtensions;
use super::faults::{FaultScript, ScriptedHttp, SeenRequest};
use super::outcome::Outcome;
use super::record::Recorder;
use super::scenario::{ConfiguratorSource, InjectedFault, ObjectName, Scenario, Step};
use crate::clock::{Clock as _, VirtualClock};
use crate::controller::call_mode::CallMode;
use crate::host::{Host, Unselected};
use crate::module_source::{Fetched, ModuleDirectory, ModulePolicies, ModuleSource, SourceError};
use crate::objects::{self, ObjectError, text};
use crate::resource::flow::resource_of;
use crate::resource::object_set::{MemberSpec, ObjectSet, StoreSpec};
use crate::resource::{self, ModuleSpec, definitions};
use crate::seal::StateKey;
use crate::sinks::configstore::{ConfigStore as _, EmbeddedConfigStore, is_host_key};
use crate::sinks::secretstore::{
    EmbeddedSecretStore, SealingKey, SecretGenerator, SecretStore as _,
};

/// Who applies what the scenario says.
const MANAGER: &str = "scenario";
/// Decides all chance of a scenario.
const SEED: u64 = 0x005c_e9a2;
/// Virtual time in which what has just happened reaches everyone.
const A_MOMENT: Duration = Duration::from_secs(2);

type Failed = Box<dyn std::error::Error + Send + Sync>;

/// Plays the scenario to its end.
pub(super) fn play(guest: &GuestRuntime, scenario: &Scenario) -> Result<Outcome, SimulatorError> {
    let played = play_and_look(guest, scenario, &[], &Arc::default(), false)?;
    match played.end {
        Ok(end) => Ok(end.outcome),
        Err(unsettled) => Err(SimulatorError::Setup {
            scenario: scenario.file.display().to_string(),
            message: unsettled.to_string(),
        }),
    }
}

/// What was played.
pub(super) struct Played {
    /// The module, if it could be read.
    pub(super) module: Option<ModuleBytes>,
    /// Whether it is of a machine.
    pub(super) is_machine: bool,
    /// The requests that came to the sinks.
    pub(super) requests: Vec<SeenRequest>,
    pub(super) end: Result<End, Unsettled>,
}

/// How it ended.
pub(super) struct End {
    pub(super) outcome: Outcome,
    /// The same after another start of the host, where there was one.
    pub(super) again: Option<Outcome>,
}

/// Why it has no end.
#[derive(Debug, thiserror::Error)]
pub(super) enum Unsettled {
    #[error("it did not settle within {0:?} of virtual time")]
    Late(Duration),
    #[error("it did not settle within {0} calls of handlers")]
    Calls(usize),
}

/// Plays the scenario on a runtime of its own, whose clock is paused: it jumps to the next timer whenever nothing
/// else is left to do. What is `tried` is met before the scenario's own faults. With `is_repeated` the host stops at the end and another one
/// starts, which meets only the latter.
pub(super) fn play_and_look(
    guest: &GuestRuntime,
    scenario: &Scenario,
    tried: &[InjectedFault],
    recorder: &Arc<Recorder>,
    is_repeated: bool,
) -> Result<Played, SimulatorError> {
    let setup = |message: String| SimulatorError::Setup {
        scenario: scenario.file.display().to_string(),
        message,
    };
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .start_paused(true)
        .build()
        .map_err(|error| setup(error.to_string()))?;
    let played = runtime.block_on(async {
        let world = World::new(guest, scenario, tried, recorder.clone()).await?;
        let limit: Duration = scenario.limit.into();
        let end = tokio::select! {
            end = tokio::time::timeout(limit, world.play(is_repeated)) => {
                end.map_or(Err(Unsettled::Late(limit)), Ok)
            }
            max = recorder.too_many_calls() => Err(Unsettled::Calls(max)),
        };
        Ok::<_, Failed>(Played {
            module: world.modules.bytes(),
            is_machine: world.is_machine(),
            requests: world.faults.requests(),
            end: match end {
                Ok(end) => Ok(end?),
                Err(unsettled) => Err(unsettled),
            },
        })
    });
    played.map_err(|error| setup(error.to_string()))
}

struct World<'a> {
    scenario: &'a Scenario,
    guest: &'a GuestRuntime,
    clock: VirtualClock,
    client: Client,
    config: EmbeddedConfigStore,
    secrets: EmbeddedSecretStore,
    recorder: Arc<Recorder>,
    faults: Arc<FaultScript>,
    /// Whether there are faults beside the scenario's own.
    is_tried: bool,
    http: ScriptedHttp,
    extensions: ScriptedExtensions,
    configurator: Value,
    key: ObjectRef,
    modules: PreparedModules,
}

struct Running {
    stop: CancellationToken,
    task: tokio::task::JoinHandle<()>,
    report: tokio::sync::watch::Receiver<crate::controller::report::HostReport>,
}

impl<'a> World<'a> {
    async fn play(&self, is_repeated: bool) -> Result<End, Failed> {
        self.fill().await?;
        let mut running = self.start()?;
        self.apply(&self.configurator).await?;
        self.settle(&mut running).await?;
        for step in &self.scenario.steps {
            match step {
                Step::Restart { meanwhile } => running = self.restart(running, meanwhile).await?,
                step => self.happen(step).await?,
            }
            self.settle(&mut running).await?;
        }
        let outcome = self.outcome().await?;
        let mut again = None;
        if is_repeated {
            self.faults.repeat();
            running = self.restart(running, &[]).await?;
            self.settle(&mut running).await?;
            again = Some(self.outcome().await?);
        }
        running.stop.cancel();
        running.task.await?;
        Ok(End { outcome, again })
    }

    async fn restart(&self, running: Running, meanwhile: &[Step]) -> Result<Running, Failed> {
        running.stop.cancel();
        running.task.await?;
        for step in meanwhile {
            self.happen(step).await?;
        }
        self.start()
    }

    async fn happen(&self, step: &Step) -> Result<(), Failed> {
        match step {
            Step::Apply(object) => self.apply(object).await,
            Step::Status(object) => self.apply_status(object).await,
            Step::Delete(name) => self.delete(name).await,
            Step::Config(keys) => self.write_keys(keys).await,
            Step::Secrets(secrets) => {
                for (name, value) in secrets {
                    self.write_secret(name, value).await?;
                }
                Ok(())
            }
            Step::Wait(span) => {
                tokio::time::sleep((*span).into()).await;
                Ok(())
            }
            Step::Restart { .. } => Err("there is no host that could be restarted".into()),
        }
    }

    async fn new(
        guest: &'a GuestRuntime,
        scenario: &'a Scenario,
        tried: &[InjectedFault],
        recorder: Arc<Recorder>,
    ) -> Result<Self, Failed> {
        let start: Timestamp = scenario
            .start
            .parse()
            .map_err(|error| format!("start: {:?} is no time: {error}", scenario.start))?;
        let clock = VirtualClock::starting_at(start);
        let chance = Mutex::new(SEED);
        let options = ApiServerOptions::new(move || {
            jiff::Timestamp::from_millisecond(clock.now().as_millis()).unwrap_or_default()
        })
        .with_random(move |buffer| {
            let mut chance = chance.lock().unwrap_or_else(PoisonError::into_inner);
            for byte in buffer {
                *chance = mix(*chance);
                *byte = chance.to_be_bytes()[0];
            }
        });
        let server = ApiServer::open(Store::memory(), options).await?;
        let client = Client::new(server, "default");
        let (file, configurator) = match &scenario.configurator {
            ConfiguratorSource::Manifest(manifest) => (scenario.file.clone(), manifest.clone()),
            ConfiguratorSource::File(file) => {
                let file = scenario.beside(file);
                let located =
                    |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
                let text = std::fs::read_to_string(&file).map_err(|error| located(&error))?;
                let manifest = serde_saphyr::from_str(&text).map_err(|error| located(&error))?;
                (file, manifest)
            }
        };
        let modules = PreparedModules::fetch(scenario, &configurator, &file).await?;
        Ok(Self {
            scenario,
            guest,
            clock,
            faults: FaultScript::new(&scenario.faults, tried, client.clone()),
            is_tried: !tried.is_empty(),
            client,
            config: EmbeddedConfigStore::memory(),
            secrets: EmbeddedSecretStore::memory(&SealingKey::random()?),
            recorder,
            http: ScriptedHttp::new(&scenario.http),
            extensions: ScriptedExtensions::new(&scenario.extensions),
            key: resource::read(configurator.clone())?.key(),
            configurator,
            modules,
        })
    }

    /// What exists at the start.
    async fn fill(&self) -> Result<(), Failed> {
        for definition in definitions() {
            self.apply(&definition).await?;
        }
        for file in &self.scenario.manifests {
            let file = self.scenario.beside(file);
            let located = |error: &dyn std::fmt::Display| format!("{}: {error}", file.display());
            let text = std::fs::read_to_string(&file).map_err(|error| located(&error))?;
            let objects: Vec<Value> =
                serde_saphyr::from_multiple(&text).map_err(|error| located(&error))?;
            for object in objects.into_iter().filter(|object| !object.is_null()) {
                self.apply(&resource_of(object)).await?;
            }
        }
        for object in &self.scenario.objects {
            self.apply(object).await?;
        }
        let keys = self.scenario.config.iter();
        let keys = keys.map(|(key, value)| (key.clone(), Some(value.clone())));
        self.write_keys(&keys.collect()).await?;
        for (name, value) in &self.scenario.secrets {
            self.write_secret(name, value).await?;
        }
        Ok(())
    }

    async fn write_keys(&self, keys: &BTreeMap<String, Option<String>>) -> Result<(), Failed> {
        let mut writes = Vec::new();
        for (key, value) in keys {
            let key = self.placed(key).await?;
            writes.push(match value {
                Some(value) => Write::Put(key, value.clone()),
                None => Write::Delete(key),
            });
        }
        self.config.write(writes, &[]).await?;
        Ok(())
    }

    async fn write_secret(&self, name: &str, value: &Value) -> Result<(), Failed> {
        let name = self.placed(name).await?;
        if value.is_null() {
            self.secrets.delete(&name).await?;
            return Ok(());
        }
        let stored = self.secrets.get(&name).await?;
        let version = stored.map_or(0, |secret| secret.version);
        let value = Document::of(value)?;
        self.secrets.update(&name, version, value).await?;
        Ok(())
    }

    /// Puts the uid of the namespace into a key or name in its partition: `namespaces/NAME/uid-of(Namespace NAME)/…`.
    async fn placed(&self, key: &str) -> Result<String, Failed> {
        let Some((before, named)) = key.split_once("uid-of(") else {
            return Ok(key.to_owned());
        };
        let (named, after) = named
            .split_once(')')
            .ok_or_else(|| format!("{key}: `uid-of(` is not closed"))?;
        Ok(format!("{before}{}{after}", self.uid_of(named).await?))
    }

    fn start(&self) -> Result<Running, Failed> {
        let faults = self.faults.clone();
        let mut builder = Host::builder();
        for answer in &self.scenario.extensions {
            builder = builder.extension(&answer.extension, self.extensions.clone());
        }
        let host = builder
            .client(self.client.clone())
            .config_store(self.config.clone())
            .secret_store(self.secrets.clone())
            .secret_generator(NamedSecrets)
            .state_key(StateKey::new([0; 32]))
            .unselected(Unselected::Allowed)
            .http_sink(self.http.clone())
            .decorate_sinks(move |sinks| faults.decorate(sinks))
            .modules(self.modules.clone())
            .clock(self.clock)
            .guest(self.guest.clone())
            .call_mode(CallMode::Inline)
            .observer(self.recorder.clone())
            .seed(SEED)
            .build()?;
        let report = host.report();
        let stop = CancellationToken::new();
        let task = tokio::spawn(host.run(stop.clone().cancelled_owned()));
        Ok(Running { stop, task, report })
    }

    /// Returns when what has just happened has reached everyone, and nothing is left to do. Objects that runs wait for have been read once
    /// since.
    async fn settle(&self, running: &mut Running) -> Result<(), Failed> {
        self.settle_once(running).await?;
        let reads_in_vain = running.report.borrow().reads_in_vain();
        if reads_in_vain {
            tokio::time::sleep(LONGEST_WAIT).await;
            self.settle_once(running).await?;
        }
        Ok(())
    }

    /// Returns when nothing is left to do but to read objects that nobody has changed.
    async fn settle_once(&self, running: &mut Running) -> Result<(), Failed> {
        tokio::time::sleep(A_MOMENT).await;
        let name = self.key.to_string();
        running
            .report
            .wait_for(|report| {
                report.is_ready() && report.is_settled() && report.keepers.contains_key(&name)
            })
            .await?;
        tokio::time::sleep(A_MOMENT).await;
        Ok(())
    }

    async fn apply(&self, object: &Value) -> Result<(), Failed> {
        let mut object = object.clone();
        self.resolve(&mut object).await?;
        let named = format!(
            "{} {:?}",
            text(&object, "/kind"),
            text(&object, "/metadata/name")
        );
        self.apply_resolved(&object)
            .await
            .map_err(|error| format!("cannot apply {named}: {error}").into())
    }

    async fn apply_resolved(&self, object: &Value) -> Result<(), Failed> {
        // A misspelt field is a mistake of the scenario.
        let params = PatchParams {
            field_validation: Some(ValidationDirective::Strict),
            ..PatchParams::apply(MANAGER).force()
        };
        objects::apply(&self.client, object, &params).await?;
        if object.get("status").is_some() {
            let api = self.api(&ObjectName::of(object)).await?;
            let name = text(object, "/metadata/name");
            api.patch_status(name, &params, &Patch::Apply(object))
                .await?;
        }
        Ok(())
    }

    /// Changes the status of an object that exists, as its controller does.
    async fn apply_status(&self, object: &Value) -> Result<(), Failed> {
        let name = ObjectName::of(object);
        let api = self.api(&name).await?;
        let patch = Patch::Merge(json!({"status": object.get("status")}));
        match api
            .patch_status(&name.name, &PatchParams::default(), &patch)
            .await
        {
            // A host that has met a fault may not have made it.
            Err(kube::Error::Api(status)) if status.code == 404 && self.is_tried => Ok(()),
            changed => {
                changed?;
                Ok(())
            }
        }
    }

    async fn delete(&self, name: &ObjectName) -> Result<(), Failed> {
        let api = self.api(name).await?;
        match api.delete(&name.name, &DeleteParams::background()).await {
            // A handler that has met a fault may not have made it.
            Err(kube::Error::Api(status)) if status.code == 404 && self.is_tried => Ok(()),
            deleted => {
                deleted?;
                Ok(())
            }
        }
    }

    async fn api(&self, name: &ObjectName) -> Result<Api<DynamicObject>, ObjectError> {
        objects::api(&self.client, &name.api_version, &name.kind, &name.namespace).await
    }

    /// Puts uids in the place of `uid-of(Kind namespace/name)`.
    async fn resolve(&self, value: &mut Value) -> Result<(), Failed> {
        match value {
            Value::String(text) => {
                if let Some(named) = text
                    .strip_prefix("uid-of(")
                    .and_then(|rest| rest.strip_suffix(')'))
                {
                    *text = self.uid_of(named).await?;
                }
            }
            Value::Array(items) => {
                for item in items {
                    Box::pin(self.resolve(item)).await?;
                }
            }
            Value::Object(fields) => {
                for field in fields.values_mut() {
                    Box::pin(self.resolve(field)).await?;
                }
            }
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
        Ok(())
    }

    async fn uid_of(&self, named: &str) -> Result<String, Failed> {
        let wrong = || format!("uid-of({named}) is not of the form uid-of(Kind namespace/name)");
        let (kind, path) = named.split_once(' ').ok_or_else(wrong)?;
        let (namespace, name) = path.split_once('/').unwrap_or(("", path));
        let known = self.scenario.objects.iter().find(|object| {
            text(object, "/kind") == kind
                && text(object, "/metadata/name") == name
                && text(object, "/metadata/namespace") == namespace
        });
        let name = match known {
            Some(known) => ObjectName::of(known),
            // Some namespaces are there without being made.
            None if kind == "Namespace" && namespace.is_empty() => ObjectName {
                api_version: "v1".to_owned(),
                kind: kind.to_owned(),
                namespace: String::new(),
                name: name.to_owned(),
            },
            None => return Err(format!("uid-of({named}): the scenario has no such object").into()),
        };
        Ok(self
            .api(&name)
            .await?
            .get(&name.name)
            .await?
            .uid()
            .unwrap_or_default())
    }

    /// What is left at the end.
    async fn outcome(&self) -> Result<Outcome, Failed> {
        let seen = self.recorder.seen();
        let mut objects = Vec::new();
        for (key, kind) in &seen.objects {
            let resource = ApiResource {
                group: key.group.clone(),
                version: key.version.clone(),
                api_version: api_version(&key.group, &key.version),
                kind: kind.clone(),
                plural: key.plural.clone(),
            };
            let api = objects::of(self.client.clone(), &resource, &key.namespace);
            if let Some(object) = api.get_opt(&key.name).await? {
                objects.push(plain(serde_json::to_value(object)?));
            }
        }
        objects.extend(self.machines().await?);
        let sets: Api<ObjectSet> = Api::all(self.client.clone());
        let sets = sets.list(&ListParams::default()).await?.items;
        for member in sets.iter().flat_map(|set| &set.spec.members) {
            objects.extend(self.member(member).await?);
        }
        let statuses = sets.into_iter().filter_map(|set| set.status);
        let sets = statuses.map(|status| {
            let mut status = serde_json::to_value(status)?;
            if let Some(fields) = status.as_object_mut() {
                fields.remove("conditions");
            }
            Ok(status)
        });
        let sets = sets.collect::<Result<_, Failed>>()?;
        let mut keys = self.config.scan("").await?;
        keys.retain(|(key, _)| !is_host_key(key));
        let mut present = Vec::new();
        for object in &self.scenario.expect.objects {
            present.push(self.find(object).await?);
        }
        let mut absent = Vec::new();
        for name in &self.scenario.expect.absent {
            absent.push(self.api(name).await?.get_opt(&name.name).await?.is_none());
        }
        let events: Api<Event> = Api::all(self.client.clone());
        let mut events: Vec<String> = events
            .list(&ListParams::default())
            .await?
            .items
            .into_iter()
            .filter(|event| event.reporting_controller.as_deref() == Some("configurator"))
            .map(|event| {
                format!(
                    "{}: {}",
                    event.reason.unwrap_or_default(),
                    event.note.unwrap_or_default()
                )
            })
            .collect();
        events.sort();
        events.dedup();
        let configurator = resource::get(&self.client, &self.key).await?;
        let failures = configurator
            .and_then(|configurator| configurator.status)
            .map(|status| status.failures)
            .unwrap_or_default();
        Ok(Outcome {
            runs: seen
                .runs
                .into_iter()
                .map(|run| Value::Object(run.view))
                .collect(),
            objects,
            sets,
            config: keys
                .into_iter()
                .map(|(key, value)| (without_uid(key), value))
                .collect(),
            secrets: self
                .secrets
                .names()
                .await?
                .into_iter()
                .map(without_uid)
                .collect(),
            events,
            failures: failures
                .into_iter()
                .map(|failure| {
                    let namespace = if failure.namespace.is_empty() {
                        String::new()
                    } else {
                        format!("{}/", failure.namespace)
                    };
                    (
                        format!("{namespace}{}", failure.name),
                        format!("{}: {}", failure.kind, failure.message),
                    )
                })
                .collect(),
            notices: seen.notices,
            expected_objects: present,
            expected_absences: absent,
        })
    }

    fn is_machine(&self) -> bool {
        self.configurator.pointer("/spec/machine").is_some()
    }

    /// In a machine, the watched objects with what has become of them, without what only the host reads.
    async fn machines(&self) -> Result<Vec<Value>, Failed> {
        let declared = &self.configurator;
        if !self.is_machine() {
            return Ok(Vec::new());
        }
        let api = objects::api(
            &self.client,
            text(declared, "/spec/watch/apiVersion"),
            text(declared, "/spec/watch/kind"),
            "",
        )
        .await?;
        // Members of sets are shown with their sets.
        let others = ListParams::default().labels(&format!("!{}", marks::PART_OF));
        let found = api.list(&others).await?;
        let memento = match text(declared, "/spec/machine/state/mementoPath") {
            "" => "/status/memento".to_owned(),
            path => path.replace('.', "/"),
        };
        let (above, last) = memento.rsplit_once('/').unwrap_or_default();
        let shown = found.items.into_iter().map(|object| {
            let mut object = plain(serde_json::to_value(object)?);
            if let Some(Value::Object(fields)) = object.pointer_mut(above) {
                fields.remove(last);
            }
            Ok(object)
        });
        shown.collect()
    }

    /// A member of a set, without the marks of the host. `None`: it does not exist.
    async fn member(&self, member: &MemberSpec) -> Result<Option<Value>, Failed> {
        // Keys and secrets are shown as such.
        if member.store != StoreSpec::Kubernetes {
            return Ok(None);
        }
        let group = discovery::group(&self.client, &member.group).await?;
        let Some((resource, _)) = group.recommended_kind(&member.kind) else {
            return Ok(None);
        };
        let api = objects::of(self.client.clone(), &resource, &member.namespace);
        let Some(found) = api.get_opt(&member.name).await? else {
            return Ok(None);
        };
        let mut object = plain(serde_json::to_value(found)?);
        marks::remove(&mut object);
        Ok(Some(object))
    }

    async fn find(&self, object: &Value) -> Result<Option<Value>, Failed> {
        let name = ObjectName {
            api_version: text(object, "/apiVersion").to_owned(),
            kind: text(object, "/kind").to_owned(),
            namespace: text(object, "/metadata/namespace").to_owned(),
            name: text(object, "/metadata/name").to_owned(),
        };
        let found = self.api(&name).await?.get_opt(&name.name).await?;
        Ok(found.map(serde_json::to_value).transpose()?)
    }
}

/// The object without what the server keeps for itself.
fn plain(mut object: Value) -> Value {
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        for volatile in [
            "uid",
            "resourceVersion",
            "creationTimestamp",
            "generation",
            "managedFields",
        ] {
            metadata.remove(volatile);
        }
        if let Some(Value::Array(owners)) = metadata.get_mut("ownerReferences") {
            for owner in owners.iter_mut().filter_map(Value::as_object_mut) {
                owner.remove("uid");
            }
        }
    }
    object
}

/// Secrets that can be foretold: their name.
struct NamedSecrets;

impl SecretGenerator for NamedSecrets {
    fn generate(&self, name: &str) -> Result<Document, Fault> {
        Document::of(&json!(format!("generated for {name}"))).map_err(|error| {
            Fault::new(
                configurator_core::fault::FaultKind::ResourceGeneric,
                error.to_string(),
            )
        })
    }
}

/// The scenario's module, read before time begins.
#[derive(Clone)]
struct PreparedModules {
    fetched: Arc<Result<Fetched, String>>,
}

impl PreparedModules {
    async fn fetch(scenario: &Scenario, configurator: &Value, file: &Path) -> Result<Self, Failed> {
        let spec: ModuleSpec = serde_json::from_value(
            configurator
                .pointer("/spec/module")
                .cloned()
                .unwrap_or(Value::Null),
        )?;
        if spec.oci.is_some() || spec.config_map.is_some() {
            return Err("spec.module: a scenario plays a module that is a file. Name it in the manifest beside the sources, `module: {file: …}`; where hosts have it from is for their manifest".into());
        }
        let mut folders: Vec<_> = scenario
            .modules
            .iter()
            .map(|folder| scenario.beside(folder))
            .collect();
        folders.extend(file.parent().map(Path::to_path_buf));
        let fetched = ModuleDirectory::of(folders)
            .fetch(&spec, &ModulePolicies::default())
            .await
            .map_err(|error| error.to_string());
        Ok(Self {
            fetched: Arc::new(fetched),
        })
    }
}

impl PreparedModules {
    fn bytes(&self) -> Option<ModuleBytes> {
        let fetched = self.fetched.as_ref().as_ref().ok()?;
        Some(fetched.bytes.clone())
    }
}

#[async_trait]
impl ModuleSource for PreparedModules {
    async fn fetch(&self, _: &ModuleSpec, _: &ModulePolicies) -> Result<Fetched, SourceError> {
        self.fetched.as_ref().clone().map_err(SourceError::Refused)
    }
}

/// Replaces the uid of the namespace in a key or name in its partition, as a scenario writes it.
fn without_uid(key: String) -> String {
    let in_partition = key.strip_prefix(NAMESPACES).and_then(|rest| {
        let (namespace, rest) = rest.split_once('/')?;
        let (_, rest) = rest.split_once('/')?;
        Some(format!(
            "{NAMESPACES}{namespace}/uid-of(Namespace {namespace})/{rest}"
        ))
    });
    in_partition.unwrap_or(key)
}
