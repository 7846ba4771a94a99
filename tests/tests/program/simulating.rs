//! `configurator simulate` on the scenarios of a real module.

use anyhow::{Context as _, Result};
use configurator_tests::guests;
use expect_test::expect;

use crate::place::{Place, timeless};

/// A copy of the scenarios of pod-config, where the module's folder would be.
fn place() -> Result<Place> {
    let place = Place::new()?;
    let scenarios = guests::workspace().join("configurators/pod-config/scenarios");
    std::fs::create_dir(place.path("scenarios"))?;
    std::fs::rename(
        place.path("pod-config.yaml"),
        place.path("configurator.yaml"),
    )?;
    for entry in std::fs::read_dir(scenarios)? {
        let entry = entry?;
        std::fs::copy(
            entry.path(),
            place.path("scenarios").join(entry.file_name()),
        )?;
    }
    Ok(place)
}

const RUN: &str = "scenarios --modules modules";
const GOLDEN: &str = "scenarios/a-pod-appears.golden.yaml";

#[test]
fn every_scenario_passes() -> Result<()> {
    let place = place()?;
    expect![[r#"
        ✓ a-pod-appears TIME A Pod takes its configuration from Node, Namespace, workload and itself
        ✓ a-pod-goes TIME What was made for a Pod goes with it, also when the host was away
        ✓ a-run-is-repeated TIME A restart of the host runs every Pod again and changes nothing
        ✓ someone-else-was-faster TIME A conflict begins the run again from the root phase
        ✓ the-config-store-is-away TIME An outage parks the run, which goes on when the store is back; no attempt is lost
        5 passed, 0 failed
    "#]].assert_eq(&timeless(&place.program("simulate", RUN).succeeds()?));
    expect![[r#"
        ✓ a-pod-goes TIME What was made for a Pod goes with it, also when the host was away
        1 passed, 0 failed
    "#]]
    .assert_eq(&timeless(
        &place
            .program("simulate", RUN)
            .args("--filter goes")
            .succeeds()?,
    ));
    expect![[r#"
        error: no scenario here has "nothing" in its name
    "#]]
    .assert_eq(
        &place
            .program("simulate", RUN)
            .args("--filter nothing")
            .fails()?,
    );
    Ok(())
}

#[test]
fn another_outcome_is_shown_as_a_difference_and_accepted_on_demand() -> Result<()> {
    let place = place()?;
    let golden = place.read(GOLDEN)?;
    place.write(GOLDEN, &golden.replacen("disk: fast", "disk: slow", 1))?;
    let run = |more: &str| {
        place
            .program("simulate", RUN)
            .args("--filter a-pod-appears")
            .args(more)
    };
    let output = run("").output()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    // The lines around a difference are those of the scenario; they all begin with one more blank.
    let printed = timeless(&String::from_utf8(output.stdout)?);
    let lines: Vec<&str> = printed
        .lines()
        .filter(|line| !line.starts_with("   "))
        .collect();
    expect![[r#"
        ✗ a-pod-appears TIME A Pod takes its configuration from Node, Namespace, workload and itself
          what happened differs from what was accepted:
          --- scenarios/a-pod-appears.golden.yaml
          +++ what happened
          @@ -1,7 +1,7 @@
          -    appconf/shop/db-0/disk: slow
          +    appconf/shop/db-0/disk: fast
        0 passed, 1 failed"#]]
    .assert_eq(&lines.join("\n"));
    expect![[r#"
        ✓ a-pod-appears accepted TIME A Pod takes its configuration from Node, Namespace, workload and itself
        1 passed, 0 failed
    "#]].assert_eq(&timeless(&run("--update").succeeds()?));
    assert_eq!(place.read(GOLDEN)?, golden);
    run("").succeeds()?;
    Ok(())
}

#[test]
fn what_a_scenario_expects_is_not_mended_by_accepting() -> Result<()> {
    let place = place()?;
    let name = "scenarios/a-pod-appears.yaml";
    let scenario = place.read(name)?;
    let (before, after) = scenario.split_once("expect:").context("no expectations")?;
    let after = after.replace("disk: fast", "disk: slow");
    place.write(name, &format!("{before}expect:{after}"))?;
    let output = place
        .program("simulate", RUN)
        .args("--filter a-pod-appears --update")
        .output()?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    expect![[r#"
        ✗ a-pod-appears TIME A Pod takes its configuration from Node, Namespace, workload and itself
          ConfigMap shop/db-0-config: .data.disk is "fast", not "slow"
        0 passed, 1 failed
    "#]]
    .assert_eq(&timeless(&String::from_utf8(output.stdout)?));
    Ok(())
}

#[test]
fn one_that_cannot_be_read_or_played_holds_up_no_others() -> Result<()> {
    let place = place()?;
    for name in [
        "a-pod-goes",
        "a-run-is-repeated",
        "the-config-store-is-away",
    ] {
        std::fs::remove_file(place.path(&format!("scenarios/{name}.yaml")))?;
    }
    place.write("scenarios/b-is-no-scenario.yaml", "surprise: 1")?;
    let scenario = place.read("scenarios/a-pod-appears.yaml")?;
    let of_nothing = scenario.replace("kind: Namespace", "kind: Nomespace");
    place.write("scenarios/c-has-no-world.yaml", &of_nothing)?;
    let told = ["", "--explore --seed 1 --calls 40"].map(|how| {
        let output = place.program("simulate", RUN).args(how).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let told = timeless(&String::from_utf8(output.stdout).unwrap());
        // What is explored and how is of the tests of exploring.
        let lines: Vec<&str> = told
            .lines()
            .filter(|line| !line.contains("--seed") && !line.contains("worlds with"))
            .collect();
        lines.join("\n")
    });
    assert_eq!(told[0], told[1]);
    expect![[r#"
        ✓ a-pod-appears TIME A Pod takes its configuration from Node, Namespace, workload and itself
        ✗ b-is-no-scenario TIME
          scenarios/b-is-no-scenario.yaml: error: line 1 column 1: unknown field `surprise`, expected one of description, configurator, modules, start, limit, manifests, objects, config, secrets, http, extensions, faults, steps, expect
           --> <input>:1:1
            |
          1 | surprise: 1
            | ^ unknown field `surprise`, expected one of description, configurator, modules, start, limit, manifests, objects, config, secrets, http, extensions, faults, steps, expect
        ✗ c-has-no-world TIME A Pod takes its configuration from Node, Namespace, workload and itself
          scenarios/c-has-no-world.yaml: cannot apply Nomespace "shop": the API has no kind Nomespace in v1
        ✓ someone-else-was-faster TIME A conflict begins the run again from the root phase
        2 passed, 2 failed"#]]
    .assert_eq(&told[0]);
    Ok(())
}

#[test]
fn a_junit_report_says_the_same() -> Result<()> {
    let place = place()?;
    let golden = place.read(GOLDEN)?;
    place.write(GOLDEN, &golden.replacen("disk: fast", "disk: slow", 1))?;
    place
        .program("simulate", RUN)
        .args("--filter a-pod --junit report.xml")
        .fails()?;
    let report = place.read("report.xml")?;
    assert_eq!(open_elements(&report)?, Vec::<String>::new());
    // How long things took, when it was, and a number of its own are others each time.
    let stable = ["time", "timestamp", "uuid"]
        .iter()
        .fold(report, |report, name| without_attribute(&report, name));
    let is_around = |line: &str| line.starts_with(' ') && !line.trim_start().starts_with('<');
    let lines: Vec<&str> = stable.lines().filter(|line| !is_around(line)).collect();
    expect![[r#"
        <?xml version="1.0" encoding="UTF-8"?>
        <testsuites name="configurator simulate" tests="2" skipped="0" failures="1" errors="0">
            <testsuite name="scenarios" tests="2" skipped="0" errors="0" failures="1">
                <testcase name="a-pod-appears">
                    <failure message="what happened differs from what was accepted:">what happened differs from what was accepted:
        --- scenarios/a-pod-appears.golden.yaml
        +++ what happened
        @@ -1,7 +1,7 @@
        -    appconf/shop/db-0/disk: slow
        +    appconf/shop/db-0/disk: fast
        </failure>
                </testcase>
                <testcase name="a-pod-goes"/>
            </testsuite>
        </testsuites>"#]].assert_eq(&lines.join("\n"));
    Ok(())
}

/// Reads XML without comments, and returns what was opened and never closed: a report that CI systems read has nothing.
fn open_elements(xml: &str) -> Result<Vec<String>> {
    let mut open: Vec<String> = Vec::new();
    for piece in xml.split('<').skip(1) {
        let (tag, text) = piece.split_once('>').context("a tag has no end")?;
        assert!(!text.contains('>') || text.contains("&gt;"), "{text}");
        let entities = text.matches('&').count();
        let known = ["&lt;", "&gt;", "&amp;", "&quot;", "&apos;", "&#"];
        let named: usize = known
            .iter()
            .map(|entity| text.matches(entity).count())
            .sum();
        assert_eq!(entities, named, "{text}");
        if tag.starts_with('?') || tag.ends_with('/') {
            continue;
        }
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop().as_deref(), Some(name)),
            None => open.push(tag.split_whitespace().next().unwrap_or_default().to_owned()),
        }
    }
    Ok(open)
}

fn without_attribute(xml: &str, name: &str) -> String {
    let start = format!(" {name}=\"");
    let mut pieces = xml.split(&start);
    let first = pieces.next().unwrap_or_default().to_owned();
    let rest = pieces.map(|piece| piece.split_once('"').map_or("", |(_, rest)| rest));
    rest.fold(first, |text, rest| text + rest)
}
