//! Where things are in the store.
//!
//! Names and namespaces contain no slash, so keys sort as Kubernetes sorts a list: by namespace, then by name.

/// Objects: `o/{group}/{plural}/{namespace}/{name}`; the namespace is empty for cluster-scoped ones.
pub(crate) fn object(storage: &str, namespace: &str, name: &str) -> String {
    format!("o/{storage}/{namespace}/{name}")
}

/// All objects of a resource.
pub(crate) fn resource_prefix(storage: &str) -> String {
    format!("o/{storage}/")
}

/// All objects of a resource in a namespace.
pub(crate) fn namespace_prefix(storage: &str, namespace: &str) -> String {
    format!("o/{storage}/{namespace}/")
}

/// Namespace and name of an object's key.
pub(crate) fn namespace_and_name(key: &[u8]) -> Option<(&str, &str)> {
    let key = std::str::from_utf8(key).ok()?;
    let (rest, name) = key.rsplit_once('/')?;
    let (_, namespace) = rest.rsplit_once('/')?;
    Some((namespace, name))
}

/// Storage, namespace and name of an object's key.
pub(crate) fn parts(key: &str) -> Option<(&str, &str, &str)> {
    let rest = key.strip_prefix("o/")?;
    let (rest, name) = rest.rsplit_once('/')?;
    let (storage, namespace) = rest.rsplit_once('/')?;
    Some((storage, namespace, name))
}

/// The index of dependents: `x/owner/{uid of the owner}/{key of the dependent}`.
pub(crate) fn dependent(owner_uid: &str, key: &str) -> String {
    format!("x/owner/{owner_uid}/{key}")
}

/// All dependents of an owner.
pub(crate) fn dependents_prefix(owner_uid: &str) -> String {
    format!("x/owner/{owner_uid}/")
}

/// Something that only one object may have, such as an address.
pub(crate) fn claim(kind: &str, value: &str) -> String {
    format!("x/claim/{kind}/{value}")
}

/// Work for the garbage collector, which survives a restart.
pub(crate) const CHORES: &str = "x/chore/";

/// The certificate authority and the key of the served API.
pub(crate) const CERTIFICATES: &str = "x/certificates";
