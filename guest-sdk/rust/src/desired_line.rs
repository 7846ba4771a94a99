//! A set in lines, for golden tests and logs.

use std::fmt::{self, Display, Formatter};

use crate::bindings::configurator::handler::desired::{
    ConfigKey, ConfigResourceKey, Content, Orders, Termination,
};
use crate::bindings::configurator::handler::requests::ConfigType;
use crate::request_line::ready_when;
use crate::{
    DesiredEntry, DesiredSet, OnConflict, OnDelete, OnExisting, OnImmutable, TerminationPolicy,
};

/// A line for each entry, one for the options of the set if it has any, and one for each request before a deletion. Not a stable format.
impl Display for DesiredSet {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        for entry in &self.entries {
            writeln!(f, "desired {entry}")?;
        }
        let mut options = Vec::new();
        if self.allow_empty {
            options.push("allow-empty".to_owned());
        }
        match &self.termination_policy {
            Some(Termination::Policy(policy)) => {
                options.push(format!("termination-policy {}", policy_name(*policy)));
            }
            Some(Termination::Path(path)) => options.push(format!("termination-policy at {path}")),
            None => {}
        }
        if let Some(Orders {
            provision,
            update,
            terminate,
        }) = &self.orders
        {
            let orders = [
                ("provision", provision),
                ("update", update),
                ("terminate", terminate),
            ];
            let orders = orders.into_iter().filter(|(_, groups)| !groups.is_empty());
            options.extend(orders.map(|(name, groups)| {
                let groups: Vec<String> = groups.iter().map(|group| group.join(" ")).collect();
                format!("{name} {}", groups.join(" | "))
            }));
        }
        if !options.is_empty() {
            writeln!(f, "desired set: {}", options.join(", "))?;
        }
        for request in &self.pre_terminate {
            writeln!(f, "pre-terminate {request}")?;
        }
        Ok(())
    }
}

/// Name, content, and the options that differ from the defaults. Not a stable format.
impl Display for DesiredEntry {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, ContentLine(&self.content))?;
        for name in &self.depends_on {
            write!(f, ", depends-on {name}")?;
        }
        ready_when(f, self.ready_when.as_ref())?;
        if let Some(expression) = &self.failed_when {
            write!(f, ", failed-when {expression}")?;
        }
        if let Some(timeout) = self.timeout {
            write!(f, ", timeout {timeout} ms")?;
        }
        match self.on_existing {
            Some(OnExisting::Refuse) => f.write_str(", on-existing refuse")?,
            Some(OnExisting::Adopt) => f.write_str(", on-existing adopt")?,
            Some(OnExisting::CreateOnly) => f.write_str(", on-existing create-only")?,
            None => {}
        }
        match self.on_conflict {
            Some(OnConflict::Fail) => f.write_str(", on-conflict fail")?,
            Some(OnConflict::Force) => f.write_str(", on-conflict force")?,
            None => {}
        }
        match self.on_immutable {
            Some(OnImmutable::Fail) => f.write_str(", on-immutable fail")?,
            Some(OnImmutable::Recreate) => f.write_str(", on-immutable recreate")?,
            None => {}
        }
        for path in &self.ignored_paths {
            write!(f, ", ignores {path}")?;
        }
        match self.on_delete {
            Some(OnDelete::WithOwner) => f.write_str(", on-delete with-owner"),
            Some(OnDelete::Retain) => f.write_str(", on-delete retain"),
            Some(OnDelete::OnlyUnderWipeOut) => f.write_str(", on-delete only-under-wipe-out"),
            None => Ok(()),
        }
    }
}

struct ContentLine<'a>(&'a Content);

impl Display for ContentLine<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let partition = match self.0 {
            Content::Kubernetes(object) => return write!(f, "kubernetes {object}"),
            Content::Config(config) => {
                f.write_str("config ")?;
                key(f, &config.key)?;
                write!(f, " = {}", config.value)?;
                &config.partition
            }
            Content::Secret(secret) => {
                write!(f, "secret {}", secret.secret_name)?;
                if secret.value.is_some() {
                    f.write_str(" = (a value)")?;
                }
                &secret.partition
            }
        };
        match partition {
            Some(namespace) => write!(f, ", partition {namespace}"),
            None => Ok(()),
        }
    }
}

fn key(f: &mut Formatter<'_>, key: &ConfigKey) -> fmt::Result {
    match key {
        ConfigKey::Resource(key) => resource(f, key),
        ConfigKey::AppConf(key) => {
            f.write_str("app-conf ")?;
            if let Some(namespace) = &key.namespace {
                write!(f, "{namespace}/")?;
            }
            write!(f, "{} {}", key.pod_name, key.key)
        }
        ConfigKey::Basic(key) => write!(f, "basic {key}"),
        ConfigKey::TwoLayers(key) => {
            write!(f, "two-layers {} {}", key.second_path, key.third_path)
        }
    }
}

fn resource(f: &mut Formatter<'_>, key: &ConfigResourceKey) -> fmt::Result {
    f.write_str(match key.config_type {
        ConfigType::Pod => "pod ",
        ConfigType::Node => "node ",
        ConfigType::Namespace => "namespace ",
        ConfigType::Workload => "workload ",
    })?;
    for part in [&key.namespace, &key.workload_kind].into_iter().flatten() {
        write!(f, "{part}/")?;
    }
    f.write_str(&key.resource_name)?;
    match &key.resource_uid {
        Some(uid) => write!(f, " ({uid})"),
        None => Ok(()),
    }
}

const fn policy_name(policy: TerminationPolicy) -> &'static str {
    match policy {
        TerminationPolicy::DoNotTerminate => "do-not-terminate",
        TerminationPolicy::KeepVolumes => "keep-volumes",
        TerminationPolicy::Delete => "delete",
        TerminationPolicy::WipeOut => "wipe-out",
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use expect_test::expect;
    use serde_json::json;

    use super::*;
    use crate::configstore::{AppConf, Basic, Entry, TwoLayers};
    use crate::secretstore::Secret;
    use crate::{Output, Readiness, Request};

    #[test]
    fn a_set_has_a_line_for_each_entry() {
        let object = || json!({"kind": "ConfigMap", "metadata": {"name": "a"}});
        let full = DesiredEntry::new("b", object())
            .depends_on("a")
            .depends_on("c")
            .ready_when(Readiness::Expression("object.data.ready".to_owned()))
            .failed_when("object.data.failed")
            .timeout(Duration::from_secs(2))
            .on_existing(OnExisting::CreateOnly)
            .on_conflict(OnConflict::Force)
            .on_immutable(OnImmutable::Recreate)
            .ignore_path(".spec.replicas")
            .on_delete(OnDelete::OnlyUnderWipeOut);
        let workload = Entry::workload("shop", "Deployment", "web").uid("u");
        let set = DesiredSet::new()
            .entry(DesiredEntry::new("a", object()))
            .entry(full)
            .entry(DesiredEntry::new("c", workload.content("1")))
            .entry(DesiredEntry::new(
                "d",
                AppConf::new("web", "tier").content("gold"),
            ))
            .entry(DesiredEntry::new(
                "e",
                Basic::new("k").content("v").partition("p"),
            ))
            .entry(DesiredEntry::new(
                "f",
                TwoLayers::new("a", "b").content("2"),
            ))
            .entry(DesiredEntry::new("g", Secret::new("db").content()))
            .entry(DesiredEntry::new(
                "h",
                Secret::new("api").content_with(json!("word")),
            ))
            .allow_empty()
            .termination_policy(TerminationPolicy::KeepVolumes)
            .provision(&[&["a"], &["b", "c"]])
            .terminate(&[&["b"], &["a"]])
            .pre_terminate(Request::new("drain", Basic::new("k").delete()));
        let output = Output::new()
            .desired(set)
            .remove_from_plan("old")
            .read(Request::new("class", Basic::new("class").get()));
        expect![[r#"
            read class: config get basic class
            desired a: kubernetes {"kind":"ConfigMap","metadata":{"name":"a"}}
            desired b: kubernetes {"kind":"ConfigMap","metadata":{"name":"a"}}, depends-on a, depends-on c, ready-when object.data.ready, failed-when object.data.failed, timeout 2000 ms, on-existing create-only, on-conflict force, on-immutable recreate, ignores .spec.replicas, on-delete only-under-wipe-out
            desired c: config workload shop/Deployment/web (u) = 1
            desired d: config app-conf web tier = gold
            desired e: config basic k = v, partition p
            desired f: config two-layers a b = 2
            desired g: secret db
            desired h: secret api = (a value)
            desired set: allow-empty, termination-policy keep-volumes, provision a | b c, terminate b | a
            pre-terminate drain: config delete basic k
            remove-from-plan old
        "#]].assert_eq(&output.to_string());
    }
}
