//! A Configurator does not reach beyond its namespace.

use configurator_core::capability::Capabilities;
use configurator_core::configurator::Watch;
use configurator_core::partition::is_namespace;
use configurator_core::service_account::ServiceAccount;

use super::{DeclarationError, wrong};
use crate::resource::{ConfiguratorSpec, ModuleSpec, ParametersSourceSpec};

/// The field with the name of the ServiceAccount.
const ACCOUNT: &str = "spec.serviceAccountName";
/// The ServiceAccount of a Configurator that names none.
const DEFAULT_ACCOUNT: &str = "default";

/// As whom it acts. A ClusterConfigurator, which has no namespace, acts as the host.
pub(super) fn service_account(
    spec: &ConfiguratorSpec,
    namespace: &str,
) -> Result<Option<ServiceAccount>, DeclarationError> {
    let named = spec.service_account_name.as_deref();
    if namespace.is_empty() {
        return match named {
            None => Ok(None),
            Some(_) => Err(wrong(
                ACCOUNT,
                "a ClusterConfigurator acts as the host: leave it out, or use a Configurator",
            )),
        };
    }
    let name = named.unwrap_or(DEFAULT_ACCOUNT);
    check_account_name(name)?;
    Ok(Some(ServiceAccount {
        namespace: namespace.to_owned(),
        name: name.to_owned(),
    }))
}

/// Checks the name of a ServiceAccount.
pub(super) fn check_account_name(name: &str) -> Result<(), DeclarationError> {
    // Nothing else can be the name of an object, nor be sent as another user.
    let is_name =
        |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-.".contains(&byte);
    if name.is_empty() || name.len() > 253 || !name.bytes().all(is_name) {
        return Err(wrong(
            ACCOUNT,
            &format!(
                "{name:?} is no name of a ServiceAccount: use up to 253 lower-case letters, digits, - and ."
            ),
        ));
    }
    Ok(())
}

/// Limits what is watched to the namespace.
pub(super) fn confine_watch(watch: &mut Watch, namespace: &str) -> Result<(), DeclarationError> {
    check("spec.watch.namespaces", &watch.namespaces, namespace)?;
    let selects = [
        (
            "spec.watch.excludeNamespaces",
            !watch.exclude_namespaces.is_empty(),
        ),
        (
            "spec.watch.namespaceSelector",
            !watch.namespace_selector.is_empty(),
        ),
    ];
    if let Some((path, _)) = selects.iter().find(|(_, is_there)| *is_there) {
        return Err(wrong(
            path,
            &format!(
                "a Configurator watches only its namespace, {namespace}: leave it out, or use a ClusterConfigurator"
            ),
        ));
    }
    watch.namespaces = vec![namespace.to_owned()];
    Ok(())
}

/// Limits what requests may do to the namespace. A rule without namespaces grants its own.
pub(super) fn confine_rules(
    rules: &mut Capabilities,
    namespace: &str,
) -> Result<(), DeclarationError> {
    for (index, rule) in rules.kubernetes.iter_mut().enumerate() {
        let path = format!("spec.capabilities.kubernetes[{index}].namespaces");
        check(&path, &rule.namespaces, namespace)?;
        rule.namespaces = vec![namespace.to_owned()];
    }
    for (path, namespaces) in partitions(rules) {
        check(&path, &*namespaces, namespace)?;
        // Its own partition.
        namespaces.clear();
    }
    Ok(())
}

/// Checks that rules for the partitions of namespaces name each of them in full.
pub(super) fn check_partitions(rules: &mut Capabilities) -> Result<(), DeclarationError> {
    for (path, namespaces) in partitions(rules) {
        if let Some(other) = namespaces.iter().find(|name| !is_namespace(name)) {
            return Err(wrong(
                &path,
                &format!(
                    "{other:?} is no name of a namespace: a ClusterConfigurator reaches only the partitions of namespaces that a rule names in full"
                ),
            ));
        }
    }
    Ok(())
}

/// Returns the namespaces of the rules for stores, with their paths.
fn partitions(rules: &mut Capabilities) -> impl Iterator<Item = (String, &mut Vec<String>)> {
    let path = |store: &str, index| format!("spec.capabilities.{store}[{index}].namespaces");
    let configstore = rules.configstore.iter_mut().enumerate();
    let secretstore = rules.secretstore.iter_mut().enumerate();
    configstore
        .map(move |(index, rule)| (path("configstore", index), &mut rule.namespaces))
        .chain(
            secretstore
                .map(move |(index, rule)| (path("secretstore", index), &mut rule.namespaces)),
        )
}

/// Checks that the module is not read from another namespace.
pub(super) fn check_module(module: &ModuleSpec, namespace: &str) -> Result<(), DeclarationError> {
    let map = module.config_map.as_ref().map(|map| &map.namespace);
    check("spec.module.configMap.namespace", map, namespace)?;
    let oci = module.oci.as_ref();
    let secret = oci.and_then(|oci| oci.pull_secret.as_ref());
    let secret = secret.map(|secret| &secret.namespace);
    check("spec.module.oci.pullSecret.namespace", secret, namespace)
}

/// Checks that no parameters are read from another namespace.
pub(super) fn check_parameters(
    specs: &[ParametersSourceSpec],
    namespace: &str,
) -> Result<(), DeclarationError> {
    for (index, spec) in specs.iter().enumerate() {
        let references = [&spec.config_map, &spec.secret].into_iter().flatten();
        let named = references.map(|reference| &reference.namespace);
        check(&format!("spec.parametersFrom[{index}]"), named, namespace)?;
    }
    Ok(())
}

fn check<'a>(
    path: &str,
    named: impl IntoIterator<Item = &'a String>,
    namespace: &str,
) -> Result<(), DeclarationError> {
    match named.into_iter().find(|named| *named != namespace) {
        None => Ok(()),
        Some(other) => Err(wrong(
            path,
            &format!(
                "a Configurator reaches only its namespace, {namespace}, not {other:?}: leave it out, or use a ClusterConfigurator"
            ),
        )),
    }
}
