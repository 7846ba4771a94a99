//! The requests that read and write members of the stores, authorized like those of handlers.

use configurator_core::authorization::{AuthorizedOperation, Denied};
use configurator_core::document::Document;
use configurator_core::fault::Fault;
use configurator_core::graph::member::MemberKey;
use configurator_core::layers;
use configurator_core::request::{
    ConfigOperation, ConfigRequest, ConfigVerb, Operation, SecretRequest, SecretVerb,
};
use configurator_core::run::Run;

/// Makes the requests of one run.
#[derive(Clone, Copy)]
pub(in crate::sets) struct StoreRequests<'a> {
    pub(in crate::sets) run: &'a Run,
}

impl StoreRequests<'_> {
    /// Reads a member.
    pub(super) fn get(self, key: &MemberKey) -> Result<AuthorizedOperation, Fault> {
        self.authorize(match key {
            MemberKey::Config { .. } => self.config_at(key, ConfigVerb::Get),
            _ => self.secret(key, SecretVerb::Get, None, None),
        })
    }

    /// Writes the value of a key of the config store, with `Create` only if it is absent.
    pub(super) fn write_config(
        self,
        key: &MemberKey,
        write: ConfigOperation,
        verb: ConfigVerb,
    ) -> Result<AuthorizedOperation, Fault> {
        self.authorize(config(self.partition(key), Some(write.with_verb(verb))))
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
            MemberKey::Config { .. } => self.config_at(key, ConfigVerb::Delete),
            _ => self.secret(key, SecretVerb::Delete, None, None),
        })
    }

    /// Whether rules grant each verb that an entry needs. Empty for a Kubernetes object.
    pub(in crate::sets) fn asked(self, key: &MemberKey) -> Vec<(&'static str, Result<(), Fault>)> {
        let asked = |verb, operation| (verb, self.authorize(operation).map(drop));
        match key {
            MemberKey::Config { .. } => {
                let verbs = ConfigVerb::ALL.into_iter();
                verbs
                    .map(|verb| asked(verb.name(), self.config_at(key, verb)))
                    .collect()
            }
            MemberKey::Secret { .. } => {
                let verbs = SecretVerb::ALL.into_iter();
                verbs
                    .map(|verb| asked(verb.name(), self.secret(key, verb, None, None)))
                    .collect()
            }
            MemberKey::Kubernetes { .. } => Vec::new(),
        }
    }

    /// The namespace that a request for a member names. `None`: the partition is the Configurator's own.
    pub(in crate::sets) fn partition(self, key: &MemberKey) -> Option<String> {
        let own = &self.run.configurator().key.namespace;
        let partition = key.partition()?;
        (partition != own).then(|| partition.to_owned())
    }

    fn config_at(self, key: &MemberKey, verb: ConfigVerb) -> Operation {
        config(
            self.partition(key),
            layers::operation_at(key.name(), verb, None),
        )
    }

    fn secret(
        self,
        key: &MemberKey,
        verb: SecretVerb,
        value: Option<Document>,
        version: Option<u64>,
    ) -> Operation {
        Operation::Secret(SecretRequest {
            name: key.name().to_owned(),
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

fn config(partition: Option<String>, operation: Option<ConfigOperation>) -> Operation {
    Operation::Config(ConfigRequest {
        is_transaction: false,
        operations: operation.into_iter().collect(),
        partition,
    })
}
