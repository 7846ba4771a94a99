//! The languages of modules, and how a folder says which it has.

use std::fmt;
use std::path::Path;
use std::str::FromStr;

use crate::error::BuildError;

/// A language that modules are written in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Language {
    /// A crate with the library type `cdylib`.
    Rust,
    /// A Go module.
    Go,
    /// A package of npm, in JavaScript or TypeScript.
    JavaScript,
    /// A project with a `pyproject.toml`.
    Python,
    /// C sources with a `module.toml`.
    C,
}

impl Language {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Rust,
        Self::Go,
        Self::JavaScript,
        Self::Python,
        Self::C,
    ];

    /// The file that makes a folder a module in this language.
    #[must_use]
    pub fn manifest(self) -> &'static str {
        match self {
            Self::Rust => "Cargo.toml",
            Self::Go => "go.mod",
            Self::JavaScript => "package.json",
            Self::Python => "pyproject.toml",
            Self::C => "module.toml",
        }
    }

    /// As users write it: `rust`, `go`, `javascript`, `python`, `c`.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::Rust => "rust",
            Self::Go => "go",
            Self::JavaScript => "javascript",
            Self::Python => "python",
            Self::C => "c",
        }
    }

    /// The command that installs, into a new module's folder, what builds it beside the language itself.
    #[cfg(feature = "languages")]
    #[must_use]
    pub fn preparation(self) -> Option<&'static str> {
        match self {
            Self::Rust | Self::Go => None,
            Self::JavaScript => Some("npm install"),
            Self::Python => Some(crate::python::INSTALL),
            Self::C => Some(crate::c::INSTALL_ZIG),
        }
    }

    /// That of the folder, by its manifest.
    ///
    /// # Errors
    /// When it has none, or several.
    pub fn of(folder: &Path) -> Result<Self, BuildError> {
        let has = |language: &Self| folder.join(language.manifest()).is_file();
        let found: Vec<Self> = Self::ALL.into_iter().filter(has).collect();
        let listed = |languages: &[Self]| {
            let names: Vec<&str> = languages.iter().map(|one| one.manifest()).collect();
            names.join(", ")
        };
        match found.as_slice() {
            [one] => Ok(*one),
            [] => Err(BuildError::NoModule {
                folder: folder.to_owned(),
                manifests: listed(&Self::ALL),
            }),
            several => Err(BuildError::Ambiguous {
                folder: folder.to_owned(),
                found: listed(several),
            }),
        }
    }
}

impl fmt::Display for Language {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Rust => "Rust",
            Self::Go => "Go",
            Self::JavaScript => "JavaScript",
            Self::Python => "Python",
            Self::C => "C",
        })
    }
}

/// What is no language of modules.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is none of rust, go, javascript, typescript, python, c")]
pub struct UnknownLanguage(String);

impl FromStr for Language {
    type Err = UnknownLanguage;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let wanted = match text {
            "typescript" | "ts" | "js" => "javascript",
            "py" => "python",
            "rs" => "rust",
            other => other,
        };
        let found = Self::ALL.into_iter().find(|one| one.name() == wanted);
        found.ok_or_else(|| UnknownLanguage(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use expect_test::{Expect, expect};

    use super::*;

    fn check(files: &[&str], expected: Expect) {
        let folder = tempfile::tempdir().unwrap();
        for file in files {
            fs::write(folder.path().join(file), "").unwrap();
        }
        let found = match Language::of(folder.path()) {
            Ok(language) => language.to_string(),
            Err(error) => error.to_string(),
        };
        let name = folder.path().display().to_string();
        expected.assert_eq(&found.replace(&name, "FOLDER"));
    }

    #[test]
    fn a_folder_has_the_language_of_its_manifest() {
        check(&["Cargo.toml", "README.md"], expect!["Rust"]);
        check(&["go.mod"], expect!["Go"]);
        check(&["package.json", "index.ts"], expect!["JavaScript"]);
        check(&["pyproject.toml"], expect!["Python"]);
        check(&["module.toml", "main.c"], expect!["C"]);
    }

    #[test]
    fn a_folder_without_a_manifest_or_with_several_is_refused() {
        check(
            &["main.c"],
            expect![[
                r#"FOLDER is no module: it has none of Cargo.toml, go.mod, package.json, pyproject.toml, module.toml. `configurator new LANGUAGE NAME` makes one"#
            ]],
        );
        check(
            &["go.mod", "package.json"],
            expect![[
                r#"FOLDER has manifests of several languages: go.mod, package.json. Say which is meant, with `--language`"#
            ]],
        );
    }
}
