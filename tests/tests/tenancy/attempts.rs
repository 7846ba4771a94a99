//! Attempts of team-b to reach what belongs to team-a or to the cluster. Each attempt is a test on the embedded API. `on_real_servers` makes all of
//! them on a real control plane, with the same outcomes.
//!
//! The policy of both teams allows all capabilities, and the ServiceAccount of team-b has all rights in its namespace. So only the boundary
//! between the teams refuses an attempt.

use std::sync::OnceLock;

use anyhow::{Context as _, Result};
use configurator_core::request::ObjectRef;
use configurator_host::resource::get;
use configurator_tests::configurator;
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::world::{Place, World};
use expect_test::{Expect, expect};
use futures::FutureExt as _;
use futures::future::BoxFuture;
use futures::stream::{self, StreamExt as _, TryStreamExt as _};
use serde_json::{Value, json};

use super::scopes::{TEAMS, place, with_teams};

/// A Configurator of team-b, and the only object that it handles.
struct Attempt {
    configurator: Value,
    object: Value,
}

impl Attempt {
    /// Makes these requests.
    fn requesting(name: &str, requests: Value) -> Self {
        let labels = json!({"attempt": name});
        let watch = json!({"apiVersion": "v1", "kind": "ConfigMap", "labelSelector": {"matchLabels": labels}});
        let rules = everything(None);
        let script = json!({"requests": requests});
        let mut configurator = configurator::scripted(name, watch, script, rules);
        configurator["spec"]["retry"] = json!({"maxAttempts": 1});
        place(&mut configurator, Some("team-b"));
        let object = json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"name": name, "namespace": "team-b", "labels": labels},
        });
        Self {
            configurator,
            object,
        }
    }

    /// Makes this request to Kubernetes.
    fn asking(name: &str, asked: Value) -> Self {
        Self::requesting(name, json!([{"name": "ask", "ask": asked}]))
    }

    /// Changes the spec of the Configurator.
    fn declaring(name: &str, change: impl FnOnce(&mut Value)) -> Self {
        let mut attempt = Self::requesting(name, json!([]));
        change(&mut attempt.configurator["spec"]);
        attempt
    }

    /// The same attempt of team-a.
    fn exchanged(&self) -> Result<Self> {
        let of = |value: &Value| serde_json::from_str(&exchanged(&value.to_string()));
        Ok(Self {
            configurator: of(&self.configurator)?,
            object: of(&self.object)?,
        })
    }

    /// Returns why the Configurator does not run, or why its object failed, or that neither is the case.
    async fn outcome(&self, world: &World) -> Result<String> {
        world.apply(&self.configurator).await?;
        world.apply(&self.object).await?;
        let text = |pointer: &str| {
            let found = self.configurator.pointer(pointer).and_then(Value::as_str);
            found.unwrap_or_default().to_owned()
        };
        let key = ObjectRef {
            namespace: text("/metadata/namespace"),
            name: text("/metadata/name"),
        };
        let outcome = || async {
            let status = get(&world.client, &key).await?.context("it")?.status;
            let status = status.unwrap_or_default();
            let stalled = status.conditions.iter().find(|it| it.type_ == "Stalled");
            // The host may not have seen the policy yet.
            let waits = |message: &str| message.starts_with("no ConfiguratorPolicy selects");
            let stalled = stalled.filter(|it| it.status == "True" && !waits(&it.message));
            if let Some(stalled) = stalled {
                return Ok::<_, anyhow::Error>(Some(format!("Stalled: {}", stalled.message)));
            }
            if let Some(failure) = status.failures.first() {
                return Ok(Some(format!("{}: {}", failure.kind, failure.message)));
            }
            let is_done = status.counts.is_some_and(|counts| counts.objects == 1)
                && world.report().is_settled();
            Ok(is_done.then(|| "done".to_owned()))
        };
        // The next look may find the host at work again.
        let found = OnceLock::new();
        world
            .until(&format!("{key} comes to something"), || async {
                let outcome = outcome().await?;
                Ok(outcome.is_some_and(|outcome| found.set(outcome).is_ok()))
            })
            .await?;
        found.into_inner().context("an outcome")
    }
}

/// Rules of a policy that allow everything in these namespaces, or rules of a Configurator that allow everything that its rules can.
fn everything(namespaces: Option<&str>) -> Value {
    let mut verbs = vec![
        "get", "list", "patch", "delete", "create", "replace", "apply",
    ];
    if namespaces.is_some() {
        verbs.push("watch");
    }
    let protected = [
        "configurator.dev",
        "rbac.authorization.k8s.io",
        "admissionregistration.k8s.io",
        "apiextensions.k8s.io",
        "certificates.k8s.io",
    ];
    let of = |groups: &[&str], resources: &[&str], subresources: &[&str]| {
        let mut rule = json!({"apiGroups": groups, "resources": resources, "subresources": subresources, "verbs": verbs});
        if let Some(namespaces) = namespaces {
            rule["namespaces"] = json!([namespaces]);
        }
        rule
    };
    json!({
        "kubernetes": [
            of(&["*"], &["*"], &[]),
            of(&["*"], &["*"], &["*"]),
            of(&protected, &["*"], &[]),
            of(&[""], &["serviceaccounts", "pods"], &["token", "exec"]),
        ],
        "configstore": [{"prefixes": [""], "verbs": ["get", "create", "update", "delete"]}],
        "secretstore": [{"names": ["*"], "verbs": ["get", "create", "delete"]}],
        "http": [{"hosts": ["*"], "methods": ["GET"]}],
    })
}

/// Starts a host for two teams. Each has a ConfigMap and a Secret.
async fn teams(servers: configurator_tests::world::Servers) -> Result<World> {
    let world = with_teams(servers).await?;
    let policy = json!({
        "apiVersion": "configurator.dev/v1alpha1", "kind": "ConfiguratorPolicy",
        "metadata": {"name": "teams"},
        "spec": {"namespaceSelector": {"matchLabels": {"tenant": "yes"}}, "capabilities": everything(Some("*"))},
    });
    world.apply(&policy).await?;
    for team in TEAMS {
        let all = json!([{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]);
        super::grant(&world, team, "everything", "default", all).await?;
        let metadata = json!({"name": "private", "namespace": team});
        for (kind, field) in [("ConfigMap", "data"), ("Secret", "stringData")] {
            world
                .apply(&json!({"apiVersion": "v1", "kind": kind, "metadata": metadata, field: {"a": "1"}}))
                .await?;
        }
    }
    Ok(world)
}

/// The same with the teams exchanged.
fn exchanged(text: &str) -> String {
    let [a, b] = TEAMS;
    text.replace(a, "\0").replace(b, a).replace('\0', b)
}

/// The most attempts at one time on real servers.
const SIDE_BY_SIDE: usize = 16;

macro_rules! attempts {
    ($($(#[$doc:meta])* $name:ident: $attempt:expr => $expected:expr;)*) => {
        $(
            $(#[$doc])*
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() -> Result<()> {
                let world = teams(Place::default().open().await?).await?;
                check(&world, stringify!($name), $attempt, $expected).await?;
                world.stop().await
            }
        )*

        #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
        async fn on_real_servers() -> Result<()> {
            let plane = ControlPlane::start(&Default::default()).await?;
            let world = teams(plane.about().servers().await?).await?;
            let attempts: [BoxFuture<'_, Result<()>>; _] = [
                $(check(&world, stringify!($name), $attempt, $expected).boxed(),)*
                $(check_exchanged(&world, stringify!($name), $attempt, $expected).boxed(),)*
            ];
            // All at once would take a loaded machine longer than one may wait.
            let done = stream::iter(attempts).buffer_unordered(SIDE_BY_SIDE);
            done.try_collect::<()>().await?;
            world.stop().await
        }
    };
}

async fn check(
    world: &World,
    name: &str,
    attempt: impl FnOnce(&str) -> Attempt,
    expected: Expect,
) -> Result<()> {
    let attempt = attempt(&name.replace('_', "-"));
    expected.assert_eq(&attempt.outcome(world).await?);
    Ok(())
}

async fn check_exchanged(
    world: &World,
    name: &str,
    attempt: impl FnOnce(&str) -> Attempt,
    expected: Expect,
) -> Result<()> {
    let attempt = attempt(&name.replace('_', "-")).exchanged()?;
    expected.assert_eq(&exchanged(&attempt.outcome(world).await?));
    Ok(())
}

fn config_map(verb: &str, namespace: &str, name: &str) -> Value {
    json!({"verb": verb, "plural": "configmaps", "kind": "ConfigMap", "namespace": namespace, "name": name})
}

fn with_body(mut asked: Value, body: Value) -> Value {
    asked["body"] = body;
    asked
}

/// A kind of a group, by its plural.
fn kind(verb: &str, group: &str, version: &str, plural: &str, kind: &str) -> Value {
    json!({"verb": verb, "group": group, "version": version, "plural": plural, "kind": kind})
}

fn at(mut asked: Value, namespace: &str, name: &str) -> Value {
    asked["namespace"] = namespace.into();
    asked["name"] = name.into();
    asked
}

attempts! {
    // To read.
    read_an_object: |name| Attempt::asking(name, config_map("get", "team-a", "private")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-a], names: [private], verbs: [get]}"#]];
    read_a_secret: |name| Attempt::asking(name, at(kind("get", "", "v1", "secrets", "Secret"), "team-a", "private")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [secrets], namespaces: [team-a], names: [private], verbs: [get]}"#]];
    list_objects_of_the_team: |name| Attempt::asking(name, config_map("list", "team-a", "")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-a], verbs: [list]}"#]];
    list_objects_everywhere: |name| Attempt::asking(name, config_map("list", "", "")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: ["*"], verbs: [list]}"#]];
    leave_the_namespace_by_a_name: |name| Attempt::asking(name, config_map("get", "team-b", "../../team-a/configmaps/private")) => expect![[r#"ResourceGeneric: the output is invalid: request "ask": `name` cannot be part of a path: "../../team-a/configmaps/private""#]];
    leave_the_namespace_by_its_name: |name| Attempt::asking(name, config_map("get", "team-b/../team-a", "private")) => expect![[r#"ResourceGeneric: the output is invalid: request "ask": `namespace` cannot be part of a path: "team-b/../team-a""#]];
    read_a_cluster_scoped_object: |name| Attempt::asking(name, at(kind("get", "", "v1", "namespaces", "Namespace"), "", "team-a")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [namespaces], namespaces: ["*"], names: [team-a], verbs: [get]}"#]];
    // Keys and names are parts of a path below the partition.
    leave_the_partition_by_a_key: |name| Attempt::requesting(name, json!([{"name": "put", "put": {"key": "../team-a/x", "value": "1"}}])) => expect!["done"];
    leave_the_partition_by_a_secret: |name| Attempt::requesting(name, json!([{"name": "read", "readSecret": "../../team-a/x"}])) => expect![[r#"RetryExceedLimit: still failing after 1 attempt: ResourceNotFound: the secret store has no "../../team-a/x""#]];
    name_the_partition: |name| Attempt::requesting(name, json!([{"name": "read", "partition": "team-a", "readSecret": "private"}])) => expect!["ResourcePermission: spec.capabilities has no rule that allows secretstore: {namespaces: [team-a], names: [private], verbs: [get]}"];
    grant_itself_the_partition: |name| Attempt::declaring(name, |spec| {
        spec["capabilities"]["secretstore"][0]["namespaces"] = json!(["team-a"]);
    }) => expect![[r#"Stalled: spec.capabilities.secretstore[0].namespaces: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];
    take_parameters: |name| Attempt::declaring(name, |spec| {
        spec["parametersFrom"] = json!([{"secret": {"namespace": "team-a", "name": "private"}}]);
    }) => expect![[r#"Stalled: spec.parametersFrom[0]: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];
    take_a_module: |name| Attempt::declaring(name, |spec| {
        let map = json!({"namespace": "team-a", "name": "private"});
        spec["module"] = json!({"configMap": map, "digest": format!("sha256:{:064}", 0)});
    }) => expect![[r#"Stalled: spec.module.configMap.namespace: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];
    use_a_pull_secret: |name| Attempt::declaring(name, |spec| {
        let secret = json!({"namespace": "team-a", "name": "private"});
        spec["module"] = json!({"oci": {"reference": "localhost:1/m:1", "pullSecret": secret}});
    }) => expect![[r#"Stalled: spec.module.oci.pullSecret.namespace: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];

    // To watch.
    watch_the_team: |name| Attempt::declaring(name, |spec| spec["watch"]["namespaces"] = json!(["team-a"])) => expect![[r#"Stalled: spec.watch.namespaces: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];
    watch_everything: |name| Attempt::declaring(name, |spec| spec["watch"]["namespaces"] = json!(["*"])) => expect![[r#"Stalled: spec.watch.namespaces: a Configurator reaches only its namespace, team-b, not "*": leave it out, or use a ClusterConfigurator"#]];
    watch_by_labels: |name| Attempt::declaring(name, |spec| {
        spec["watch"]["namespaceSelector"] = json!({"matchLabels": {"tenant": "yes"}});
    }) => expect!["Stalled: spec.watch.namespaceSelector: a Configurator watches only its namespace, team-b: leave it out, or use a ClusterConfigurator"];
    watch_a_cluster_scoped_kind: |name| Attempt::declaring(name, |spec| spec["watch"] = json!({"apiVersion": "v1", "kind": "Namespace"})) => expect!["Stalled: spec.watch: objects of the kind Namespace have no namespace, and a Configurator watches only its namespace: use a ClusterConfigurator"];
    grant_itself_the_namespace: |name| Attempt::declaring(name, |spec| {
        spec["capabilities"]["kubernetes"][0]["namespaces"] = json!(["team-a"]);
    }) => expect![[r#"Stalled: spec.capabilities.kubernetes[0].namespaces: a Configurator reaches only its namespace, team-b, not "team-a": leave it out, or use a ClusterConfigurator"#]];

    // To write.
    write_an_object: |name| Attempt::asking(name, with_body(config_map("apply", "team-a", "private"), json!({"data": {"a": "2"}}))) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-a], names: [private], verbs: [apply]}"#]];
    create_an_object_of_another_namespace_in_its_body: |name| {
        let body = json!({"metadata": {"namespace": "team-a", "name": "new"}});
        Attempt::asking(name, with_body(config_map("create", "team-b", "new"), body))
    } => expect![[r#"ResourceGeneric: the output is invalid: request "ask": the body has "team-a" as `namespace`, and the request "team-b""#]];
    delete_an_object: |name| Attempt::asking(name, config_map("delete", "team-a", "private")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [configmaps], namespaces: [team-a], names: [private], verbs: [delete]}"#]];
    change_labels_of_its_namespace: |name| {
        let labels = json!({"metadata": {"labels": {"tenant": "special"}}});
        Attempt::asking(name, with_body(at(kind("patch", "", "v1", "namespaces", "Namespace"), "", "team-b"), labels))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [namespaces], namespaces: ["*"], names: [team-b], verbs: [patch]}"#]];
    create_a_configurator_of_the_team: |name| {
        let asked = at(kind("apply", "configurator.dev", "v1alpha1", "configurators", "Configurator"), "team-a", "new");
        Attempt::asking(name, with_body(asked, json!({"spec": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["configurator.dev"], resources: [configurators], namespaces: [team-a], names: [new], verbs: [apply]}"#]];
    create_a_cluster_configurator: |name| {
        let asked = at(kind("apply", "configurator.dev", "v1alpha1", "clusterconfigurators", "ClusterConfigurator"), "", "new");
        Attempt::asking(name, with_body(asked, json!({"spec": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["configurator.dev"], resources: [clusterconfigurators], namespaces: ["*"], names: [new], verbs: [apply]}"#]];
    change_the_policy: |name| {
        let asked = at(kind("patch", "configurator.dev", "v1alpha1", "configuratorpolicies", "ConfiguratorPolicy"), "", "teams");
        Attempt::asking(name, with_body(asked, json!({"spec": {"capabilities": {}}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["configurator.dev"], resources: [configuratorpolicies], namespaces: ["*"], names: [teams], verbs: [patch]}"#]];
    bind_a_cluster_role: |name| {
        let asked = at(kind("apply", "rbac.authorization.k8s.io", "v1", "clusterrolebindings", "ClusterRoleBinding"), "", "new");
        Attempt::asking(name, with_body(asked, json!({"roleRef": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["rbac.authorization.k8s.io"], resources: [clusterrolebindings], namespaces: ["*"], names: [new], verbs: [apply]}"#]];
    change_a_definition: |name| {
        let asked = at(kind("patch", "apiextensions.k8s.io", "v1", "customresourcedefinitions", "CustomResourceDefinition"), "", "configurators.configurator.dev");
        Attempt::asking(name, with_body(asked, json!({"spec": {"scope": "Cluster"}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["apiextensions.k8s.io"], resources: [customresourcedefinitions], namespaces: ["*"], names: [configurators.configurator.dev], verbs: [patch]}"#]];
    remove_the_admission_policy: |name| {
        let asked = kind("delete", "admissionregistration.k8s.io", "v1", "validatingadmissionpolicies", "ValidatingAdmissionPolicy");
        Attempt::asking(name, at(asked, "", "commands.configurator.dev"))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["admissionregistration.k8s.io"], resources: [validatingadmissionpolicies], namespaces: ["*"], names: [commands.configurator.dev], verbs: [delete]}"#]];

    // To act as others, or to use their subresources and servers.
    act_as_a_user: |name| Attempt::declaring(name, |spec| spec["serviceAccountName"] = json!("kube:admin")) => expect![[r#"Stalled: spec.serviceAccountName: "kube:admin" is no name of a ServiceAccount: use up to 253 lower-case letters, digits, - and ."#]];
    act_as_an_account_of_the_team: |name| Attempt::declaring(name, |spec| {
        spec["serviceAccountName"] = json!("team-a:default");
    }) => expect![[r#"Stalled: spec.serviceAccountName: "team-a:default" is no name of a ServiceAccount: use up to 253 lower-case letters, digits, - and ."#]];
    make_a_token_of_the_team: |name| {
        let mut asked = at(kind("create", "", "v1", "serviceaccounts", "ServiceAccount"), "team-a", "default");
        asked["subresource"] = "token".into();
        Attempt::asking(name, with_body(asked, json!({"spec": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [serviceaccounts], subresources: [token], namespaces: [team-a], names: [default], verbs: [create]}"#]];
    run_a_command_in_a_pod_of_the_team: |name| {
        let mut asked = at(kind("create", "", "v1", "pods", "Pod"), "team-a", "web");
        asked["subresource"] = "exec".into();
        Attempt::asking(name, with_body(asked, json!({})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [pods], subresources: [exec], namespaces: [team-a], names: [web], verbs: [create]}"#]];
    read_logs_of_the_team: |name| {
        let mut asked = at(kind("get", "", "v1", "pods", "Pod"), "team-a", "web");
        asked["subresource"] = "log".into();
        Attempt::asking(name, asked)
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [pods], subresources: [log], namespaces: [team-a], names: [web], verbs: [get]}"#]];
    evict_a_pod_of_the_team: |name| {
        let mut asked = at(kind("create", "", "v1", "pods", "Pod"), "team-a", "web");
        asked["subresource"] = "eviction".into();
        Attempt::asking(name, with_body(asked, json!({})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [pods], subresources: [eviction], namespaces: [team-a], names: [web], verbs: [create]}"#]];
    scale_a_deployment_of_the_team: |name| {
        let mut asked = at(kind("patch", "apps", "v1", "deployments", "Deployment"), "team-a", "web");
        asked["subresource"] = "scale".into();
        Attempt::asking(name, with_body(asked, json!({"spec": {"replicas": 0}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["apps"], resources: [deployments], subresources: [scale], namespaces: [team-a], names: [web], verbs: [patch]}"#]];
    write_a_status_of_the_team: |name| {
        let mut asked = at(kind("patch", "apps", "v1", "deployments", "Deployment"), "team-a", "web");
        asked["subresource"] = "status".into();
        Attempt::asking(name, with_body(asked, json!({"status": {"replicas": 0}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["apps"], resources: [deployments], subresources: [status], namespaces: [team-a], names: [web], verbs: [patch]}"#]];
    ask_what_the_host_may_do: |name| {
        let asked = kind("create", "authorization.k8s.io", "v1", "subjectaccessreviews", "SubjectAccessReview");
        Attempt::asking(name, with_body(at(asked, "", "new"), json!({"spec": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["authorization.k8s.io"], resources: [subjectaccessreviews], namespaces: ["*"], names: [new], verbs: [create]}"#]];
    request_a_certificate: |name| {
        let asked = kind("create", "certificates.k8s.io", "v1", "certificatesigningrequests", "CertificateSigningRequest");
        Attempt::asking(name, with_body(at(asked, "", "new"), json!({"spec": {}})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: ["certificates.k8s.io"], resources: [certificatesigningrequests], namespaces: ["*"], names: [new], verbs: [create]}"#]];
    reach_an_inner_server: |name| Attempt::requesting(name, json!([{"name": "ask", "http": {"method": "GET", "url": "https://10.0.0.1/api"}}])) => expect!["ResourcePermission: 10.0.0.1: not permitted by the operator (setting http_inner_hosts); the log of the runtime has the reason"];
    reach_the_metadata_server: |name| {
        Attempt::requesting(name, json!([{"name": "ask", "http": {"method": "GET", "url": "http://169.254.169.254/latest/meta-data"}}]))
    } => expect!["ResourcePermission: 169.254.169.254: not permitted by the operator (setting http_inner_hosts); the log of the runtime has the reason"];

    // To outlive or count others.
    delete_the_namespace_of_the_team: |name| Attempt::asking(name, at(kind("delete", "", "v1", "namespaces", "Namespace"), "", "team-a")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [namespaces], namespaces: ["*"], names: [team-a], verbs: [delete]}"#]];
    create_a_namespace: |name| {
        let asked = at(kind("create", "", "v1", "namespaces", "Namespace"), "", "new");
        Attempt::asking(name, with_body(asked, json!({})))
    } => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [namespaces], namespaces: ["*"], names: [new], verbs: [create]}"#]];
    count_secrets_everywhere: |name| Attempt::asking(name, at(kind("list", "", "v1", "secrets", "Secret"), "", "")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [secrets], namespaces: ["*"], verbs: [list]}"#]];
    count_namespaces: |name| Attempt::asking(name, at(kind("list", "", "v1", "namespaces", "Namespace"), "", "")) => expect![[r#"ResourcePermission: spec.capabilities has no rule that allows kubernetes: {apiGroups: [""], resources: [namespaces], namespaces: ["*"], verbs: [list]}"#]];
}
