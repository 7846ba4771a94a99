//! The read that tells whether what depends on a request may be sent.

use crate::request::{KubernetesVerb, Operation, Readiness, Request};

/// Returns a read of the object that a request wrote, read or deleted, which has this name. `None`: nothing is to be waited for once the
/// request has succeeded.
///
/// A request has `ready-when`, or others depend on it: otherwise nobody waits for its object. A deletion is over when the object is gone.
#[must_use]
pub fn reading_of(request: &Request, name: &str, has_dependents: bool) -> Option<Operation> {
    let Operation::Kubernetes(sent) = &request.operation else {
        return None;
    };
    let is_awaited = match (sent.verb, &request.ready_when) {
        (KubernetesVerb::List, _) | (_, Some(Readiness::Exists)) => false,
        // An eviction or a token is no object that becomes ready.
        (KubernetesVerb::Create, None) if sent.subresource.is_some() => false,
        (KubernetesVerb::Delete, _) | (_, None) => has_dependents,
        (_, Some(_)) => true,
    };
    if !is_awaited {
        return None;
    }
    let mut read = sent.clone();
    read.verb = KubernetesVerb::Get;
    name.clone_into(&mut read.name);
    read.body = None;
    read.precondition = None;
    read.subresource = None;
    read.force = false;
    read.cached = false;
    Some(Operation::Kubernetes(read))
}
