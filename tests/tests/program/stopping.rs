//! How the program stops: by itself, when it is told to, when it is told twice.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use configurator_tests::program::{Program, Running};
use expect_test::expect;

use crate::place::{Place, asking, timeless};
use crate::web::{Request, Server};

/// A host with a run that waits for the answer to its request.
fn waiting(place: &Place, server: &Server) -> Result<(Running, Request)> {
    let host = host(place, server)?.start()?;
    Ok((host, server.next()?))
}

fn host(place: &Place, server: &Server) -> Result<Program> {
    place.write("asking.yaml", &asking(server.address))?;
    Ok(place.host("-f asking.yaml").env(
        "CONFIGURATOR_HTTP_INNER_HOSTS",
        format!("[\"{}\"]", server.address),
    ))
}

#[test]
fn until_settled_it_stops_by_itself_when_everything_is_done() -> Result<()> {
    let place = Place::new()?;
    let printed = place.settle()?;
    assert_eq!(printed.matches('✓').count(), 2, "{printed}");
    // With nothing to do, nothing is waited for.
    let output = place.program("run", "--until-settled").output()?;
    assert!(output.status.success(), "{output:?}");
    assert!(
        output.stdout.is_empty() && output.stderr.is_empty(),
        "{output:?}"
    );
    Ok(())
}

#[test]
fn until_settled_it_waits_for_a_run_that_takes_long() -> Result<()> {
    let place = Place::new()?;
    let server = Server::start()?;
    let mut host = host(&place, &server)?.arg("--until-settled").start()?;
    let asked = server.next()?;
    assert!(!host.has_ended()?);
    asked.answer("200 OK")?;
    assert!(host.ended()?.success());
    assert!(
        host.stdout().contains("✓ asking default"),
        "{}",
        host.stdout()
    );
    Ok(())
}

#[test]
fn a_signal_lets_runs_end() -> Result<()> {
    let mut said = Vec::new();
    for name in ["TERM", "INT"] {
        let place = Place::new()?;
        let server = Server::start()?;
        let (mut host, asked) = waiting(&place, &server)?;
        host.signal(name)?;
        host.until_printed("stopping")?;
        assert!(!host.has_ended()?);
        asked.answer("200 OK")?;
        assert_eq!(host.ended()?.code(), Some(0));
        assert_eq!(host.stderr(), "");
        let printed = timeless(&host.stdout());
        let (_, after) = printed.split_once("stopping").unwrap();
        said.push(after.to_owned());
    }
    assert_eq!(said[0], said[1]);
    expect![[r#"
        ; a second signal stops at once
        ✓ asking default Added root: 1 request TIME
        ● asking its one object has had its turn
    "#]]
    .assert_eq(&said[0]);
    Ok(())
}

#[test]
fn a_second_signal_stops_at_once() -> Result<()> {
    let place = Place::new()?;
    let server = Server::start()?;
    let (mut host, _unanswered) = waiting(&place, &server)?;
    host.signal("TERM")?;
    host.until_printed("a second signal stops at once")?;
    host.signal("TERM")?;
    // The grace period is 30 seconds, and so is the patience of the request.
    assert_eq!(host.ended_within(Duration::from_secs(10))?.code(), Some(0));
    // What was dropped is done at the next start.
    let mut host = host_again(&place, &server)?;
    server.next()?.answer("200 OK")?;
    assert!(host.ended()?.success());
    Ok(())
}

fn host_again(place: &Place, server: &Server) -> Result<Running> {
    host(place, server)?.arg("--until-settled").start()
}

#[test]
fn runs_that_outlive_the_grace_period_are_dropped() -> Result<()> {
    let place = Place::new()?;
    let server = Server::start()?;
    let mut host = host(&place, &server)?
        .env("CONFIGURATOR_GRACE_SECONDS", "1")
        .start()?;
    let _unanswered = server.next()?;
    host.signal("TERM")?;
    let since = Instant::now();
    assert_eq!(host.ended_within(Duration::from_secs(10))?.code(), Some(0));
    assert!(since.elapsed() >= Duration::from_secs(1));
    let complaint = host.stderr();
    let (_, complaint) = complaint.trim_end().split_once(" WARN ").unwrap();
    expect!["configurator_host::host: runs are still under way; they are dropped grace=1s"]
        .assert_eq(complaint);
    Ok(())
}

#[test]
fn a_watching_client_does_not_keep_it_from_stopping() -> Result<()> {
    let place = Place::new()?;
    let mut host = place
        .host("-f pod-config.yaml -f shop.yaml --listen 127.0.0.1:0")
        .start()?;
    host.until_printed("had their turn")?;
    let mut kubectl = std::process::Command::new("kubectl");
    kubectl
        .args(["get", "clusterconfigurators", "--watch", "--kubeconfig"])
        .arg(place.path("data/kubeconfig"))
        .env("HOME", place.folder());
    let watching = Running::start(kubectl)?;
    watching.until_printed("pod-config")?;
    host.signal("TERM")?;
    let status = host.ended_within(Duration::from_secs(10))?;
    assert_eq!((status.code(), status.signal()), (Some(0), None));
    assert_eq!(host.stderr(), "");
    Ok(())
}
