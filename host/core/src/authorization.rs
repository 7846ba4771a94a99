//! Decides whether an operation may be sent, and what of its answer may be seen.
//!
//! [`authorize`] turns what a handler asks for into what is sent, checks that against the rules, and returns an
//! [`AuthorizedOperation`]. Sinks execute nothing else, and nothing else makes one.

mod answer;

use std::fmt;

use serde_json::{Value, json};

use crate::capability::Capabilities;
use crate::ceiling::{self, Ceiling};
use crate::document::Document;
use crate::fault::{Fault, FaultKind};
use crate::kubernetes_call::KubernetesCall;
use crate::request::{
    ConfigVerb, KubernetesRequest, KubernetesVerb, Operation, PatchType, SecretVerb, SinkName,
};

/// On whose behalf an operation is authorized.
#[derive(Debug, Clone, Copy, Default)]
pub struct Caller<'a> {
    /// The field manager of its requests: see [`field_manager`](crate::field_manager).
    pub field_manager: &'a str,
    /// The namespace of the object being handled, for keys of the config store that name none.
    pub namespace: &'a str,
    /// The namespace whose partition of the stores is the Configurator's own; empty: its own belongs to no namespace.
    pub partition: &'a str,
    /// Identifies what is to be done, the same for each attempt. Generated names are made of it.
    pub effect: &'a str,
}

/// An operation that the rules allow.
#[derive(Debug, Clone, PartialEq)]
pub struct AuthorizedOperation {
    operation: Operation,
    kubernetes: Option<Box<KubernetesCall>>,
    namespace: String,
    readable: Readable,
}

/// What of an answer the rules for `get` let a handler see.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Readable {
    /// Everything, or what the verb itself reads.
    All,
    /// Identity and version.
    Identity,
    /// For each operation of a transaction, whether its value may be seen.
    Each(Vec<bool>),
}

/// Why an operation may not be sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Denied {
    /// It cannot be sent as it is, whatever the rules say. The handler is at fault.
    Invalid(String),
    /// A rule is missing.
    Forbidden(Fault),
}

impl From<Fault> for Denied {
    fn from(fault: Fault) -> Self {
        Self::Forbidden(fault)
    }
}

impl Denied {
    /// The fault of a request that is not sent.
    #[must_use]
    pub fn into_fault(self) -> Fault {
        match self {
            Self::Invalid(why) => Fault::new(FaultKind::ResourceGeneric, why),
            Self::Forbidden(fault) => fault,
        }
    }
}

/// Authorizes an operation: `capabilities` are those of the Configurator, `ceiling` is what others allow.
///
/// # Errors
/// When it cannot be sent as it is, or one of them has no rule for it.
pub fn authorize(
    operation: &Operation,
    caller: Caller<'_>,
    capabilities: &Capabilities,
    ceiling: &Ceiling,
) -> Result<AuthorizedOperation, Denied> {
    authorize_as(operation, None, caller, capabilities, ceiling)
}

/// Authorizes the patch of an object that changes nothing but which manager owns which field. `target` names the object, and says as which it
/// must be found. This needs the verb `apply`: it is a part of taking fields over.
///
/// # Errors
/// As [`authorize`].
pub fn authorize_handover(
    target: &KubernetesRequest,
    managed_fields: &Value,
    caller: Caller<'_>,
    capabilities: &Capabilities,
    ceiling: &Ceiling,
) -> Result<AuthorizedOperation, Denied> {
    let body = json!({"metadata": {"managedFields": managed_fields}});
    let body = Document::of(&body).map_err(|error| Denied::Invalid(error.to_string()))?;
    let patch = KubernetesRequest {
        verb: KubernetesVerb::Patch,
        patch_type: PatchType::Merge,
        subresource: None,
        body: Some(body),
        ..target.clone()
    };
    let operation = Operation::Kubernetes(patch);
    let verb = Some(KubernetesVerb::Apply);
    authorize_as(&operation, verb, caller, capabilities, ceiling)
}

/// Authorizes an operation. `verb` is the one that a request to Kubernetes needs, if it is not its own.
fn authorize_as(
    operation: &Operation,
    verb: Option<KubernetesVerb>,
    caller: Caller<'_>,
    capabilities: &Capabilities,
    ceiling: &Ceiling,
) -> Result<AuthorizedOperation, Denied> {
    let both =
        |check: &dyn Fn(&Capabilities) -> Result<(), Fault>| held_by(capabilities, ceiling, check);
    let mut kubernetes = None;
    let mut operation = operation.clone();
    let readable = match &mut operation {
        Operation::Kubernetes(request) => {
            let call = KubernetesCall::prepare(request, caller.field_manager, caller.effect)
                .map_err(Denied::Invalid)?;
            let verb = verb.unwrap_or(call.request().verb);
            both(&|rules| rules.check_kubernetes(&call, verb))?;
            let may_read = both(&|rules| rules.check_kubernetes(&call, KubernetesVerb::Get));
            if call.reads_uid() {
                may_read.clone()?;
            }
            request.clone_from(call.request());
            let reads = matches!(request.verb, KubernetesVerb::Get | KubernetesVerb::List);
            kubernetes = Some(Box::new(call));
            all_or_identity(reads || may_read.is_ok())
        }
        Operation::Config(request) => {
            leave_out_own(&mut request.partition, caller);
            let partition = request.partition.as_deref();
            let mut each = Vec::with_capacity(request.operations.len());
            for operation in &request.operations {
                let allows = |verb: ConfigVerb| {
                    both(&|rules| rules.check_config(operation, verb, partition, caller.namespace))
                };
                allows(operation.verb())?;
                each.push(allows(ConfigVerb::Get).is_ok());
            }
            Readable::Each(each)
        }
        Operation::Secret(request) => {
            leave_out_own(&mut request.partition, caller);
            both(&|rules| rules.check_secret(request, request.verb))?;
            let get = |rules: &Capabilities| rules.check_secret(request, SecretVerb::Get);
            all_or_identity(both(&get).is_ok())
        }
        Operation::Http(request) => {
            both(&|rules| rules.check_http(request))?;
            Readable::All
        }
        Operation::Extension(request) => {
            both(&|rules| rules.check_extension(request))?;
            Readable::All
        }
    };
    Ok(AuthorizedOperation {
        operation,
        kubernetes,
        namespace: caller.namespace.to_owned(),
        readable,
    })
}

/// A request that names the Configurator's own partition is like one that names none.
fn leave_out_own(partition: &mut Option<String>, caller: Caller<'_>) {
    let own = caller.partition;
    partition.take_if(|named| !own.is_empty() && named == own);
}

fn all_or_identity(is_all: bool) -> Readable {
    match is_all {
        true => Readable::All,
        false => Readable::Identity,
    }
}

/// Checks against the capabilities, and then against the ceiling, and says whose rules lack one.
///
/// # Errors
/// As `check` has them.
pub fn held_by(
    capabilities: &Capabilities,
    ceiling: &Ceiling,
    check: impl Fn(&Capabilities) -> Result<(), Fault>,
) -> Result<(), Fault> {
    check(capabilities).map_err(|fault| ceiling::of("spec.capabilities", fault))?;
    ceiling.check(check)
}

impl AuthorizedOperation {
    /// The operation. To the Kubernetes API goes [`kubernetes`](Self::kubernetes), to all other servers this.
    #[must_use]
    pub fn operation(&self) -> &Operation {
        &self.operation
    }

    /// What is sent to the Kubernetes API; `None` for an operation on another server.
    #[must_use]
    pub fn kubernetes(&self) -> Option<&KubernetesCall> {
        self.kubernetes.as_deref()
    }

    /// The namespace of keys of the config store that name none.
    #[must_use]
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// The sink that executes it.
    #[must_use]
    pub const fn sink(&self) -> SinkName {
        self.operation.sink()
    }

    /// Whether it may change something at its server.
    #[must_use]
    pub fn is_mutating(&self) -> bool {
        self.operation.is_mutating()
    }

    /// Checks that a ceiling still allows it, and what of its answer the handler was to see: the ceiling may have been lowered since.
    ///
    /// # Errors
    /// [`FaultKind::ResourcePermission`]; the message says whose rules lack one.
    pub fn check(&self, ceiling: &Ceiling) -> Result<(), Fault> {
        let reads_all = self.readable == Readable::All;
        match &self.operation {
            Operation::Kubernetes(_) => {
                let Some(call) = self.kubernetes() else {
                    return Ok(());
                };
                let verb = call.request().verb;
                ceiling.check(|rules| rules.check_kubernetes(call, verb))?;
                let is_read = matches!(verb, KubernetesVerb::Get | KubernetesVerb::List);
                if reads_all && !is_read {
                    ceiling.check(|rules| rules.check_kubernetes(call, KubernetesVerb::Get))?;
                }
            }
            Operation::Config(request) => {
                let each = match &self.readable {
                    Readable::Each(each) => &each[..],
                    Readable::All | Readable::Identity => &[],
                };
                let reads = each.iter().chain(std::iter::repeat(&false));
                let partition = request.partition.as_deref();
                for (operation, reads) in request.operations.iter().zip(reads) {
                    let allows = |verb: ConfigVerb| {
                        ceiling.check(|rules| {
                            rules.check_config(operation, verb, partition, &self.namespace)
                        })
                    };
                    allows(operation.verb())?;
                    if *reads {
                        allows(ConfigVerb::Get)?;
                    }
                }
            }
            Operation::Secret(request) => {
                ceiling.check(|rules| rules.check_secret(request, request.verb))?;
                if reads_all {
                    ceiling.check(|rules| rules.check_secret(request, SecretVerb::Get))?;
                }
            }
            Operation::Http(request) => ceiling.check(|rules| rules.check_http(request))?,
            Operation::Extension(request) => {
                ceiling.check(|rules| rules.check_extension(request))?
            }
        }
        Ok(())
    }

    /// Whether the handler may see what the object holds. Without that it sees which object it is, and its version.
    #[must_use]
    pub fn may_read(&self) -> bool {
        self.readable == Readable::All
    }
}

/// In a line, as [`Operation`] says it.
impl fmt::Display for AuthorizedOperation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.operation.fmt(f)
    }
}

#[cfg(test)]
mod tests;
