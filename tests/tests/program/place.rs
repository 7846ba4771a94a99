//! A folder with everything that a run of the program needs, so that its messages name no path of this machine.

use std::path::{Path, PathBuf};

use anyhow::Result;
use configurator_store::{Store, StoreOptions};
use configurator_tests::guests;
use configurator_tests::program::{Program, SECRET_KEY};
use tempfile::TempDir;

/// The embedded stores, as their files are called.
pub const STORES: [&str; 3] = ["cluster.redb", "config.redb", "secrets.redb"];

/// A Namespace with two Pods that have a word of configuration each.
const SHOP: &str = r#"
apiVersion: v1
kind: Namespace
metadata: {name: shop, annotations: {config.configurator.dev/region: north}}
---
apiVersion: v1
kind: Pod
metadata: {name: web-1, namespace: shop, annotations: {config.configurator.dev/level: high}}
spec: {containers: [{name: c, image: "web:1"}]}
---
apiVersion: v1
kind: Pod
metadata: {name: web-2, namespace: shop, annotations: {config.configurator.dev/level: low}}
spec: {containers: [{name: c, image: "web:1"}]}
"#;

/// Such a folder: `modules`, `pod-config.yaml`, `shop.yaml`.
pub struct Place {
    folder: TempDir,
}

impl Place {
    pub fn new() -> Result<Self> {
        let folder = tempfile::tempdir()?;
        std::os::unix::fs::symlink(guests::folder()?, folder.path().join("modules"))?;
        let place = Self { folder };
        let manifest = guests::workspace().join("configurators/pod-config/configurator.yaml");
        std::fs::copy(manifest, place.path("pod-config.yaml"))?;
        place.write("shop.yaml", SHOP)?;
        Ok(place)
    }

    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.folder().join(name)
    }

    pub fn write(&self, name: &str, text: &str) -> Result<()> {
        Ok(std::fs::write(self.path(name), text)?)
    }

    pub fn read(&self, name: &str) -> Result<String> {
        Ok(std::fs::read_to_string(self.path(name))?)
    }

    /// The program in this folder, with these arguments.
    pub fn program(&self, subcommand: &str, arguments: &str) -> Program {
        Program::new(subcommand)
            .folder(self.folder())
            .args(arguments)
    }

    /// The host on the data folder `data`, with these further arguments.
    pub fn host(&self, arguments: &str) -> Program {
        self.program("run", "--data-dir data --modules modules")
            .args(arguments)
            .env("CONFIGURATOR_SECRET_KEY", SECRET_KEY)
    }

    /// Configures the shop, and stops.
    pub fn settle(&self) -> Result<String> {
        self.host("-f pod-config.yaml -f shop.yaml --until-settled")
            .succeeds()
    }

    /// How often each store was written.
    pub fn revisions(&self) -> Result<Vec<u64>> {
        let revision = |file: &&str| {
            let file = self.path("data").join(file);
            Ok(Store::open(&file, StoreOptions::default())?.revision()?)
        };
        STORES.iter().map(revision).collect()
    }
}

/// A Configurator whose runs ask a web server and wait for its answer.
pub fn asking(server: std::net::SocketAddr) -> String {
    format!(
        r#"
apiVersion: configurator.dev/v1alpha1
kind: ClusterConfigurator
metadata: {{name: asking}}
spec:
  watch: {{apiVersion: v1, kind: Namespace, fieldSelector: metadata.name=default}}
  module: {{file: scripted.wasm}}
  chain: {{phases: [{{name: root}}]}}
  parameters: {{root: {{requests: [{{name: ask, http: {{method: POST, url: "http://{server}/"}}}}]}}}}
  capabilities: {{http: [{{hosts: ["{server}"], methods: [POST]}}]}}
"#
    )
}

/// The text without what differs from one run to the next: how long things took.
pub fn timeless(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        let bare = word.trim_end();
        let number = bare.trim_end_matches(['n', 'µ', 'm', 's']);
        let is_time = number.len() < bare.len() && number.parse::<f64>().is_ok();
        match word.strip_prefix(bare) {
            Some(end) if is_time => format!("TIME{end}"),
            _ => word.to_owned(),
        }
    });
    words.collect()
}

/// The text without the beginning of a digest, which changes with each build of the module.
pub fn digestless(text: &str) -> String {
    let words = text.split_inclusive([' ', '\n']).map(|word| {
        if word.starts_with("sha256:") {
            word.replace(word.trim_end(), "DIGEST")
        } else {
            word.to_owned()
        }
    });
    words.collect()
}
