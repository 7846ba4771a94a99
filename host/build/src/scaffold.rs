//! A new module: the example of its language under another name, with the SDK beside it.
//!
//! The SDKs are part of this crate, so a new module fits the host that made it, and nothing has to be published or fetched.

use std::fs;
use std::path::{Path, PathBuf};

use rust_embed::Embed;
use toml::{Table, Value};

use crate::error::BuildError;
use crate::language::Language;
use crate::name;

/// The smallest module in each language.
#[derive(Embed)]
#[folder = "../../examples"]
#[include = "*-hello/*"]
#[exclude = "*/node_modules/*"]
#[exclude = "*/.venv/*"]
#[exclude = "*/__pycache__/*"]
#[exclude = "*/target/*"]
#[exclude = "*.wasm"]
#[exclude = "*.lock"]
#[exclude = "*/package-lock.json"]
struct Examples;

/// What they are written with.
#[derive(Embed)]
#[folder = "../../guest-sdk"]
#[exclude = "*/node_modules/*"]
#[exclude = "*/.venv/*"]
#[exclude = "*/__pycache__/*"]
#[exclude = "*/target/*"]
#[exclude = "*.lock"]
#[exclude = "*/package-lock.json"]
struct Sdks;

/// The manifest that crates of this workspace inherit from.
const WORKSPACE: &str = include_str!("../../../Cargo.toml");
/// Where the SDK is, below a new module.
const SDK: &str = "sdk";

/// A module to make.
#[derive(Debug, Clone)]
pub struct Scaffold {
    /// Its language.
    pub language: Language,
    /// Its name: lower-case letters, digits and hyphens, and a letter first.
    pub name: String,
    /// The folder to make.
    pub folder: PathBuf,
}

impl Scaffold {
    /// A module in a folder of its name, in this one.
    #[must_use]
    pub fn within(folder: &Path, language: Language, name: &str) -> Self {
        Self {
            language,
            name: name.to_owned(),
            folder: folder.join(name),
        }
    }

    /// Makes it, and returns the files, in order, from the folder. A folder that has something in it is left alone; of a module that cannot be
    /// made, nothing stays.
    ///
    /// # Errors
    /// When the name is none, the folder is not empty, or a file cannot be written.
    pub fn make(&self) -> Result<Vec<PathBuf>, BuildError> {
        name::check(&self.name, self.language)?;
        let is_taken = fs::read_dir(&self.folder).is_ok_and(|mut entries| entries.next().is_some());
        if is_taken || self.folder.is_file() {
            return Err(BuildError::Taken {
                folder: self.folder.clone(),
            });
        }
        let mut files = self.own();
        files.extend(self.sdk());
        files.push((".gitignore".to_owned(), self.ignored().into()));
        files.sort();
        let was_there = self.folder.exists();
        if let Err(error) = self.write(&files) {
            // It would be in the way of the next attempt.
            let _ = fs::remove_dir_all(&self.folder);
            if was_there {
                let _ = fs::create_dir(&self.folder);
            }
            return Err(error);
        }
        Ok(files.into_iter().map(|(name, _)| name.into()).collect())
    }

    fn write(&self, files: &[(String, Vec<u8>)]) -> Result<(), BuildError> {
        for (name, content) in files {
            let path = self.folder.join(name);
            if let Some(parent) = path.parent() {
                fs::create_dir_all(parent).map_err(BuildError::file("make", parent))?;
            }
            fs::write(&path, content).map_err(BuildError::file("write", &path))?;
        }
        Ok(())
    }

    /// What git leaves out: what builds write into its folder, and where the documentation has a host keep its files.
    fn ignored(&self) -> &'static str {
        match self.language {
            Language::Rust => "*.wasm\n/data/\n/target/\n",
            Language::Go | Language::C => "*.wasm\n/data/\n/.venv/\n",
            Language::JavaScript => "*.wasm\n/data/\nnode_modules/\n",
            Language::Python => "*.wasm\n/data/\n/.venv/\n__pycache__/\n",
        }
    }

    fn own(&self) -> Vec<(String, Vec<u8>)> {
        let language = self.language.name();
        let example = format!("{language}-hello");
        let renamed = |text: &str| {
            text.replace(&example, &self.name)
                .replace(&example.replace('-', "_"), &self.name.replace('-', "_"))
                .replace(&format!("../../guest-sdk/{language}"), SDK)
        };
        let prefix = format!("{example}/");
        let mut files = Vec::new();
        for path in Examples::iter() {
            let Some(name) = path.strip_prefix(&prefix) else {
                continue;
            };
            let Some(file) = Examples::get(&path) else {
                continue;
            };
            let content = match (self.language, name, std::str::from_utf8(&file.data)) {
                (Language::Rust, "Cargo.toml", _) => self.manifest().into_bytes(),
                (_, _, Ok(text)) => renamed(text).into_bytes(),
                (_, _, Err(_)) => file.data.into_owned(),
            };
            files.push((renamed(name), content));
        }
        files
    }

    fn sdk(&self) -> Vec<(String, Vec<u8>)> {
        let prefix = format!("{}/", self.language.name());
        let mut files = Vec::new();
        for path in Sdks::iter() {
            let Some(name) = path.strip_prefix(&prefix) else {
                continue;
            };
            let Some(file) = Sdks::get(&path) else {
                continue;
            };
            let content = match (self.language, name) {
                (Language::Rust, "Cargo.toml") => standalone(&file.data).into_bytes(),
                _ => file.data.into_owned(),
            };
            files.push((format!("{SDK}/{name}"), content));
        }
        files
    }

    /// Of a crate, which is a workspace of its own, so that one around it does not matter.
    fn manifest(&self) -> String {
        let name = &self.name;
        let workspace: Table = WORKSPACE.parse().unwrap_or_default();
        let of = |path: &[&str]| -> String {
            let start = Some(&workspace).map(|table| Value::Table(table.clone()));
            let found = path
                .iter()
                .fold(start, |value, key| value?.get(key).cloned());
            found
                .and_then(|value| Some(value.as_str()?.to_owned()))
                .unwrap_or_default()
        };
        let edition = of(&["workspace", "package", "edition"]);
        let version = of(&["workspace", "dependencies", "serde_json", "version"]);
        format!(
            r#"[package]
name = "{name}"
version = "0.1.0"
edition = "{edition}"
publish = false

[lib]
crate-type = ["cdylib", "rlib"]

[dependencies]
configurator-sdk = {{ path = "{SDK}" }}
serde_json = "{version}"

[profile.release]
lto = true
codegen-units = 1
panic = "abort"
strip = true

[workspace]
"#
        )
    }
}

/// The manifest of a crate of this workspace without what it inherits, and without what only its own tests need.
fn standalone(manifest: &[u8]) -> String {
    let text = String::from_utf8_lossy(manifest);
    let (Ok(mut table), Ok(workspace)) = (text.parse::<Table>(), WORKSPACE.parse::<Table>()) else {
        return text.into_owned();
    };
    table.remove("lints");
    table.remove("dev-dependencies");
    for section in ["package", "dependencies"] {
        let inherited = workspace.get("workspace").and_then(|all| all.get(section));
        let Some(Value::Table(entries)) = table.get_mut(section) else {
            continue;
        };
        for (name, entry) in entries {
            let is_inherited = entry.get("workspace").is_some();
            if let Some(value) = inherited
                .and_then(|all| all.get(name))
                .filter(|_| is_inherited)
            {
                *entry = merged(value.clone(), entry);
            }
        }
    }
    table.to_string()
}

/// What a crate says beside `workspace = true` is added to what it inherits.
fn merged(inherited: Value, own: &Value) -> Value {
    let Value::Table(own) = own else {
        return inherited;
    };
    let mut own = own.clone();
    own.remove("workspace");
    if own.is_empty() {
        return inherited;
    }
    let mut all = match inherited {
        Value::Table(all) => all,
        version => Table::from_iter([("version".to_owned(), version)]),
    };
    all.extend(own);
    Value::Table(all)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crate_says_itself_what_it_inherited() {
        let sdk = Sdks::get("rust/Cargo.toml").unwrap();
        let text = standalone(&sdk.data);
        assert!(!text.contains("workspace"), "{text}");
        assert!(text.contains("optional = true"), "{text}");
    }

    #[test]
    fn a_module_has_its_own_name_everywhere() {
        for language in Language::ALL {
            let folder = tempfile::tempdir().unwrap();
            let scaffold = Scaffold::within(folder.path(), language, "my-own");
            let files = scaffold.make().unwrap();
            assert_eq!(Language::of(&scaffold.folder).unwrap(), language);
            assert!(files.contains(&PathBuf::from("configurator.yaml")));
            for file in files.iter().filter(|file| !file.starts_with(SDK)) {
                let content = fs::read_to_string(scaffold.folder.join(file)).unwrap();
                let mentions = [file.display().to_string(), content];
                for left in ["-hello", "_hello", "guest-sdk"] {
                    assert!(
                        mentions.iter().all(|text| !text.contains(left)),
                        "{}",
                        file.display()
                    );
                }
            }
            let again = scaffold.make().unwrap_err().to_string();
            assert!(again.contains("is not empty"), "{again}");
        }
    }
}
