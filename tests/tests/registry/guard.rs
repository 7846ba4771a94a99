//! Where a registry may lead whoever pulls from it.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use configurator_host::module_source::oci::{
    Login, Reference, Registries, Registry, RegistryOptions,
};
use configurator_host::module_source::{ModulePolicies, ModulePolicy, ModuleSource as _};
use configurator_host::network::Reach;
use configurator_host::resource::ModuleSpec;
use expect_test::{Expect, expect};

use crate::liars::{Asked, Said, manifest, ok, plain, registry};

/// What is pulled in these tests. It is never run.
const MODULE: &[u8] = b"component";
/// What no message may have.
const SECRET: &str = "s3cret";

/// What a registry answers that asks nobody who they are.
fn open(asked: &Asked) -> Vec<u8> {
    match &*asked.path {
        path if path.contains("/blobs/") => ok(MODULE),
        path if path.contains("/manifests/") => ok(&manifest(MODULE, MODULE.len())),
        _ => ok(b"{}"),
    }
}

fn redirect(to: &str) -> Vec<u8> {
    format!("HTTP/1.1 307 Temporary Redirect\r\nlocation: {to}\r\ncontent-length: 0\r\n\r\n")
        .into_bytes()
}

fn wants(challenge: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 401 Unauthorized\r\nwww-authenticate: {challenge}\r\ncontent-length: 0\r\n\r\n"
    )
    .into_bytes()
}

/// A server that answers so, and the heads of what it was asked.
async fn server(
    answer: impl Fn(&Asked) -> Vec<u8> + Send + Sync + 'static,
) -> (String, Arc<AtomicUsize>, Arc<Mutex<Vec<String>>>) {
    let heads: Arc<Mutex<Vec<String>>> = Arc::default();
    let keeps = heads.clone();
    let (address, asked) = registry(Arc::new(move |asked: &Asked| {
        keeps.lock().unwrap().push(asked.head.clone());
        Said::This(answer(asked))
    }))
    .await
    .unwrap();
    (address, asked, heads)
}

/// Pulls a module: what came of it.
async fn pulled(address: &str, login: Login, options: &RegistryOptions) -> String {
    let reference: Reference = format!("{address}/team/a:1").parse().unwrap();
    let registry = Registry::new(reference, login, options).unwrap();
    let pulled = async {
        let artifact = registry.artifact().await?;
        registry.component(&artifact).await
    };
    match pulled.await {
        Ok(bytes) => format!("{} bytes", bytes.len()),
        Err(error) => error.to_string(),
    }
}

fn me() -> Login {
    Login::basic("me", SECRET)
}

fn identity(registry: &str) -> Login {
    let text = format!(r#"{{"auths": {{"{registry}": {{"identitytoken": "{SECRET}"}}}}}}"#);
    Login::of(text.as_bytes(), registry, "team/a")
        .unwrap()
        .unwrap()
}

#[tokio::test]
async fn an_inner_registry_needs_the_operators_permission() {
    let (address, asked, _) = server(open).await;
    let options = RegistryOptions {
        plain_http: vec![address.clone()],
        ..RegistryOptions::default()
    };
    let told = pulled(&address, Login::anonymous(), &options).await;
    expect!["the registry: not permitted by the operator (setting registries.inner_hosts); the log of the runtime has the reason"].assert_eq(&told);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
    let told = pulled(&address, Login::anonymous(), &plain(&[&address])).await;
    expect!["9 bytes"].assert_eq(&told);
}

#[tokio::test]
async fn a_name_of_an_inner_address_is_refused_and_the_address_is_not_told() {
    let (address, asked, _) = server(open).await;
    let name = address.replace("127.0.0.1", "localhost");
    let options = RegistryOptions {
        plain_http: vec![name.clone()],
        ..RegistryOptions::default()
    };
    let told = pulled(&name, Login::anonymous(), &options).await;
    expect!["the registry: not permitted by the operator (setting registries.inner_hosts); the log of the runtime has the reason"].assert_eq(&told);
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// A server that is permitted sends on to one that may not be, by any of these answers.
async fn check_redirect(
    to: impl Fn(&str) -> String,
    options: impl Fn(&String, &String) -> RegistryOptions,
    expected: Expect,
) {
    let (other, asked, _) = server(open).await;
    let place = to(&other);
    let (address, ..) = server(move |asked: &Asked| match asked.path.contains("/blobs/") {
        true => redirect(&place),
        false => open(asked),
    })
    .await;
    let told = pulled(&address, Login::anonymous(), &options(&address, &other)).await;
    assert!(!told.contains(&other), "{told}");
    expected.assert_eq(&told);
    assert_eq!(asked.load(Ordering::Relaxed), 0, "{told}");
}

#[tokio::test]
async fn a_redirect_is_checked_as_the_registry_is() {
    // An address that is not permitted, though the server is reached without TLS.
    check_redirect(
        |other| format!("http://{other}/v2/team/a/blobs/x"),
        |address, other| RegistryOptions {
            plain_http: vec![address.clone(), other.clone()],
            ..plain(&[address])
        },
        expect!["a server that the registry names: not permitted by the operator (setting registries.inner_hosts); the log of the runtime has the reason"],
    )
    .await;
    // A server without TLS, though the address is permitted.
    check_redirect(
        |other| format!("http://{other}/v2/team/a/blobs/x"),
        |address, other| RegistryOptions {
            plain_http: vec![address.clone()],
            ..plain(&[address, other])
        },
        expect!["the registry names a server that does not use TLS, which the operator does not permit (setting registries.plain_http); the log of the runtime names it"],
    )
    .await;
    check_redirect(
        |_| "https://169.254.169.254/latest/meta-data".to_owned(),
        |address, _| plain(&[address]),
        expect!["a server that the registry names: not permitted by the operator (setting registries.inner_hosts); the log of the runtime has the reason"],
    )
    .await;
    check_redirect(
        |other| format!("http://me:password@{other}/"),
        |address, other| plain(&[address, other]),
        expect!["the registry names a server with credentials in its URL"],
    )
    .await;
    check_redirect(
        |_| "file:///etc/passwd".to_owned(),
        |address, _| plain(&[address]),
        expect!["the registry names a server that does not use TLS, which the operator does not permit (setting registries.plain_http); the log of the runtime names it"],
    )
    .await;
    check_redirect(
        |_| "http://[".to_owned(),
        |address, _| plain(&[address]),
        expect!["the registry redirects to an invalid URL"],
    )
    .await;
}

#[tokio::test]
async fn a_redirect_that_goes_round_ends() {
    let (address, asked, _) = server(|asked: &Asked| match asked.path.contains("/blobs/") {
        true => redirect("/v2/team/a/blobs/again"),
        false => open(asked),
    })
    .await;
    let told = pulled(&address, Login::anonymous(), &plain(&[&address])).await;
    expect!["the registry redirects more than 5 times"].assert_eq(&told);
    assert!(asked.load(Ordering::Relaxed) < 12);
}

#[tokio::test]
async fn a_redirect_is_followed_without_the_login() {
    let (other, _, heads) = server(open).await;
    let place = format!("http://{other}/v2/team/a/blobs/x");
    let (address, _, own) = server(move |asked: &Asked| match &*asked.path {
        _ if !asked.head.contains("authorization: basic") => wants("Basic realm=\"a\""),
        path if path.contains("/blobs/") => redirect(&place),
        _ => open(asked),
    })
    .await;
    let told = pulled(&address, me(), &plain(&[&address, &other])).await;
    expect!["9 bytes"].assert_eq(&told);
    let has_login = |heads: &Mutex<Vec<String>>| {
        let heads = heads.lock().unwrap();
        heads.iter().any(|head| head.contains("authorization"))
    };
    assert!(has_login(&own) && !has_login(&heads));
}

#[tokio::test]
async fn a_login_is_never_sent_without_tls_unless_the_operator_permits_it() {
    let (tokens, asked, _) = server(|_| ok(br#"{"token": "good"}"#)).await;
    let realm = tokens.clone();
    let (address, ..) = server(move |asked: &Asked| {
        if asked.head.contains("authorization: bearer good") {
            return open(asked);
        }
        wants(&format!(
            "Bearer realm=\"http://{realm}/token\",service=\"a\""
        ))
    })
    .await;
    let reachable = plain(&[&address, &tokens]);
    for login in [Login::anonymous(), me(), identity(&address)] {
        let options = RegistryOptions {
            plain_http: vec![address.clone()],
            ..reachable.clone()
        };
        let told = pulled(&address, login.clone(), &options).await;
        expect!["the registry names a server that does not use TLS, which the operator does not permit (setting registries.plain_http); the log of the runtime names it"].assert_eq(&told);
        assert_eq!(asked.load(Ordering::Relaxed), 0);
    }
    for login in [Login::anonymous(), me(), identity(&address)] {
        let told = pulled(&address, login, &reachable).await;
        expect!["9 bytes"].assert_eq(&told);
    }
}

#[tokio::test]
async fn an_inner_token_server_needs_the_operators_permission() {
    let (tokens, asked, _) = server(|_| ok(br#"{"token": "good"}"#)).await;
    let realm = tokens.clone();
    let (address, ..) = server(move |_: &Asked| {
        wants(&format!(
            "Bearer realm=\"http://{realm}/token\",service=\"a\""
        ))
    })
    .await;
    let options = RegistryOptions {
        plain_http: vec![address.clone(), tokens.clone()],
        ..plain(&[&address])
    };
    let told = pulled(&address, me(), &options).await;
    expect!["a server that the registry names: not permitted by the operator (setting registries.inner_hosts); the log of the runtime has the reason"].assert_eq(&told);
    assert!(!told.contains(&tokens));
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

#[tokio::test]
async fn a_token_server_sends_a_login_to_no_other_server() {
    let (other, asked, _) = server(|_| ok(br#"{"token": "good"}"#)).await;
    let place = format!("http://{other}/token");
    let (tokens, ..) = server(move |_: &Asked| redirect(&place)).await;
    let realm = tokens.clone();
    let (address, ..) = server(move |_: &Asked| {
        wants(&format!(
            "Bearer realm=\"http://{realm}/token\",service=\"a\""
        ))
    })
    .await;
    for login in [Login::anonymous(), me(), identity(&address)] {
        let told = pulled(&address, login, &plain(&[&address, &tokens, &other])).await;
        expect!["the registry's token server redirects, which is not followed: a login is sent to no other server"].assert_eq(&told);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// It could name a token server of its own.
#[tokio::test]
async fn a_server_that_is_redirected_to_does_not_ask_for_the_login() {
    let (tokens, asked, _) = server(|_| ok(br#"{"token": "good"}"#)).await;
    let realm = tokens.clone();
    let (other, ..) = server(move |_: &Asked| {
        wants(&format!(
            "Bearer realm=\"http://{realm}/token\", Basic realm=\"a\""
        ))
    })
    .await;
    let place = format!("http://{other}/v2/team/a/blobs/x");
    let (address, ..) = server(move |asked: &Asked| match asked.path.contains("/blobs/") {
        true => redirect(&place),
        false => open(asked),
    })
    .await;
    for login in [me(), identity(&address)] {
        let told = pulled(&address, login, &plain(&[&address, &other, &tokens])).await;
        expect!["the registry does not know who asks, or does not let them: it wants a login that has the right"].assert_eq(&told);
    }
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// Whoever writes a Configurator chooses the server that is asked, and reads the condition.
#[tokio::test]
async fn no_message_has_text_of_an_answer() {
    let refused = |line: &str, body: &str| {
        let length = body.len();
        format!("HTTP/1.1 {line}\r\nx: {SECRET}\r\ncontent-length: {length}\r\n\r\n{body}")
            .into_bytes()
    };
    let answers = [
        refused("400 s3cret", SECRET),
        refused("418 s3cret", r#"{"errors": [{"code": "s3cret", "message": "s3cret"}]}"#),
        refused("400 Bad", r#"{"errors": [{"code": "DENIED", "message": "s3cret"}]}"#),
        refused("401 s3cret", SECRET),
        refused("403 s3cret", SECRET),
        refused("404 s3cret", SECRET),
        refused("429 s3cret", SECRET),
        refused("500 s3cret", SECRET),
        refused("307 s3cret", SECRET),
        wants("Bearer realm=\"s3cret\""),
        wants("Bearer realm=\"s3cret://s3cret/\""),
        wants("Bearer realm=\"http://s3cret/\""),
        redirect("http://s3cret/"),
        redirect("s3cret://s3cret/"),
        redirect("https://10.0.0.1/s3cret"),
        ok(SECRET.as_bytes()),
        ok(br#"{"schemaVersion": "s3cret"}"#),
        ok(br#"{"schemaVersion": 2, "mediaType": {"s3cret": 1}}"#),
        ok(br#"{"schemaVersion": 2, "config": {"mediaType": "s3cret", "digest": "s3cret", "size": 2}, "layers": [{"mediaType": "s3cret", "digest": "s3cret", "size": 2}]}"#),
        ok(br#"{"schemaVersion": 2, "config": {"mediaType": "s3cret", "digest": "s3cret", "size": 2}, "layers": [{"mediaType": "application/wasm", "digest": "s3cret", "size": 2}]}"#),
    ];
    for answer in answers {
        let said = answer.clone();
        let (address, ..) = server(move |asked: &Asked| match &*asked.path {
            "/v2/" if !said.starts_with(b"HTTP/1.1 401") => ok(b"{}"),
            _ => said.clone(),
        })
        .await;
        let told = pulled(&address, Login::anonymous(), &plain(&[&address])).await;
        let answer = String::from_utf8_lossy(&answer);
        assert!(
            !told.contains(SECRET) && !told.contains("10.0.0.1"),
            "{answer}\n{told}"
        );
        assert!(!told.ends_with("bytes"), "{answer}\n{told}");
    }
}

/// A proxy would resolve names itself, and connect to where the host does not.
#[test]
fn proxies_of_the_environment_are_not_used() {
    const TEST: &str = "guard::proxies_of_the_environment_are_not_used";
    const TARGET: &str = "REGISTRY_TEST_TARGET";
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .worker_threads(1)
        .enable_all()
        .build()
        .unwrap();
    // The environment of a process cannot be changed safely, so the request is made by another one.
    if let Ok(address) = std::env::var(TARGET) {
        let options = plain(&[&address]);
        let told = runtime.block_on(pulled(&address, Login::anonymous(), &options));
        assert_eq!(told, "9 bytes");
        return;
    }
    let ((address, ..), (proxy, asked, _)) =
        runtime.block_on(async { (server(open).await, server(open).await) });
    let mut other = std::process::Command::new(std::env::current_exe().unwrap());
    other.args(["--exact", TEST]).env(TARGET, &address);
    for name in ["HTTP_PROXY", "http_proxy", "ALL_PROXY", "all_proxy"] {
        other.env(name, format!("http://{proxy}"));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        other.env_remove(name);
    }
    let output = other.output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(asked.load(Ordering::Relaxed), 0);
}

/// A tag is asked for all the time.
#[tokio::test]
async fn all_pulls_share_connections() {
    let connections: Arc<Mutex<BTreeSet<usize>>> = Arc::default();
    let seen = connections.clone();
    let (address, asked) = registry(Arc::new(move |asked: &Asked| {
        seen.lock().unwrap().insert(asked.connection);
        Said::This(open(asked))
    }))
    .await
    .unwrap();
    let registries = Registries::new(&plain(&[&address]), Arc::new(ModulePolicy::default()));
    for tag in ["1", "1", "2"] {
        let reference = format!("{address}/team/a:{tag}");
        let module: ModuleSpec =
            serde_json::from_value(serde_json::json!({"oci": {"reference": reference}})).unwrap();
        let policies = ModulePolicies::default();
        registries.version(&module, &policies).await.unwrap();
    }
    assert!(asked.load(Ordering::Relaxed) >= 6);
    assert_eq!(connections.lock().unwrap().len(), 1);
}

/// A person at their own machine reaches what they name.
#[tokio::test]
async fn whoever_may_connect_anywhere_needs_no_permission() {
    let (address, ..) = server(open).await;
    let options = RegistryOptions {
        reach: Reach::Anywhere,
        plain_http: vec![address.clone()],
        ..RegistryOptions::default()
    };
    let told = pulled(&address, Login::anonymous(), &options).await;
    expect!["9 bytes"].assert_eq(&told);
    // TLS is wanted there as well.
    let options = RegistryOptions {
        reach: Reach::Anywhere,
        ..RegistryOptions::default()
    };
    let told = pulled(&address, Login::anonymous(), &options).await;
    assert!(
        told.starts_with("the registry cannot be asked now"),
        "{told}"
    );
}
