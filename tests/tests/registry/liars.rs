//! Registries that answer what they should not.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use anyhow::Result;
use configurator_host::module_source::oci::RegistryOptions;
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

/// What it says to a path.
type Answer = Arc<dyn Fn(&str) -> Said + Send + Sync>;

/// A registry without TLS that answers so. How often it was asked is counted.
pub async fn registry(answer: Answer) -> Result<(String, Arc<AtomicUsize>)> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let address = listener.local_addr()?.to_string();
    let asked = Arc::new(AtomicUsize::new(0));
    let counted = asked.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(talk(stream, answer.clone(), counted.clone()));
        }
    });
    Ok((address, asked))
}

async fn talk(mut stream: TcpStream, answer: Answer, asked: Arc<AtomicUsize>) {
    let mut request = Vec::new();
    loop {
        let mut part = [0; 4096];
        let Ok(read @ 1..) = stream.read(&mut part).await else {
            return;
        };
        request.extend_from_slice(&part[..read]);
        while let Some(end) = position(&request, END) {
            let head = String::from_utf8_lossy(&request[..end]).into_owned();
            request.drain(..end + END.len());
            asked.fetch_add(1, Ordering::Relaxed);
            let mut words = head.split_whitespace();
            let (method, path) = (words.next(), words.next().unwrap_or_default());
            let said = answer(path);
            let is_last = matches!(said, Said::Last(_));
            let mut bytes = match said {
                Said::This(bytes) | Said::Last(bytes) => bytes,
                Said::Late(bytes) => {
                    tokio::time::sleep(MOMENT).await;
                    bytes
                }
                Said::Nothing => return std::future::pending().await,
            };
            if let (Some("HEAD"), Some(head)) = (method, position(&bytes, END)) {
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

async fn check(
    answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static,
    message: &str,
) -> Result<()> {
    let (address, _) = registry(Arc::new(move |path: &str| Said::This(answer(path)))).await?;
    let options = RegistryOptions {
        plain_http: vec![address.clone()],
        ..RegistryOptions::default()
    };
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
    check(|_| ok(&manifest(b"x", 1 << 40)), "134217728 are allowed").await
}

#[tokio::test]
async fn one_that_says_nothing_holds_nothing_up() -> Result<()> {
    let (slow, asked) = registry(Arc::new(|_: &str| Said::Nothing)).await?;
    let (good, _) = registry(Arc::new(|path: &str| {
        Said::This(match path.contains("/blobs/") {
            true => ok(&variant(1)),
            false => ok(&manifest(&variant(1), variant(1).len())),
        })
    }))
    .await?;
    let options = RegistryOptions {
        plain_http: vec![slow.clone(), good.clone()],
        ..RegistryOptions::default()
    };
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
