//! Commands: they reach the machines of objects, or wait until their objects are selected.

use configurator_core::request::ObjectRef;
use configurator_core::time::Timestamp;
use futures::StreamExt;
use kube::ResourceExt as _;
use kube::runtime::watcher::Event;

use super::{OrderStream, Worker, WorkerParts};
use crate::controller::commands::{
    self, CLUSTER_NAMESPACE, CommandEvent, CommandRef, Errand, PendingCommand,
};
use crate::controller::inbox::Wake;
use crate::controller::pending::{Expired, Kept};
use crate::objects;
use crate::resource::command::{Command, CommandTarget};

/// The Commands for objects with machines, from the start.
pub(super) fn orders(parts: &WorkerParts) -> OrderStream {
    if parts.context.machine.is_none() {
        return futures::stream::pending().boxed();
    }
    let namespaces = match (parts.is_namespaced, &parts.configurator.watch) {
        (true, watch) => watch.namespaces.clone(),
        (false, _) => vec![CLUSTER_NAMESPACE.to_owned()],
    };
    commands::watched(&parts.host_client, &namespaces, parts.seed).boxed()
}

impl Worker {
    pub(super) async fn on_command_event(&mut self, (scope, event): CommandEvent) {
        match event {
            Ok(Event::Init) => self.pending.list(&scope),
            Ok(Event::InitDone) => self.pending.listed(&scope),
            Ok(Event::Delete(command)) => {
                self.pending.remove(&command.uid().unwrap_or_default());
            }
            Ok(Event::InitApply(command) | Event::Apply(command)) => {
                self.pending.see(&scope, &command.uid().unwrap_or_default());
                self.on_command(&command).await;
            }
            Err(error) => {
                let error = objects::explained(&error);
                tracing::warn!(
                    configurator = %self.parts.configurator.key,
                    error,
                    "the Commands cannot be watched; the host retries"
                );
            }
        }
    }

    /// Delivers a Command to the machine of its object, or keeps it until its object is selected.
    async fn on_command(&mut self, command: &Command) {
        let uid = command.uid().unwrap_or_default();
        let target_uid = commands::target_uid(command);
        // As long as the object is not known, the Command itself decides which host deals with it.
        if commands::configurator_of(command) != self.parts.configurator.key
            || !self.has(target_uid.unwrap_or(&uid))
        {
            return;
        }
        let now = self.now();
        if let Some(finished) = commands::finished(command) {
            let (key, at) = (objects::key_of(command), finished.time.unwrap_or(now));
            return self.pending.finished(key, uid, at, finished.ttl);
        }
        let command_ref = CommandRef {
            key: objects::key_of(command),
            is_verified: self.parts.requesters.are_verified(command).await,
            uid,
        };
        if let Err(why) = self.check_target(&command.spec.target) {
            return self.refuse(command_ref, why);
        }
        let Some(target_uid) = target_uid else {
            let target = self.target_of(command);
            let version = command.resource_version().unwrap_or_default();
            return self
                .errands
                .push(Errand::LookUp(command_ref, version, target));
        };
        let target = self.target_of(command);
        let Some(command) = commands::read(command, command_ref, target, target_uid) else {
            return;
        };
        if self.is_known(&command) && self.is_listed && self.unlisted == 0 {
            self.pending.remove(&command.own.uid);
            let PendingCommand {
                own, target, order, ..
            } = command;
            return self.tell(&target, Wake::Command(own, order)).await;
        }
        match self.pending.keep(command.clone(), now) {
            Kept::Known => {}
            Kept::New => self.ask(&command),
            Kept::Full => {
                let most = self.pending.limits().max_pending;
                let why = format!(
                    "{most} Commands of the Configurator wait for objects that it does not select; delete some, or raise the host's setting max_pending_commands"
                );
                self.refuse(command.own, why);
            }
        }
    }

    /// Checks that a Command is for an object of the watched kind.
    fn check_target(&self, target: &CommandTarget) -> Result<(), String> {
        let resource = &self.parts.resource;
        let is_version = |version: &String| *version == resource.api_version;
        if target.kind == resource.kind && target.api_version.as_ref().is_none_or(is_version) {
            return Ok(());
        }
        let api_version = target.api_version.as_ref();
        let api_version = api_version.map(|version| format!("{version} "));
        Err(format!(
            "the Configurator watches {} {}, not {}{}",
            resource.api_version,
            resource.kind,
            api_version.unwrap_or_default(),
            target.kind
        ))
    }

    /// The object that a Command is for.
    fn target_of(&self, command: &Command) -> ObjectRef {
        let namespace = match self.parts.is_namespaced {
            true => command.namespace().unwrap_or_default(),
            false => String::new(),
        };
        ObjectRef {
            namespace,
            name: command.spec.target.name.clone(),
        }
    }

    fn is_known(&self, command: &PendingCommand) -> bool {
        let known = self.queue.known(&command.target);
        known.is_some_and(|(uid, _)| uid == command.target_uid)
    }

    /// Asks whether the object of a Command exists, once every object is listed that does.
    fn ask(&mut self, command: &PendingCommand) {
        if self.is_listed && self.unlisted == 0 {
            self.errands.push(Errand::Ask(
                command.own.uid.clone(),
                command.target.clone(),
                command.target_uid.clone(),
            ));
        }
    }

    /// The API has said whether the object of a Command exists.
    pub(super) fn on_asked(&mut self, command: &str, exists: bool) {
        if !exists {
            if let Some(pending) = self.pending.remove(command) {
                self.refuse_without_object(pending);
            }
            return;
        }
        if let Some(pending) = self.pending.get_mut(command)
            && !std::mem::replace(&mut pending.is_told, true)
        {
            let why = format!(
                "the Configurator does not select the {} {}; the Command waits until it does",
                self.parts.resource.kind, pending.target
            );
            self.errands.push(Errand::Wait(pending.own.clone(), why));
        }
    }

    /// Delivers the Commands that have waited for an object that was just seen.
    pub(super) async fn deliver(&mut self, key: &ObjectRef) {
        if self.queue.known(key).is_none() {
            return;
        }
        for command in self.pending.take(key) {
            match self.is_known(&command) {
                true => {
                    self.tell(key, Wake::Command(command.own, command.order))
                        .await;
                }
                false => self.refuse_without_object(command),
            }
        }
    }

    /// The same for every object, when all are known. What still waits is asked for.
    pub(super) async fn deliver_all(&mut self) {
        for uid in self.pending.uids() {
            let Some(command) = self.pending.get_mut(&uid).cloned() else {
                continue;
            };
            match self.is_known(&command) {
                true => self.deliver(&command.target).await,
                false => self.ask(&command),
            }
        }
    }

    fn refuse_without_object(&mut self, command: PendingCommand) {
        let why = format!(
            "there is no {} {} with the uid {}",
            self.parts.resource.kind, command.target, command.target_uid
        );
        self.refuse(command.own, why);
    }

    fn refuse(&mut self, command: CommandRef, why: String) {
        self.errands.push(Errand::Refuse(command, why));
    }

    /// Deals with Commands whose time is over.
    pub(super) fn expire(&mut self, now: Timestamp) {
        for expired in self.pending.expire(now) {
            match expired {
                Expired::Finished(key, uid) => self.errands.push(Errand::Delete(key, uid)),
                Expired::Pending(command) => {
                    let why = format!(
                        "the Configurator has not selected {} within {:?}",
                        command.target,
                        self.pending.limits().ttl
                    );
                    self.refuse(command.own, why);
                }
            }
        }
    }
}
