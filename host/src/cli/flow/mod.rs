//! `configurator flow`: what machines are doing, and orders for them.

mod drawing;
mod target;

use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use configurator_core::machine::phase::PhaseKind;
use configurator_core::machine::state::{NodeState, State, Turn};
use configurator_core::time::Timestamp;
use futures::StreamExt;
use k8s_openapi::api::authentication::v1::SelfSubjectReview;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use kube::runtime::watcher::{self, Event};
use kube::runtime::{WatchStreamExt, watcher as watch_kind};
use kube::{Client, ResourceExt};
use serde_json::json;

use self::target::Target;
use super::servers;
use super::table::table;
use super::terminal::{BAD, GOOD, NAME};
use crate::clock::{Clock as _, SystemClock};
use crate::controller::commands::namespace_beside;
use crate::resource::command::{Command, CommandPhase, CommandSpec};
use crate::resource::kind_of;

/// How long the host may take to answer a Command.
const ANSWERED_WITHIN: Duration = Duration::from_secs(30);

/// Inspect and control the machines of objects.
#[derive(Args)]
pub struct FlowArgs {
    /// Kubeconfig of the cluster. Default: the cluster of the Pod this runs in.
    #[arg(long, value_name = "FILE", env = "KUBECONFIG", global = true)]
    kubeconfig: Option<PathBuf>,
    #[command(subcommand)]
    order: Order,
}

/// An object of a Configurator.
#[derive(Args)]
pub struct Object {
    /// Configurator: NAMESPACE/NAME, or NAME of a ClusterConfigurator.
    configurator: String,
    /// Object: NAMESPACE/NAME, or NAME in the namespace `default`.
    object: String,
}

/// Who gives an order, and whether its answer is awaited.
#[derive(Args)]
pub struct Giver {
    /// User who makes the request. Default: the user that the API server knows, or else the user of this shell. The admission policy for Commands
    /// accepts only the user that the API server knows.
    #[arg(long, value_name = "USER")]
    requested_by: Option<String>,
    /// Do not wait for the answer of the host.
    #[arg(long)]
    no_wait: bool,
}

#[derive(Subcommand)]
enum Order {
    /// List objects and their progress.
    List {
        /// Only objects of this Configurator.
        configurator: Option<String>,
        /// Only objects with unfinished work: running, cancelled or failed.
        #[arg(long)]
        unfinished: bool,
    },
    /// Show the steps of an object: state, times, attempts, progress, and what to do about failures.
    Show(Object),
    /// Show the steps again on every change, until the object reaches a terminal phase.
    Watch(Object),
    /// Approve what an object waits for: send the signal `approved` to its steps.
    Approve {
        #[command(flatten)]
        object: Object,
        #[command(flatten)]
        giver: Giver,
    },
    /// Cancel the running work. It can be resumed.
    Cancel {
        #[command(flatten)]
        object: Object,
        #[command(flatten)]
        giver: Giver,
    },
    /// Resume work that was cancelled or has failed.
    Resume {
        #[command(flatten)]
        object: Object,
        /// Where to resume a flow. Default: as the flow declares.
        #[arg(long, value_enum)]
        from: Option<From>,
        #[command(flatten)]
        giver: Giver,
    },
    /// Restart the phase. In a terminal phase, or if the state is not trusted, restart from the initial phase.
    Restart {
        #[command(flatten)]
        object: Object,
        #[command(flatten)]
        giver: Giver,
    },
    /// Send a signal to the steps that wait for it.
    Signal {
        #[command(flatten)]
        object: Object,
        /// Name of the signal.
        name: String,
        /// Data of the signal, as JSON.
        #[arg(long)]
        data: Option<String>,
        #[command(flatten)]
        giver: Giver,
    },
    /// Skip a step: mark it as done without running it.
    Skip {
        #[command(flatten)]
        object: Object,
        /// Path of the step, beginning with its phase: InFlight/attach/bind-eips.
        node: String,
        /// Reason, kept with the step.
        #[arg(long)]
        reason: String,
        #[command(flatten)]
        giver: Giver,
    },
}

/// Where a flow goes on.
#[derive(Clone, Copy, ValueEnum)]
enum From {
    /// At the step that failed.
    FailedStep,
    /// At the first step.
    FirstStep,
}

/// Does what the command line says.
///
/// # Errors
/// When the cluster cannot be asked, there is no such object, or an order is refused.
pub fn flow(args: &FlowArgs) -> anyhow::Result<ExitCode> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    runtime.block_on(async {
        let client = servers::cluster_client(args.kubeconfig.as_deref()).await?;
        follow(&client, &args.order).await
    })
}

/// `configurator approve`.
///
/// # Errors
/// As [`flow`].
pub fn approve(
    kubeconfig: Option<PathBuf>,
    object: Object,
    giver: Giver,
) -> anyhow::Result<ExitCode> {
    flow(&FlowArgs {
        kubeconfig,
        order: Order::Approve { object, giver },
    })
}

/// `configurator show`.
///
/// # Errors
/// As [`flow`].
pub fn show(kubeconfig: Option<PathBuf>, object: Object) -> anyhow::Result<ExitCode> {
    flow(&FlowArgs {
        kubeconfig,
        order: Order::Show(object),
    })
}

async fn follow(client: &Client, order: &Order) -> anyhow::Result<ExitCode> {
    let (object, giver, more) = match order {
        Order::List {
            configurator,
            unfinished,
        } => {
            list(client, configurator.as_deref(), *unfinished).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Order::Show(object) => {
            let target = Target::named(client, &object.configurator).await?;
            let found = target.get(&target.key(&object.object)?).await?;
            anstream::print!("{}", shown(&target, &found).await?);
            return Ok(ExitCode::SUCCESS);
        }
        Order::Watch(object) => {
            watch(client, object).await?;
            return Ok(ExitCode::SUCCESS);
        }
        Order::Approve { object, giver } => (object, giver, json!({"verb": "Approve"})),
        Order::Cancel { object, giver } => (object, giver, json!({"verb": "Cancel"})),
        Order::Resume {
            object,
            from,
            giver,
        } => {
            let from = from.map(|from| match from {
                From::FailedStep => "FailedStep",
                From::FirstStep => "FirstStep",
            });
            (object, giver, json!({"verb": "Resume", "from": from}))
        }
        Order::Restart { object, giver } => (object, giver, json!({"verb": "Restart"})),
        Order::Signal {
            object,
            name,
            data,
            giver,
        } => {
            let data: Option<serde_json::Value> = data
                .as_deref()
                .map(serde_json::from_str)
                .transpose()
                .context("--data is no JSON")?;
            let signal = json!({"name": name, "data": data});
            (object, giver, json!({"verb": "Signal", "signal": signal}))
        }
        Order::Skip {
            object,
            node,
            reason,
            giver,
        } => {
            let skip = json!({"node": node, "reason": reason});
            (object, giver, json!({"verb": "Skip", "skip": skip}))
        }
    };
    command(client, object, giver, more).await
}

/// Makes a Command, and says what became of it.
async fn command(
    client: &Client,
    object: &Object,
    giver: &Giver,
    mut spec: serde_json::Value,
) -> anyhow::Result<ExitCode> {
    let target = Target::named(client, &object.configurator).await?;
    let key = target.key(&object.object)?;
    let found = target.get(&key).await?;
    let uid = found.uid().unwrap_or_default();
    let requester = match &giver.requested_by {
        Some(requester) => requester.clone(),
        None => user(client).await,
    };
    if let serde_json::Value::Object(fields) = &mut spec {
        let configurator = &target.configurator.key;
        let kind = kind_of(configurator).kind;
        fields.insert(
            "configurator".into(),
            json!({"kind": kind, "name": configurator.name}),
        );
        let ApiResource {
            api_version, kind, ..
        } = &target.resource;
        let target = json!({"apiVersion": api_version, "kind": kind, "name": key.name, "uid": uid});
        fields.insert("target".into(), target);
        fields.insert("requestedBy".into(), requester.into());
        fields.retain(|_, value| !value.is_null());
    }
    let spec: CommandSpec = serde_json::from_value(spec)?;
    let namespace = namespace_beside(&key.namespace);
    let verb = spec.verb;
    let mut order = Command::new("", spec);
    order.metadata.name = None;
    order.metadata.generate_name = Some(format!("{verb:?}-").to_lowercase());
    // It goes with the object.
    order.metadata.owner_references = Some(vec![
        k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference {
            api_version: target.resource.api_version.clone(),
            kind: target.resource.kind.clone(),
            name: key.name.clone(),
            uid,
            ..Default::default()
        },
    ]);
    let api: Api<Command> = Api::namespaced(client.clone(), namespace);
    let made = api
        .create(&PostParams::default(), &order)
        .await
        .context("the Command was refused")?;
    let name = made.name_any();
    if giver.no_wait {
        anstream::println!("{NAME}{namespace}/{name}{NAME:#}");
        return Ok(ExitCode::SUCCESS);
    }
    let answered = kube::runtime::wait::await_condition(api, &name, |command: Option<&Command>| {
        let status = command.and_then(|command| command.status.as_ref());
        let phase = status.and_then(|status| status.phase);
        phase.is_some_and(|phase| phase != CommandPhase::Pending)
    });
    let answered = tokio::time::timeout(ANSWERED_WITHIN, answered).await;
    let Ok(answered) = answered else {
        bail!(
            "no host has answered within {ANSWERED_WITHIN:?}; the Command {namespace}/{name} stays, and acts when one does"
        );
    };
    let status = answered?
        .and_then(|command| command.status)
        .unwrap_or_default();
    if status.phase == Some(CommandPhase::Done) {
        anstream::println!("{GOOD}✓{GOOD:#} {verb:?} {key}");
        return Ok(ExitCode::SUCCESS);
    }
    anstream::println!("{BAD}✗{BAD:#} {verb:?} {key}: {}", status.message);
    Ok(ExitCode::FAILURE)
}

/// Who the API says that this is.
async fn user(client: &Client) -> String {
    let api: Api<SelfSubjectReview> = Api::all(client.clone());
    let review = api
        .create(&PostParams::default(), &SelfSubjectReview::default())
        .await;
    let user = review
        .ok()
        .and_then(|review| review.status?.user_info?.username);
    let shell = || std::env::var("USER").unwrap_or_else(|_| "unknown".to_owned());
    user.unwrap_or_else(shell)
}

async fn list(client: &Client, name: Option<&str>, unfinished: bool) -> anyhow::Result<()> {
    let mut rows = vec![["CONFIGURATOR", "OBJECT", "PHASE", "AT"].map(str::to_owned)];
    for target in Target::all(client, name).await? {
        for object in target.list().await? {
            let key = match object.namespace() {
                Some(namespace) => format!("{namespace}/{}", object.name_any()),
                None => object.name_any(),
            };
            let (phase, at) = match target.state(&object).await {
                Ok(state) if unfinished && !is_unfinished(&target, &state) => continue,
                Ok(state) => (state.phase.clone(), place_of(&state)),
                Err(error) => ("?".to_owned(), error.to_string()),
            };
            rows.push([target.configurator.key.to_string(), key, phase, at]);
        }
    }
    anstream::print!("{}", table(&rows));
    Ok(())
}

/// Whether something is under way, was broken off, or has failed.
fn is_unfinished(target: &Target, state: &State) -> bool {
    let phase = target.mode.machine.phase(&state.phase);
    let is_active = phase.is_none_or(|phase| matches!(phase.kind, PhaseKind::Active { .. }));
    is_active || state.unfinished.is_some()
}

/// The first leaf that is not done, and what it is up to.
fn place_of(state: &State) -> String {
    fn find(node: &NodeState, path: &str) -> Option<String> {
        if node.is_well() {
            return None;
        }
        for (name, child) in &node.children {
            let path = match path {
                "" => name.clone(),
                above => format!("{above}/{name}"),
            };
            if let Some(found) = find(child, &path) {
                return Some(found);
            }
        }
        if !node.children.is_empty() || node.start_time.is_none() {
            return None;
        }
        let what = match &node.leaf.turn {
            _ if node.leaf.is_unknown => "unknown",
            _ if node.fatal => "failed",
            Turn::Waiting { .. } => "waits",
            Turn::Due { .. } => "is tried again",
            Turn::Idle | Turn::Ready(_) | Turn::Running { .. } => "is under way",
        };
        let progress = node.leaf.progress.as_ref();
        let progress = progress.map(|progress| format!(", {} %", progress.percent));
        Some(format!("{path} {what}{}", progress.unwrap_or_default()))
    }
    let phase = state.unfinished.as_ref().unwrap_or(&state.phase);
    let root = state.nodes.get(phase);
    root.and_then(|root| find(root, "")).unwrap_or_default()
}

async fn shown(target: &Target, object: &DynamicObject) -> anyhow::Result<String> {
    let state = target.state(object).await?;
    let now: Timestamp = SystemClock.now();
    let tree = drawing::draw(&target.mode.machine, &state, now);
    let key = match object.namespace() {
        Some(namespace) => format!("{namespace}/{}", object.name_any()),
        None => object.name_any(),
    };
    Ok(format!(
        "{} {NAME}{key}{NAME:#}\n{tree}",
        target.resource.kind
    ))
}

async fn watch(client: &Client, object: &Object) -> anyhow::Result<()> {
    let target = Target::named(client, &object.configurator).await?;
    let key = target.key(&object.object)?;
    target.get(&key).await?;
    let config = watcher::Config::default().fields(&format!("metadata.name={}", key.name));
    let events = watch_kind(target.api(&key.namespace), config).default_backoff();
    tokio::pin!(events);
    let mut last = String::new();
    while let Some(event) = events.next().await {
        let object = match event.context("the object cannot be watched")? {
            Event::InitApply(object) | Event::Apply(object) => object,
            Event::Delete(_) => {
                anstream::println!("{key} is gone");
                return Ok(());
            }
            Event::Init | Event::InitDone => continue,
        };
        let text = shown(&target, &object).await?;
        if text != last {
            anstream::println!("{text}");
            last = text;
        }
        let state = target.state(&object).await?;
        let phase = target.mode.machine.phase(&state.phase);
        if phase.is_some_and(|phase| phase.kind == PhaseKind::Terminal) {
            return Ok(());
        }
    }
    Ok(())
}
