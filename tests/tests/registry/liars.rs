//! Registries that answer what they should not.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use anyhow::Result;
use configurator_host::module_source::oci::RegistryOptions;
use configurator_host::network::Reach;
use configurator_tests::guests::digest;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::bench::{Given, configurator, runs, told, variant, world};

/// How long one that is late takes.
const MOMENT: Duration = Duration::from_millis(20);
/// What ends the head of a request or an answer.
const END: &[u8] = b"\r\n\r\n";

/// What is said to a request.
pub enum Said {
    /// This, byte for byte.
    This(Vec<u8>),
    /// This, after a moment.
    Late(Vec<u8>),
    /// This, and the connection ends.
    Last(Vec<u8>),
    /// Nothing for ever.
    Nothing,
}

/// A request.
pub struct Asked {
    pub method: String,
    pub path: String,
    /// Which of the connections it came by, from 0.
    pub connection: usize,
    /// Its first line and its headers, in lower case.
    pub head: String,
    pub body: Vec<u8>,
}

impl Asked {
    fn of(head: &str, connection: usize) -> Self {
        let mut words = head.split_whitespace().map(ToOwned::to_owned);
        Self {
            method: words.next().unwrap_or_default(),
            path: words.next().unwrap_or_default(),
            connection,
            head: head.to_lowercase(),
            body: Vec::new(),
        }
    }

    /// How many bytes its body has.
    fn length(&self) -> usize {
        let length = self.head.split("content-length: ").nth(1);
        let length = length.and_then(|rest| rest.split("\r\n").next());
        length.map_or(0, |length| length.parse().unwrap())
    }
}

/// What it says to a request.
type Answer = Arc<dyn Fn(&Asked) -> Said + Send + Sync>;

/// A registry without TLS that answers so. How often it was asked is counted.
pub async fn registry(answer: Answer) -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        for connection in 0.. {
            let Ok((stream, _)) = listener.accept().await else {
                return;
            };
            tokio::spawn(talk(stream, connection, answer.clone(), counted.clone()));
        }
    });
    Ok((address, asked))
}

async fn talk(mut stream: TcpStream, connection: usize, answer: Answer, asked: Arc<AtomicUsize>) {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let Ok(read @ 1..) = stream.read(&mut part).await else {
            return;
        };
        request.extend_from_slice(&part[..read]);
        while let Some(end) = position(&request, END) {
            let mut one = Asked::of(&String::from_utf8_lossy(&request[..end]), connection);
            let whole = end + END.len() + one.length();
            if request.len() < whole {
                break;
            }
            one.body = request[end + END.len()..whole].to_vec();
            request.drain(..whole);
            asked.fetch_add(1, Ordering::Relaxed);
            let said = answer(&one);
            let is_last = matches!(said, Said::Last(_));
            let mut bytes = match said {
                Said::This(bytes) | Said::Last(bytes) => bytes,
                Said::Late(bytes) => {
                    tokio::time::sleep(MOMENT).await;
                    bytes
                }
                Said::Nothing => return std::future::pending().await,
            };
            if let ("HEAD", Some(head)) = (&*one.method, position(&bytes, END)) {
                bytes.truncate(head + END.len());
            }
            if stream.write_all(&bytes).await.is_err() || is_last {
                return;
            }
        }
    }
}

fn position(bytes: &[u8], part: &[u8]) -> Option<usize> {
    bytes.windows(part.len()).position(|found| found == part)
}

pub fn ok(body: &[u8]) -> Vec<u8> {
    let mut answer =
        format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n", body.len()).into_bytes();
    answer.extend_from_slice(body);
    answer
}

pub fn status(line: &str) -> Vec<u8> {
    format!("HTTP/1.1 {line}\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

pub fn manifest(module: &[u8], size: usize) -> Vec<u8> {
    let manifest = json!({
        "schemaVersion": 2,
        "mediaType": "application/vnd.oci.image.manifest.v1+json",
        "config": {"mediaType": "application/vnd.wasm.config.v0+json", "digest": digest(b"{}"), "size": 2},
        "layers": [{"mediaType": "application/wasm", "digest": digest(module), "size": size}],
    });
    serde_json::to_vec(&manifest).unwrap()
}

pub fn module(address: &str) -> Value {
    json!({"oci": {"reference": format!("{address}/team/scripted:1"), "interval": "1s"}})
}

/// How servers on this machine that have no TLS are reached.
pub fn plain(servers: &[&String]) -> RegistryOptions {
    let inner = servers.iter().map(|server| server.parse().unwrap());
    RegistryOptions {
        reach: Reach::Public(inner.collect()),
        plain_http: servers.iter().map(ToString::to_string).collect(),
        ..RegistryOptions::default()
    }
}

async fn check(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    message: &str,
) -> Result<()> {
    let answer = move |asked: &Asked| Said::This(answer(&asked.path));
    let (address, _) = registry(Arc::new(answer)).await?;
    let options = plain(&[&address]);
    let world = world(options, Given::default()).await?;
    world.apply(&configurator(&module(&address))).await?;
    told(&world, ("False", "ModuleNotFound"), message).await?;
    world.stop().await
}

#[tokio::test]
async fn garbage_is_no_manifest() -> Result<()> {
    check(|_| ok(b"<html>welcome</html>"), "what is no manifest").await?;
    check(
        |_| b"NONSENSE\r\n\r\n".to_vec(),
        "the registry cannot be asked now",
    )
    .await?;
    check(|_| status("503 Service Unavailable"), "it answers 503").await?;
    check(|_| status("404 Not Found"), "nothing of this name").await
}

#[tokio::test]
async fn other_bytes_than_the_manifest_says_are_not_taken() -> Result<()> {
    check(
        |path| match path.contains("/blobs/") {
            true => ok(&variant(2)),
            false => ok(&manifest(&variant(1), variant(1).len())),
        },
        "the registry answers",
    )
    .await?;
    // More bytes than were announced are not even kept.
    check(
        |path| match path.contains("/blobs/") {
            true => ok(&variant(1)),
            false => ok(&manifest(&variant(1), 10)),
        },
        "more than the 10 bytes that the manifest says",
    )
    .await?;
    check(|_| ok(&manifest(b"x", 1 << 40)), "134217728 are allowed").await?;
    check(
        |_| ok(&vec![b' '; 5 << 20]),
        "the registry answers more than the 4194304 bytes",
    )
    .await
}

/// What a registry says to who has no token, and that its token server is there as well.
pub fn challenge(address: &str) -> Vec<u8> {
    let realm = format!("http://{address}/token");
    format!("HTTP/1.1 401 Unauthorized\r\nwww-authenticate: Bearer realm=\"{realm}\",service=\"tests\"\r\ncontent-length: 0\r\n\r\n").into_bytes()
}

/// Where whoever asks believes that the registry is.
pub fn host_of(asked: &Asked) -> String {
    let host = asked.head.split("host: ").nth(1).unwrap_or_default();
    host.split("\r\n").next().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn a_token_that_no_request_can_have_ends_nothing() -> Result<()> {
    let has_good_tokens = Arc::new(AtomicBool::new(false));
    let is_good = has_good_tokens.clone();
    let (address, _) = registry(Arc::new(move |asked: &Asked| {
        let is_good = is_good.load(Ordering::Relaxed);
        Said::This(match &*asked.path {
            path if path.starts_with("/token") && is_good => ok(br#"{"token": "good"}"#),
            path if path.starts_with("/token") => ok(br#"{"token": "a\nb"}"#),
            _ if !asked.head.contains("authorization: bearer good") => challenge(&host_of(asked)),
            path if path.contains("/blobs/") => ok(&variant(1)),
            _ => ok(&manifest(&variant(1), variant(1).len())),
        })
    }))
    .await?;
    let options = plain(&[&address]);
    let world = world(options, Given::default()).await?;
    world.apply(&configurator(&module(&address))).await?;
    told(
        &world,
        ("False", "ModuleNotFound"),
        "a token that no request can have",
    )
    .await?;
    has_good_tokens.store(true, Ordering::Relaxed);
    runs(&world, &variant(1)).await?;
    world.stop().await
}

/// What goes wrong with a registry that was well.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Trouble {
    None,
    /// Something between answers in its place.
    Garbage,
    /// Who gives tokens is away.
    Tokens,
    /// The tag has moved, and the module cannot be had.
    Half,
    /// The tag has moved to what somebody may not have.
    Denied,
}

#[tokio::test]
async fn whatever_is_wrong_with_a_registry_a_tag_stands_for_what_it_stood_for() -> Result<()> {
    let trouble = Arc::new(Mutex::new(Trouble::None));
    let now = trouble.clone();
    let (address, _) = registry(Arc::new(move |asked: &Asked| {
        let now = *now.lock().unwrap();
        let shown = variant(if now == Trouble::Half { 2 } else { 1 });
        Said::This(match (now, &*asked.path) {
            (Trouble::Garbage, _) => ok(b"<html>welcome</html>"),
            (Trouble::Tokens, path) if path.starts_with("/token") => {
                status("503 Service Unavailable")
            }
            (Trouble::Denied, path) if path.starts_with("/token") => status("403 Forbidden"),
            (_, path) if path.starts_with("/token") => ok(br#"{"access_token": "good"}"#),
            _ if !asked.head.contains("authorization: bearer good") => challenge(&host_of(asked)),
            (Trouble::Half, path) if path.contains("/blobs/") => status("503 Service Unavailable"),
            (_, path) if path.contains("/blobs/") => ok(&shown),
            _ => ok(&manifest(&shown, shown.len())),
        })
    }))
    .await?;
    let options = plain(&[&address]);
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        ..Given::default()
    };
    let first = world(options.clone(), given.clone()).await?;
    first.apply(&configurator(&module(&address))).await?;
    runs(&first, &variant(1)).await?;
    first.stop().await?;
    for (wrong, why) in [
        (Trouble::Garbage, "what is no manifest"),
        (Trouble::Tokens, "it answers 503"),
        (Trouble::Half, "it answers 503"),
    ] {
        *trouble.lock().unwrap() = wrong;
        let world = world(options.clone(), given.clone()).await?;
        world.apply(&configurator(&module(&address))).await?;
        runs(&world, &variant(1)).await?;
        told(&world, ("True", "SourceUnavailable"), why).await?;
        world.stop().await?;
    }
    // Who is told that they may not have it does not have it.
    *trouble.lock().unwrap() = Trouble::Denied;
    let world = world(options, given).await?;
    world.apply(&configurator(&module(&address))).await?;
    told(&world, ("False", "ModuleNotFound"), "does not let whoever").await?;
    world.stop().await
}

#[tokio::test]
async fn a_tag_that_moved_while_its_module_could_not_be_had_is_taken_later() -> Result<()> {
    let shown = Arc::new(Mutex::new((1, true)));
    let now = shown.clone();
    let (address, _) = registry(Arc::new(move |asked: &Asked| {
        let (number, is_whole) = *now.lock().unwrap();
        let module = variant(number);
        Said::This(match asked.path.contains("/blobs/") {
            true if is_whole => ok(&module),
            true => status("503 Service Unavailable"),
            false => ok(&manifest(&module, module.len())),
        })
    }))
    .await?;
    let options = plain(&[&address]);
    let folder = tempfile::tempdir()?;
    let given = Given {
        copies: Some(folder.path()),
        ..Given::default()
    };
    let world = world(options, given).await?;
    world.apply(&configurator(&module(&address))).await?;
    runs(&world, &variant(1)).await?;
    *shown.lock().unwrap() = (2, false);
    told(&world, ("True", "SourceUnavailable"), "it answers 503").await?;
    *shown.lock().unwrap() = (2, true);
    runs(&world, &variant(2)).await?;
    world.stop().await
}

#[tokio::test]
async fn one_that_says_nothing_holds_nothing_up() -> Result<()> {
    let (slow, asked) = registry(Arc::new(|_: &Asked| Said::Nothing)).await?;
    let (good, _) = registry(Arc::new(|asked: &Asked| {
        Said::This(match asked.path.contains("/blobs/") {
            true => ok(&variant(1)),
            false => ok(&manifest(&variant(1), variant(1).len())),
        })
    }))
    .await?;
    let options = plain(&[&slow, &good]);
    let world = world(options, Given::default()).await?;
    world.apply(&configurator(&module(&slow))).await?;
    world
        .until(
            "it is asked",
            async || Ok(asked.load(Ordering::Relaxed) > 0),
        )
        .await?;
    // While it is waited for, the Configurator can be changed.
    world.apply(&configurator(&module(&good))).await?;
    runs(&world, &variant(1)).await?;
    world.stop().await
}
