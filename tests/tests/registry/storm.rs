//! A thousand reloads from a registry of many moods, while objects change all the time: no run is dropped, doubled or of two modules.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use async_trait::async_trait;
use configurator_host::module_source::oci::{Signature, SigningKey};
use configurator_host::module_source::{
    Fetched, ModulePolicies, ModuleSource, ModuleSources, SourceError,
};
use configurator_host::observer::Notice;
use configurator_host::resource::ModuleSpec;
use configurator_tests::guests::digest;
use configurator_tests::witness::Witness;
use configurator_tests::world::{PATIENCE, World};
use serde_json::json;
use tokio::sync::watch;

use crate::bench::{Given, configurator, variant, world_with};
use crate::liars::{Asked, Said, manifest, module, ok, plain, registry, status};
use crate::signatures::key;

const RELOADS: usize = 1000;
const OBJECTS: usize = 8;
/// How many modules there are that may run; as many are never run.
const GOOD: u8 = 6;

/// How the registry is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Mood {
    /// What it has is good.
    Well,
    /// What it has is good, and comes slowly.
    Slow,
    /// Nobody answers.
    Away,
    /// It is too busy to answer.
    Busy,
    /// What it answers makes no sense.
    Garbage,
    /// The connection breaks in the middle of the module.
    Half,
    /// The module is not the one that the manifest names.
    Other,
    /// Nobody has signed the module.
    Unsigned,
    /// The module is signed by a stranger.
    Forged,
}

impl Mood {
    /// Every other time all is well.
    fn of(number: usize) -> Self {
        match number % 16 {
            1 => Self::Away,
            3 => Self::Busy,
            5 => Self::Garbage,
            7 => Self::Half,
            9 => Self::Other,
            11 => Self::Unsigned,
            13 => Self::Forged,
            15 => Self::Slow,
            _ => Self::Well,
        }
    }

    fn is_good(self) -> bool {
        matches!(self, Self::Well | Self::Slow)
    }
}

/// What the registry has at the moment.
struct Shown {
    mood: Mood,
    module: Vec<u8>,
    manifest: Vec<u8>,
    signature: Signature,
    signatures: Vec<u8>,
}

impl Shown {
    fn new(mood: Mood, module: Vec<u8>, key: &SigningKey) -> Self {
        let manifest = manifest(&module, module.len());
        let signature = key.sign("127.0.0.1/team/scripted", &digest(&manifest));
        let signature = signature.unwrap();
        let payload = signature.payload.as_bytes();
        let signatures = json!({
            "schemaVersion": 2,
            "mediaType": "application/vnd.oci.image.manifest.v1+json",
            "config": {"mediaType": "application/vnd.oci.image.config.v1+json", "digest": digest(b"{}"), "size": 2},
            "layers": [{
                "mediaType": "application/vnd.dev.cosign.simplesigning.v1+json",
                "digest": digest(payload),
                "size": payload.len(),
                "annotations": {"dev.cosignproject.cosign/signature": signature.signature},
            }],
        });
        Self {
            mood,
            module,
            manifest,
            signatures: signatures.to_string().into_bytes(),
            signature,
        }
    }

    /// What is said, and whether the module cannot be taken after that.
    fn answer(&self, path: &str) -> (Said, bool) {
        match self.mood {
            Mood::Away => return (Said::Last(Vec::new()), true),
            Mood::Busy => return (Said::This(status("503 Service Unavailable")), true),
            Mood::Garbage => return (Said::This(ok(b"<html>welcome</html>")), true),
            _ => {}
        }
        if path.ends_with(".sig") {
            return match self.mood {
                Mood::Unsigned => (Said::This(status("404 Not Found")), true),
                _ => (self.said(&self.signatures), false),
            };
        }
        // There are no signatures elsewhere, and nobody has to say who they are.
        if path.contains("/manifests/sha256-") || path == "/v2/" {
            return (Said::This(status("404 Not Found")), false);
        }
        if path.contains("/manifests/") {
            return (self.said(&self.manifest), false);
        }
        if path.ends_with(&digest(self.signature.payload.as_bytes())) {
            let payload = self.said(self.signature.payload.as_bytes());
            return (payload, self.mood == Mood::Forged);
        }
        if !path.ends_with(&digest(&self.module)) {
            return (Said::This(status("404 Not Found")), false);
        }
        match self.mood {
            Mood::Half => {
                let mut half = ok(&self.module);
                half.truncate(half.len() / 2);
                (Said::Last(half), true)
            }
            Mood::Other => {
                let other: Vec<u8> = self.module.iter().rev().copied().collect();
                (Said::This(ok(&other)), true)
            }
            _ => (self.said(&self.module), false),
        }
    }

    fn said(&self, body: &[u8]) -> Said {
        match self.mood {
            Mood::Slow => Said::Late(ok(body)),
            _ => Said::This(ok(body)),
        }
    }
}

/// Sources that are asked all the time.
struct Eager(ModuleSources);

#[async_trait]
impl ModuleSource for Eager {
    async fn fetch(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Fetched, SourceError> {
        self.0.fetch(module, policies).await
    }

    async fn version(
        &self,
        module: &ModuleSpec,
        policies: &ModulePolicies,
    ) -> Result<Option<String>, SourceError> {
        self.0.version(module, policies).await
    }

    fn interval(&self, _: &ModuleSpec) -> Duration {
        Duration::from_millis(1)
    }
}

async fn change(world: &World, object: &str, number: usize) -> Result<()> {
    world
        .apply(&json!({
            "apiVersion": "v1", "kind": "ConfigMap",
            "metadata": {"namespace": "shop", "name": object},
            "data": {"value": number.to_string()},
        }))
        .await
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_thousand_reloads_from_a_registry_of_many_moods() -> Result<()> {
    let (ours, public) = key();
    let (strange, _) = key();
    let first = Shown::new(Mood::Well, variant(0), &ours);
    let shown = Arc::new(Mutex::new(first));
    // How often it was said, of what is shown, that it cannot be taken.
    let refusals = watch::Sender::new(0);
    let (seen, told) = (shown.clone(), refusals.clone());
    let (address, _) = registry(Arc::new(move |asked: &Asked| {
        let shown = seen.lock().unwrap();
        let (said, is_refusal) = shown.answer(&asked.path);
        if is_refusal {
            told.send_modify(|refusals| *refusals += 1);
        }
        said
    }))
    .await?;
    let options = plain(&[&address]);
    let given = Given {
        policy: json!({"signers": [public]}),
        ..Given::default()
    };
    let witness = Witness::new();
    let observer = witness.clone();
    let world = world_with(options, given, |builder, sources| {
        builder.modules(Eager(sources)).observer(observer)
    })
    .await?;
    world.apply(&configurator(&module(&address))).await?;
    let is_started = |notice: &Notice| matches!(notice, Notice::Started { .. });
    witness.next(0, is_started).await;

    let mut changes = BTreeMap::new();
    let (mut swaps, mut good) = (0, 0);
    let mut running = digest(&variant(0));
    for number in 1..=RELOADS {
        let object = format!("o{}", number % OBJECTS);
        change(&world, &object, number).await?;
        let contents: &mut Vec<String> = changes.entry(object).or_default();
        contents.push(number.to_string());

        let mood = Mood::of(number);
        let notices = witness.notices().len();
        let key = if mood == Mood::Forged {
            &strange
        } else {
            &ours
        };
        if mood.is_good() {
            good = (good + 1) % GOOD;
            let module = variant(good);
            running = digest(&module);
            *shown.lock().unwrap() = Shown::new(mood, module, key);
            let is_it = |notice: &Notice| matches!(notice, Notice::Swapped { digest, .. } if *digest == running);
            witness.next(notices, is_it).await;
            swaps += 1;
        } else {
            let module = variant(GOOD + u8::try_from(number % 200)?);
            {
                let mut shown = shown.lock().unwrap();
                refusals.send_replace(0);
                *shown = Shown::new(mood, module, key);
            }
            let mut refusals = refusals.subscribe();
            let refused = refusals.wait_for(|refusals| *refusals > 0);
            let refused = tokio::time::timeout(PATIENCE, refused).await;
            refused.unwrap_or_else(|_| panic!("{number}: {mood:?} was not seen"))?;
        }
    }
    world.settled(&["scripted"]).await?;
    assert!(swaps > RELOADS / 2, "{swaps}");
    witness.check_whole(&changes, &["root"], &running);
    let may_run: Vec<String> = (0..GOOD).map(|number| digest(&variant(number))).collect();
    for pass in witness.passes() {
        assert!(
            may_run.iter().any(|digest| digest == pass.module()),
            "{pass:?}"
        );
    }
    world.stop().await
}
