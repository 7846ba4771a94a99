//! Metrics and health.

use anyhow::{Context as _, Result};
use configurator_tests::program::{PATIENCE, Running, until};
use expect_test::expect;

use crate::place::{Place, asking};
use crate::web::{Server, get};

/// Where metrics and health are served.
fn address(host: &Running) -> Result<String> {
    let printed = host.until_printed("/readyz\n")?;
    let (_, rest) = printed.split_once("http://").context("no address")?;
    let (address, _) = rest.split_once('/').context("no path")?;
    Ok(address.to_owned())
}

#[test]
fn it_is_ready_when_every_object_has_been_configured() -> Result<()> {
    let place = Place::new()?;
    let server = Server::start()?;
    place.write("asking.yaml", &asking(server.address))?;
    let host = place
        .host("-f asking.yaml --metrics-listen 127.0.0.1:0")
        .env(
            "CONFIGURATOR_HTTP_INNER_HOSTS",
            format!("[\"{}\"]", server.address),
        )
        .start()?;
    let address = address(&host)?;
    let asked = server.next()?;
    let shown = |path: &str| -> Result<String> {
        let answer = get(&address, path)?;
        Ok(format!("{path}: {} {}", answer.status, answer.body))
    };
    expect![[r#"
        /livez: HTTP/1.1 200 OK ok
        /readyz: HTTP/1.1 503 Service Unavailable not ready: waits for asking
    "#]]
    .assert_eq(&(shown("/livez")? + &shown("/readyz")?));
    asked.answer("200 OK")?;
    let ready = || shown("/readyz").map(|text| text.contains(" 200 OK ").then_some(text));
    let ready = until("the host is ready", PATIENCE, ready)?;
    expect![[r#"
        /livez: HTTP/1.1 200 OK ok
        /readyz: HTTP/1.1 200 OK ok
    "#]]
    .assert_eq(&(shown("/livez")? + &ready));
    expect!["/elsewhere: HTTP/1.1 404 Not Found "].assert_eq(&shown("/elsewhere")?);
    Ok(())
}

#[test]
fn metrics_count_what_happened() -> Result<()> {
    let place = Place::new()?;
    let host = place
        .host("-f pod-config.yaml -f shop.yaml --metrics-listen 127.0.0.1:0")
        .start()?;
    host.until_printed("had their turn")?;
    let address = address(&host)?;
    // The numbers follow the line that people see.
    let counted = || {
        let answer = get(&address, "/metrics")?;
        let objects = |state: &str, number: u32| {
            let line = format!(
                "objects{{configurator_namespace=\"\",configurator=\"pod-config\",state=\"{state}\"}} {number}\n"
            );
            answer.body.contains(&line)
        };
        let is_over = objects("existing", 2) && objects("running", 0);
        Ok::<_, anyhow::Error>(is_over.then_some(answer))
    };
    let answer = until("both Pods are counted", PATIENCE, counted)?;
    assert_eq!(answer.status, "HTTP/1.1 200 OK");
    let kind = "content-type: application/openmetrics-text; version=1.0.0; charset=utf-8";
    assert!(answer.head.contains(kind), "{}", answer.head);
    assert!(answer.body.ends_with("# EOF\n"), "{}", answer.body);
    // How long calls took is another number each time.
    let mut lines: Vec<&str> = answer
        .body
        .lines()
        .filter(|line| !line.contains("_bucket{") && !line.contains("_sum{"))
        .map(|line| match line.split_once(' ') {
            // These numbers depend on the machine.
            Some((name, _)) if name.ends_with("_bytes") => name,
            _ => line,
        })
        .collect();
    // The samples of one metric come in any order.
    lines.sort_by_key(|line| {
        let name = line
            .trim_start_matches("# HELP ")
            .trim_start_matches("# TYPE ");
        let name = name.split([' ', '{']).next().unwrap_or_default();
        let name = name.trim_end_matches("_total").trim_end_matches("_count");
        (name.to_owned(), !line.starts_with('#'), *line)
    });
    expect![[r##"
        # EOF
        # HELP configurator_answer_memory_bytes Memory of answers to runs, without the reserve.
        # TYPE configurator_answer_memory_bytes gauge
        configurator_answer_memory_bytes
        # HELP configurator_answer_memory_limit_bytes Memory that answers may take, with the reserve.
        # TYPE configurator_answer_memory_limit_bytes gauge
        configurator_answer_memory_limit_bytes
        # HELP configurator_background_waiting Jobs that wait for a turn in the background.
        # TYPE configurator_background_waiting gauge
        configurator_background_waiting 0
        # HELP configurator_call_cpu_seconds CPU time of a call.
        # TYPE configurator_call_cpu_seconds histogram
        configurator_call_cpu_seconds_count{configurator_namespace="",configurator="pod-config"} 4
        # HELP configurator_calls Calls of handlers, by how they ended.
        # TYPE configurator_calls counter
        configurator_calls_total{configurator_namespace="",configurator="pod-config",outcome="ok"} 4
        # HELP configurator_compilations_waiting Modules that wait to be compiled.
        # TYPE configurator_compilations_waiting gauge
        configurator_compilations_waiting 0
        # HELP configurator_declarative_given_up Declarative requests that failed for good.
        # TYPE configurator_declarative_given_up counter
        configurator_declarative_given_up_total 0
        # HELP configurator_declarative_refused Declarative requests that found no place.
        # TYPE configurator_declarative_refused counter
        configurator_declarative_refused_total 0
        # HELP configurator_events_dropped Events that found no place in the queue.
        # TYPE configurator_events_dropped counter
        configurator_events_dropped_total 0
        # HELP configurator_guest_log_lines_dropped Log lines of handlers past their limit.
        # TYPE configurator_guest_log_lines_dropped counter
        configurator_guest_log_lines_dropped_total 0
        # HELP configurator_guest_memory_bytes Memory that handlers hold.
        # TYPE configurator_guest_memory_bytes gauge
        configurator_guest_memory_bytes
        # HELP configurator_guest_memory_limit_bytes Memory that handlers may hold.
        # TYPE configurator_guest_memory_limit_bytes gauge
        configurator_guest_memory_limit_bytes
        # HELP configurator_guest_memory_waiting Calls that wait for memory.
        # TYPE configurator_guest_memory_waiting gauge
        configurator_guest_memory_waiting 0
        # HELP configurator_lease_rollbacks Leases that were found in an older state than they had been.
        # TYPE configurator_lease_rollbacks counter
        configurator_lease_rollbacks_total 0
        # HELP configurator_long_calls_waiting Calls that wait for a long turn.
        # TYPE configurator_long_calls_waiting gauge
        configurator_long_calls_waiting 0
        # HELP configurator_objects Watched objects, by state.
        # TYPE configurator_objects gauge
        configurator_objects{configurator_namespace="",configurator="pod-config",state="delayed"} 0
        configurator_objects{configurator_namespace="",configurator="pod-config",state="existing"} 2
        configurator_objects{configurator_namespace="",configurator="pod-config",state="failed"} 0
        configurator_objects{configurator_namespace="",configurator="pod-config",state="queued"} 0
        configurator_objects{configurator_namespace="",configurator="pod-config",state="running"} 0
        configurator_objects{configurator_namespace="",configurator="pod-config",state="waiting"} 0
        # HELP configurator_requests Requests, by sink and outcome.
        # TYPE configurator_requests counter
        configurator_requests_total{sink="configstore",outcome="ResourceNotFound"} 2
        configurator_requests_total{sink="configstore",outcome="ok"} 2
        configurator_requests_total{sink="kubernetes",outcome="ok"} 4
        configurator_requests_total{sink="secretstore",outcome="ok"} 2
        # HELP configurator_runs Runs that ended or rest, by how.
        # TYPE configurator_runs counter
        configurator_runs_total{configurator_namespace="",configurator="pod-config",outcome="succeeded"} 2
        # HELP configurator_shards Shards that are this host's, where hosts share the objects.
        # TYPE configurator_shards gauge
        configurator_shards 0
        # HELP configurator_shards_lost Shards that were lost instead of given back.
        # TYPE configurator_shards_lost counter
        configurator_shards_lost_total 0"##]]
    .assert_eq(&lines.join("\n"));
    Ok(())
}
