//! A real cluster, and the tools that people reach it with.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use configurator_tests::controlplane::{About, ControlPlane};
use configurator_tests::guests;
use configurator_tests::program::{Program, until};
use configurator_tests::world::PATIENCE;
use expect_test::ExpectFile;
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::{Api, Client};

/// A control plane that the tests of this file share: each leaves alone what others have made.
pub struct Cluster {
    pub about: About,
    pub client: Client,
}

impl Cluster {
    pub async fn new() -> Self {
        let about = ControlPlane::shared().await.unwrap();
        let client = about.client().await.unwrap();
        let cluster = Self { about, client };
        // Whoever has the operator of Prometheus has this definition.
        cluster.kubectl("apply --server-side -f -", SERVICE_MONITORS);
        cluster.kubectl(
            "wait --for=condition=Established crd/servicemonitors.monitoring.coreos.com",
            "",
        );
        cluster
    }

    /// What kubectl prints; it may do everything, and must find nothing wrong.
    #[track_caller]
    pub fn kubectl(&self, arguments: &str, input: &str) -> String {
        self.kubectl_as(&self.about.kubernetes.kubeconfig, arguments, input)
            .unwrap_or_else(|told| panic!("kubectl {arguments}: {told}"))
    }

    /// What kubectl prints for whoever has this kubeconfig, or what it complains of.
    pub fn kubectl_as(
        &self,
        kubeconfig: &Path,
        arguments: &str,
        input: &str,
    ) -> Result<String, String> {
        let mut command = Command::new("kubectl");
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", kubeconfig)
            .env("HOME", &self.about.dir);
        output(command, input)
    }

    /// Applies manifests twice: they are valid to the last field, and the second time nothing would change.
    #[track_caller]
    pub fn accepts(&self, manifests: &str) -> String {
        let apply = "apply --server-side --validate=strict -f -";
        let applied = self.kubectl(apply, manifests);
        // Controllers may be writing their part while it is compared.
        until("nothing would change", PATIENCE, || {
            let diff = "diff --server-side -f -";
            let told = self.kubectl_as(&self.about.kubernetes.kubeconfig, diff, manifests);
            anyhow::Ok((told.as_deref() == Ok("")).then_some(()))
        })
        .unwrap();
        applied
    }

    /// What Helm prints.
    #[track_caller]
    pub fn helm(&self, arguments: &str, values: &str) -> String {
        self.try_helm(arguments, values)
            .unwrap_or_else(|told| panic!("helm {arguments}: {told}"))
    }

    /// What Helm complains of.
    #[track_caller]
    pub fn helm_fails(&self, arguments: &str, values: &str) -> String {
        self.try_helm(arguments, values)
            .expect_err("Helm finds nothing wrong")
    }

    fn try_helm(&self, arguments: &str, values: &str) -> Result<String, String> {
        let path = guests::cache().unwrap().join("controlplane/helm");
        assert!(
            path.is_file(),
            "Helm is not built: run the tests by `cargo xtask test`"
        );
        let mut command = Command::new(path);
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", &self.about.kubernetes.kubeconfig)
            .env("HOME", &self.about.dir)
            .env_remove("XDG_CACHE_HOME");
        output(command, values)
    }

    /// Makes a namespace, and returns when Pods can be made in it.
    pub async fn namespace(&self, name: &str) {
        self.kubectl(&format!("create namespace {name}"), "");
        let accounts: Api<ServiceAccount> = Api::namespaced(self.client.clone(), name);
        self.until("the account of Pods", async || {
            accounts.get_opt("default").await.unwrap().is_some()
        })
        .await;
    }

    /// Returns when `holds` is true.
    pub async fn until(&self, what: &str, mut holds: impl AsyncFnMut() -> bool) {
        let waiting = async {
            while !holds().await {
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
        };
        tokio::time::timeout(PATIENCE, waiting)
            .await
            .unwrap_or_else(|_| panic!("in vain: {what}"));
    }
}

/// What a command prints when it goes well and complains of nothing.
fn output(mut command: Command, input: &str) -> Result<String, String> {
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let input = input.to_owned();
    let writing = std::thread::spawn(move || drop(stdin.write_all(input.as_bytes())));
    let output = child.wait_with_output().unwrap();
    writing.join().unwrap();
    let stdout = String::from_utf8(output.stdout).unwrap();
    let stderr = String::from_utf8(output.stderr).unwrap();
    match output.status.success() && stderr.is_empty() {
        true => Ok(stdout),
        false => Err(format!("{}: {stdout}{stderr}", output.status)),
    }
}

/// A file of the workspace.
pub fn file(path: &str) -> PathBuf {
    guests::workspace().join(path)
}

/// What `configurator rbac` prints.
#[track_caller]
pub fn rbac(files: &[&Path], flags: &str) -> String {
    let mut program = Program::new("rbac").args(flags);
    for file in files {
        program = program.arg("-f").arg(file);
    }
    program.succeeds().unwrap()
}

/// Compares a committed file with what makes it.
#[track_caller]
pub fn is_made(path: &str, text: &str) {
    let file = ExpectFile {
        path: file(path),
        position: file!(),
    };
    file.assert_eq(text);
}

const SERVICE_MONITORS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: servicemonitors.monitoring.coreos.com}
spec:
  group: monitoring.coreos.com
  scope: Namespaced
  names: {kind: ServiceMonitor, plural: servicemonitors}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [selector, endpoints]
            properties:
              selector:
                type: object
                properties:
                  matchLabels: {type: object, additionalProperties: {type: string}}
              endpoints:
                type: array
                items:
                  type: object
                  properties:
                    port: {type: string}
                    interval: {type: string}
";
