//! Hosts are killed (`kill -9`) wherever they store a state or send a request, in both samples: all ends as if they had lived on.

use std::path::PathBuf;
use std::sync::Mutex;

use anyhow::{Context as _, Result};
use configurator_core::document::Document;
use configurator_host::resource::definitions;
use configurator_host::sinks::secretstore::{EmbeddedSecretStore, SealingKey, SecretStore as _};
use configurator_tests::cloud::{self, Cloud, Manners};
use configurator_tests::guests;
use configurator_tests::machine::text;
use configurator_tests::program::{Program, SECRET_KEY};
use configurator_tests::world::{Place, apply, manifest, until};
use expect_test::expect;
use kube::Client;
use kube::api::DeleteParams;
use serde_json::{Value, json};
use tempfile::TempDir;

use super::clusters::{self, Clusters};
use super::executioner::{Executioner, Moment};
use super::migration;

/// A program that is killed and started again, on an API that stays.
struct Lives {
    executioner: Executioner,
    client: Client,
    folder: TempDir,
}

impl Lives {
    async fn new() -> Result<Self> {
        let servers = Place::default().open().await?;
        let executioner = Executioner::default();
        let server = servers.server.context("an embedded API")?;
        let address = executioner.before_api(server).await?;
        let folder = tempfile::tempdir()?;
        let kubeconfig = json!({
            "apiVersion": "v1", "kind": "Config", "current-context": "test",
            "clusters": [{"name": "test", "cluster": {"server": format!("http://{address}")}}],
            "contexts": [{"name": "test", "context": {"cluster": "test", "user": "test"}}],
            "users": [{"name": "test", "user": {}}],
        });
        std::fs::write(folder.path().join("kubeconfig"), kubeconfig.to_string())?;
        let lives = Self {
            executioner,
            client: servers.cluster.client,
            folder,
        };
        for definition in definitions() {
            lives.apply(&definition).await?;
        }
        Ok(lives)
    }

    fn data(&self) -> PathBuf {
        self.folder.path().join("data")
    }

    /// Those of the hosts, while none is alive.
    async fn secrets(&self) -> Result<EmbeddedSecretStore> {
        let key = SealingKey::from_text(SECRET_KEY, "the test")?;
        Ok(EmbeddedSecretStore::open(&self.data().join("secrets.redb"), &key).await?)
    }

    async fn apply(&self, object: &Value) -> Result<()> {
        apply(&self.client, object).await
    }

    fn program(&self) -> Result<Program> {
        Ok(Program::new("run")
            .arg("--kubeconfig")
            .arg(self.folder.path().join("kubeconfig"))
            .arg("--config")
            .arg(self.folder.path().join("settings.toml"))
            .arg("--data-dir")
            .arg(self.data())
            .arg("--modules")
            .arg(guests::folder()?)
            .args("--log off")
            .env("CONFIGURATOR_SECRET_KEY", SECRET_KEY))
    }

    /// Lets hosts live and die until `is_over`, and returns how many were killed.
    async fn until(&self, is_over: impl AsyncFn() -> Result<bool>) -> Result<usize> {
        loop {
            self.executioner.watch(self.program()?.spawn()?);
            let over = until("it is over", || is_over());
            tokio::select! {
                () = self.executioner.died() => {}
                over = over => {
                    if let Some(mut host) = self.executioner.release() {
                        host.kill()?;
                        host.wait()?;
                    }
                    return over.map(|()| self.executioner.kills());
                }
            }
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_move_survives_every_kill() -> Result<()> {
    let lives = Lives::new().await?;
    let executioner = lives.executioner.clone();
    let cloud = Cloud::start_behind(3, Manners::default(), move |point, is_before| {
        let moment = match is_before {
            true => Moment::Before,
            false => Moment::After,
        };
        executioner.pass(point, moment).is_ok()
    })
    .await?;
    let settings = format!("http_inner_hosts = [{:?}]\n", cloud.host);
    std::fs::write(lives.folder.path().join("settings.toml"), settings)?;
    std::fs::create_dir_all(lives.data())?;
    let secret = Document::of(&json!(cloud::SECRET_KEY))?;
    lives.secrets().await?.create("cloud-key", secret).await?;

    lives.apply(&migration::definition()?).await?;
    let mut configurator = manifest("move-to-vpc", "configurator.yaml")?;
    migration::adapt(&mut configurator, &cloud.url, &cloud.host);
    lives.apply(&configurator).await?;
    lives.apply(&migration::wanted(json!({}))).await?;
    let moves = migration::moves(&lives.client).await?;
    // A person who sees that nobody knows what became of an order looks, and has the move go on.
    let orders: Mutex<Vec<String>> = Mutex::default();
    let kills = lives
        .until(async || {
            let object = moves.get("web").await?;
            let last = orders.lock().unwrap().last().cloned();
            let is_asked = match last {
                Some(last) => moves.answer(&last).await?.is_none(),
                None => false,
            };
            if text(&object, "/status/phase") == "InFlightFailed" && !is_asked {
                let error = object.pointer("/status/state/InFlight/state/bindEIPs/error");
                let error = error.and_then(Value::as_str).unwrap_or_default();
                assert!(error.starts_with("nobody knows"), "{object:#}");
                let order = moves.order("web", "Resume", json!({})).await?;
                orders.lock().unwrap().push(order);
            }
            Ok(text(&object, "/status/phase") == "Succeeded")
        })
        .await?;
    let mut effects = cloud.effects();
    effects.sort();
    expect![[r#"
        attach 10.0.2.11 to ins-1
        attach 10.0.2.12 to ins-2
        attach 10.0.2.13 to ins-3
        bind eip-1
        bind eip-2
        bind eip-3
        detach eni-1-second from ins-1
        detach eni-2-second from ins-2
        detach eni-3-second from ins-3
        make interface 10.0.2.11 in vpc-new
        make interface 10.0.2.12 in vpc-new
        make interface 10.0.2.13 in vpc-new
        migrate ins-1 to vpc-new
        migrate ins-2 to vpc-new
        migrate ins-3 to vpc-new
        unbind eip-1
        unbind eip-2
        unbind eip-3"#]]
    .assert_eq(&effects.join("\n"));
    let unknown = orders.into_inner().unwrap().len();
    println!("{kills} kills, {unknown} of them left a step unknown");
    assert!(
        kills >= 200 && unknown >= 1,
        "{kills} kills, {unknown} unknown"
    );
    Ok(())
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_survives_every_kill() -> Result<()> {
    let lives = Lives::new().await?;
    std::fs::write(lives.folder.path().join("settings.toml"), "")?;
    clusters::declare(&lives.client).await?;
    let clusters = Clusters::of(&lives.client).await?;
    let large = json!({"className": "large"});
    let wishes = [
        json!({}),
        json!({"classInfo": large}),
        json!({"classInfo": large, "version": "1.1.0"}),
        json!({
            "classInfo": large, "version": "1.1.0", "roReplicas": 1,
            "storage": {"size": "20Gi"},
        }),
        json!({"version": "1.2.0", "roReplicas": 3, "storage": {"size": "20Gi"}}),
    ];
    for wish in wishes {
        let wanted = clusters::wanted(wish);
        lives.apply(&wanted).await?;
        lives
            .until(async || {
                let cluster = clusters.machine.get("db").await?;
                let is_so = |field: &str| cluster["status"].get(field) == wanted["spec"].get(field);
                let fields = ["classInfo", "version", "roReplicas", "storage"];
                let phase = text(&cluster, "/status/clusterStatus");
                assert_ne!(phase, "Interrupt", "{cluster:#}");
                Ok(phase == "Running" && fields.iter().all(|field| is_so(field)))
            })
            .await?;
    }
    expect![[r#"
        ConfigMap db-manager
        ConfigMap db-meta
        ConfigMap db-topology db-ro-0,db-ro-1,db-ro-2
        PersistentVolumeClaim db-data 20Gi
        Pod db-manager registry.example.org/cluster-manager:1
        Pod db-ro-0 registry.example.org/shared-db:1.2.0 500m
        Pod db-ro-1 registry.example.org/shared-db:1.2.0 500m
        Pod db-ro-2 registry.example.org/shared-db:1.2.0 500m
        Pod db-rw registry.example.org/shared-db:1.2.0 500m
        Service db-ro
        Service db-rw"#]]
    .assert_eq(&clusters.things().await?);
    // No Pod was made more often than its class or version has changed.
    expect![[r#"
        db-manager: 1
        db-ro-0: 5
        db-ro-1: 4
        db-ro-2: 1
        db-rw: 5"#]]
    .assert_eq(&clusters.infrastructure.made());
    let delete = DeleteParams::background();
    clusters.machine.api.delete("db", &delete).await?;
    let kills = lives
        .until(async || Ok(clusters.machine.api.get_opt("db").await?.is_none()))
        .await?;
    let password = lives.secrets().await?.get("db-default.db").await?;
    assert!(password.is_none());
    println!("{kills} kills");
    assert!(kills >= 200, "{kills} kills");
    Ok(())
}
