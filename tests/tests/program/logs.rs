//! What is logged: a line for each run, for people or for machines.

use anyhow::Result;
use configurator_tests::program::SECRET_KEY;
use expect_test::expect;
use serde_json::Value;

use crate::place::{Place, digestless, timeless};

#[test]
fn people_see_one_line_for_each_run() -> Result<()> {
    let place = Place::new()?;
    let output = place
        .host("-f pod-config.yaml -f shop.yaml --until-settled")
        .output()?;
    assert_eq!(String::from_utf8(output.stderr)?, "");
    let text = digestless(&timeless(&String::from_utf8(output.stdout)?));
    // The module may be loaded before the last object has been applied, and two runs go side by side.
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    expect![[r#"
        4 objects applied
        … pod-config loads pod_config.wasm
        ▶ pod-config runs DIGEST
        ● pod-config all 2 objects have had their turn
        ✓ pod-config shop/web-1 Added root: 2 requests (entry ResourceNotFound) → write: 3 requests TIME
        ✓ pod-config shop/web-2 Added root: 2 requests (entry ResourceNotFound) → write: 3 requests TIME"#]].assert_eq(&lines.join("\n"));
    Ok(())
}

#[test]
fn machines_get_a_json_object_on_each_line_and_nothing_else() -> Result<()> {
    let place = Place::new()?;
    let output = place
        .host("-f pod-config.yaml -f shop.yaml --listen 127.0.0.1:0 --metrics-listen 127.0.0.1:0 --until-settled --log-format json")
        .output()?;
    assert_eq!(String::from_utf8(output.stderr)?, "");
    let lines: Vec<Value> = String::from_utf8(output.stdout)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let text = |line: &Value, field: &str| line[field].as_str().unwrap_or_default().to_owned();
    let mut runs: Vec<String> = lines
        .iter()
        .filter(|line| line["message"] == "a run ended")
        .map(|line| {
            assert_eq!(text(line, "run").len(), 32, "{line}");
            ["level", "configurator", "object", "outcome"]
                .map(|field| text(line, field))
                .join(" ")
        })
        .collect();
    runs.sort_unstable();
    expect![[r#"
        INFO pod-config shop/web-1 succeeded
        INFO pod-config shop/web-2 succeeded"#]]
    .assert_eq(&runs.join("\n"));
    let mut messages: Vec<String> = lines.iter().map(|line| text(line, "message")).collect();
    messages.sort_unstable();
    messages.dedup();
    expect![[r#"
        a run ended
        every object has had its turn
        started
        the embedded API is served"#]]
    .assert_eq(&messages.join("\n"));
    assert!(lines.iter().all(|line| line["timestamp"].is_string()));
    Ok(())
}

#[test]
fn handlers_cannot_forge_lines() -> Result<()> {
    let place = Place::new()?;
    place.write(
        "forger.yaml",
        r#"
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {name: forger}
spec:
  watch: {apiVersion: v1, kind: Namespace, fieldSelector: metadata.name=default}
  module: {file: scripted.wasm}
  chain: {phases: [{name: root}]}
  parameters:
    root:
      log: "well\n2026-01-31T08:00:00Z ERROR configurator_host: forged\e[2J"
      fail: {message: "bad\n✓ forger default succeeded\r\e[2J", isFatal: true}
"#,
    )?;
    let output = place.host("-f forger.yaml --until-settled").output()?;
    let printed = timeless(&digestless(&String::from_utf8(output.stdout)?));
    let logged = String::from_utf8(output.stderr)?;
    let mut lines: Vec<&str> = printed.lines().collect();
    lines.sort_unstable();
    expect![[r#"
        1 object applied
        … forger loads scripted.wasm
        ▶ forger runs DIGEST
        ● forger its one object has had its turn
        ✗ forger default Added root ResourceGeneric: phase "root": the handler returned an error: bad\n✓ forger default succeeded\r\u{1b}[2J TIME"#]]
    .assert_eq(&lines.join("\n"));
    // The time comes first, and the run has a name of its own each time.
    let line = |line: &str| {
        let words = line.split_whitespace().skip(1);
        let words = words.map(|word| match word.starts_with("run=") {
            true => "run=RUN",
            false => word,
        });
        words.collect::<Vec<_>>().join(" ")
    };
    let lines: Vec<String> = logged.lines().map(line).collect();
    expect![[r#"
        WARN configurator::guest: well\n2026-01-31T08:00:00Z ERROR configurator_host: forged\x1b[2J configurator="forger" phase="root" run=RUN fields=""
        WARN configurator_host::controller::worker::runs: the object is given up until it changes configurator=forger object=default fault=ResourceGeneric: phase "root": the handler returned an error: bad\n✓ forger default succeeded\r\u{1b}[2J failures=1"#]]
    .assert_eq(&lines.join("\n"));
    Ok(())
}

#[test]
fn nothing_that_is_logged_holds_a_secret() -> Result<()> {
    let place = Place::new()?;
    let printed = place
        .host("-f pod-config.yaml -f shop.yaml --until-settled --log-format json --log trace,wasmtime=warn,cranelift=warn,regalloc2=warn")
        .succeeds()?;
    assert!(printed.contains("\"level\":\"DEBUG\""));
    let secrets = secret_values(&place)?;
    assert_eq!(secrets.len(), 2);
    for secret in secrets {
        assert!(!printed.contains(&secret), "a secret was logged");
    }
    assert!(!printed.contains(SECRET_KEY), "the key was logged");
    Ok(())
}

/// The values of all secrets of a place.
pub fn secret_values(place: &Place) -> Result<Vec<String>> {
    use configurator_host::sinks::secretstore::{
        EmbeddedSecretStore, SealingKey, SecretStore as _,
    };
    let key = SealingKey::from_text(SECRET_KEY, "the test")?;
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let file = place.path("data/secrets.redb");
        let store = EmbeddedSecretStore::open(&file, &key).await?;
        let mut values = Vec::new();
        for name in store.names().await? {
            let secret = store.get(&name).await?.unwrap();
            values.push(secret.value.as_str().trim_matches('"').to_owned());
        }
        Ok(values)
    })
}
