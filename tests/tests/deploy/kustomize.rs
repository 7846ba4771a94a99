//! `deploy/kustomize`.

use configurator_tests::program::Program;
use expect_test::expect;
use k8s_openapi::api::core::v1::Pod;
use kube::api::{Api, ListParams};

use crate::cluster::{Cluster, file, is_made};

#[test]
fn what_the_program_makes_is_committed_as_it_makes_it() {
    let definition = Program::new("crds").succeeds().unwrap();
    is_made("deploy/kustomize/base/crd.yaml", &definition);
    is_made(
        "deploy/helm/configurator/crds/configurator.yaml",
        &definition,
    );
    // As the comment in its kustomization says.
    let program = Program::new("rbac")
        .args("--filename configurators/pod-config --no-statuses")
        .folder(&file(""));
    is_made(
        "deploy/kustomize/pod-config/rbac.yaml",
        &program.succeeds().unwrap(),
    );
}

#[test]
fn the_settings_have_sense() {
    check_settings(&file("deploy/kustomize/base/config.toml"));
}

/// The program takes them, and finds that this is no Pod.
#[track_caller]
pub fn check_settings(settings: &std::path::Path) {
    let told = Program::new("run")
        .arg("--config")
        .arg(settings)
        .fails()
        .unwrap();
    assert!(
        told.contains("this is no Pod with a service account"),
        "{told}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_manifests_are_accepted_by_a_real_cluster() {
    let cluster = Cluster::new().await;
    let folder = file("deploy/kustomize/pod-config");
    let manifests = cluster.kubectl(&format!("kustomize {}", folder.display()), "");
    expect![[r#"
        namespace/configurator serverside-applied
        customresourcedefinition.apiextensions.k8s.io/clusterconfigurators.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/clusterflows.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/commands.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/configuratorpolicies.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/configurators.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/flows.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/objectsets.configurator.dev serverside-applied
        serviceaccount/configurator serverside-applied
        role.rbac.authorization.k8s.io/configurator serverside-applied
        clusterrole.rbac.authorization.k8s.io/configurator serverside-applied
        rolebinding.rbac.authorization.k8s.io/configurator serverside-applied
        clusterrolebinding.rbac.authorization.k8s.io/configurator serverside-applied
        configmap/configurator-ttd7kb58km serverside-applied
        service/configurator serverside-applied
        deployment.apps/configurator serverside-applied
        poddisruptionbudget.policy/configurator serverside-applied
        validatingadmissionpolicy.admissionregistration.k8s.io/configurator-commands serverside-applied
        validatingadmissionpolicybinding.admissionregistration.k8s.io/configurator-commands serverside-applied
        servicemonitor.monitoring.coreos.com/configurator serverside-applied
        networkpolicy.networking.k8s.io/configurator serverside-applied
    "#]].assert_eq(&cluster.accepts(&manifests));
    // The namespace takes only Pods with the least rights on their node, and takes these.
    let pods: Api<Pod> = Api::namespaced(cluster.client.clone(), "configurator");
    cluster
        .until("two replicas", async || {
            let found = pods.list(&ListParams::default()).await.unwrap();
            found.items.len() == 2
        })
        .await;
}
