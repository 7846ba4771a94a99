//! What the program refuses to start on, and that it leaves everything as it was.

use std::os::unix::fs::PermissionsExt as _;

use anyhow::Result;
use configurator_tests::program::Program;
use expect_test::{Expect, expect};

use crate::place::{Place, STORES};

/// The program must fail with exit code 1 and this message, and print nothing else.
#[track_caller]
fn refuses(program: Program, expected: Expect) {
    refuses_with(program, |text| text, expected);
}

#[track_caller]
fn refuses_with(program: Program, change: impl Fn(String) -> String, expected: Expect) {
    let output = program.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(String::from_utf8(output.stdout).unwrap(), "");
    expected.assert_eq(&change(String::from_utf8(output.stderr).unwrap()));
}

#[test]
fn a_port_in_use_is_named_and_the_data_stay_as_they_were() -> Result<()> {
    let place = Place::new()?;
    place.settle()?;
    let before = place.revisions()?;
    let taken = std::net::TcpListener::bind("127.0.0.1:0")?;
    let port = taken.local_addr()?.port().to_string();
    let portless = |text: String| text.replace(&port, "PORT");
    refuses_with(
        place
            .host("-f shop.yaml --listen")
            .arg(format!("127.0.0.1:{port}")),
        portless,
        expect![[r#"
            error: port PORT of 127.0.0.1 is in use by another program. Stop it, or choose another port
        "#]],
    );
    refuses_with(
        place
            .host("-f shop.yaml --metrics-listen")
            .arg(format!("127.0.0.1:{port}")),
        portless,
        expect![[r#"
            error: metrics and health cannot be served at 127.0.0.1:PORT: Address already in use (os error 98). Choose another address with --metrics-listen
        "#]],
    );
    assert_eq!(place.revisions()?, before);
    Ok(())
}

#[test]
fn an_address_that_other_machines_reach_is_refused() -> Result<()> {
    let place = Place::new()?;
    refuses(
        place.host("--listen 0.0.0.0:0"),
        expect![[r#"
        error: 0.0.0.0:0 is no loopback address. The embedded API is only for this machine: use 127.0.0.1 or [::1]
    "#]],
    );
    refuses(
        place.host("--listen [::]:6480"),
        expect![[r#"
        error: [::]:6480 is no loopback address. The embedded API is only for this machine: use 127.0.0.1 or [::1]
    "#]],
    );
    let output = place.host("--listen localhost:6480").output()?;
    assert_eq!(output.status.code(), Some(2));
    expect![[r#"
        error: invalid value 'localhost:6480' for '--listen <ADDR>': invalid socket address syntax

        For more information, try '--help'.
    "#]]
    .assert_eq(&String::from_utf8(output.stderr)?);
    Ok(())
}

/// What the program says of each store when it alone is damaged like this.
fn damaged(place: &Place, damage: impl Fn(&mut Vec<u8>)) -> Result<String> {
    let mut said = String::new();
    for store in STORES {
        let file = place.path("data").join(store);
        let good = std::fs::read(&file)?;
        let mut bad = good.clone();
        damage(&mut bad);
        std::fs::write(&file, &bad)?;
        let output = place
            .host("-f pod-config.yaml -f shop.yaml --until-settled")
            .output()?;
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        assert!(output.stdout.is_empty(), "{output:?}");
        said += &String::from_utf8(output.stderr)?;
        assert!(std::fs::read(&file)? == bad, "{store} was changed");
        std::fs::write(&file, &good)?;
    }
    Ok(without_numbers(&said))
}

/// How long a file is depends on what was stored before.
fn without_numbers(text: &str) -> String {
    let words = text.split_inclusive(['=', ',', ' ', '.']).map(|word| {
        let end = word.trim_start_matches(|letter: char| letter.is_ascii_digit());
        if end.len() < word.len() {
            format!("N{end}")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}

#[test]
fn a_damaged_file_is_named_with_what_to_do_and_is_left_alone() -> Result<()> {
    let place = Place::new()?;
    place.settle()?;
    let garbage = |bytes: &mut Vec<u8>| *bytes = b"no store at all\n".repeat(4096);
    expect![[r#"
        error: data/cluster.redb is damaged or is no store file: I/O error: Not a redb database: magic number mismatch. Restore it from a copy, or move it away to start with an empty one
        error: data/config.redb is damaged or is no store file: I/O error: Not a redb database: magic number mismatch. Restore it from a copy, or move it away to start with an empty one
        error: data/secrets.redb is damaged or is no store file: I/O error: Not a redb database: magic number mismatch. Restore it from a copy, or move it away to start with an empty one
    "#]].assert_eq(&damaged(&place, garbage)?);
    let halved = |bytes: &mut Vec<u8>| bytes.truncate(bytes.len() / 2 / 4096 * 4096);
    expect![[r#"
        error: data/cluster.redb is damaged or is no store file: DB corrupted: File truncated below stored layout: file_len=N, layout_len=N. Restore it from a copy, or move it away to start with an empty one
        error: data/config.redb is damaged or is no store file: DB corrupted: File truncated below stored layout: file_len=N, layout_len=N. Restore it from a copy, or move it away to start with an empty one
        error: data/secrets.redb is damaged or is no store file: DB corrupted: File truncated below stored layout: file_len=N, layout_len=N. Restore it from a copy, or move it away to start with an empty one
    "#]].assert_eq(&damaged(&place, halved)?);
    // The header is as it was, everything after it is not.
    let flipped = |bytes: &mut Vec<u8>| bytes.iter_mut().skip(4096).for_each(|byte| *byte ^= 0xff);
    expect![[r#"
        error: data/cluster.redb is damaged or is no store file: internal error: entered unreachable code. Restore it from a copy, or move it away to start with an empty one
        error: data/config.redb is damaged or is no store file: internal error: entered unreachable code. Restore it from a copy, or move it away to start with an empty one
        error: data/secrets.redb is damaged or is no store file: internal error: entered unreachable code. Restore it from a copy, or move it away to start with an empty one
    "#]].assert_eq(&damaged(&place, flipped)?);
    place.settle()?;
    Ok(())
}

#[test]
fn a_data_folder_belongs_to_one_host_at_a_time() -> Result<()> {
    let place = Place::new()?;
    let mut first = place.host("-f pod-config.yaml -f shop.yaml").start()?;
    first.until_printed("had their turn")?;
    refuses(
        place.host(""),
        expect![[r#"
        error: data/config.redb is in use by another process. Stop it, or choose another data folder
    "#]],
    );
    first.signal("TERM")?;
    assert!(first.ended()?.success());
    place.settle()?;
    Ok(())
}

#[test]
fn a_data_folder_that_cannot_be_made_or_written_is_named() -> Result<()> {
    let place = Place::new()?;
    place.write("file", "")?;
    let run = |folder: &str| {
        place
            .program("run", "--until-settled --data-dir")
            .arg(folder)
    };
    refuses(
        run("file"),
        expect![[r#"
        error: cannot make the data folder file: File exists (os error 17)
    "#]],
    );
    refuses(
        run("file/data"),
        expect![[r#"
        error: cannot make the data folder file/data: Not a directory (os error 20)
    "#]],
    );
    std::fs::create_dir_all(place.path("odd/config.redb"))?;
    refuses(
        run("odd"),
        expect![[r#"
        error: cannot open odd/config.redb: Is a directory (os error 21). Check that its folder exists, is writable and has space left
    "#]],
    );
    let closed = place.path("closed");
    std::fs::create_dir(&closed)?;
    std::fs::set_permissions(&closed, std::fs::Permissions::from_mode(0o500))?;
    if std::fs::write(closed.join("try"), "").is_ok() {
        println!("not shown: whoever runs this test may write everywhere");
        return Ok(());
    }
    refuses(run("closed"), expect![[""]]);
    Ok(())
}

#[test]
fn the_data_folder_is_for_its_owner_alone() -> Result<()> {
    let place = Place::new()?;
    place
        .host("--listen 127.0.0.1:0 --until-settled")
        .succeeds()?;
    let mode = |name: &str| -> Result<u32> {
        Ok(std::fs::metadata(place.path(name))?.permissions().mode() & 0o777)
    };
    assert_eq!(format!("{:o}", mode("data")?), "700");
    assert_eq!(format!("{:o}", mode("data/kubeconfig")?), "600");
    Ok(())
}

#[test]
fn another_key_of_the_secrets_is_refused() -> Result<()> {
    let place = Place::new()?;
    place.settle()?;
    let before = place.revisions()?;
    let other = "//////////////////////////////////////////8=";
    refuses(
        place.host("").env("CONFIGURATOR_SECRET_KEY", other),
        expect![[r#"
            error: data/secrets.redb was sealed with another key; give the key that it was made with
        "#]],
    );
    refuses(
        place.host("").env("CONFIGURATOR_SECRET_KEY", "hello"),
        expect![[r#"
            error: the key of the secret store from the setting secret_key is not 32 bytes in Base64; make one with `head -c 32 /dev/urandom | base64`
        "#]],
    );
    place.write("open.key", other)?;
    refuses(
        place
            .host("--secret-key-file open.key")
            .without_env("CONFIGURATOR_SECRET_KEY"),
        expect![[r#"
            error: open.key may be read by others than its owner; restrict it with `chmod 600 open.key`
        "#]],
    );
    assert_eq!(place.revisions()?, before);
    Ok(())
}

#[test]
fn a_key_of_the_secrets_is_made_where_there_is_none_and_used_from_then_on() -> Result<()> {
    let place = Place::new()?;
    let run = || {
        place
            .host("-f pod-config.yaml -f shop.yaml --secret-key-file new.key --until-settled")
            .without_env("CONFIGURATOR_SECRET_KEY")
    };
    run().succeeds()?;
    let key = place.read("new.key")?;
    run().succeeds()?;
    assert_eq!(place.read("new.key")?, key);
    std::fs::remove_file(place.path("new.key"))?;
    refuses(
        run(),
        expect![[r#"
            error: data/secrets.redb is sealed with a key that was in new.key, which is gone: put the key back, or move the store away to start with an empty one
        "#]],
    );
    Ok(())
}

#[test]
fn a_manifest_that_is_refused_is_named_with_its_file() -> Result<()> {
    let place = Place::new()?;
    let manifests = [
        (
            "gone.yaml",
            None,
            expect![[r#"
            error: cannot read gone.yaml: No such file or directory (os error 2)
        "#]],
        ),
        (
            "broken.yaml",
            Some("kind: [\n"),
            expect![[r#"
            error: broken.yaml is no YAML: error: line 1 column 7: unclosed bracket '['
             --> <input>:1:7
              |
            1 | kind: [
              |       ^ unclosed bracket '['
        "#]],
        ),
        (
            "text.yaml",
            Some("hello\n"),
            expect![[r#"
            error: text.yaml holds something without apiVersion and kind
        "#]],
        ),
        (
            "typo.yaml",
            Some("{apiVersion: v1, kind: ConfigMap, metadata: {name: typo}, date: {}}"),
            expect![[r#"
                error: cannot apply ConfigMap "typo" of typo.yaml: failed to create typed patch object (/typo; /v1, Kind=ConfigMap): .date: field not declared in schema
            "#]],
        ),
        (
            "unknown.yaml",
            Some("{apiVersion: example.com/v1, kind: Widget, metadata: {name: one}}"),
            expect![[r#"
                error: cannot apply Widget "one" of unknown.yaml: the API has no kind Widget in example.com/v1
            "#]],
        ),
    ];
    for (name, text, expected) in manifests {
        if let Some(text) = text {
            place.write(name, text)?;
        }
        refuses(place.host("--until-settled -f").arg(name), expected);
    }
    Ok(())
}

#[test]
fn a_limited_scope_is_that_of_a_group_of_hosts() -> Result<()> {
    let place = Place::new()?;
    for flags in [
        "--namespaces a,b",
        "--selector tier=gold",
        "--selector tier=gold --shards 2 --in-cluster",
    ] {
        refuses(
            place.program("run", flags),
            expect![[r#"
                error: namespaces, selector: hosts claim the Configurators that they run by Leases, so that no other runs them: set sharding.shards, and sharding.name to a name for the hosts with this scope
            "#]],
        );
    }
    refuses(
        place.program("run", "--selector").arg("tier in gold"),
        expect![[r#"
            error: selector "tier in gold": unable to parse requirement: found 'gold' expected: '('
        "#]],
    );
    Ok(())
}

#[test]
fn hosts_that_share_objects_need_all_servers_in_common() -> Result<()> {
    let place = Place::new()?;
    refuses(
        place.program("run", "--shards 2"),
        expect![[r#"
            error: sharding.shards: hosts share the objects of a cluster: give --kubeconfig or --in-cluster
        "#]],
    );
    refuses(
        place.program("run", "--shards 2 --in-cluster"),
        expect![[r#"
            error: sharding.shards: hosts that share objects need one config store: give --etcd-endpoint
        "#]],
    );
    let with_etcd = || {
        place.program(
            "run",
            "--shards 2 --in-cluster --etcd-endpoint https://127.0.0.1:1",
        )
    };
    refuses(
        with_etcd(),
        expect![[r#"
            error: sharding.shards: hosts that share objects need one secret store, and the embedded one belongs to one host. Each host would generate secrets of its own, and reject the states that the others have sealed: set vault.addresses and vault.auth
        "#]],
    );
    let told = with_etcd()
        .env("CONFIGURATOR_VAULT__ADDRESSES", "https://127.0.0.1:1")
        .env("CONFIGURATOR_VAULT__AUTH__METHOD", "token")
        .env("CONFIGURATOR_VAULT__AUTH__TOKEN", "t")
        .fails()?;
    assert!(
        told.contains("this is no Pod with a service account"),
        "{told}"
    );
    Ok(())
}
