//! `configurator rollback`: back to the module before, which its source does not have any more.

use std::fs;

use anyhow::Result;
use configurator_tests::guests::{self, digest, variant};
use configurator_tests::program::{PATIENCE, until};
use expect_test::expect;

use crate::kubectl::Cluster;
use crate::place::Place;

/// The digest of the module that runs.
const RUNS: &str = "get ccfgr pod-config -o jsonpath={.status.moduleDigest}";

#[test]
fn the_module_before_takes_over_again_and_stays() -> Result<()> {
    let place = Place::new()?;
    let module = fs::read(guests::folder()?.join("pod_config.wasm"))?;
    let [one, two, three] = [1, 2, 3].map(|number| variant(&module, number));
    fs::remove_file(place.path("modules"))?;
    fs::create_dir(place.path("modules"))?;
    let file = place.path("modules/pod_config.wasm");
    fs::write(&file, &one)?;
    let c = Cluster::at(place, "-f shop.yaml -f pod-config.yaml")?;
    let runs = |module: &[u8]| {
        let wanted = digest(module);
        until("the module runs", PATIENCE, || {
            Ok::<_, anyhow::Error>((c.kubectl(RUNS)? == wanted).then_some(()))
        })
    };
    let rollback = |arguments: &str| {
        c.place
            .program("rollback", "--kubeconfig kubeconfig")
            .args(arguments)
    };
    let shown = |text: String| {
        let named = text.replace(&digest(&one), "ONE");
        named.replace(&digest(&two), "TWO")
    };
    runs(&one)?;
    expect![[r#"
        error: no other module of pod-config is known: none has run before; name one by --to, as `configurator inspect` prints its digest
    "#]]
    .assert_eq(&rollback("pod-config").fails()?);

    fs::write(&file, &two)?;
    runs(&two)?;
    expect![[r#"
        pod-config is pinned to ONE
        what its source has is taken again once spec.module.digest is removed, or names another
    "#]]
    .assert_eq(&shown(rollback("pod-config").succeeds()?));
    runs(&one)?;
    // What its source has next is not taken.
    fs::write(&file, &three)?;
    c.kubectl("annotate pod web-1 -n shop --overwrite config.configurator.dev/level=low")?;
    let level = "get configmap web-1-config -n shop -o jsonpath={.data.level}";
    until("the change has its run", PATIENCE, || {
        Ok::<_, anyhow::Error>((c.kubectl(level)? == "low").then_some(()))
    })?;
    runs(&one)?;
    expect![[r#"
        error: pod-config is pinned to ONE already
    "#]]
    .assert_eq(&shown(
        rollback("pod-config")
            .arg(format!("--to={}", digest(&one)))
            .fails()?,
    ));
    expect![[r#"
        error: there is no ClusterConfigurator "none"
    "#]]
    .assert_eq(&rollback("none").fails()?);

    // To one that is named, and then to what the source has.
    rollback("pod-config")
        .arg(format!("--to={}", digest(&two)))
        .succeeds()?;
    runs(&two)?;
    // One that is pinned by other means is not yet for all objects at once.
    c.kubectl("annotate ccfgr pod-config configurator.dev/rollback-")?;
    rollback("pod-config")
        .arg(format!("--to={}", digest(&two)))
        .succeeds()?;
    runs(&two)?;
    c.kubectl(
        r#"patch ccfgr pod-config --type=json -p [{"op":"remove","path":"/spec/module/digest"}]"#,
    )?;
    runs(&three)
}
