//! Modules that ran before, by their digest: objects under way in a phase may be pinned to one.

use std::sync::{Arc, Mutex, PoisonError};

use configurator_background::owners::Owner;
use configurator_core::handler::CallLimits;
use configurator_core::module::RunModule;
use configurator_guest::module::Module;
use configurator_guest::owner::owner_of;
use configurator_guest::runtime::GuestRuntime;

use super::call_mode::CallMode;
use super::policies::Policies;
use crate::host::Shared;
use crate::module_source::ModuleSource;
use crate::recording::Recorder;
use crate::resource::{Configurator, ModuleSpec};

/// The most modules that are held without being asked for.
const MAX_HELD: usize = 8;

/// The modules that one Configurator ran before, as far as they are to be had.
pub(crate) struct Earlier {
    source: Arc<dyn ModuleSource>,
    guest: GuestRuntime,
    /// The owner whose turn it takes when modules wait to be compiled.
    owner: Owner,
    call_mode: CallMode,
    spec: ModuleSpec,
    /// Where the policies for its namespace are.
    policies: Policies,
    namespace: String,
    recorder: Option<Arc<Recorder>>,
    /// The one that was used last comes last.
    held: Mutex<Vec<RunModule>>,
    /// One is loaded at a time: many objects may want the same.
    loading: tokio::sync::Mutex<()>,
}

impl Earlier {
    /// Those of a Configurator. The recorder keeps them with the runs, if these are recorded.
    pub(crate) fn new(
        shared: &Shared,
        resource: &Configurator,
        recorder: Option<Arc<Recorder>>,
    ) -> Self {
        let namespace = resource.key().namespace;
        let policies = shared.policies.clone();
        let uid = resource.metadata.uid.as_deref().unwrap_or_default();
        let limits = CallLimits {
            weight: policies.of(&namespace).weight,
            ..CallLimits::default()
        };
        let limits = limits.owned_by(uid).shared_in(&namespace);
        Self {
            source: shared.modules.clone(),
            guest: shared.guest.clone(),
            owner: owner_of(&limits),
            call_mode: shared.call_mode.clone(),
            spec: resource.spec.module.clone(),
            policies,
            namespace,
            recorder,
            held: Mutex::default(),
            loading: tokio::sync::Mutex::default(),
        }
    }

    /// Has this one at hand for a while.
    pub(crate) fn keep(&self, module: &RunModule) {
        let mut held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.retain(|other| other.digest() != module.digest());
        if held.len() >= MAX_HELD {
            held.remove(0);
        }
        held.push(module.clone());
    }

    fn held(&self, digest: &str) -> Option<RunModule> {
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        held.iter().find(|held| held.digest() == digest).cloned()
    }

    /// The module of this digest.
    ///
    /// # Errors
    /// When neither the source nor the copies have it, or it cannot be loaded; the message says why.
    pub(crate) async fn get(&self, digest: &str) -> Result<RunModule, String> {
        if let Some(module) = self.held(digest) {
            self.keep(&module);
            return Ok(module);
        }
        let _turn = self.loading.lock().await;
        if let Some(module) = self.held(digest) {
            return Ok(module);
        }
        let module = RunModule::new(digest, self.load(digest).await?);
        self.keep(&module);
        Ok(module)
    }

    /// As [`get`](Self::get), without a look at what is at hand.
    pub(crate) async fn load(&self, digest: &str) -> Result<Arc<Module>, String> {
        let spec = ModuleSpec {
            digest: Some(digest.to_owned()),
            ..self.spec.clone()
        };
        let policy = self.policies.of(&self.namespace);
        let fetched = self.source.fetch(&spec, &policy.modules).await;
        let bytes = fetched.map_err(|error| error.to_string())?.bytes;
        let found = bytes.digest();
        if found.to_string() != digest {
            return Err(format!(
                "the source has {found} instead, and there is no copy"
            ));
        }
        if let Some(recorder) = &self.recorder {
            recorder.keep_module(bytes.clone()).await;
        }
        let loaded = match &self.call_mode {
            CallMode::Parallel => self.guest.load_for(self.owner, bytes, &spec.place()).await,
            CallMode::Inline | CallMode::Charged(_) => {
                self.guest.load_blocking(bytes, &spec.place())
            }
        };
        loaded.map_err(|error| error.to_string())
    }
}
