//! kubectl against the API that the program serves. It needs `kubectl` on the PATH.

use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::{Context as _, Result, ensure};
use configurator_host::resource::ClusterConfigurator;
use configurator_tests::guests;
use configurator_tests::program::{PATIENCE, Running, until};
use expect_test::expect;
use kube::Client;
use kube::api::{Api, ListParams};
use kube::config::{AuthInfo, KubeConfigOptions, Kubeconfig};
use regex::Regex;

use crate::place::Place;

/// A host whose API is served, and kubectl with what `configurator kubeconfig` prints.
pub struct Cluster {
    host: Running,
    pub place: Place,
}

impl Cluster {
    fn start(arguments: &str) -> Result<Self> {
        Self::at(Place::new()?, arguments)
    }

    /// A host of this folder.
    pub fn at(place: Place, arguments: &str) -> Result<Self> {
        let host = place.host("--listen 127.0.0.1:0").args(arguments).start()?;
        // The API is served before the files are applied.
        let has_files = arguments.split_whitespace().any(|word| word == "-f");
        host.until_printed(if has_files {
            " applied"
        } else {
            "the API is served"
        })?;
        let kubeconfig = place.program("kubeconfig", "--data-dir data").succeeds()?;
        place.write("kubeconfig", &kubeconfig)?;
        Ok(Self { host, place })
    }

    fn command(&self, arguments: &str) -> Command {
        self.tool(Path::new("kubectl"), arguments)
    }

    fn tool(&self, program: &Path, arguments: &str) -> Command {
        let mut command = Command::new(program);
        command
            .args(arguments.split_whitespace())
            .env("KUBECONFIG", "kubeconfig")
            // For `apply --prune --applyset`, which is not stable yet.
            .env("KUBECTL_APPLYSET", "true")
            .env("HOME", self.place.folder())
            .current_dir(self.place.folder())
            .stdin(Stdio::null());
        command
    }

    /// What kubectl prints.
    pub fn kubectl(&self, arguments: &str) -> Result<String> {
        self.printed(Path::new("kubectl"), arguments)
    }

    /// What Helm prints.
    pub fn helm(&self, arguments: &str) -> Result<String> {
        self.printed(&guests::cache()?.join("controlplane/helm"), arguments)
    }

    fn printed(&self, program: &Path, arguments: &str) -> Result<String> {
        let output = self.tool(program, arguments).output();
        let program = program.display();
        let output = output
            .with_context(|| format!("{program} is needed: `cargo xtask test` installs it"))?;
        let complaint = String::from_utf8_lossy(&output.stderr);
        ensure!(
            output.status.success(),
            "{program} {arguments}: {complaint}; the host: {}{}",
            self.host.stdout(),
            self.host.stderr()
        );
        Ok(String::from_utf8(output.stdout)?)
    }

    /// What kubectl says when it fails.
    pub fn refused(&self, arguments: &str) -> Result<String> {
        let output = self.command(arguments).output()?;
        ensure!(!output.status.success(), "kubectl {arguments}: {output:?}");
        Ok(String::from_utf8(output.stderr)?)
    }
}

/// The table without how old things are, and without digests, which change with each build of a module.
fn ageless(table: &str) -> String {
    let digests = Regex::new(r"\b[0-9a-f]{12}\b").unwrap();
    let table = digests.replace_all(table, "DIGEST      ");
    let lines = table.lines().map(|line| match line.rsplit_once(' ') {
        Some((rest, age)) if age.ends_with('s') => format!("{} AGE", rest.trim_end()),
        _ => line.to_owned(),
    });
    lines.collect::<Vec<_>>().join("\n")
}

#[test]
fn the_usual_commands_work_on_configurators() -> Result<()> {
    let c = Cluster::start("")?;
    assert_eq!(c.kubectl("get clusterconfigurators")?, "");
    expect![[r#"
        namespace/shop created
        pod/web-1 created
        pod/web-2 created
        clusterconfigurator.configurator.dev/pod-config created
    "#]]
    .assert_eq(&c.kubectl("apply -f shop.yaml -f pod-config.yaml")?);
    c.kubectl("wait --for=condition=Bootstrapped clusterconfigurator/pod-config --timeout=30s")?;
    c.kubectl("wait --for=condition=Ready clusterconfigurator/pod-config --timeout=30s")?;
    let counted = || {
        let counts = c.kubectl("get ccfgr pod-config -o jsonpath={.status.counts.objects}")?;
        Ok::<_, anyhow::Error>((counts == "2").then_some(()))
    };
    until("both Pods are counted", PATIENCE, counted)?;
    expect![[r#"
        NAME         WATCHES   MODE    MODULE         OBJECTS   FAILED   SUSPENDED   READY   REASON    AGE
        pod-config   Pod       Chain   DIGEST         2         0        false       True    Running AGE"#]]
    .assert_eq(&ageless(&c.kubectl("get ccfgr")?));
    expect![[r#"
        NAME                                              WATCHES   MODE    MODULE         OBJECTS   FAILED   SUSPENDED   READY   REASON    AGE
        clusterconfigurator.configurator.dev/pod-config   Pod       Chain   DIGEST         2         0        false       True    Running AGE"#]].assert_eq(&ageless(&c.kubectl("get cfgrs")?));
    let described = c.kubectl("describe clusterconfigurator pod-config")?;
    for part in [
        "Kind:         ClusterConfigurator",
        "Message:               runs start when objects change",
        "Message:               every object that existed at start has had its turn",
        "Reason:                AsExpected",
        "Module Digest:        sha256:",
    ] {
        assert!(described.contains(part), "{part:?} is not in {described}");
    }
    expect![[r#"{"level":"high","region":"north"}"#]]
        .assert_eq(&c.kubectl("get configmap web-1-config -n shop -o jsonpath={.data}")?);
    expect![[r#"
        namespace/shop unchanged
        pod/web-1 unchanged
        pod/web-2 unchanged
        clusterconfigurator.configurator.dev/pod-config unchanged
    "#]]
    .assert_eq(&c.kubectl("apply -f shop.yaml -f pod-config.yaml")?);

    expect![[r#"
        clusterconfigurator.configurator.dev/pod-config labeled
    "#]]
    .assert_eq(&c.kubectl("label clusterconfigurator pod-config team=shop")?);
    expect!["pod-config   Pod   Chain   DIGEST         2     0     false   True   Running AGE"]
        .assert_eq(&ageless(&c.kubectl("get ccfgr -l team=shop --no-headers")?));
    c.kubectl(r#"patch ccfgr pod-config --type=merge -p {"spec":{"suspend":true}}"#)?;
    let ready = "{.status.conditions[?(@.type=='Ready')].reason}";
    let waits = |reason: &str| {
        c.kubectl(&format!(
            "wait ccfgr/pod-config --timeout=30s --for=jsonpath={ready}={reason}"
        ))
    };
    waits("Suspended")?;
    let mut edit = c.command("edit ccfgr pod-config");
    edit.env("KUBE_EDITOR", "sed -i 's/suspend: true/suspend: false/'");
    let edited = edit.output()?;
    expect![[r#"
        clusterconfigurator.configurator.dev/pod-config edited
    "#]]
    .assert_eq(&String::from_utf8(edited.stdout)?);
    waits("Running")?;
    let nonsense = r#"patch ccfgr pod-config --type=merge -p {"spec":{"chain":{"phases":[]}}}"#;
    expect![[r#"
        The ClusterConfigurator "pod-config" is invalid: spec.chain.phases: Invalid value: 0: spec.chain.phases in body should have at least 1 items
    "#]].assert_eq(&c.refused(nonsense)?);
    Ok(())
}

#[test]
fn a_changed_manifest_is_applied_and_one_with_a_mistake_is_not() -> Result<()> {
    let c = Cluster::start("")?;
    let manifest = c.place.read("pod-config.yaml")?;
    let field = |name: &str| {
        c.kubectl(&format!(
            "get ccfgr pod-config -o jsonpath={{.spec.{name}}}"
        ))
    };
    for flags in ["", "--server-side --force-conflicts"] {
        let apply = format!("apply {flags} -f pod-config.yaml");
        c.place.write("pod-config.yaml", &manifest)?;
        c.kubectl(&apply)?;
        assert_eq!(field("concurrency")?, "4", "apply {flags}");
        let changed = manifest.replace("spec:\n", "spec:\n  concurrency: 8\n");
        c.place.write("pod-config.yaml", &changed)?;
        c.kubectl(&apply)?;
        assert_eq!(field("concurrency")?, "8", "apply {flags}");
        let typo = manifest.replace("  phases:", "  pases:");
        c.place.write("pod-config.yaml", &typo)?;
        let refused = c.refused(&apply)?;
        // A real server says so too: an apply is typed before it is decoded.
        let mistake = if flags.is_empty() {
            "strict decoding error: unknown field \"spec.chain.pases\", unknown field \"spec.deletion.pases\""
        } else {
            ".spec.chain.pases: field not declared in schema"
        };
        assert!(refused.contains(mistake), "apply {flags}: {refused}");
        c.kubectl("delete clusterconfigurator pod-config --timeout=30s")?;
    }
    Ok(())
}

#[test]
fn a_watch_shows_what_is_added_and_changed() -> Result<()> {
    let c = Cluster::start("-f pod-config.yaml")?;
    c.kubectl("wait --for=condition=Ready ccfgr/pod-config --timeout=30s")?;
    let watching = Running::start(c.command("get ccfgr --watch"))?;
    // The table grows wider with the names in it.
    let until_row = |words: &str| {
        watching.until_stdout(words, |text| {
            let table = ageless(text);
            let mut rows = table.lines().map(|row| {
                let words: Vec<&str> = row.split_whitespace().collect();
                words.join(" ")
            });
            rows.any(|row| row.starts_with(words))
        })
    };
    until_row("pod-config Pod Chain DIGEST 0 0 false True Running")?;
    let hello = guests::workspace().join("examples/rust-hello/configurator.yaml");
    std::fs::copy(hello, c.place.path("hello.yaml"))?;
    c.kubectl("apply -f hello.yaml")?;
    until_row("rust-hello Namespace Chain DIGEST")?;
    c.kubectl(r#"patch ccfgr pod-config --type=merge -p {"spec":{"suspend":true}}"#)?;
    until_row("pod-config Pod Chain DIGEST 0 0 true False Suspended")?;
    Ok(())
}

#[test]
fn delete_waits_until_the_object_is_gone() -> Result<()> {
    let c = Cluster::start("-f pod-config.yaml -f shop.yaml")?;
    c.host.until_printed("had their turn")?;
    c.kubectl("get configmap web-1-config -n shop")?;
    let deleted = c.kubectl("delete pod web-1 -n shop --wait --timeout=30s")?;
    assert!(deleted.starts_with("pod \"web-1\" deleted"), "{deleted}");
    // What was made for the Pod goes with it.
    c.host.until_printed("✓ pod-config shop/web-1 Deleted")?;
    c.kubectl("wait --for=delete configmap/web-1-config -n shop --timeout=30s")?;
    // The Configurator is held by its finalizer until its runs have ended.
    let deleted = c.kubectl("delete clusterconfigurator pod-config --wait --timeout=30s")?;
    assert!(deleted.contains("\"pod-config\" deleted"), "{deleted}");
    assert_eq!(c.kubectl("get clusterconfigurators")?, "");
    c.host.until_printed("■ pod-config is gone")?;
    Ok(())
}

#[test]
fn whoever_has_no_token_is_refused() -> Result<()> {
    let c = Cluster::start("")?;
    let refused = c.refused("get clusterconfigurators --token=wrong")?;
    assert!(
        refused.contains("error: You must be logged in to the server"),
        "{refused}"
    );
    // Without any token kubectl asks for a name; other clients show what the API says.
    let kubeconfig = c.place.read("kubeconfig")?;
    let mut kubeconfig = Kubeconfig::from_yaml(&kubeconfig)?;
    kubeconfig.auth_infos[0].auth_info = Some(AuthInfo::default());
    let runtime = tokio::runtime::Runtime::new()?;
    let answer = runtime.block_on(async {
        let options = KubeConfigOptions::default();
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &options).await?;
        let api: Api<ClusterConfigurator> = Api::all(Client::try_from(config)?);
        Ok::<_, anyhow::Error>(api.list(&ListParams::default()).await)
    })?;
    match answer {
        Err(kube::Error::Api(status)) => assert_eq!(
            (status.code, status.message.as_str()),
            (401, "Unauthorized")
        ),
        other => panic!("{other:?}"),
    }
    Ok(())
}

#[test]
fn a_kubeconfig_is_there_as_soon_as_a_host_has_served_the_api() -> Result<()> {
    let place = Place::new()?;
    let kubeconfig = |arguments: &str| place.program("kubeconfig", arguments);
    expect![[r#"
        error: no host has served the API from data yet; start one with `configurator run --data-dir data --listen 127.0.0.1:0`
    "#]].assert_eq(&kubeconfig("--data-dir data").fails()?);
    place.settle()?;
    expect![[r#"
        error: no host has served the API from data yet; start one with `configurator run --data-dir data --listen 127.0.0.1:0`
    "#]].assert_eq(&kubeconfig("--data-dir data").fails()?);
    place
        .host("--listen 127.0.0.1:0 --until-settled")
        .succeeds()?;
    let printed = kubeconfig("--data-dir data").succeeds()?;
    assert_eq!(
        kubeconfig("-o copy")
            .env("CONFIGURATOR_DATA_DIR", "data")
            .succeeds()?,
        ""
    );
    assert_eq!(place.read("copy")?, printed);
    assert!(
        printed.starts_with("apiVersion: v1\nkind: Config\n"),
        "{printed}"
    );
    Ok(())
}

#[test]
fn the_definition_that_the_program_prints_is_applied_by_kubectl() -> Result<()> {
    let c = Cluster::start("")?;
    let printed = c.place.program("crds", "").succeeds()?;
    c.place.write("crds.yaml", &printed)?;
    expect![[r#"
        customresourcedefinition.apiextensions.k8s.io/configurators.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/clusterconfigurators.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/flows.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/clusterflows.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/commands.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/configuratorpolicies.configurator.dev serverside-applied
        customresourcedefinition.apiextensions.k8s.io/objectsets.configurator.dev serverside-applied
    "#]].assert_eq(&c.kubectl("apply --server-side --force-conflicts -f crds.yaml")?);
    c.kubectl(
        "wait --for=condition=Established crd/clusterconfigurators.configurator.dev --timeout=30s",
    )?;
    let explained = c.kubectl("explain clusterconfigurator.spec.deletion.timeout")?;
    assert!(
        explained.contains("KIND:       ClusterConfigurator"),
        "{explained}"
    );
    Ok(())
}
