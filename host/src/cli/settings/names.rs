//! Names of settings, and near misses of them.

use figment::Figment;
use figment::error::Kind;
use figment::providers::Serialized;
use serde::de::DeserializeOwned;

use super::Settings;

/// Prefix of the variables of settings.
pub const PREFIX: &str = "CONFIGURATOR_";
/// Variables of the program that are not settings: the path of the settings file, and the tools of `configurator build`.
const OTHERS: [&str; 3] = ["config", "node_modules", "python_venv"];
/// In a cluster, a Service named `configurator` gives variables that begin with these to its neighbours.
const FROM_SERVICES: [&str; 2] = ["service_", "port"];
/// Settings that guard nothing: without them the program is as safe, and keeps as much. Every other one does guard
/// something, so a variable that was probably meant to be one is never ignored.
const HARMLESS: [&str; 11] = [
    "background_work",
    "grace_seconds",
    "log",
    "log_format",
    "module_cache",
    "module_copies",
    "modules",
    "otlp_endpoint",
    "parallel_calls",
    "parallel_long_calls",
    "record",
];
/// Flags that are not named as their setting.
const FLAGS: [(&str, &str); 2] = [
    ("etcd_endpoint", "etcd.endpoints"),
    ("shards", "sharding.shards"),
];
/// A name that is more similar than this to that of a setting is a near miss, where 1 is the same.
const NEAR: f64 = 0.6;
/// Added for a name that holds all words of a setting, or begins with the table that the setting is in.
const SHARED_WORDS: f64 = 0.5;
/// No setting has this name.
const PROBE: &str = "?";

/// Returns whether [`Settings`] reads the variable with this name, which is in lower case and without the prefix.
pub fn is_for_settings(name: &str) -> bool {
    !OTHERS.contains(&name) && !FROM_SERVICES.iter().any(|start| name.starts_with(start))
}

/// The environment variable of a setting.
pub fn variable(setting: &str) -> String {
    format!("{PREFIX}{}", setting.replace('.', "__").to_uppercase())
}

/// The names of all settings, with their tables, as in `etcd.prefix`.
pub fn all() -> Vec<String> {
    let defaults = Figment::from(Serialized::defaults(Settings::default()));
    let mut names = Vec::new();
    collect::<Settings>(&defaults, "", &mut names);
    names
}

/// Adds the names in this table to `names`. A deserializer names all fields of a table when it refuses one.
fn collect<T: DeserializeOwned>(values: &Figment, table: &str, names: &mut Vec<String>) -> bool {
    let probe = format!("{table}{PROBE}");
    let Err(refusal) = values
        .clone()
        .merge(Serialized::default(&probe, true))
        .extract::<T>()
    else {
        return false;
    };
    let Kind::UnknownField(_, fields) = refusal.kind else {
        return false;
    };
    for field in fields {
        let name = format!("{table}{field}");
        if !collect::<T>(values, &format!("{name}."), names) {
            names.push(name);
        }
    }
    true
}

/// The setting in `known` that is most similar to `name`, and how similar it is; 1 or more is the same or contains it.
pub fn nearest<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<(&'a str, f64)> {
    let flat = |name: &str| name.replace("__", "_").replace('.', "_");
    let name = flat(name);
    let rated = known.into_iter().map(|setting| {
        let words = flat(setting);
        let table = setting.split_once('.').map(|(table, _)| table);
        let shares_words = format!("_{name}_").contains(&format!("_{words}_"))
            || table.is_some_and(|table| name.starts_with(&format!("{table}_")));
        let shared = if shares_words { SHARED_WORDS } else { 0.0 };
        (
            setting,
            strsim::normalized_damerau_levenshtein(&name, &words) + shared,
        )
    });
    rated.max_by(|one, other| one.1.total_cmp(&other.1))
}

/// The setting in `known` that `name` is a near miss of.
pub fn near_miss<'a>(name: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    nearest(name, known)
        .filter(|(_, similarity)| *similarity > NEAR)
        .map(|(setting, _)| setting)
}

/// Environment variables that have the prefix of settings and are not settings.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Unknown {
    /// Their names in lower case, without the prefix.
    pub names: Vec<String>,
    /// A message for each.
    pub warnings: Vec<String>,
}

/// Finds the variables that are not settings among `variables`.
///
/// # Errors
/// When one was probably meant to be a setting that guards something.
pub fn unknown(variables: impl IntoIterator<Item = String>) -> anyhow::Result<Unknown> {
    let mut unknown = Unknown::default();
    let mut known = Vec::new();
    for variable_name in variables {
        let prefix = variable_name.get(..PREFIX.len());
        if !prefix.is_some_and(|prefix| prefix.eq_ignore_ascii_case(PREFIX)) {
            continue;
        }
        let name = variable_name
            .get(PREFIX.len()..)
            .unwrap_or_default()
            .to_ascii_lowercase();
        if known.is_empty() {
            known = all();
        }
        let mut parts = name.split("__");
        let first = parts.next().unwrap_or_default();
        // What is in a table is refused when the table is read.
        let is_setting = known
            .iter()
            .any(|setting| setting.split('.').next() == Some(first));
        let is_whole = parts.all(|part| !part.is_empty());
        if !is_for_settings(&name) || is_setting && is_whole {
            continue;
        }
        let flag = FLAGS.iter().find(|(flag, _)| *flag == name);
        let nearest = match flag {
            Some((_, setting)) => Some((*setting, 1.0)),
            None => nearest(&name, known.iter().map(String::as_str)),
        };
        let Some((setting, similarity)) = nearest else {
            continue;
        };
        let meant = variable(setting);
        anyhow::ensure!(
            similarity <= NEAR || HARMLESS.contains(&setting),
            "{variable_name} is not a setting, and the program does not start without what was probably meant: \
             rename it to {meant}, or remove it"
        );
        unknown.warnings.push(format!(
            "{variable_name} is not a setting and is ignored; the nearest setting is {meant}"
        ));
        unknown.names.push(name);
    }
    Ok(unknown)
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::*;

    #[test]
    fn tables_are_part_of_the_names() {
        expect![[r#"
            data_dir
            listen
            metrics_listen
            modules
            kubeconfig
            in_cluster
            etcd.endpoints
            etcd.prefix
            etcd.ca
            etcd.cert
            etcd.key
            etcd.user
            etcd.password_file
            etcd.password
            etcd.timeout_seconds
            sharding.shards
            sharding.name
            sharding.namespace
            sharding.host
            sharding.lease_seconds
            namespaces
            selector
            vault.address
            vault.addresses
            vault.namespace
            vault.mount
            vault.prefix
            vault.ca
            vault.timeout_seconds
            vault.auth
            secret_key_file
            secret_key
            registries.ca
            registries.plain_http
            registries.inner_hosts
            module_copies
            record
            policy
            http_inner_hosts
            http_servers
            http_idle_connections
            http_idle_seconds
            max_retry_after_seconds
            max_status_size
            max_pending_commands
            command_ttl_seconds
            state_retention_seconds
            log_format
            log
            otlp_endpoint
            parallel_calls
            parallel_long_calls
            background_work
            guest_memory
            answer_memory
            parallel_compilations
            compile_memory
            compile_seconds
            max_module_size
            max_code_size
            max_function_size
            max_functions
            module_cache
            grace_seconds"#]]
        .assert_eq(&all().join("\n"));
    }

    #[expect(clippy::needless_pass_by_value, reason = "as expectations are given")]
    fn check(variables: &[&str], expected: Expect) {
        let mut told = String::new();
        for name in variables {
            told += &match unknown([(*name).to_owned()]) {
                Ok(unknown) if unknown == Unknown::default() => format!("{name}: read\n"),
                Ok(unknown) => format!("warning: {}\n", unknown.warnings.join("; ")),
                Err(error) => format!("error: {error}\n"),
            };
        }
        expected.assert_eq(&told);
    }

    #[test]
    fn settings_and_variables_of_others_are_left_alone() {
        check(
            &[
                "CONFIGURATOR_LISTEN",
                "configurator_listen",
                "CONFIGURATOR_ETCD__CA",
                "CONFIGURATOR_VAULT__AUTH__METHOD",
                "CONFIGURATOR_ETCD__NO_SUCH_THING",
                "CONFIGURATOR_CONFIG",
                "CONFIGURATOR_SERVICE_HOST",
                "CONFIGURATOR_PORT_80_TCP",
                "CONFIG",
                "ÄÄÄÄÄÄÄÄÄÄÄÄ",
            ],
            expect![[r#"
                CONFIGURATOR_LISTEN: read
                configurator_listen: read
                CONFIGURATOR_ETCD__CA: read
                CONFIGURATOR_VAULT__AUTH__METHOD: read
                CONFIGURATOR_ETCD__NO_SUCH_THING: read
                CONFIGURATOR_CONFIG: read
                CONFIGURATOR_SERVICE_HOST: read
                CONFIGURATOR_PORT_80_TCP: read
                CONFIG: read
                ÄÄÄÄÄÄÄÄÄÄÄÄ: read
            "#]],
        );
    }

    #[test]
    fn a_near_miss_of_what_guards_something_is_an_error() {
        check(
            &[
                "CONFIGURATOR_LISSEN",
                "CONFIGURATOR_LISTEN_ADDRESS",
                "CONFIGURATOR_LISTEN__",
                "CONFIGURATOR_POLICIES",
                "CONFIGURATOR_POLICY_FILE",
                "CONFIGURATOR_POLCIY",
                "CONFIGURATOR_ETCD_CA",
                "CONFIGURATOR_ETCD_ENDPOINT",
                "CONFIGURATOR_ETCD_SOMETHING",
                "CONFIGURATOR_VAULT_ADDR",
                "CONFIGURATOR_REGISTRY__CA",
                "CONFIGURATOR_REGISTRIES_PLAIN_HTTP",
                "CONFIGURATOR_HTTP_INNER_HOST",
                "CONFIGURATOR_SHARDS",
                "CONFIGURATOR_SHARDING_SHARDS",
                "CONFIGURATOR_DATADIR",
                "CONFIGURATOR_INCLUSTER",
                "CONFIGURATOR_NAMESPACE",
                "CONFIGURATOR_SELECTORS",
            ],
            expect![[r#"
                error: CONFIGURATOR_LISSEN is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_LISTEN, or remove it
                error: CONFIGURATOR_LISTEN_ADDRESS is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_LISTEN, or remove it
                error: CONFIGURATOR_LISTEN__ is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_LISTEN, or remove it
                error: CONFIGURATOR_POLICIES is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_POLICY, or remove it
                error: CONFIGURATOR_POLICY_FILE is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_POLICY, or remove it
                error: CONFIGURATOR_POLCIY is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_POLICY, or remove it
                error: CONFIGURATOR_ETCD_CA is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_ETCD__CA, or remove it
                error: CONFIGURATOR_ETCD_ENDPOINT is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_ETCD__ENDPOINTS, or remove it
                error: CONFIGURATOR_ETCD_SOMETHING is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_ETCD__PREFIX, or remove it
                error: CONFIGURATOR_VAULT_ADDR is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_VAULT__ADDRESS, or remove it
                error: CONFIGURATOR_REGISTRY__CA is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_REGISTRIES__CA, or remove it
                error: CONFIGURATOR_REGISTRIES_PLAIN_HTTP is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_REGISTRIES__PLAIN_HTTP, or remove it
                error: CONFIGURATOR_HTTP_INNER_HOST is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_HTTP_INNER_HOSTS, or remove it
                error: CONFIGURATOR_SHARDS is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_SHARDING__SHARDS, or remove it
                error: CONFIGURATOR_SHARDING_SHARDS is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_SHARDING__SHARDS, or remove it
                error: CONFIGURATOR_DATADIR is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_DATA_DIR, or remove it
                error: CONFIGURATOR_INCLUSTER is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_IN_CLUSTER, or remove it
                error: CONFIGURATOR_NAMESPACE is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_NAMESPACES, or remove it
                error: CONFIGURATOR_SELECTORS is not a setting, and the program does not start without what was probably meant: rename it to CONFIGURATOR_SELECTOR, or remove it
            "#]],
        );
    }

    #[test]
    fn any_other_variable_is_ignored_with_a_warning() {
        check(
            &[
                "CONFIGURATOR_",
                "CONFIGURATOR_IMAGE",
                "CONFIGURATOR_VERSION",
                "CONFIGURATOR_HOME",
                "CONFIGURATOR_LOG_LEVEL",
                "CONFIGURATOR_MODULE",
                "CONFIGURATOR_GRACE",
            ],
            expect![[r#"
                warning: CONFIGURATOR_ is not a setting and is ignored; the nearest setting is CONFIGURATOR_GRACE_SECONDS
                warning: CONFIGURATOR_IMAGE is not a setting and is ignored; the nearest setting is CONFIGURATOR_NAMESPACES
                warning: CONFIGURATOR_VERSION is not a setting and is ignored; the nearest setting is CONFIGURATOR_METRICS_LISTEN
                warning: CONFIGURATOR_HOME is not a setting and is ignored; the nearest setting is CONFIGURATOR_MODULES
                warning: CONFIGURATOR_LOG_LEVEL is not a setting and is ignored; the nearest setting is CONFIGURATOR_LOG
                warning: CONFIGURATOR_MODULE is not a setting and is ignored; the nearest setting is CONFIGURATOR_MODULES
                warning: CONFIGURATOR_GRACE is not a setting and is ignored; the nearest setting is CONFIGURATOR_GRACE_SECONDS
            "#]],
        );
    }

    #[test]
    fn harmless_settings_exist() {
        let known = all();
        for name in HARMLESS {
            assert!(known.iter().any(|setting| setting == name), "{name}");
        }
    }
}
