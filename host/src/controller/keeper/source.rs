//! Asks the source of a module for new versions.

use futures::FutureExt as _;
use kube::ResourceExt as _;

use super::Keeper;
use crate::events::{HostEvent, Subject};
use crate::module_source::SourceError;

impl Keeper {
    /// Has the source asked whether it has another module than it had when one was last fetched.
    pub(super) fn ask_source(&mut self) {
        self.ask_source = None;
        let resource = self.desired.borrow().clone();
        if resource.metadata.deletion_timestamp.is_some() || self.loading.is_some() {
            return;
        }
        let modules = self.shared.modules.clone();
        let policy = self.policy.clone();
        let asked = async move {
            modules
                .version(&resource.spec.module, &policy.modules)
                .await
        };
        self.asking = Some(asked.boxed());
    }

    pub(super) fn on_version(&mut self, answered: Result<Option<String>, SourceError>) {
        self.ask_again();
        match answered {
            Ok(now) if now == self.source => {
                self.say_of_source(None);
            }
            Ok(_) => {
                let resource = self.desired.borrow().clone();
                self.failures = 0;
                self.load(&resource);
            }
            Err(error) => self.say_of_source(Some(error.to_string())),
        }
    }

    pub(super) fn ask_again(&mut self) {
        let module = &self.desired.borrow().spec.module;
        let interval = self.shared.modules.interval(module);
        self.ask_source = Some(self.shared.clock.now().after(interval));
    }

    /// Says, once, that the source cannot be asked, and that what runs may be old.
    pub(super) fn say_of_source(&mut self, trouble: Option<String>) {
        if self.known.old_module == trouble {
            return;
        }
        if let Some(message) = &trouble
            && self.known.old_module.is_none()
        {
            let resource = self.desired.borrow().clone();
            let key = resource.key();
            tracing::warn!(configurator = %key, "the module may be old: {message}");
            let uid = resource.uid().unwrap_or_default();
            let subject = Subject::configurator(&key, &uid);
            let event = HostEvent::warning(subject, "ModuleSourceUnavailable", message.clone());
            self.shared.publisher.publish(event);
        }
        self.known.old_module = trouble;
        self.voice.speak_soon();
    }
}
