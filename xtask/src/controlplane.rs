//! `cargo xtask controlplane`: real servers, for tests and for trying things out.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Instant;

use anyhow::{Context as _, Result, ensure};
use serde::Deserialize;
use sha2::{Digest as _, Sha256};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::{cache, cargo, kopf};

/// Where the Go modules are, below the workspace.
const SOURCES: &str = "tests/servers";
/// The version of Kubernetes in `tests/servers/controlplane/go.mod`; its clients compare theirs with it.
const KUBERNETES: (&str, &str, &str) = ("1", "36", "v1.36.3");
/// How often progress is shown, in packages compiled.
const EVERY: usize = 200;

/// Starts etcd, a Kubernetes control plane and Vault on loopback, and stops them at the end.
#[derive(clap::Args)]
pub struct Controlplane {
    /// Only build the servers, and the clients that tests let loose on them.
    #[arg(long)]
    build: bool,
    /// Members of the etcd that is a config store.
    #[arg(long, default_value_t = 1)]
    stores: u8,
}

/// The servers as programs.
pub struct Servers {
    /// etcd, the control plane and what starts them all.
    pub controlplane: PathBuf,
    /// The secret store.
    pub vault: PathBuf,
}

impl Controlplane {
    /// Builds the servers, starts them, prints how to reach them, and keeps them running until an interrupt.
    pub fn run(self) -> Result<()> {
        let servers = build()?;
        if self.build {
            clients()?;
            kopf::install()?;
            println!("{}", servers.controlplane.display());
            println!("{}", servers.vault.display());
            return Ok(());
        }
        let running = servers.start(self.stores)?;
        let about: About = serde_json::from_str(&running.description)?;
        println!("export KUBECONFIG={}", about.kubernetes.kubeconfig);
        println!(
            "export ETCDCTL_ENDPOINTS={}",
            about.store.endpoints.join(",")
        );
        println!(
            "export ETCDCTL_CACERT={} ETCDCTL_CERT={} ETCDCTL_KEY={}",
            about.ca, about.store.cert, about.store.key
        );
        println!(
            "export VAULT_ADDR={} VAULT_CACERT={} VAULT_TOKEN={}",
            about.vault.url, about.ca, about.vault.token
        );
        eprintln!("controlplane: ready; press Ctrl-C to stop the servers and remove their files");
        running.until_interrupt()
    }
}

/// Servers under way; they end, and their files go, when this is dropped.
pub struct Running {
    /// How they are reached: a line of JSON.
    pub description: String,
    child: Child,
}

impl Running {
    /// Keeps the servers running until SIGINT, SIGTERM or SIGHUP, then returns when they have ended and removed their files.
    fn until_interrupt(mut self) -> Result<()> {
        // Servers stop when their input closes, and `Child::wait` closes it, so the input is held elsewhere.
        let input = self.child.stdin.take();
        let mut signals = Signals::new([SIGINT, SIGTERM, SIGHUP])?;
        thread::spawn(move || {
            signals.forever().next();
            drop(input);
        });
        let status = self.child.wait()?;
        ensure!(status.success(), "the servers ended: {status}");
        Ok(())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        // The end of their input is their sign. What they leave is removed before they end.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

impl Servers {
    /// Starts all of them, with so many members of the etcd that is a config store, and returns when they are ready.
    ///
    /// # Errors
    /// When one does not start.
    pub fn start(&self, stores: u8) -> Result<Running> {
        eprintln!("controlplane: starting etcd, a Kubernetes control plane and Vault");
        let mut child = Command::new(&self.controlplane)
            .args(["up", "-kwok", "-vault"])
            .arg(&self.vault)
            .args(["-stores", &stores.to_string()])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .context("cannot start the servers")?;
        let stdout = child.stdout.take().context("the servers have no output")?;
        let mut description = String::new();
        BufReader::new(stdout).read_line(&mut description)?;
        ensure!(
            !description.is_empty(),
            "the servers did not start: their messages are above"
        );
        Ok(Running { description, child })
    }
}

#[derive(Deserialize)]
struct About {
    ca: String,
    kubernetes: Kubernetes,
    store: Store,
    vault: Vault,
}

#[derive(Deserialize)]
struct Kubernetes {
    kubeconfig: String,
}

#[derive(Deserialize)]
struct Store {
    endpoints: Vec<String>,
    cert: String,
    key: String,
}

#[derive(Deserialize)]
struct Vault {
    url: String,
    token: String,
}

/// Builds the servers in the cache folder, unless they are there already.
///
/// # Errors
/// When Go is not installed, or does not build them.
pub fn build() -> Result<Servers> {
    let sources = cargo::workspace().join(SOURCES);
    let folder = folder()?;
    let [major, minor, version] = [KUBERNETES.0, KUBERNETES.1, KUBERNETES.2];
    let flags = [
        "-s -w".to_owned(),
        format!("-X k8s.io/component-base/version.gitVersion={version}"),
        format!("-X k8s.io/component-base/version.gitMajor={major}"),
        format!("-X k8s.io/component-base/version.gitMinor={minor}"),
        "-X k8s.io/component-base/version.gitTreeState=clean".to_owned(),
    ]
    .join(" ");
    Ok(Servers {
        controlplane: program(&sources.join("controlplane"), &folder, &flags)?,
        vault: program(&sources.join("vault"), &folder, "-s -w")?,
    })
}

/// Builds what tests let loose on servers, unless it is there already: informers of client-go with a manager of
/// controller-runtime, Helm, and a registry.
///
/// # Errors
/// As [`build`].
pub fn clients() -> Result<()> {
    let sources = cargo::workspace().join(SOURCES);
    let folder = folder()?;
    for name in ["clients", "helm", "registry"] {
        program(&sources.join(name), &folder, "-s -w")?;
    }
    Ok(())
}

/// Builds the Temporal server of a benchmark, unless it is there already.
///
/// # Errors
/// As [`build`].
pub fn temporal() -> Result<PathBuf> {
    let source = cargo::workspace().join(SOURCES).join("temporal");
    program(&source, &folder()?, "-s -w")
}

/// Where the programs are.
fn folder() -> Result<PathBuf> {
    let folder = cache::dir()?.join("controlplane");
    fs::create_dir_all(&folder).with_context(|| format!("cannot create {}", folder.display()))?;
    Ok(folder)
}

/// The program of the Go module in `source`, which is called as its folder.
fn program(source: &Path, folder: &Path, flags: &str) -> Result<PathBuf> {
    let name = source
        .file_name()
        .context("a Go module has a folder")?
        .to_string_lossy();
    let path = folder.join(&*name);
    let stamp = folder.join(format!("{name}.digest"));
    let digest = digest(source, flags)?;
    if path.is_file() && fs::read_to_string(&stamp).is_ok_and(|old| old == digest) {
        return Ok(path);
    }
    let since = Instant::now();
    eprintln!("controlplane: building {name} with Go; the first time takes some minutes");
    let aside = folder.join(format!(".{name}.{}", std::process::id()));
    let mut go = Command::new("go")
        .args(["build", "-v", "-trimpath", "-buildvcs=false", "-mod=readonly"])
        .arg(format!("-ldflags={flags}"))
        .arg("-o")
        .arg(&aside)
        .arg(".")
        .current_dir(source)
        .env("CGO_ENABLED", "0")
        .env("GOCACHE", cache::dir()?.join("go-build"))
        .env("GOFLAGS", "")
        .env("GOWORK", "off")
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .context(
            "the servers of the tests are Go programs, and `go` cannot be run: install Go 1.26 or later and put it on the PATH",
        )?;
    let said = BufReader::new(go.stderr.take().context("go has no output")?);
    let mut compiled = 0;
    for line in said.lines() {
        let line = line?;
        // The names of packages are progress; everything else is for people.
        if line.contains(' ') {
            eprintln!("controlplane: {line}");
            continue;
        }
        compiled += 1;
        if compiled % EVERY == 0 {
            eprintln!(
                "controlplane: {name}: {compiled} packages compiled ({:.0?})",
                since.elapsed()
            );
        }
    }
    ensure!(
        go.wait()?.success(),
        "go could not build {name}: its messages are above"
    );
    fs::rename(&aside, &path).with_context(|| format!("cannot write {}", path.display()))?;
    fs::write(&stamp, digest)?;
    eprintln!("controlplane: built {name} ({:.0?})", since.elapsed());
    Ok(path)
}

/// What a program is made of: it is built again when this changes.
fn digest(source: &Path, flags: &str) -> Result<String> {
    let mut files: Vec<PathBuf> = fs::read_dir(source)
        .with_context(|| format!("cannot read {}", source.display()))?
        .map(|entry| Ok(entry?.path()))
        .collect::<Result<_>>()?;
    files.sort();
    let mut hasher = Sha256::new();
    hasher.update(flags);
    for file in files.iter().filter(|file| file.is_file()) {
        hasher.update(fs::read(file)?);
    }
    Ok(hasher
        .finalize()
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect())
}
