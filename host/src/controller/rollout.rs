//! The modules of a Configurator: the stable one, and a canary for a fraction of the objects. They are swapped while runs are under way.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};

use configurator_core::canary::{Fraction, RunCounts};
use configurator_core::module::RunModule;
use configurator_core::run::{Departed, Finish, Member};
use configurator_guest::module::Module;

/// The modules of a Configurator. A run chooses its module once, when it starts, and keeps it.
pub struct Rollout {
    modules: RwLock<Modules>,
    /// The finished runs of the canary.
    canary_runs: Mutex<RunCounts>,
}

#[derive(Clone)]
struct Modules {
    stable: ModuleHandle,
    canary: Option<(Fraction, ModuleHandle)>,
    /// The digest of the last canary that was rolled back.
    rolled_back: Option<String>,
}

#[derive(Clone)]
struct ModuleHandle {
    module: Arc<Module>,
    handle: RunModule,
}

impl Rollout {
    /// Creates a rollout with this stable module. `rolled_back` is the digest of the last canary that was rolled back.
    #[must_use]
    pub fn new(module: Arc<Module>, rolled_back: Option<String>) -> Self {
        Self {
            modules: RwLock::new(Modules {
                stable: ModuleHandle::new(module),
                canary: None,
                rolled_back,
            }),
            canary_runs: Mutex::default(),
        }
    }

    /// Returns the module for a run of these objects that starts now. The canary handles a batch only if it handles each object in it.
    #[must_use]
    pub fn choose(&self, members: &[Member]) -> RunModule {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        match &modules.canary {
            Some((fraction, canary))
                if members.iter().all(|member| fraction.contains(&member.uid)) =>
            {
                canary.handle.clone()
            }
            _ => modules.stable.handle.clone(),
        }
    }

    /// Returns the module that was chosen for a run; the stable one if none was.
    #[must_use]
    pub fn chosen(&self, module: &RunModule) -> Arc<Module> {
        module.get().unwrap_or_else(|| self.stable())
    }

    /// Returns the module of all objects that the canary does not handle.
    #[must_use]
    pub fn stable(&self) -> Arc<Module> {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        modules.stable.module.clone()
    }

    /// Returns the canary, and the objects that it handles.
    #[must_use]
    pub fn canary(&self) -> Option<(Fraction, Arc<Module>)> {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        let (fraction, canary) = modules.canary.as_ref()?;
        Some((*fraction, canary.module.clone()))
    }

    /// Returns whether this is the canary's module.
    #[must_use]
    pub fn is_canary(&self, module: &RunModule) -> bool {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        let canary = modules.canary.as_ref();
        canary.is_some_and(|(_, canary)| canary.handle.digest() == module.digest())
    }

    /// Returns whether the module with this digest was the last canary that was rolled back. A phase that is pinned to it continues with another
    /// module.
    #[must_use]
    pub fn is_rolled_back(&self, digest: &str) -> bool {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        modules.rolled_back.as_deref() == Some(digest)
    }

    /// Makes this module the stable one, and ends the canary. Each run that starts from now on is of it.
    pub fn swap(&self, module: Arc<Module>) {
        self.set(|modules| {
            modules.stable = ModuleHandle::new(module);
            modules.canary = None;
            let digest = modules.stable.handle.digest();
            modules.rolled_back.take_if(|bad| bad == digest);
        });
    }

    /// Starts a canary: each run of these objects that starts from now on is of this module.
    pub fn start_canary(&self, fraction: Fraction, module: Arc<Module>) {
        self.set(|modules| {
            let canary = ModuleHandle::new(module);
            let digest = canary.handle.digest();
            modules.rolled_back.take_if(|bad| bad == digest);
            modules.canary = Some((fraction, canary));
        });
    }

    /// Rolls the canary back: each run that starts from now on is of the stable module.
    pub fn roll_back(&self) {
        self.set(|modules| {
            if let Some((_, canary)) = modules.canary.take() {
                modules.rolled_back = Some(canary.handle.digest().to_owned());
            }
        });
    }

    fn set(&self, change: impl FnOnce(&mut Modules)) {
        let modules = self.modules.write();
        change(&mut modules.unwrap_or_else(PoisonError::into_inner));
        *self.runs() = RunCounts::default();
    }

    /// Counts a finished run if it was of the canary.
    pub fn record(&self, module: &RunModule, finish: &Finish, departed: &[Departed]) {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        if modules.is_canary(module.digest()) {
            let mut runs = self.runs();
            runs.record(finish, departed);
        }
    }

    /// Returns the finished runs of the canary if it has this digest; otherwise none.
    #[must_use]
    pub fn canary_runs(&self, digest: &str) -> RunCounts {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        match modules.is_canary(digest) {
            true => *self.runs(),
            false => RunCounts::default(),
        }
    }

    fn runs(&self) -> MutexGuard<'_, RunCounts> {
        let runs = self.canary_runs.lock();
        runs.unwrap_or_else(PoisonError::into_inner)
    }
}

impl Modules {
    fn is_canary(&self, digest: &str) -> bool {
        let canary = self.canary.as_ref();
        canary.is_some_and(|(_, canary)| canary.handle.digest() == digest)
    }
}

impl ModuleHandle {
    fn new(module: Arc<Module>) -> Self {
        Self {
            handle: RunModule::new(&module.digest().to_string(), module.clone()),
            module,
        }
    }
}
