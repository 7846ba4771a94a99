//! Loads the module of a Configurator, and checks both against each other, the host and the cluster.

use std::sync::Arc;

use configurator_core::ceiling::Ceiling;
use configurator_core::configurator::{Configurator, StatePlace};
use configurator_core::handler::{Accepts, HandlerDescription};
use configurator_core::request::api_version;
use configurator_guest::digest::Digest;
use configurator_guest::module::Module;
use configurator_guest::owner::owner_of;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::ApiResource;
use kube::core::{GroupVersionKind, Selector};
use kube::{Client, discovery};

use super::account::check_watching;
use super::check::Checked;
use super::quotas::check_objects;
use crate::controller::call_mode::CallMode;
use crate::controller::canary;
use crate::controller::earlier::Earlier;
use crate::controller::namespaces::SelectedNamespaces;
use crate::controller::parameters::ParameterSources;
use crate::controller::state_schema;
use crate::controller::status::Refusal;
use crate::declaration::{self, format_bytes};
use crate::host::Shared;
use crate::module_source::{Fetched, PolicyOwner, SourceError};
use crate::objects;
use crate::observer::Notice;
use crate::recording::Recorder;
use crate::resource;
use crate::rights::Watched;

/// A Configurator that can run.
pub(super) struct Loaded {
    /// Why the module is a copy of an earlier version of its source, if it is one.
    pub(super) copied: Option<String>,
    /// The module that ran before the host started, if the loaded one is to be a canary.
    pub(super) stable: Option<Arc<Module>>,
    pub(super) configurator: Configurator,
    pub(super) module: Arc<Module>,
    pub(super) resource: ApiResource,
    pub(super) watched: Watched,
    /// The namespaces that `spec.watch.namespaceSelector` selects. `None`: all.
    pub(super) namespaces: Option<SelectedNamespaces>,
    /// Watches `spec.parametersFrom`, if there are any.
    pub(super) parameters: Option<ParameterSources>,
}

/// Fetches the module of a checked Configurator, and checks both against each other and against the cluster.
pub(super) async fn load(
    shared: &Shared,
    checked: Checked,
    resource: &resource::Configurator,
    before: Option<String>,
) -> Result<Loaded, Refusal> {
    let Checked {
        configurator,
        policy,
        client,
        parameters,
    } = checked;
    let key = resource.key();
    let selector = declaration::namespace_selector(resource);
    let source = resource.spec.module.place();
    shared.observer.noticed(
        &key,
        &Notice::Loading {
            module: source.clone(),
        },
    );
    let Fetched { bytes, copied } = shared
        .modules
        .fetch(&resource.spec.module, &policy.modules)
        .await
        .map_err(|error| not_fetched(&error))?;
    // Nothing of a module runs before it is the one that is pinned, not even what describes it.
    check_digest(resource, bytes.digest())?;
    let recorder = recorder(shared, &configurator);
    if let Some(recorder) = &recorder {
        recorder.keep_module(bytes.clone()).await;
    } else if configurator.record == Some(true) {
        tracing::warn!(
            configurator = %key,
            "its runs are not recorded: this host has no folder for recordings"
        );
    }
    let loaded = match &shared.call_mode {
        CallMode::Parallel => {
            let owner = owner_of(&configurator.limits);
            shared.guest.load_for(owner, bytes, &source).await
        }
        CallMode::Inline | CallMode::Charged(_) => shared.guest.load_blocking(bytes, &source),
    };
    let module = loaded.map_err(|error| Refusal::new("ModuleInvalid", error.to_string()))?;
    check_handlers(&configurator, Some(&policy.ceiling), &module)?;
    let before = before.filter(|digest| *digest != module.digest().to_string());
    let stable = match (canary::policy(resource), before) {
        (Some(_), Some(before)) => {
            let loaded = Earlier::new(shared, resource, recorder).load(&before).await;
            let candidate = module.digest().to_string();
            let missing = |why: String| {
                let why = format!("{before} is unavailable: {why}");
                without_before(resource, &candidate, "is a canary", &why)
            };
            Some(loaded.map_err(missing)?)
        }
        _ => None,
    };
    let declared = resource;
    let watch = &configurator.watch;
    let kind = GroupVersionKind::gvk(&watch.group, &watch.version, &watch.kind);
    let (resource, capabilities) = discovery::pinned_kind(&shared.client, &kind)
        .await
        .map_err(|error| {
            let kind = &watch.kind;
            let api_version = api_version(&watch.group, &watch.version);
            let message = if objects::is_missing(&error) {
                format!("the API has no kind {kind} in {api_version}; it is looked for again")
            } else {
                format!("the API cannot be asked for the kind {kind} in {api_version}; it is asked again: {}", objects::explained(&error))
            };
            Refusal::for_now("WatchedKindMissing", message)
        })?;
    let watched = Watched::of(&resource, &capabilities);
    check_watch(&configurator, &watched, &policy.ceiling)?;
    check_watching(shared, &configurator, &watched).await?;
    let namespaces = select(shared, selector, &watched).await?;
    check_objects(shared, &policy, declared, &configurator, &resource).await?;
    check_state(&shared.client, &configurator, &resource).await?;
    Ok(Loaded {
        copied,
        stable,
        configurator,
        module,
        watched,
        namespaces,
        parameters: parameters.map(|parameters| parameters.watch(&client, shared.seed)),
        resource,
    })
}

/// What a policy of the namespace does not allow also ends an earlier generation.
fn not_fetched(error: &SourceError) -> Refusal {
    let message = error.to_string();
    match error {
        SourceError::Policy(error) if *error.owner() != PolicyOwner::Host => {
            Refusal::denied("PolicyDenied", message)
        }
        _ => Refusal::for_now("ModuleNotFound", message),
    }
}

/// Evaluates `spec.watch.namespaceSelector`.
async fn select(
    shared: &Shared,
    selector: Option<Selector>,
    watched: &Watched,
) -> Result<Option<SelectedNamespaces>, Refusal> {
    let Some(selector) = selector else {
        return Ok(None);
    };
    if !watched.is_namespaced {
        let message = format!(
            "spec.watch.namespaceSelector: {} have no namespace: leave it out",
            watched.plural
        );
        return Err(Refusal::new("Invalid", message));
    }
    let selected = shared.namespaces.selected(selector).await;
    let unknown = "the namespaces, which spec.watch.namespaceSelector selects from, are not listed yet; the host retries";
    let unknown = || Refusal::for_now("NamespaceUnknown", unknown.to_owned());
    selected.ok_or_else(unknown).map(Some)
}

/// Checks that the operator of the host lets the Configurator read what it watches.
fn check_watch(
    configurator: &Configurator,
    watched: &Watched,
    ceiling: &Ceiling,
) -> Result<(), Refusal> {
    let watch = &configurator.watch;
    if !watched.is_namespaced && !configurator.key.namespace.is_empty() {
        let message = format!(
            "spec.watch: objects of the kind {} have no namespace, and a Configurator watches only its namespace: use a ClusterConfigurator",
            watch.kind
        );
        return Err(Refusal::new("WatchNotAllowed", message));
    }
    let namespaces = match watched.is_namespaced {
        true => &watch.namespaces[..],
        false => &[],
    };
    ceiling
        .check(|rules| rules.check_watch(&watch.group, &watched.plural, namespaces))
        .map_err(|fault| Refusal {
            is_denial: true,
            ..Refusal::new("WatchNotAllowed", format!("spec.watch: {}", fault.message))
        })
}

/// Checks that the kind keeps the states of a machine in the status of its objects.
async fn check_state(
    client: &Client,
    configurator: &Configurator,
    resource: &ApiResource,
) -> Result<(), Refusal> {
    let Some(mode) = &configurator.machine else {
        return Ok(());
    };
    let StatePlace::Status { .. } = mode.place else {
        return Ok(());
    };
    let kind = &resource.kind;
    let not_kept = |why: String| {
        Refusal::for_now(
            "StateNotKept",
            format!("the kind {kind} cannot keep the states of its objects in their status: {why}"),
        )
    };
    let name = format!("{}.{}", resource.plural, resource.group);
    let definitions = ApiResource::erase::<CustomResourceDefinition>(&());
    let definitions = objects::of(client.clone(), &definitions, "");
    match definitions.get_opt(&name).await {
        Ok(Some(definition)) => {
            state_schema::check(&definition.data, &resource.version, &mode.place)
                .map_err(not_kept)
        }
        Ok(None) => Err(not_kept(
            "it is none of your own, and its schema has no place for them: say spec.machine.state.in: ConfigMap"
                .to_owned(),
        )),
        Err(error) => {
            let error = objects::explained(&error);
            Err(not_kept(format!("its definition cannot be read; it is tried again: {error}")))
        }
    }
}

/// Returns the recorder for the runs of a Configurator, if they are recorded.
pub(super) fn recorder(shared: &Shared, configurator: &Configurator) -> Option<Arc<Recorder>> {
    let recorder = shared.recorder.clone()?;
    let is_wanted = configurator.record.unwrap_or(recorder.records_all());
    is_wanted.then_some(recorder)
}

/// Refuses a module that may not, or not yet, handle all objects, when no module is known for the other objects.
pub(super) fn without_before(
    resource: &resource::Configurator,
    candidate: &str,
    is: &str,
    why: &str,
) -> Refusal {
    let name = resource.key();
    let message = format!(
        "the module {candidate} {is}, but there is no module for the other objects: {why}. Make it available again, or choose a module for all objects: `configurator rollback {name} --to DIGEST`"
    );
    Refusal::for_now("PredecessorMissing", message)
}

/// Checks that a call of the Configurator fits into the memory that the guests of the host have in all, in bytes.
pub(crate) fn check_memory(configurator: &Configurator, memory: u64) -> Result<(), Refusal> {
    let wanted = configurator.limits.memory;
    if wanted <= memory {
        return Ok(());
    }
    let message = format!(
        "spec.limits.memory is {}, and the modules of this host have {} of memory in all; lower spec.limits.memory, or raise the setting guest_memory of the host",
        format_bytes(wanted),
        format_bytes(memory)
    );
    Err(Refusal::new("MemoryLimitTooHigh", message))
}

/// Checks that the module is the pinned one and has the handlers that the Configurator names.
pub(crate) fn check_module(
    resource: &resource::Configurator,
    configurator: &Configurator,
    module: &Module,
) -> Result<(), Refusal> {
    check_digest(resource, module.digest())?;
    check_handlers(configurator, None, module)
}

/// Checks that the module is the pinned one, if the Configurator pins one.
fn check_digest(resource: &resource::Configurator, digest: &Digest) -> Result<(), Refusal> {
    let digest = digest.to_string();
    if let Some(wanted) = &resource.spec.module.digest
        && *wanted != digest
    {
        let message = format!("spec.module.digest is {wanted}, but the module has {digest}");
        return Err(Refusal::for_now("DigestMismatch", message));
    }
    Ok(())
}

/// Checks that the module has the handlers that the Configurator names, and that the capabilities which they declare are granted.
pub(super) fn check_handlers(
    configurator: &Configurator,
    ceiling: Option<&Ceiling>,
    module: &Module,
) -> Result<(), Refusal> {
    let phases = configurator
        .phases
        .iter()
        .chain(&configurator.deletion.phases);
    let phases = phases.map(|phase| (format!("phase {:?}", phase.name), phase.handler.as_str()));
    let machine = configurator.machine.as_ref();
    let nodes = machine.into_iter().flat_map(|mode| mode.machine.handlers());
    for (place, handler) in phases.chain(nodes) {
        let Some(found) = module.description().handler(handler) else {
            let message = format!(
                "{place} names the handler {handler:?}, which the module lacks; it has: {}",
                module.handler_names()
            );
            return Err(Refusal::new("HandlerMissing", message));
        };
        let fits = match found.accepts {
            Accepts::Either => true,
            Accepts::One => configurator.batch.is_none(),
            Accepts::Batch => configurator.batch.is_some(),
        };
        if !fits {
            let what = match (found.accepts, &configurator.machine) {
                (Accepts::Batch, Some(_)) => "batches, and a machine has none",
                (Accepts::Batch, None) => "batches: add spec.chain.batch",
                _ => "one object: remove spec.chain.batch",
            };
            let message = format!("the handler {handler:?} of {place} takes {what}");
            return Err(Refusal::new("HandlerMismatch", message));
        }
        check_capabilities(configurator, ceiling, found, &place)?;
    }
    Ok(())
}

/// Checks that the capabilities which a handler declares are granted.
fn check_capabilities(
    configurator: &Configurator,
    ceiling: Option<&Ceiling>,
    handler: &HandlerDescription,
    place: &str,
) -> Result<(), Refusal> {
    let Some(said) = &handler.capabilities else {
        return Ok(());
    };
    let name = &handler.name;
    let wanted = serde_json::from_value(said.to_value())
        .map_err(|error| error.to_string())
        .and_then(|spec| declaration::capabilities(&spec).map_err(|error| error.to_string()));
    let mut wanted = wanted.map_err(|error| {
        let message = format!(
            "the handler {name:?} of {place} says what it asks for in another form than spec.capabilities: {error}"
        );
        Refusal::new("ModuleInvalid", message)
    })?;
    let own = &configurator.key.namespace;
    if !own.is_empty() {
        // All namespaces that a Configurator has are its own.
        for rule in &mut wanted.kubernetes {
            if rule.namespaces == ["*"] {
                rule.namespaces = vec![own.clone()];
            }
        }
    }
    let lacks = |rule: String, who: &str| {
        let message =
            format!("the handler {name:?} of {place} asks for {rule}, which {who} does not allow");
        Refusal::new("CapabilityMissing", message)
    };
    if let Some(rule) = configurator.capabilities.lacking(&wanted) {
        return Err(lacks(rule, "spec.capabilities"));
    }
    match ceiling.and_then(|ceiling| ceiling.lacking(&wanted)) {
        Some((rule, whose)) => Err(lacks(rule, whose)),
        None => Ok(()),
    }
}
