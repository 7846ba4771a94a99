//! Why sources do not become a module.

use std::path::PathBuf;

use crate::language::Language;

/// Why sources do not become a module. Each message says what to do.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// No language's manifest is there.
    #[error(
        "{folder} is no module: it has none of {manifests}. `configurator new LANGUAGE NAME` makes one"
    )]
    NoModule {
        /// What was looked at.
        folder: PathBuf,
        /// What would make it one.
        manifests: String,
    },
    /// Manifests of several languages are there.
    #[error(
        "{folder} has manifests of several languages: {found}. Say which is meant, with `--language`"
    )]
    Ambiguous {
        /// What was looked at.
        folder: PathBuf,
        /// The manifests.
        found: String,
    },
    /// What a new module is to be called is no name.
    #[error(
        "{name:?} is no name for a module: lower-case letters, digits and hyphens, a letter first, at most {limit} characters"
    )]
    Name {
        /// What it was to be called.
        name: String,
        /// The most characters.
        limit: usize,
    },
    /// What a new module is to be called is something else in its language.
    #[error(
        "{name:?} cannot be the name of a module in {language}, where it means something else: choose another, such as {name}-config"
    )]
    Reserved {
        /// What it was to be called.
        name: String,
        /// Of the module.
        language: Language,
    },
    /// A new module would be where something is.
    #[error("{folder} is not empty: a new module needs a folder of its own")]
    Taken {
        /// The folder.
        folder: PathBuf,
    },
    /// A manifest cannot be used.
    #[error("{path}: {message}")]
    Manifest {
        /// The file.
        path: PathBuf,
        /// What is wrong with it, and what to do.
        message: String,
    },
    /// A program is missing.
    #[error(
        "to build a module in {language}, {what} is needed, and is not there: {why}\n{install}"
    )]
    MissingTool {
        /// Of the module.
        language: Language,
        /// The program.
        what: String,
        /// How it was looked for.
        why: String,
        /// Commands that install it.
        install: String,
    },
    /// A program has said no. What it wrote is in [`output`](Self::Failed::output), and was told as progress.
    #[error("`{command}` has failed ({status})")]
    Failed {
        /// What was run.
        command: String,
        /// Its exit.
        status: String,
        /// What it wrote, as it wrote it.
        output: String,
    },
    /// What the compiler made is no module.
    #[error("{what} does not become a module: {message}")]
    Component {
        /// What was compiled.
        what: String,
        /// What is wrong, and what to do.
        message: String,
    },
    /// A file or folder cannot be read or written.
    #[error("cannot {what} {path}: {source}")]
    File {
        /// What was tried.
        what: &'static str,
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
    /// The disk is full, or what its user may have of it is used up.
    #[error("no space is left for {path}: {source}. Free some and try again")]
    NoSpace {
        /// What could not be written.
        path: PathBuf,
        /// What the system says.
        source: std::io::Error,
    },
}

impl BuildError {
    pub(crate) fn file(
        what: &'static str,
        path: impl Into<PathBuf>,
    ) -> impl FnOnce(std::io::Error) -> Self {
        use std::io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let path = path.into();
        move |source| match source.kind() {
            StorageFull | QuotaExceeded | FileTooLarge => Self::NoSpace { path, source },
            _ => Self::File { what, path, source },
        }
    }

    #[cfg(feature = "languages")]
    pub(crate) fn manifest(path: impl Into<PathBuf>, message: impl ToString) -> Self {
        Self::Manifest {
            path: path.into(),
            message: message.to_string(),
        }
    }
}
