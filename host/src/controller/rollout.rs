//! Which module an object's runs are of. It is swapped while runs are under way: for all objects at once, or for a share of them first.

use std::sync::{Arc, Mutex, PoisonError, RwLock};

use configurator_core::module::RunModule;
use configurator_core::queue::Finished;
use configurator_core::run::Member;
use configurator_core::trial::{Share, Tally};
use configurator_guest::module::Module;

/// The modules of a Configurator. Who begins a run asks once, and keeps what it gets.
pub struct Rollout {
    modules: RwLock<Modules>,
    /// What has come of the module that is tried.
    tally: Mutex<Tally>,
}

#[derive(Clone)]
struct Modules {
    stable: Held,
    tried: Option<(Share, Held)>,
    /// The digest of the one that was tried and was not good enough.
    rolled_back: Option<String>,
}

#[derive(Clone)]
struct Held {
    module: Arc<Module>,
    handle: RunModule,
}

impl Rollout {
    /// This module for everything, where the one of the other digest was tried and was not good enough.
    #[must_use]
    pub fn new(module: Arc<Module>, rolled_back: Option<String>) -> Self {
        Self {
            modules: RwLock::new(Modules {
                stable: Held::of(module),
                tried: None,
                rolled_back,
            }),
            tally: Mutex::default(),
        }
    }

    /// That of a run of these objects that begins now. One that is tried is for those alone that are all in its share.
    #[must_use]
    pub fn choose(&self, members: &[Member]) -> RunModule {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        match &modules.tried {
            Some((share, tried)) if members.iter().all(|member| share.has(&member.uid)) => {
                tried.handle.clone()
            }
            _ => modules.stable.handle.clone(),
        }
    }

    /// That of a run that was chosen for it; where none was, the one that most objects have.
    #[must_use]
    pub fn chosen(&self, module: &RunModule) -> Arc<Module> {
        module.get().unwrap_or_else(|| self.stable())
    }

    /// The module that all objects have, but for those that another is tried on.
    #[must_use]
    pub fn stable(&self) -> Arc<Module> {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        modules.stable.module.clone()
    }

    /// The module that is tried, and the objects that it is tried on.
    #[must_use]
    pub fn tried(&self) -> Option<(Share, Arc<Module>)> {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        let (share, tried) = modules.tried.as_ref()?;
        Some((*share, tried.module.clone()))
    }

    /// Whether the module of this digest was tried and was not good enough: what has begun with it goes on with another.
    #[must_use]
    pub fn is_rolled_back(&self, digest: &str) -> bool {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        modules.rolled_back.as_deref() == Some(digest)
    }

    /// Every run that begins from now on is of this module.
    pub fn swap(&self, module: Arc<Module>) {
        self.set(|modules| {
            modules.stable = Held::of(module);
            modules.tried = None;
            let digest = modules.stable.handle.digest();
            modules.rolled_back.take_if(|bad| bad == digest);
        });
    }

    /// Runs of these objects that begin from now on are of this module, and none is counted yet.
    pub fn try_on(&self, share: Share, module: Arc<Module>) {
        self.set(|modules| {
            let tried = Held::of(module);
            let digest = tried.handle.digest();
            modules.rolled_back.take_if(|bad| bad == digest);
            modules.tried = Some((share, tried));
        });
    }

    /// No run that begins from now on is of the module that was tried.
    pub fn give_up(&self) {
        self.set(|modules| {
            if let Some((_, tried)) = modules.tried.take() {
                modules.rolled_back = Some(tried.handle.digest().to_owned());
            }
        });
    }

    fn set(&self, change: impl FnOnce(&mut Modules)) {
        let modules = self.modules.write();
        change(&mut modules.unwrap_or_else(PoisonError::into_inner));
        *self.tally.lock().unwrap_or_else(PoisonError::into_inner) = Tally::default();
    }

    /// Counts what a run came to, where it was of the module that is tried.
    pub fn count(&self, module: &RunModule, finished: &Finished) {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        let is_tried = |(_, tried): &(Share, Held)| tried.handle.digest() == module.digest();
        if modules.tried.as_ref().is_some_and(is_tried) {
            let mut tally = self.tally.lock().unwrap_or_else(PoisonError::into_inner);
            tally.count(&finished.finish, &finished.departed);
        }
    }

    /// What has come of this module so far, while it is tried.
    #[must_use]
    pub fn tally(&self, digest: &str) -> Tally {
        let modules = self.modules.read();
        let modules = modules.unwrap_or_else(PoisonError::into_inner);
        let is_tried = |(_, tried): &(Share, Held)| tried.handle.digest() == digest;
        match modules.tried.as_ref().is_some_and(is_tried) {
            true => *self.tally.lock().unwrap_or_else(PoisonError::into_inner),
            false => Tally::default(),
        }
    }
}

impl Held {
    fn of(module: Arc<Module>) -> Self {
        Self {
            handle: RunModule::new(&module.digest().to_string(), module.clone()),
            module,
        }
    }
}
