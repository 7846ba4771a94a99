//! A client as a process.

use std::io::Write as _;
use std::process::{ChildStdin, Command, Stdio};

use configurator_tests::guests;
use configurator_tests::program::Running;
use serde_json::Value;

use crate::cluster::Cluster;

/// A client that prints a document a line, and ends when its standard input does.
pub struct Program {
    running: Running,
    questions: Option<ChildStdin>,
}

impl Program {
    /// Starts one of `tests/servers/clients`.
    pub fn start(cluster: &Cluster, client: &str, flags: &[&str]) -> Self {
        let path = guests::cache().unwrap().join("controlplane/clients");
        assert!(
            path.is_file(),
            "the clients are not built: run the tests by `cargo xtask test`"
        );
        let mut command = Command::new(path);
        command
            .arg(client)
            .arg("-kubeconfig")
            .arg(&cluster.kubeconfig)
            .args(["-namespace", &cluster.namespace])
            .args(flags);
        Self::of(command)
    }

    /// Starts any that does as they do.
    pub fn of(mut command: Command) -> Self {
        command.stdin(Stdio::piped());
        let mut running = Running::start(command).unwrap();
        let questions = running.stdin();
        Self { running, questions }
    }

    /// What it has said so far.
    pub fn said(&self) -> Vec<Value> {
        documents(&self.running.stdout())
    }

    /// Returns when it has said this many things of which `holds` is true.
    #[track_caller]
    pub fn until(&self, count: usize, what: &str, holds: impl Fn(&Value) -> bool) {
        let enough =
            |text: &str| documents(text).iter().filter(|said| holds(said)).count() >= count;
        self.running.until_stdout(what, enough).unwrap();
    }

    /// Asks it something, and returns the answer: the next thing of which `is_answer` is true.
    #[track_caller]
    pub fn ask(&mut self, question: &str, is_answer: impl Fn(&Value) -> bool) -> Value {
        let before = self.said().iter().filter(|said| is_answer(said)).count();
        let questions = self.questions.as_mut().unwrap();
        writeln!(questions, "{question}").unwrap();
        self.until(before + 1, question, &is_answer);
        let mut answers = self.said().into_iter().filter(|said| is_answer(said));
        answers.nth(before).unwrap()
    }

    /// Lets it end, and returns what it has logged.
    #[track_caller]
    pub fn end(mut self) -> Ended {
        drop(self.questions.take());
        self.finish()
    }

    /// Asks it to end by a signal, and returns what it has logged.
    #[track_caller]
    pub fn terminate(self) -> Ended {
        self.running.signal("TERM").unwrap();
        self.finish()
    }

    #[track_caller]
    fn finish(mut self) -> Ended {
        let status = self.running.ended().unwrap();
        let log = self.running.stderr();
        assert!(status.success(), "{status}: {log}");
        Ended {
            said: self.said(),
            log,
        }
    }
}

/// A client that has ended.
pub struct Ended {
    /// What it has said.
    pub said: Vec<Value>,
    log: String,
}

impl Ended {
    /// What it has logged as a warning or an error: of each line its message, with the error that it is about.
    pub fn complaints(&self) -> Vec<String> {
        self.log
            .lines()
            .filter_map(|line| {
                let line: Value = serde_json::from_str(line)
                    .unwrap_or_else(|error| panic!("{error}: {line}: {}", self.log));
                let of = |names: [&str; 2]| names.iter().find_map(|name| line[name].as_str());
                let level = of(["level", "severity"]).unwrap();
                let message = of(["msg", "message"]).unwrap();
                let error = line["error"].as_str();
                let error = error.map(|error| format!(": {error}")).unwrap_or_default();
                (!matches!(level, "info" | "debug")).then(|| format!("{message}{error}"))
            })
            .collect()
    }
}

fn documents(text: &str) -> Vec<Value> {
    // The last line may not be whole yet.
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect()
}
