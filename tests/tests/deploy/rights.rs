//! What `configurator rbac` prints.

use std::path::Path;

use configurator_tests::program::Program;
use expect_test::{Expect, expect};
use serde_json::Value;

use crate::cluster::rbac;

/// A Configurator with these lines in its spec.
fn configurator(name: &str, lines: &str) -> String {
    format!(
        "apiVersion: configurator.dev/v1alpha1\nkind: ClusterConfigurator\nmetadata: {{name: {name}}}\nspec:\n  \
         module: {{file: a.wasm}}\n  chain: {{phases: [{{name: root}}]}}\n{lines}\n---\n"
    )
}

fn written(text: &str) -> tempfile::NamedTempFile {
    let file = tempfile::Builder::new().suffix(".yaml").tempfile().unwrap();
    std::fs::write(file.path(), text).unwrap();
    file
}

#[track_caller]
fn check_printed(text: &str, flags: &str, expected: Expect) {
    let file = written(text);
    expected.assert_eq(&rbac(&[file.path()], flags));
}

/// What is printed, with a line for each rule and each binding.
#[track_caller]
fn check(text: &str, flags: &str, expected: Expect) {
    let file = written(text);
    let printed = rbac(&[file.path()], flags);
    let mut lines: Vec<String> = printed
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let objects: Vec<Value> = serde_saphyr::from_multiple(&printed).unwrap();
    for object in &objects {
        lines.extend(in_short(object));
    }
    expected.assert_eq(&lines.join("\n"));
}

/// Every field of a role or a binding, in few lines.
fn in_short(object: &Value) -> Vec<String> {
    fn words(value: &Value) -> String {
        let words: Vec<&str> = value
            .as_array()
            .unwrap()
            .iter()
            .map(|word| word.as_str().unwrap())
            .collect();
        words.join(",")
    }
    let place = |object: &Value| match &object["namespace"] {
        Value::String(namespace) => format!("{namespace}/{}", object["name"].as_str().unwrap()),
        _ => object["name"].as_str().unwrap().to_owned(),
    };
    let head = format!(
        "{} {}",
        object["kind"].as_str().unwrap(),
        place(&object["metadata"])
    );
    if let Some(rules) = object["rules"].as_array() {
        let rule = |rule: &Value| {
            let mut line = format!("  {} {}", words(&rule["verbs"]), words(&rule["resources"]));
            let groups = words(&rule["apiGroups"]);
            if !groups.is_empty() {
                line += &format!(" of {groups}");
            }
            if rule.get("resourceNames").is_some() {
                line += &format!(" named {}", words(&rule["resourceNames"]));
            }
            line
        };
        return [head].into_iter().chain(rules.iter().map(rule)).collect();
    }
    let role = &object["roleRef"];
    let subjects = object["subjects"].as_array().unwrap().iter();
    let subjects: Vec<String> = subjects
        .map(|subject| format!("{} {}", subject["kind"].as_str().unwrap(), place(subject)))
        .collect();
    vec![format!(
        "{head}: {} {} for {}",
        role["kind"].as_str().unwrap(),
        role["name"].as_str().unwrap(),
        subjects.join(", ")
    )]
}

#[track_caller]
fn refuses(text: &str, expected: Expect) {
    let file = written(text);
    let told = Program::new("rbac")
        .arg("-f")
        .arg(file.path())
        .fails()
        .unwrap();
    let path = file.path().display().to_string();
    expected.assert_eq(&told.replace(&path, "FILE"));
}

#[test]
fn every_verb_becomes_what_the_sink_sends() {
    check(
        &configurator(
            "verbs",
            "  watch: {apiVersion: v1, kind: Namespace}
  capabilities:
    kubernetes:
      - {apiGroups: [''], resources: [configmaps], namespaces: ['*'], verbs: [get, list]}
      - {apiGroups: [''], resources: [secrets], namespaces: ['*'], names: [one, two], verbs: [get, list, create, patch, replace, delete]}
      - {apiGroups: [apps], resources: [deployments], namespaces: ['*'], names: [web], verbs: [apply]}
      - {apiGroups: [apps], resources: [deployments], subresources: [scale, status], namespaces: ['*'], verbs: [get, apply]}
      - {apiGroups: [batch], resources: [jobs], namespaces: ['*'], verbs: [create]}",
        ),
        "",
        expect![[r#"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            #
            # verbs, spec.capabilities.kubernetes[1]: RBAC knows no name of what is created; the host creates no others
            # than one, two.
            ClusterRole configurator
              get,list configmaps
              get,list,watch namespaces
              patch namespaces/status
              create secrets
              delete,get,patch,update secrets named one,two
              get customresourcedefinitions of apiextensions.k8s.io named clusterconfigurators.configurator.dev,clusterflows.configurator.dev,commands.configurator.dev,configuratorpolicies.configurator.dev,configurators.configurator.dev,flows.configurator.dev,objectsets.configurator.dev
              create,patch deployments of apps named web
              get,patch deployments/scale,deployments/status of apps
              create jobs of batch
              list,watch clusterconfigurators,clusterflows,configuratorpolicies,configurators,flows of configurator.dev
              patch clusterconfigurators/status of configurator.dev named verbs
              create,patch events of events.k8s.io
              list,watch clusterrolebindings,clusterroles,rolebindings,roles of rbac.authorization.k8s.io
            ClusterRoleBinding configurator: ClusterRole configurator for ServiceAccount configurator/configurator
            Role configurator/configurator
              create,delete,get,list,patch,watch leases of coordination.k8s.io
            RoleBinding configurator/configurator: Role configurator for ServiceAccount configurator/configurator"#]],
    );
}

#[test]
fn what_has_a_namespace_is_granted_there() {
    let team = configurator(
        "team",
        "  watch: {apiVersion: apps/v1, kind: Deployment, namespaces: [shop, bank]}
  capabilities:
    kubernetes:
      - {apiGroups: [''], resources: [configmaps], namespaces: [shop], names: [web], verbs: [get, apply]}
      - {apiGroups: [''], resources: [services], namespaces: ['team-*'], names: ['*-web'], verbs: [delete]}",
    );
    check_printed(
        &team,
        "--name team --namespace hosts --no-statuses",
        expect![[r##"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            #
            # team, spec.capabilities.kubernetes[1]: RBAC knows no pattern of names, so this holds for all of them; the
            # host goes no further than *-web.
            #
            # team, spec.capabilities.kubernetes[1]: RBAC knows no pattern of namespaces, so this holds in all of them;
            # the host goes no further than team-*.
            apiVersion: rbac.authorization.k8s.io/v1
            kind: ClusterRole
            metadata:
              name: team
            rules:
            - apiGroups:
              - ""
              resources:
              - namespaces
              verbs:
              - get
              - list
              - watch
            - apiGroups:
              - ""
              resources:
              - services
              verbs:
              - delete
            - apiGroups:
              - apiextensions.k8s.io
              resources:
              - customresourcedefinitions
              resourceNames:
              - clusterconfigurators.configurator.dev
              - clusterflows.configurator.dev
              - commands.configurator.dev
              - configuratorpolicies.configurator.dev
              - configurators.configurator.dev
              - flows.configurator.dev
              - objectsets.configurator.dev
              verbs:
              - get
            - apiGroups:
              - configurator.dev
              resources:
              - clusterconfigurators
              - clusterflows
              - configuratorpolicies
              - configurators
              - flows
              verbs:
              - list
              - watch
            - apiGroups:
              - configurator.dev
              resources:
              - clusterconfigurators/status
              resourceNames:
              - team
              verbs:
              - patch
            - apiGroups:
              - rbac.authorization.k8s.io
              resources:
              - clusterrolebindings
              - clusterroles
              - rolebindings
              - roles
              verbs:
              - list
              - watch
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: ClusterRoleBinding
            metadata:
              name: team
            roleRef:
              apiGroup: rbac.authorization.k8s.io
              kind: ClusterRole
              name: team
            subjects:
            - kind: ServiceAccount
              name: team
              namespace: hosts
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: team
              namespace: bank
            rules:
            - apiGroups:
              - apps
              resources:
              - deployments
              verbs:
              - list
              - watch
            - apiGroups:
              - events.k8s.io
              resources:
              - events
              verbs:
              - create
              - patch
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata:
              name: team
              namespace: bank
            roleRef:
              apiGroup: rbac.authorization.k8s.io
              kind: Role
              name: team
            subjects:
            - kind: ServiceAccount
              name: team
              namespace: hosts
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: team
              namespace: default
            rules:
            - apiGroups:
              - events.k8s.io
              resources:
              - events
              verbs:
              - create
              - patch
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata:
              name: team
              namespace: default
            roleRef:
              apiGroup: rbac.authorization.k8s.io
              kind: Role
              name: team
            subjects:
            - kind: ServiceAccount
              name: team
              namespace: hosts
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: team
              namespace: hosts
            rules:
            - apiGroups:
              - coordination.k8s.io
              resources:
              - leases
              verbs:
              - create
              - delete
              - get
              - list
              - patch
              - watch
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata:
              name: team
              namespace: hosts
            roleRef:
              apiGroup: rbac.authorization.k8s.io
              kind: Role
              name: team
            subjects:
            - kind: ServiceAccount
              name: team
              namespace: hosts
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: Role
            metadata:
              name: team
              namespace: shop
            rules:
            - apiGroups:
              - ""
              resources:
              - configmaps
              resourceNames:
              - web
              verbs:
              - create
              - get
              - patch
            - apiGroups:
              - apps
              resources:
              - deployments
              verbs:
              - list
              - watch
            - apiGroups:
              - events.k8s.io
              resources:
              - events
              verbs:
              - create
              - patch
            ---
            apiVersion: rbac.authorization.k8s.io/v1
            kind: RoleBinding
            metadata:
              name: team
              namespace: shop
            roleRef:
              apiGroup: rbac.authorization.k8s.io
              kind: Role
              name: team
            subjects:
            - kind: ServiceAccount
              name: team
              namespace: hosts
        "##]],
    );
}

#[test]
fn what_is_granted_everywhere_is_not_granted_again() {
    let one = configurator(
        "one",
        "  watch: {apiVersion: v1, kind: Pod, namespaces: [shop]}",
    );
    let all = configurator(
        "all",
        "  watch: {apiVersion: v1, kind: Pod}
  capabilities:
    kubernetes:
      - {apiGroups: [''], resources: [pods], namespaces: ['*'], names: [web], verbs: [get]}
      - {apiGroups: [''], resources: [pods], namespaces: [shop], verbs: [list, get]}",
    );
    check(
        &format!("{one}{all}"),
        "--no-statuses",
        expect![[r#"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            ClusterRole configurator
              get,list,watch namespaces
              list,watch pods
              get pods named web
              get customresourcedefinitions of apiextensions.k8s.io named clusterconfigurators.configurator.dev,clusterflows.configurator.dev,commands.configurator.dev,configuratorpolicies.configurator.dev,configurators.configurator.dev,flows.configurator.dev,objectsets.configurator.dev
              list,watch clusterconfigurators,clusterflows,configuratorpolicies,configurators,flows of configurator.dev
              patch clusterconfigurators/status of configurator.dev named all,one
              create,patch events of events.k8s.io
              list,watch clusterrolebindings,clusterroles,rolebindings,roles of rbac.authorization.k8s.io
            ClusterRoleBinding configurator: ClusterRole configurator for ServiceAccount configurator/configurator
            Role configurator/configurator
              create,delete,get,list,patch,watch leases of coordination.k8s.io
            RoleBinding configurator/configurator: Role configurator for ServiceAccount configurator/configurator
            Role shop/configurator
              get pods
            RoleBinding shop/configurator: Role configurator for ServiceAccount configurator/configurator"#]],
    );
}

const WHEELS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: wheels.shop.example}
spec:
  group: shop.example
  scope: Namespaced
  names: {kind: Wheel, plural: wheels}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
---
";

#[test]
fn kinds_of_ones_own_come_with_their_definition() {
    let wheels = configurator(
        "wheels",
        "  watch: {apiVersion: shop.example/v1, kind: Wheel, namespaces: [shop]}
  deletion: {by: Finalizer}",
    );
    refuses(
        &wheels,
        expect![[r#"
            error: FILE wheels: the kind Wheel in shop.example/v1 is not known here: give the file with its CustomResourceDefinition too, or --kubeconfig
        "#]],
    );
    check(
        &format!("{WHEELS}{wheels}"),
        "",
        expect![[r#"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            #
            # wheels: objects that have its finalizer are looked for in every namespace, so that none is forgotten when
            # `watch.namespaces` changes; so wheels are listed everywhere.
            ClusterRole configurator
              get,list,watch namespaces
              get customresourcedefinitions of apiextensions.k8s.io named clusterconfigurators.configurator.dev,clusterflows.configurator.dev,commands.configurator.dev,configuratorpolicies.configurator.dev,configurators.configurator.dev,flows.configurator.dev,objectsets.configurator.dev
              list,watch clusterconfigurators,clusterflows,configuratorpolicies,configurators,flows of configurator.dev
              patch clusterconfigurators,clusterconfigurators/status of configurator.dev named wheels
              list,watch clusterrolebindings,clusterroles,rolebindings,roles of rbac.authorization.k8s.io
              list wheels of shop.example
            ClusterRoleBinding configurator: ClusterRole configurator for ServiceAccount configurator/configurator
            Role configurator/configurator
              create,delete,get,list,patch,watch leases of coordination.k8s.io
            RoleBinding configurator/configurator: Role configurator for ServiceAccount configurator/configurator
            Role default/configurator
              create,patch events of events.k8s.io
            RoleBinding default/configurator: Role configurator for ServiceAccount configurator/configurator
            Role shop/configurator
              create,patch events of events.k8s.io
              get,patch,watch wheels of shop.example
              patch wheels/status of shop.example
            RoleBinding shop/configurator: Role configurator for ServiceAccount configurator/configurator"#]],
    );
}

#[test]
fn wildcards_are_refused() {
    let rule = |rule: &str| {
        let lines = format!(
            "  watch: {{apiVersion: v1, kind: Pod}}\n  capabilities: {{kubernetes: [{rule}]}}"
        );
        configurator("wild", &lines)
    };
    refuses(
        &rule("{apiGroups: ['*'], resources: [pods], namespaces: ['*'], verbs: [get]}"),
        expect![[r#"
            error: FILE wild: spec.capabilities.kubernetes[0].apiGroups: "*" would need a wildcard in RBAC, which would grant what nobody has looked at, and what is yet to be invented: list the names instead
        "#]],
    );
    refuses(
        &rule("{apiGroups: [''], resources: ['*'], namespaces: ['*'], verbs: [get]}"),
        expect![[r#"
            error: FILE wild: spec.capabilities.kubernetes[0].resources: "*" would need a wildcard in RBAC, which would grant what nobody has looked at, and what is yet to be invented: list the names instead
        "#]],
    );
    refuses(
        &rule(
            "{apiGroups: [''], resources: [pods], subresources: ['e*'], namespaces: ['*'], verbs: [get]}",
        ),
        expect![[r#"
            error: FILE wild: spec.capabilities.kubernetes[0].subresources: "e*" would need a wildcard in RBAC, which would grant what nobody has looked at, and what is yet to be invented: list the names instead
        "#]],
    );
}

#[test]
fn a_service_account_gets_what_its_configurators_need() {
    let of_team = |name: &str, lines: &str| {
        let kind = "kind: ClusterConfigurator\nmetadata: {name";
        let of_team = "kind: Configurator\nmetadata: {namespace: team-a, name";
        configurator(name, lines).replace(kind, of_team)
    };
    let rules = "  capabilities:\n    kubernetes: [{apiGroups: [apps], resources: [deployments], verbs: [apply]}]";
    let watch = "  watch: {apiVersion: v1, kind: ConfigMap}";
    let one = of_team(
        "one",
        &format!("{watch}\n{rules}\n  deletion: {{by: Finalizer}}"),
    );
    let module = "{configMap: {name: module}, digest: \"sha256:0\"}";
    let two = of_team("two", &format!("{watch}\n  serviceAccountName: robot"))
        .replace("{file: a.wasm}", module);
    check(
        &(one.clone() + &two),
        "",
        expect![[r#"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            ClusterRole configurator
              get,list,watch namespaces
              get customresourcedefinitions of apiextensions.k8s.io named clusterconfigurators.configurator.dev,clusterflows.configurator.dev,commands.configurator.dev,configuratorpolicies.configurator.dev,configurators.configurator.dev,flows.configurator.dev,objectsets.configurator.dev
              list,watch clusterconfigurators,clusterflows,configuratorpolicies,configurators,flows of configurator.dev
              list,watch clusterrolebindings,clusterroles,rolebindings,roles of rbac.authorization.k8s.io
            ClusterRoleBinding configurator: ClusterRole configurator for ServiceAccount configurator/configurator
            Role configurator/configurator
              create,delete,get,list,patch,watch leases of coordination.k8s.io
            RoleBinding configurator/configurator: Role configurator for ServiceAccount configurator/configurator
            Role default/configurator
              create,patch events of events.k8s.io
            RoleBinding default/configurator: Role configurator for ServiceAccount configurator/configurator
            Role team-a/configurator
              get configmaps named module
              impersonate serviceaccounts named default,robot
              patch configurators,configurators/status of configurator.dev named one
              patch configurators/status of configurator.dev named two
              create,patch events of events.k8s.io
            RoleBinding team-a/configurator: Role configurator for ServiceAccount configurator/configurator
            Role team-a/configurator-default
              get,list,patch,watch configmaps
              create,patch deployments of apps
            RoleBinding team-a/configurator-default: Role configurator-default for ServiceAccount team-a/default
            Role team-a/configurator-robot
              list,watch configmaps
              get configmaps named module
            RoleBinding team-a/configurator-robot: Role configurator-robot for ServiceAccount team-a/robot"#]],
    );
    check_printed(
        &two,
        "--output values",
        expect![[r##"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            rbac:
              cluster:
              - apiGroups:
                - ""
                resources:
                - namespaces
                verbs:
                - get
                - list
                - watch
              - apiGroups:
                - apiextensions.k8s.io
                resources:
                - customresourcedefinitions
                resourceNames:
                - clusterconfigurators.configurator.dev
                - clusterflows.configurator.dev
                - commands.configurator.dev
                - configuratorpolicies.configurator.dev
                - configurators.configurator.dev
                - flows.configurator.dev
                - objectsets.configurator.dev
                verbs:
                - get
              - apiGroups:
                - configurator.dev
                resources:
                - clusterconfigurators
                - clusterflows
                - configuratorpolicies
                - configurators
                - flows
                verbs:
                - list
                - watch
              - apiGroups:
                - rbac.authorization.k8s.io
                resources:
                - clusterrolebindings
                - clusterroles
                - rolebindings
                - roles
                verbs:
                - list
                - watch
              namespaces:
                configurator:
                - apiGroups:
                  - coordination.k8s.io
                  resources:
                  - leases
                  verbs:
                  - create
                  - delete
                  - get
                  - list
                  - patch
                  - watch
                default:
                - apiGroups:
                  - events.k8s.io
                  resources:
                  - events
                  verbs:
                  - create
                  - patch
                team-a:
                - apiGroups:
                  - ""
                  resources:
                  - configmaps
                  resourceNames:
                  - module
                  verbs:
                  - get
                - apiGroups:
                  - ""
                  resources:
                  - serviceaccounts
                  resourceNames:
                  - robot
                  verbs:
                  - impersonate
                - apiGroups:
                  - configurator.dev
                  resources:
                  - configurators/status
                  resourceNames:
                  - two
                  verbs:
                  - patch
                - apiGroups:
                  - events.k8s.io
                  resources:
                  - events
                  verbs:
                  - create
                  - patch
              serviceAccounts:
                team-a:
                  robot:
                  - apiGroups:
                    - ""
                    resources:
                    - configmaps
                    verbs:
                    - list
                    - watch
                  - apiGroups:
                    - ""
                    resources:
                    - configmaps
                    resourceNames:
                    - module
                    verbs:
                    - get
        "##]],
    );
}

#[test]
fn files_without_configurators_are_refused() {
    refuses(
        WHEELS,
        expect![[r#"
        error: there is no Configurator in these files
    "#]],
    );
}

#[test]
fn values_of_the_chart_hold_the_same_rules() {
    let text = configurator(
        "one",
        "  watch: {apiVersion: v1, kind: ConfigMap, namespaces: [shop]}",
    );
    check_printed(
        &text,
        "--output values",
        expect![[r##"
            # Made by `configurator rbac`: make it again when a Configurator changes.
            rbac:
              cluster:
              - apiGroups:
                - ""
                resources:
                - namespaces
                verbs:
                - get
                - list
                - watch
              - apiGroups:
                - apiextensions.k8s.io
                resources:
                - customresourcedefinitions
                resourceNames:
                - clusterconfigurators.configurator.dev
                - clusterflows.configurator.dev
                - commands.configurator.dev
                - configuratorpolicies.configurator.dev
                - configurators.configurator.dev
                - flows.configurator.dev
                - objectsets.configurator.dev
                verbs:
                - get
              - apiGroups:
                - configurator.dev
                resources:
                - clusterconfigurators
                - clusterflows
                - configuratorpolicies
                - configurators
                - flows
                verbs:
                - list
                - watch
              - apiGroups:
                - configurator.dev
                resources:
                - clusterconfigurators/status
                resourceNames:
                - one
                verbs:
                - patch
              - apiGroups:
                - rbac.authorization.k8s.io
                resources:
                - clusterrolebindings
                - clusterroles
                - rolebindings
                - roles
                verbs:
                - list
                - watch
              namespaces:
                configurator:
                - apiGroups:
                  - coordination.k8s.io
                  resources:
                  - leases
                  verbs:
                  - create
                  - delete
                  - get
                  - list
                  - patch
                  - watch
                default:
                - apiGroups:
                  - events.k8s.io
                  resources:
                  - events
                  verbs:
                  - create
                  - patch
                shop:
                - apiGroups:
                  - ""
                  resources:
                  - configmaps
                  verbs:
                  - list
                  - watch
                - apiGroups:
                  - events.k8s.io
                  resources:
                  - events
                  verbs:
                  - create
                  - patch
        "##]],
    );
}

#[test]
fn no_configurator_here_needs_a_wildcard() {
    for folder in std::fs::read_dir(crate::cluster::file("configurators")).unwrap() {
        let folder = folder.unwrap().path();
        let printed = rbac(&[Path::new(&folder)], "");
        let rules = printed.lines().filter(|line| !line.starts_with('#'));
        assert!(
            rules.into_iter().all(|line| !line.contains('*')),
            "{printed}"
        );
    }
}
