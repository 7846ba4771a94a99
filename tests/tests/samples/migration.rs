//! A cloud, a host that moves its instances, and what a move has come to.

use anyhow::{Context as _, Result};
use configurator_core::document::Document;
use configurator_host::host::HostBuilder;
use configurator_host::sinks::http::HttpOptions;
use configurator_tests::cloud::{self, Cloud, Manners};
use configurator_tests::machine::Machine;
use configurator_tests::world::{Servers, World, manifest};
use kube::Client;
use serde_json::{Value, json};

/// A host and a cloud.
pub struct Migration {
    pub world: World,
    pub cloud: Cloud,
    pub moves: Machine,
}

impl Migration {
    /// A host on these servers, and a cloud of so many instances.
    pub async fn start(servers: Servers, instances: usize, manners: Manners) -> Result<Self> {
        let cloud = Cloud::start(instances, manners).await?;
        let world = World::start_on(servers, allow(&cloud)).await?;
        let key = Document::of(&json!(cloud::SECRET_KEY))?;
        world.secrets.create("cloud-key", key).await?;
        world.apply(&definition()?).await?;
        let url = cloud.url.clone();
        let host = cloud.host.clone();
        world
            .configure("move-to-vpc", |configurator| {
                adapt(configurator, &url, &host);
            })
            .await?;
        let moves = moves(&world.client).await?;
        Ok(Self {
            world,
            cloud,
            moves,
        })
    }

    /// Asks for a move.
    pub async fn ask(&self, more: Value) -> Result<()> {
        self.world.apply(&wanted(more)).await
    }

    /// Returns when the move is in this phase.
    pub async fn until(&self, phase: &str) -> Result<()> {
        self.moves.until_phase("web", phase).await
    }

    /// What people see of the move.
    pub async fn status(&self) -> Result<Value> {
        let mut object = self.moves.get("web").await?;
        let status = object.get_mut("status").context("no status")?.take();
        Ok(status)
    }
}

/// What a host needs to reach this cloud.
pub fn allow(cloud: &Cloud) -> impl FnOnce(HostBuilder) -> HostBuilder {
    let options = HttpOptions {
        inner_hosts: vec![cloud.host.parse().unwrap()],
        ..HttpOptions::default()
    };
    move |builder| builder.http(options)
}

/// Has the Configurator reach this cloud, and wait less than people would.
pub fn adapt(configurator: &mut Value, url: &str, host: &str) {
    let spec = &mut configurator["spec"];
    spec["parameters"]["endpoint"] = url.into();
    spec["parameters"]["pollMilliseconds"] = 10.into();
    spec["machine"]["requeueAfter"] = "50ms".into();
    spec["capabilities"]["http"][0]["hosts"] = json!([host]);
    for phase in spec["machine"]["phases"]
        .as_array_mut()
        .into_iter()
        .flatten()
    {
        if phase["retry"].get("delay").is_some() {
            phase["retry"]["delay"] = "50ms".into();
        }
    }
}

pub async fn moves(client: &Client) -> Result<Machine> {
    let (version, kind) = ("network.example.org/v1", "MoveToVpc");
    Machine::of(client, "move-to-vpc", version, kind, "default").await
}

/// A move of all that is in the old network, with changes.
pub fn wanted(more: Value) -> Value {
    let mut spec = json!({
        "appId": cloud::APP_ID,
        "secretId": cloud::SECRET_ID,
        "secretKey": "cloud-key",
        "region": "north",
        "srcVpcId": "vpc-old",
        "dstVpcId": "vpc-new",
        "keepIps": true,
        "operator": "ann",
        "teamName": "web",
    });
    if let (Value::Object(spec), Value::Object(more)) = (&mut spec, more) {
        spec.extend(more);
    }
    json!({
        "apiVersion": "network.example.org/v1",
        "kind": "MoveToVpc",
        "metadata": {"name": "web", "namespace": "default"},
        "spec": spec,
    })
}

/// The definition of the kind.
pub fn definition() -> Result<Value> {
    manifest("move-to-vpc", "crd.yaml")
}
