//! Operations at a sink, without a handler: every rule allows them.

use configurator_core::authorization::{Caller, Denied, authorize};
use configurator_core::capability::Capabilities;
use configurator_core::ceiling::Ceiling;
use configurator_core::fault::Fault;
use configurator_core::field_manager;
use configurator_core::request::Operation;
use configurator_core::result::Answer;
use configurator_host::sinks::{Scope, Sink};

/// The namespace of the object that operations are executed for.
pub const NAMESPACE: &str = "shop";

/// Executes an operation on behalf of the Configurator that `scope` names.
///
/// # Errors
/// When it cannot be sent as it is, and as the sink has it.
pub async fn execute(
    sink: &impl Sink,
    operation: &Operation,
    scope: &Scope,
) -> Result<Answer, Fault> {
    let caller = Caller {
        field_manager: &field_manager::of_requests(&scope.configurator),
        namespace: NAMESPACE,
        effect: &scope.request_name,
        ..Caller::default()
    };
    let everything = Capabilities::everything();
    let authorized = authorize(operation, caller, &everything, &Ceiling::unlimited())
        .map_err(Denied::into_fault)?;
    sink.execute(&authorized, scope).await
}
