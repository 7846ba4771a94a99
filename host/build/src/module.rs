//! From a folder to a component in a file.

use std::fs::{self, File};
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::{Path, PathBuf};
use std::process::Command;

use serde::de::DeserializeOwned;

use crate::component::Metadata;
use crate::error::BuildError;
use crate::language::Language;
use crate::{c, component, contract, git, go, javascript, name, python, rust, tool};

/// What to build, and where.
#[derive(Debug, Clone)]
pub struct Build {
    /// The folder of the sources.
    pub folder: PathBuf,
    /// By default that of the folder's manifest.
    pub language: Option<Language>,
    /// The file to write, or an existing folder for it. By default named after the module, in its folder.
    pub output: Option<PathBuf>,
    /// Where what is made on the way is kept for the next time.
    pub cache: PathBuf,
    /// Whether the component says which revision of which repository it was made of. Then each revision has a digest of its own.
    pub with_revision: bool,
    /// Where tools are that a module's folder does not have.
    pub tools: Tools,
}

/// Where tools are that a module's folder, and those above it, do not have.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tools {
    /// A folder of packages of npm.
    pub node_modules: Option<PathBuf>,
    /// A virtual environment of Python.
    pub python_venv: Option<PathBuf>,
}

impl Tools {
    /// As `CONFIGURATOR_NODE_MODULES` and `CONFIGURATOR_PYTHON_VENV` say.
    #[must_use]
    pub fn from_env() -> Self {
        let folder = |name| std::env::var_os(name).filter(|path| !path.is_empty());
        Self {
            node_modules: folder("CONFIGURATOR_NODE_MODULES").map(PathBuf::from),
            python_venv: folder("CONFIGURATOR_PYTHON_VENV").map(PathBuf::from),
        }
    }
}

/// What goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress<'p> {
    /// Something begins.
    Step(&'p str),
    /// A line that a compiler has written.
    Said(&'p str),
}

/// A module that was built.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Built {
    /// The component.
    pub path: PathBuf,
    /// In bytes.
    pub size: u64,
    /// Its language.
    pub language: Language,
    /// What it says of itself.
    pub metadata: Metadata,
}

/// What a language makes of its sources.
pub(crate) struct Compiled {
    pub(crate) component: Vec<u8>,
    pub(crate) name: String,
    pub(crate) version: Option<String>,
    /// The version of the compiler.
    pub(crate) compiler: String,
    /// Name and version.
    pub(crate) sdk: (String, String),
}

/// Where a language works.
pub(crate) struct Workshop<'w> {
    /// The sources. Absolute.
    pub(crate) folder: &'w Path,
    /// What is made on the way.
    pub(crate) work: &'w Path,
    pub(crate) tools: &'w Tools,
    progress: &'w mut dyn FnMut(Progress<'_>),
}

impl Build {
    /// Builds it. What has not changed may not be compiled again; a file that comes out the same is not written again, and one that is
    /// written is never there in parts.
    ///
    /// # Errors
    /// When it is no module, a program is missing, or does not compile; each says what to do.
    pub fn run(&self, progress: &mut dyn FnMut(Progress<'_>)) -> Result<Built, BuildError> {
        let folder = self
            .folder
            .canonicalize()
            .map_err(BuildError::file("find", &self.folder))?;
        let language = self.language.map_or_else(|| Language::of(&folder), Ok)?;
        let work = self.cache.join(work_name(&folder));
        fs::create_dir_all(&work).map_err(BuildError::file("make", &work))?;
        let _turn = turn(&work, progress)?;
        let mut workshop = Workshop {
            folder: &folder,
            work: &work,
            tools: &self.tools,
            progress,
        };
        let compiled = match language {
            Language::Rust => rust::build(&mut workshop),
            Language::Go => go::build(&mut workshop),
            Language::JavaScript => javascript::build(&mut workshop),
            Language::Python => python::build(&mut workshop),
            Language::C => c::build(&mut workshop),
        }?;
        let revision = match self.with_revision {
            true => git::revision(&folder, language.manifest()),
            false => None,
        };
        let file = name::of_file(&compiled.name)
            .map_err(|message| BuildError::manifest(folder.join(language.manifest()), message))?;
        let metadata = Metadata {
            name: compiled.name,
            version: compiled
                .version
                .or_else(|| revision.as_ref().and_then(|_| git::version(&folder))),
            source: revision.as_ref().and_then(|_| git::source(&folder)),
            revision,
            language: (language.to_string(), compiled.compiler),
            sdk: compiled.sdk,
        };
        let component = metadata
            .embed(&compiled.component)
            .map_err(|message| workshop.refused(&metadata.name, message))?;
        let file = format!("{file}.wasm");
        let path = match &self.output {
            None => folder.join(file),
            Some(output) if output.is_dir() => output.join(file),
            Some(output) => output.clone(),
        };
        component::write(&path, &component)?;
        Ok(Built {
            path,
            size: component.len() as u64,
            language,
            metadata,
        })
    }
}

impl Workshop<'_> {
    pub(crate) fn step(&mut self, what: &str) {
        (self.progress)(Progress::Step(what));
    }

    pub(crate) fn say(&mut self, line: &str) {
        (self.progress)(Progress::Said(line));
    }

    /// Runs a program, and tells what it says.
    pub(crate) fn run(&mut self, command: &mut Command) -> Result<String, BuildError> {
        let progress = &mut *self.progress;
        tool::run(command, &mut |line| progress(Progress::Said(line)))
    }

    /// A manifest in TOML.
    pub(crate) fn manifest<T: DeserializeOwned>(&self, name: &str) -> Result<T, BuildError> {
        let path = self.folder.join(name);
        let text = fs::read_to_string(&path).map_err(BuildError::file("read", &path))?;
        toml::from_str(&text).map_err(|error| BuildError::manifest(&path, error))
    }

    /// The contract's files, in a folder.
    pub(crate) fn contract(&self) -> Result<PathBuf, BuildError> {
        let folder = self.work.join("wit");
        contract::write(&folder)?;
        Ok(folder)
    }

    /// Writes a file of the work; one that is the same already is left, so that compilers that look at times do nothing.
    pub(crate) fn write(&self, name: &str, content: &[u8]) -> Result<PathBuf, BuildError> {
        let path = self.work.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent).map_err(BuildError::file("make", parent))?;
        }
        if !fs::read(&path).is_ok_and(|old| old == content) {
            fs::write(&path, content).map_err(BuildError::file("write", &path))?;
        }
        Ok(path)
    }

    pub(crate) fn refused(&self, what: &str, message: String) -> BuildError {
        let what = what.to_owned();
        BuildError::Component { what, message }
    }
}

/// Builds of one folder follow each other: each writes into the same place.
fn turn(work: &Path, progress: &mut dyn FnMut(Progress<'_>)) -> Result<File, BuildError> {
    let path = work.join(".lock");
    let lock = File::create(&path).map_err(BuildError::file("make", &path))?;
    if lock.try_lock().is_err() {
        progress(Progress::Step("another build of this folder ends first"));
        lock.lock().map_err(BuildError::file("lock", &path))?;
    }
    Ok(lock)
}

/// Folders of one name at different places work at different places.
fn work_name(folder: &Path) -> String {
    let mut hash = DefaultHasher::new();
    folder.hash(&mut hash);
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    format!("{name}-{:016x}", hash.finish())
}
