//! `cargo xtask demo`, whose program is an example.

use std::path::Path;
use std::process::Command;

use configurator_tests::controlplane::{ControlPlane, Plan};
use configurator_tests::guests;
use configurator_tests::program::{Running, beside_tests};
use configurator_tests::world::PATIENCE;

/// The last line about the set of the demo.
const OF_SET: &str = "✓ the page, the database and the Application are gone";

/// What the demo prints when it has ended well.
fn demo(place: &Path) -> String {
    let mut command = Command::new(beside_tests("examples/demo"));
    command
        .arg(guests::workspace())
        .arg(guests::folder().unwrap())
        .arg(place)
        .env("NO_COLOR", "1");
    let mut demo = Running::start(command).unwrap();
    let status = demo.ended_within(PATIENCE).unwrap();
    assert!(status.success(), "{}{}", demo.stdout(), demo.stderr());
    demo.stdout()
}

#[test]
fn the_demo_ends_by_itself() {
    let folder = tempfile::tempdir().unwrap();
    let shown = demo(folder.path());
    assert!(
        shown.contains("✓ nothing of web-7d4b9-2 is left"),
        "{shown}"
    );
    assert!(
        shown.contains("secret pod-shop.orders-0 (sealed)"),
        "{shown}"
    );
    assert!(shown.contains(OF_SET), "{shown}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_demo_ends_by_itself_on_real_servers() {
    let plan = Plan {
        audit: false,
        ..Plan::default()
    };
    let plane = ControlPlane::start(&plan).await.unwrap();
    let description = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(description.path(), plane.description()).unwrap();
    let shown = tokio::task::spawn_blocking(move || demo(description.path()))
        .await
        .unwrap();
    assert!(
        shown.contains("secret pod-shop.orders-0 (sealed)"),
        "{shown}"
    );
    assert!(shown.contains("ConfigMap orders-0-config"), "{shown}");
    assert!(!shown.contains("kube-root-ca.crt"), "{shown}");
    assert!(shown.contains(OF_SET), "{shown}");
}
