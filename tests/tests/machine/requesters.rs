//! A real API server checks who creates Commands, and the host knows whether it does.

use anyhow::{Context as _, Result};
use configurator_host::resource::command::{Command, CommandPhase, RequesterStatus};
use configurator_tests::controlplane::ControlPlane;
use configurator_tests::guests::workspace;
use configurator_tests::machine::definition;
use configurator_tests::world::{World, apply, until};
use expect_test::{Expect, expect};
use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{Api, PostParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config, ResourceExt as _};
use serde_json::{Value, json};

use super::things::*;

/// The Commands of `default`, for a user whom RBAC knows.
async fn commands_of(plane: &ControlPlane, user: &str) -> Result<Api<Command>> {
    let kubeconfig = Kubeconfig::read_from(&plane.about().kubernetes.kubeconfig)?;
    let mut config =
        Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await?;
    config.auth_info.impersonate = Some(user.to_owned());
    Ok(Api::default_namespaced(Client::try_from(config)?))
}

/// Lets a user create these resources in `default`.
async fn grant(client: &Client, user: &str, resources: &[&str]) -> Result<()> {
    let rules = json!([{"apiGroups": ["configurator.dev"], "resources": resources, "verbs": ["create", "get"]}]);
    for object in [
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
            "metadata": {"name": user, "namespace": "default"}, "rules": rules,
        }),
        json!({
            "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
            "metadata": {"name": user, "namespace": "default"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": user},
            "subjects": [{"kind": "User", "name": user, "apiGroup": "rbac.authorization.k8s.io"}],
        }),
    ] {
        apply(client, &object).await?;
    }
    // It takes a moment until the server knows the rights.
    let reviews: Api<SubjectAccessReview> = Api::all(client.clone());
    until("the rights count", || async {
        let mut allowed = true;
        for resource in resources {
            let (resource, subresource) = resource.split_once('/').unwrap_or((resource, ""));
            let review: SubjectAccessReview = serde_json::from_value(json!({"spec": {
                "user": user,
                "resourceAttributes": {
                    "namespace": "default", "verb": "create", "group": "configurator.dev",
                    "resource": resource, "subresource": subresource,
                },
            }}))?;
            let review = reviews.create(&PostParams::default(), &review).await?;
            allowed &= review.status.is_some_and(|status| status.allowed);
        }
        Ok(allowed)
    })
    .await
}

fn command(verb: &str, requested_by: &str) -> Result<Command> {
    let signal = (verb == "Signal").then(|| json!({"name": "later"}));
    Ok(serde_json::from_value(json!({
        "apiVersion": "configurator.dev/v1alpha1", "kind": "Command",
        "metadata": {"generateName": "order-"},
        "spec": {
            "configurator": {"kind": "ClusterConfigurator", "name": "things"},
            "target": {"kind": "Thing", "name": "one"},
            "verb": verb, "requestedBy": requested_by, "signal": signal,
        },
    }))?)
}

async fn check_denied(commands: &Api<Command>, command: Command, expected: Expect) {
    let denied = commands.create(&PostParams::default(), &command).await;
    let message = match denied {
        Err(kube::Error::Api(status)) => status.message,
        other => format!("{other:?}"),
    };
    // The name of the Command is a new one each time.
    let message = message.split_once("ValidatingAdmissionPolicy ");
    expected.assert_eq(message.map_or("", |(_, message)| message));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_real_server_checks_who_creates_a_command() -> Result<()> {
    let plane = ControlPlane::start(&Default::default()).await?;
    let world = World::start_on(plane.about().servers().await?, |builder| builder).await?;
    let things = Things { world };
    let client = &things.world.client;
    things.world.apply(&definition("Thing")).await?;
    things
        .world
        .apply(&machine(json!({"phases": [
            {"name": "Work", "serial": [steps("pause", json!([{"wait": {"signals": ["approved"]}}, {}]))], "onDone": "Done"},
            {"name": "Done", "terminal": true},
        ]})))
        .await?;
    things.world.apply(&thing("one", json!({}))).await?;
    grant(
        client,
        "ann",
        &["commands", "commands/signal", "commands/approve"],
    )
    .await?;
    grant(client, "bob", &["commands"]).await?;
    let (ann, bob) = (
        commands_of(&plane, "ann").await?,
        commands_of(&plane, "bob").await?,
    );

    // Without the policy, anybody who may create Commands states any user.
    let made = bob
        .create(&PostParams::default(), &command("Signal", "ann")?)
        .await?;
    let requester = until_answered(&bob, &made.name_any()).await?;
    assert_eq!(requester, Some(RequesterStatus::Unverified));

    let manifests =
        std::fs::read_to_string(workspace().join("deploy/kustomize/base/commands.yaml"))?;
    let manifests: Vec<Value> = serde_saphyr::from_multiple(&manifests)?;
    for manifest in &manifests {
        apply(client, manifest).await?;
    }
    // It takes a while until the server and the host know the policy.
    until("a verified requester", || async {
        let made = ann
            .create(&PostParams::default(), &command("Signal", "ann")?)
            .await?;
        let requester = until_answered(&ann, &made.name_any()).await?;
        Ok(requester == Some(RequesterStatus::Verified))
    })
    .await?;
    check_denied(
        &bob,
        command("Signal", "ann")?,
        expect!["'configurator-commands' with binding 'configurator-commands' denied request: spec.requestedBy must be the user who creates the Command: bob"],
    )
    .await;
    check_denied(
        &bob,
        command("Approve", "bob")?,
        expect!["'configurator-commands' with binding 'configurator-commands' denied request: the verb Approve needs the right to create commands.configurator.dev/approve"],
    )
    .await;
    let approval = ann
        .create(&PostParams::default(), &command("Approve", "ann")?)
        .await?;
    until_answered(&ann, &approval.name_any()).await?;
    things.until_phase("Done").await?;
    things.world.stop().await
}

/// Whether the host regards the requester of a Command as verified, once it has answered.
async fn until_answered(commands: &Api<Command>, name: &str) -> Result<Option<RequesterStatus>> {
    let answered = || async {
        let status = commands.get(name).await?.status.unwrap_or_default();
        Ok(status
            .phase
            .is_some_and(|phase| phase != CommandPhase::Pending))
    };
    until("the Command is answered", answered).await?;
    let status = commands.get(name).await?.status;
    Ok(status.context("no status")?.requester)
}
