//! The requests that read and write members of the stores, authorized like those of handlers.

use configurator_core::authorization::{AuthorizedOperation, Denied};
use configurator_core::desired::{Content, DesiredEntry};
use configurator_core::document::Document;
use configurator_core::fault::{Fault, FaultKind};
use configurator_core::graph::member::MemberKey;
use configurator_core::layers;
use configurator_core::request::{
    ConfigOperation, ConfigRequest, ConfigVerb, Operation, SecretRequest, SecretVerb,
};
use configurator_core::run::Run;

/// Makes the requests of one run.
#[derive(Clone, Copy)]
pub(in super::super) struct StoreRequests<'a> {
    pub(in super::super) run: &'a Run,
}

impl StoreRequests<'_> {
    /// Reads a member.
    pub(super) fn get(self, key: &MemberKey) -> Result<AuthorizedOperation, Fault> {
        self.authorize(read_of(key, self.partition(key)))
    }

    /// Writes the value of a key of the config store, with `Create` only if it is absent.
    pub(super) fn write_config(
        self,
        key: &MemberKey,
        entry: &DesiredEntry,
        verb: ConfigVerb,
    ) -> Result<AuthorizedOperation, Fault> {
        let Content::Config(content) = &entry.content else {
            return Err(misplaced(key));
        };
        let write = content.write.clone().with_verb(verb);
        self.authorize(config(self.partition(key), write))
    }

    /// Creates a secret, if it is absent.
    pub(super) fn create_secret(
        self,
        key: &MemberKey,
        value: Document,
    ) -> Result<AuthorizedOperation, Fault> {
        self.authorize(self.secret(key, SecretVerb::Create, Some(value), None))
    }

    /// Writes another value of a secret that has this version.
    pub(super) fn update_secret(
        self,
        key: &MemberKey,
        value: Document,
        version: u64,
    ) -> Result<AuthorizedOperation, Fault> {
        self.authorize(self.secret(key, SecretVerb::Update, Some(value), Some(version)))
    }

    /// Deletes a member.
    pub(super) fn delete(self, key: &MemberKey) -> Result<AuthorizedOperation, Fault> {
        self.authorize(match key {
            MemberKey::Config { key: at, .. } => {
                config_at(self.partition(key), at, ConfigVerb::Delete)
            }
            _ => self.secret(key, SecretVerb::Delete, None, None),
        })
    }

    /// Whether rules grant each verb that an entry needs. Empty for a Kubernetes object.
    pub(in super::super) fn asked(self, key: &MemberKey) -> Vec<(&'static str, Result<(), Fault>)> {
        let asked = |verb, operation| (verb, self.authorize(operation).map(drop));
        match key {
            MemberKey::Config { key: at, .. } => {
                let verbs = ConfigVerb::ALL.into_iter();
                let operation = |verb| config_at(self.partition(key), at, verb);
                verbs
                    .map(|verb| asked(verb.name(), operation(verb)))
                    .collect()
            }
            MemberKey::Secret { .. } => {
                let verbs = SecretVerb::ALL.into_iter();
                let operation = |verb| self.secret(key, verb, None, None);
                verbs
                    .map(|verb| asked(verb.name(), operation(verb)))
                    .collect()
            }
            MemberKey::Kubernetes { .. } => Vec::new(),
        }
    }

    /// The namespace that a request for a member names. `None`: the partition is the Configurator's own.
    pub(in super::super) fn partition(self, key: &MemberKey) -> Option<String> {
        let own = &self.run.configurator().key.namespace;
        let partition = key.partition()?;
        (partition != own).then(|| partition.to_owned())
    }

    fn secret(
        self,
        key: &MemberKey,
        verb: SecretVerb,
        value: Option<Document>,
        version: Option<u64>,
    ) -> Operation {
        let name = match key {
            MemberKey::Secret { name, .. } => name.clone(),
            MemberKey::Kubernetes { .. } | MemberKey::Config { .. } => String::new(),
        };
        Operation::Secret(SecretRequest {
            name,
            verb,
            value,
            version,
            partition: self.partition(key),
        })
    }

    fn authorize(self, operation: Operation) -> Result<AuthorizedOperation, Fault> {
        let authorized = self.run.authorize_member(&operation, "");
        authorized.map_err(Denied::into_fault)
    }
}

/// The request that reads a member.
pub(super) fn read_of(key: &MemberKey, partition: Option<String>) -> Operation {
    match key {
        MemberKey::Config { key, .. } => config_at(partition, key, ConfigVerb::Get),
        MemberKey::Secret { name, .. } | MemberKey::Kubernetes { name, .. } => {
            Operation::Secret(SecretRequest {
                name: name.clone(),
                verb: SecretVerb::Get,
                value: None,
                version: None,
                partition,
            })
        }
    }
}

fn config_at(partition: Option<String>, key: &str, verb: ConfigVerb) -> Operation {
    let operation = layers::operation_at(key, verb, None);
    Operation::Config(ConfigRequest {
        is_transaction: false,
        operations: operation.into_iter().collect(),
        partition,
    })
}

fn config(partition: Option<String>, operation: ConfigOperation) -> Operation {
    Operation::Config(ConfigRequest {
        is_transaction: false,
        operations: vec![operation],
        partition,
    })
}

fn misplaced(key: &MemberKey) -> Fault {
    let message = format!("{key}: the set has no such entry");
    Fault::new(FaultKind::ResourceGeneric, message)
}
