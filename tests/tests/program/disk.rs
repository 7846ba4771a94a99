//! A full disk: what was committed stays, what has no room waits, and nothing is lost when there is room again.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::{ChildStdin, Command, Output, Stdio};

use anyhow::{Context as _, Result, ensure};
use configurator_host::sinks::configstore::{ConfigStore as _, EmbeddedConfigStore};
use configurator_tests::program::{Program, Running, SECRET_KEY};
use expect_test::expect;

use crate::place::{Place, timeless};

const PODS: usize = 40;

/// Many Pods with so much configuration that they need about 800 KiB in the API and as much in the config store.
fn shop() -> String {
    let value = "x".repeat(20_000);
    let mut text = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n".to_owned();
    for pod in 0..PODS {
        text += &format!(
            "---\napiVersion: v1\nkind: Pod\nmetadata: {{name: web-{pod}, namespace: shop, annotations: {{config.configurator.dev/own: {value}}}}}\n\
             spec: {{containers: [{{name: c, image: \"web:1\"}}]}}\n"
        );
    }
    text
}

/// How many Pods have their configuration, whole.
fn configured(place: &Place) -> Result<usize> {
    let runtime = tokio::runtime::Runtime::new()?;
    runtime.block_on(async {
        let store = EmbeddedConfigStore::open(&place.path("data/config.redb"))?;
        let keys = store.scan("").await?;
        let number = |prefix: &str| {
            keys.iter()
                .filter(|(key, _)| key.starts_with(prefix))
                .count()
        };
        assert_eq!(
            number("resources/pod/"),
            number("appconf/"),
            "something is half-written"
        );
        assert_eq!(
            number("resources/pod/"),
            number("two/") / 2,
            "something is half-written"
        );
        Ok(number("resources/pod/"))
    })
}

/// Runs the program where no file may have more KiB than so many: writing more is an error, as on a full disk.
fn limited(place: &Place, kib: u32) -> Result<Output> {
    let output = Program::after(&format!("trap '' XFSZ; ulimit -f {kib} || exit 9"), "run")
        .folder(place.folder())
        .args("--data-dir data --modules modules -f pod-config.yaml -f shop.yaml --until-settled")
        .env("CONFIGURATOR_SECRET_KEY", SECRET_KEY)
        .output()?;
    ensure!(
        output.status.code() != Some(9),
        "the shell cannot limit files"
    );
    Ok(output)
}

#[test]
fn a_manifest_that_finds_no_room_is_named_and_goes_on_where_it_stopped() -> Result<()> {
    let place = Place::new()?;
    place.write("shop.yaml", &shop())?;
    // A store needs 1 MiB to begin with.
    let output = limited(&place, 900)?;
    expect![[r#"
        error: cannot open data/config.redb: File too large (os error 27). Check that its folder exists, is writable and has space left
    "#]].assert_eq(&String::from_utf8(output.stderr)?);
    let output = limited(&place, 1200)?;
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    let said = String::from_utf8(output.stderr)?;
    let error = said.lines().last().unwrap_or_default();
    let (before, rest) = error.split_once("web-").context("no Pod is named")?;
    let (number, after) = rest.split_once('"').context("no Pod is named")?;
    expect![[r#"error: cannot apply Pod "web-N" of shop.yaml: no space is left for data/cluster.redb: File too large (os error 27). Nothing was written; free some space and try again"#]].assert_eq(&format!("{before}web-N\"{after}"));
    // Those before it were stored.
    let number: usize = number.parse()?;
    assert!((1..PODS).contains(&number), "{number}");
    let listed = place
        .host("--until-settled -f pod-config.yaml")
        .succeeds()?;
    assert_eq!(listed.matches('✓').count(), number, "{listed}");
    assert_eq!(configured(&place)?, number);
    // With room, everything is completed.
    place.settle()?;
    assert_eq!(configured(&place)?, PODS);
    Ok(())
}

/// A disk in memory, in a shell that may mount one. It goes with the shell.
struct Disk {
    shell: Running,
    commands: ChildStdin,
    /// Where it is mounted, as the shell sees it.
    mounted: PathBuf,
}

impl Disk {
    /// A disk of so many KiB, where this user may have one.
    fn of(place: &Place, kib: u32) -> Result<Option<Self>> {
        let mounted = place.path("disk");
        std::fs::create_dir(&mounted)?;
        let mut shell = Command::new("unshare");
        shell
            .args(["--map-root-user", "--mount", "sh"])
            .stdin(Stdio::piped());
        let Ok(mut shell) = Running::start(shell) else {
            return Ok(None);
        };
        let commands = shell.stdin().context("no way to the shell")?;
        let mut disk = Self {
            shell,
            commands,
            mounted,
        };
        let is_there = disk.mount(&format!("-t tmpfs -o size={kib}k disk"), "mounted");
        Ok(is_there.is_ok().then_some(disk))
    }

    /// Gives it so many KiB.
    fn grow(&mut self, kib: u32) -> Result<()> {
        self.mount(&format!("-o remount,size={kib}k"), "grown")
    }

    fn mount(&mut self, options: &str, done: &str) -> Result<()> {
        let folder = self.mounted.display();
        writeln!(
            self.commands,
            "mount {options} {folder} && echo {done} || exit"
        )?;
        self.shell.until_printed(done)?;
        Ok(())
    }

    /// A file on it. Only the shell sees the mount; others reach it through the shell.
    fn path(&self, name: &str) -> PathBuf {
        let folder = self.mounted.display();
        PathBuf::from(format!("/proc/{}/root{folder}/{name}", self.shell.id()))
    }
}

#[test]
fn runs_wait_for_room_on_the_disk_and_go_on_by_themselves() -> Result<()> {
    let place = Place::new()?;
    place.write("shop.yaml", &shop())?;
    let Some(mut disk) = Disk::of(&place, 400)? else {
        println!(
            "not shown: this user may mount no disk in memory, so the config store never ran out of room"
        );
        return Ok(());
    };
    // Only the config store lies on the small disk: the API has room for every Pod.
    std::fs::create_dir(place.path("data"))?;
    std::os::unix::fs::symlink(disk.path("config.redb"), place.path("data/config.redb"))?;
    let mut host = place
        .host("-f pod-config.yaml -f shop.yaml --metrics-listen 127.0.0.1:0 --log-format text")
        .start()?;
    let printed = host.until_printed("‖ pod-config")?;
    let line = printed
        .lines()
        .find(|line| line.starts_with('‖'))
        .unwrap_or_default();
    let (_, why) = line
        .split_once("ConfigstoreUnavailable: ")
        .context("no reason")?;
    // Nothing of a transaction is written, or nobody knows it: that depends on where the room ends.
    const KNOWN: &str = "the config store: no space is left for data/config.redb: No space left on device (os error 28). Nothing was written; free some space and try again; waits for the configstore sink TIME";
    const UNKNOWN: &str = "the config store: whether data/config.redb has the change is unknown: No space left on device (os error 28). Free some space or check the disk, and read before writing again; the store opens the file again by itself; waits for the configstore sink TIME";
    assert!([KNOWN, UNKNOWN].contains(&timeless(why).as_str()), "{why}");
    let done = |text: &str| text.matches('✓').count();
    assert!((1..PODS).contains(&done(&printed)), "{printed}");

    disk.grow(64 << 10)?;
    host.until_stdout("every Pod is configured", |text| done(text) == PODS)?;
    host.signal("TERM")?;
    assert!(host.ended()?.success());
    assert_eq!(configured(&place)?, PODS);
    Ok(())
}
