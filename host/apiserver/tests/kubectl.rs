//! kubectl against the served API, with a real application. It needs `kubectl` on the PATH.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "tests"
)]

mod support;

use std::path::PathBuf;
use std::process::Stdio;

use configurator_apiserver::{ApiServer, ServeOptions};
use configurator_store::{Store, StoreOptions};
use support::Api;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::Command;
use tokio::sync::oneshot;

/// A served API and a folder with its kubeconfig.
struct Cluster {
    folder: tempfile::TempDir,
    api: Api,
    stop: Option<oneshot::Sender<()>>,
    served: tokio::task::JoinHandle<()>,
}

impl Cluster {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("api.redb"), StoreOptions::default()).unwrap();
        let api = Api::on(store).await;
        let (stop, stopped) = oneshot::channel::<()>();
        let options = ServeOptions {
            addr: "127.0.0.1:0".parse().unwrap(),
            token: None,
        };
        let (at, serving) = api
            .server
            .clone()
            .serve(options, async {
                let _ = stopped.await;
            })
            .await
            .unwrap();
        std::fs::write(folder.path().join("kubeconfig"), at.kubeconfig()).unwrap();
        let served = tokio::spawn(serving);
        Self {
            folder,
            api,
            stop: Some(stop),
            served,
        }
    }

    fn command(&self, arguments: &str) -> Command {
        let mut command = Command::new("kubectl");
        command.args(arguments.split_whitespace());
        command.env("KUBECONFIG", self.folder.path().join("kubeconfig"));
        command.env("HOME", self.folder.path());
        command.kill_on_drop(true);
        command
    }

    async fn output(&self, arguments: &str) -> (bool, String) {
        let output = self
            .command(arguments)
            .output()
            .await
            .expect("this test needs kubectl on the PATH");
        (
            output.status.success(),
            format!(
                "{}{}",
                String::from_utf8_lossy(&output.stdout),
                String::from_utf8_lossy(&output.stderr)
            ),
        )
    }

    #[track_caller]
    fn kubectl(&self, arguments: &str) -> impl Future<Output = String> {
        let place = std::panic::Location::caller();
        let arguments = arguments.to_owned();
        async move {
            let (fine, text) = self.output(&arguments).await;
            assert!(fine, "{place}: kubectl {arguments}: {text}");
            text
        }
    }

    async fn stop(mut self) {
        self.stop.take();
        self.served.await.unwrap();
    }
}

/// A real application of 35 objects, where it is at hand.
fn application() -> Option<PathBuf> {
    // Below the package, where cargo runs tests.
    let path = PathBuf::from("../../../shared/data/online-boutique.yaml");
    if !path.exists() {
        println!("no data: {} is absent", path.display());
        return None;
    }
    Some(path)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_real_application_is_applied_twice_and_changes_once() {
    let Some(path) = application() else { return };
    for flags in ["", "--server-side"] {
        let cluster = Cluster::start().await;
        let apply = format!("apply {flags} -f {}", path.display());
        let first = cluster.kubectl(&apply).await;
        assert_eq!(first.lines().count(), 35, "{first}");
        let before = cluster.api.server.clone();
        let state = |_: &ApiServer| async { cluster.kubectl("get all,sa,cm -A -o json").await };
        let one = state(&before).await;
        let second = cluster.kubectl(&apply).await;
        assert!(
            second
                .lines()
                .all(|line| line.ends_with("unchanged") || line.ends_with("serverside-applied")),
            "{second}"
        );
        assert_eq!(
            one,
            state(&before).await,
            "the second apply changed something"
        );
        cluster.stop().await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn people_work_with_a_real_application() {
    let Some(path) = application() else { return };
    let c = Cluster::start().await;
    c.kubectl(&format!("apply -f {}", path.display())).await;
    let listed = c.kubectl("get deployments,services").await;
    assert!(listed.contains("deployment.apps/frontend"), "{listed}");
    let told = c.kubectl("describe deployment frontend").await;
    assert!(told.contains("Pod Template:"), "{told}");

    let mut watching = c
        .command("get deployment frontend -w -o jsonpath={.spec.replicas}:{.metadata.labels.tier}{'\\n'}")
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut seen = BufReader::new(watching.stdout.take().unwrap()).lines();
    assert_eq!(seen.next_line().await.unwrap().as_deref(), Some("1:"));
    c.kubectl("label deployment frontend tier=front").await;
    assert_eq!(seen.next_line().await.unwrap().as_deref(), Some("1:front"));
    let edited = c
        .command("edit deployment frontend")
        .env("KUBE_EDITOR", "sed -i 's/replicas: 1$/replicas: 3/'")
        .output()
        .await
        .unwrap();
    assert!(edited.status.success(), "{edited:?}");
    assert_eq!(seen.next_line().await.unwrap().as_deref(), Some("3:front"));
    c.kubectl("wait --for=jsonpath={.spec.replicas}=3 deployment/frontend --timeout=20s")
        .await;
    c.kubectl("delete deployment frontend --wait --timeout=20s")
        .await;
    let (_, gone) = c.output("get deployment frontend").await;
    assert!(gone.contains("NotFound"), "{gone}");

    c.kubectl(&format!(
        "delete -f {} --ignore-not-found --wait --timeout=60s",
        path.display()
    ))
    .await;
    assert_eq!(c.kubectl("get deployments -o name").await, "");
    c.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_usual_commands_work() {
    let cluster = Cluster::start().await;
    let c = &cluster;
    assert!(c.kubectl("api-resources").await.contains("deployments"));
    assert!(c.kubectl("api-versions").await.contains("apps/v1"));
    assert!(c.kubectl("version").await.contains("Server Version"));
    assert!(
        c.kubectl("explain pod.spec.containers")
            .await
            .contains("imagePullPolicy")
    );
    assert_eq!(c.kubectl("auth can-i create pods").await.trim(), "yes");
    assert!(c.kubectl("auth whoami").await.contains("kubernetes-admin"));
    c.kubectl("create namespace team").await;
    c.kubectl("create deployment web --image=nginx --replicas=2 -n team")
        .await;
    let listed = c.kubectl("get deploy -n team").await;
    assert!(
        listed.starts_with("NAME") && listed.contains("web") && listed.contains("0/2"),
        "{listed}"
    );
    assert!(
        c.kubectl("get deploy -n team -o wide")
            .await
            .contains("nginx")
    );
    assert!(
        c.kubectl("get all -n team")
            .await
            .contains("deployment.apps/web")
    );
    assert!(
        c.kubectl("describe deploy web -n team")
            .await
            .contains("RollingUpdateStrategy")
    );
    c.kubectl("scale deploy web --replicas=5 -n team").await;
    assert_eq!(
        c.kubectl("get deploy web -n team -o jsonpath={.spec.replicas}")
            .await,
        "5"
    );
    c.kubectl("label deploy web tier=front -n team").await;
    assert!(
        c.kubectl("get deploy -l tier=front -n team")
            .await
            .contains("web")
    );
    c.kubectl("annotate deploy web note=x -n team").await;
    c.kubectl(r#"patch deploy web -n team -p {"spec":{"template":{"spec":{"containers":[{"name":"nginx","image":"nginx:2"}]}}}}"#).await;
    assert_eq!(
        c.kubectl("get deploy web -n team -o jsonpath={.spec.template.spec.containers[*].image}")
            .await,
        "nginx:2"
    );
    c.kubectl("set image deploy/web nginx=nginx:3 -n team")
        .await;
    assert_eq!(
        c.kubectl("get deploy web -n team -o jsonpath={.metadata.generation}")
            .await,
        // The creation, the image twice, and annotations, which go to the ReplicaSets of a Deployment.
        "5"
    );
    c.kubectl("create configmap settings --from-literal=plain=b -n team")
        .await;
    c.kubectl("create secret generic key --from-literal=a=b -n team")
        .await;
    assert!(
        c.kubectl("describe secret key -n team")
            .await
            .contains("a:  1 bytes")
    );
    let mut edit = c.command("edit cm settings -n team");
    edit.env("KUBE_EDITOR", "sed -i s/plain/edited/");
    let edited = edit.output().await.unwrap();
    assert!(
        edited.status.success(),
        "{}",
        String::from_utf8_lossy(&edited.stderr)
    );
    assert!(
        c.kubectl("get cm settings -n team -o yaml")
            .await
            .contains("edited: b")
    );
    c.kubectl("run one --image=nginx -n team").await;
    let pods = c.kubectl("get pods -n team").await;
    assert!(pods.contains("one") && pods.contains("Pending"), "{pods}");
    assert!(
        c.kubectl("describe pod one -n team")
            .await
            .contains("QoS Class")
    );
    c.kubectl("wait --for=jsonpath={.status.phase}=Pending pod/one -n team --timeout=10s")
        .await;
    c.kubectl("expose deploy web --port=80 -n team").await;
    assert!(c.kubectl("get svc web -n team").await.contains("ClusterIP"));
    c.kubectl("create job once --image=nginx -n team").await;
    c.kubectl("create ingress front --rule=example.com/=web:80 -n team")
        .await;
    assert!(c.kubectl("auth can-i --list").await.contains("*.*"));
    c.kubectl("get events -n team").await;
    let wait = c.kubectl("wait --for=delete pod/one -n team --timeout=20s");
    let delete = c.kubectl("delete pod one -n team");
    let (waits, deletes) = tokio::join!(wait, delete);
    assert!(deletes.contains("deleted"), "{waits}{deletes}");
    c.kubectl("delete namespace team --timeout=20s").await;
    let (fine, text) = c.output("get deploy web -n team").await;
    assert!(!fine && text.contains("NotFound"), "{text}");
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn mistakes_are_named_before_anything_is_written() {
    let cluster = Cluster::start().await;
    let path = cluster.folder.path().join("typo.yaml");
    std::fs::write(
        &path,
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: typo}\ndate: {a: b}\n",
    )
    .unwrap();
    let (fine, text) = cluster
        .output(&format!("apply -f {}", path.display()))
        .await;
    assert!(!fine && text.contains("unknown field \"date\""), "{text}");
    let (fine, text) = cluster.output("get configmap typo").await;
    assert!(!fine && text.contains("NotFound"), "{text}");
    let (fine, text) = cluster.output("get things").await;
    assert!(
        !fine && text.contains("the server doesn't have a resource type \"things\""),
        "{text}"
    );
    cluster.stop().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn strangers_are_refused() {
    let cluster = Cluster::start().await;
    let (fine, text) = cluster.output("get pods --token=wrong").await;
    assert!(!fine && text.contains("must be logged in"), "{text}");
    cluster.stop().await;
}

#[tokio::test]
async fn addresses_are_checked_before_anything_is_served() {
    let api = Api::new().await;
    let serve = |addr: &str| {
        let options = ServeOptions {
            addr: addr.parse().unwrap(),
            token: None,
        };
        let server = api.server.clone();
        async move {
            server
                .serve(options, std::future::pending())
                .await
                .map(|(at, _)| at)
        }
    };
    assert!(
        serve("0.0.0.0:0")
            .await
            .unwrap_err()
            .to_string()
            .contains("no loopback address")
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let error = serve(&taken.local_addr().unwrap().to_string())
        .await
        .unwrap_err()
        .to_string();
    assert!(error.contains("is in use by another program"), "{error}");
    let (first, second) = (
        serve("127.0.0.1:0").await.unwrap(),
        serve("127.0.0.1:0").await.unwrap(),
    );
    assert_eq!((first.ca_pem, first.token), (second.ca_pem, second.token));
}
