//! From bytes to a module, or to a message that says what is wrong with them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError, Weak};

use configurator_background::owners::Owner;
use configurator_core::handler::{CallFault, CallLimits, ModuleDescription};
use wasmtime::component::{Component, Linker};

use crate::bytes::ModuleBytes;
use crate::cache::ModuleCache;
use crate::call::Caller;
use crate::code_size::{self, CodeLimits, CodeTooLarge};
use crate::compile_queue::CompileQueue;
use crate::compiler::{CompileError, Compiler, EngineOptions};
use crate::digest::Digest;
use crate::module::{Facts, Module};
use crate::options::GuestOptions;
use crate::state::CallState;
use crate::v0_1;
use crate::wasi;

/// What the messages say a module must be.
const WORLD: &str = "configurator:handler/configurator@0.1.0";

/// Why a file is no usable module. Each message begins with the name that the caller gave it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LoadError {
    /// The bytes are not WebAssembly.
    #[error(
        "{name} is not a WebAssembly file: {found}. A module is a component of the world {WORLD}"
    )]
    NotWasm {
        /// Of the file.
        name: String,
        /// What it is instead.
        found: String,
    },
    /// The file is a core module.
    #[error(
        "{name} is a core WebAssembly module, not a component. Make it one with `wasm-tools component new`"
    )]
    CoreModule {
        /// Of the file.
        name: String,
    },
    /// The component is malformed, or uses what the host has switched off.
    #[error("{name} is not a valid component: {message}")]
    Invalid {
        /// Of the file.
        name: String,
        /// What wasmtime says.
        message: String,
    },
    /// The component exports something else.
    #[error(
        "{name} is a component of another world: it does not export configurator:handler/handler. It exports: {exports}. A module implements the world {WORLD}"
    )]
    OtherWorld {
        /// Of the file.
        name: String,
        /// What it exports.
        exports: String,
    },
    /// The component is for another version of the package.
    #[error(
        "{name} is built for configurator:handler@{found}; this host runs {}.x. Build it against one of these, or use a newer host",
        v0_1::VERSION
    )]
    OtherVersion {
        /// Of the file.
        name: String,
        /// The version that it exports.
        found: String,
    },
    /// The export has the right name and other types.
    #[error(
        "{name} does not implement {WORLD} as this host knows it: {message}. Build it against the wit folder of this version"
    )]
    OtherTypes {
        /// Of the file.
        name: String,
        /// Which item differs.
        message: String,
    },
    /// The component needs what no module gets.
    #[error(
        "{name} imports {imports}, which the host does not offer: a module gets logging and, for its language's runtime, WASI 0.2 without files and network"
    )]
    NotOffered {
        /// Of the file.
        name: String,
        /// The imports, separated by commas.
        imports: String,
    },
    /// The file is too large.
    #[error("{name} has {size} bytes; at most {limit} are loaded")]
    TooLarge {
        /// Of the file.
        name: String,
        /// In bytes.
        size: u64,
        /// In bytes.
        limit: u64,
    },
    /// The code of the component passes a limit.
    #[error("{name} is not compiled: {reason}")]
    CodeTooLarge {
        /// Of the file.
        name: String,
        /// The limit that it passes.
        reason: CodeTooLarge,
    },
    /// Compiling the component passes a limit.
    #[error("{name} is not compiled: {message}")]
    TooExpensive {
        /// Of the file.
        name: String,
        /// The limit that it passes, and what to do.
        message: String,
    },
    /// The component needs more room than an instance has.
    #[error("{name} does not fit into an instance of this host: {message}")]
    DoesNotFit {
        /// Of the file.
        name: String,
        /// The number and the limit.
        message: String,
    },
    /// `describe` failed.
    #[error("{name} does not describe itself: {fault}")]
    Describe {
        /// Of the file.
        name: String,
        /// How the call ended.
        fault: CallFault,
    },
    /// `describe` lists no handler, two of one name, or one without a name.
    #[error("{name} describes itself wrongly: {message}")]
    Description {
        /// Of the file.
        name: String,
        /// What is wrong.
        message: String,
    },
    /// The host itself failed.
    #[error("{name} could not be loaded: {message}")]
    Host {
        /// Of the file.
        name: String,
        /// What happened.
        message: String,
    },
}

/// Loads modules and knows those in use.
pub(crate) struct Loader {
    linker: Linker<CallState>,
    cache: Option<ModuleCache>,
    limits: CallLimits,
    max_size: u64,
    code: CodeLimits,
    compiler: Compiler,
    engine_options: EngineOptions,
    queue: CompileQueue,
    loaded: Mutex<HashMap<Digest, Weak<Module>>>,
}

impl Loader {
    /// A loader whose modules are compiled for the linker's engine.
    pub(crate) fn new(
        linker: Linker<CallState>,
        cache: Option<ModuleCache>,
        options: &GuestOptions,
    ) -> Self {
        Self {
            linker,
            cache,
            limits: options.describe,
            max_size: options.max_module_size,
            code: options.code,
            compiler: match options.functions {
                Some(_) => Compiler::InProcess,
                None => options.compiler.clone(),
            },
            engine_options: EngineOptions {
                memory: options.memory,
                stack: options.stack,
            },
            queue: CompileQueue::new(options.parallel_compilations),
            loaded: Mutex::new(HashMap::new()),
        }
    }

    /// Loads a module, or finds it loaded. Blocks until its owner has a turn to compile, and while the module is compiled.
    pub(crate) fn load(
        &self,
        caller: &Caller,
        owner: Owner,
        bytes: &ModuleBytes,
        name: &str,
    ) -> Result<Arc<Module>, LoadError> {
        check_kind(bytes, name, self.max_size)?;
        let digest = *bytes.digest();
        if let Some(module) = self.find(&digest) {
            return Ok(module);
        }
        // A module that is compiled already needs no turn.
        if let Some(component) = self.cached(&digest) {
            return self.finish(caller, &component, bytes, name);
        }
        code_size::check(bytes, &self.code).map_err(|reason| LoadError::CodeTooLarge {
            name: name.into(),
            reason,
        })?;
        let turn = match self.queue.take(owner, digest, || self.find(&digest)) {
            Ok(turn) => turn,
            Err(module) => return Ok(module),
        };
        let component = match self.cached(&digest) {
            Some(component) => component,
            None => self.compile(bytes, &digest, name)?,
        };
        let module = self.finish(caller, &component, bytes, name);
        // Loads of the same module that wait find it from now on.
        drop(turn);
        module
    }

    /// Checks a component and remembers it. If another thread was faster, returns its module.
    fn finish(
        &self,
        caller: &Caller,
        component: &Component,
        bytes: &ModuleBytes,
        name: &str,
    ) -> Result<Arc<Module>, LoadError> {
        let digest = *bytes.digest();
        let module = Arc::new(self.check(caller, component, digest, bytes.len(), name)?);
        let mut loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(module) = loaded.get(&digest).and_then(Weak::upgrade) {
            return Ok(module);
        }
        loaded.retain(|_, module| module.strong_count() > 0);
        loaded.insert(digest, Arc::downgrade(&module));
        Ok(module)
    }

    /// Returns how many modules wait to be compiled.
    pub(crate) fn waiting(&self) -> usize {
        self.queue.waiting()
    }

    fn find(&self, digest: &Digest) -> Option<Arc<Module>> {
        let loaded = self.loaded.lock().unwrap_or_else(PoisonError::into_inner);
        loaded.get(digest).and_then(Weak::upgrade)
    }

    /// The component, mapped from the cache where it is there: then its code is shared with the page cache.
    fn cached(&self, digest: &Digest) -> Option<Component> {
        self.cache.as_ref()?.get(self.linker.engine(), digest)
    }

    fn compile(&self, bytes: &[u8], digest: &Digest, name: &str) -> Result<Component, LoadError> {
        let engine = self.linker.engine();
        let compiled = self.compiler.compile(engine, &self.engine_options, bytes);
        let compiled = compiled.map_err(|error| {
            let name = name.into();
            match error {
                CompileError::Refused(message) if message.contains("exceeds the") => {
                    LoadError::DoesNotFit { name, message }
                }
                CompileError::Refused(message) => LoadError::Invalid { name, message },
                CompileError::TooExpensive(message) => LoadError::TooExpensive { name, message },
                CompileError::Host(message) => LoadError::Host { name, message },
            }
        })?;
        if let Some(cache) = &self.cache {
            cache.put(digest, &compiled);
        }
        Ok(self.cached(digest).unwrap_or(compiled))
    }

    fn check(
        &self,
        caller: &Caller,
        component: &Component,
        digest: Digest,
        size: usize,
        name: &str,
    ) -> Result<Module, LoadError> {
        let version = check_exports(component, name)?;
        let imports = check_imports(component, name)?;
        let pre = wasi::linker_for(component, &self.linker)
            .and_then(|linker| linker.instantiate_pre(component))
            .and_then(v0_1::Pre::new)
            .map_err(|error| LoadError::OtherTypes {
                name: name.into(),
                message: format!("{error:#}"),
            })?;
        let (description, memory) =
            caller
                .describe(&pre, &self.limits)
                .map_err(|fault| LoadError::Describe {
                    name: name.into(),
                    fault,
                })?;
        check_description(&description).map_err(|message| LoadError::Description {
            name: name.into(),
            message,
        })?;
        let facts = Facts {
            digest,
            size,
            version,
            imports,
            description,
        };
        Ok(Module {
            facts,
            pre,
            idle: Arc::clone(&caller.idle),
            memory: memory.into(),
        })
    }
}

fn check_kind(bytes: &[u8], name: &str, max_size: u64) -> Result<(), LoadError> {
    let name = || name.to_owned();
    let not_wasm = |found: &str| LoadError::NotWasm {
        name: name(),
        found: found.into(),
    };
    if bytes.len() as u64 > max_size {
        return Err(LoadError::TooLarge {
            name: name(),
            size: bytes.len() as u64,
            limit: max_size,
        });
    }
    match bytes {
        [] => Err(not_wasm("it is empty")),
        [0, b'a', b's', b'm', 1, 0, 0, 0, ..] => Err(LoadError::CoreModule { name: name() }),
        [0, b'a', b's', b'm', _, _, _, _, ..] => Ok(()),
        [b'(', ..] => Err(not_wasm(
            "it seems to be WebAssembly text; convert it with `wasm-tools parse`",
        )),
        [0x7f, b'E', b'L', b'F', ..] => Err(not_wasm(
            "it is a native binary or a precompiled module, which is never loaded from outside",
        )),
        _ => Err(not_wasm("it does not begin with \\0asm")),
    }
}

fn check_exports(component: &Component, name: &str) -> Result<String, LoadError> {
    let kind = component.component_type();
    let exports: Vec<&str> = kind
        .exports(component.engine())
        .map(|(export, _)| export)
        .collect();
    let version = exports
        .iter()
        .find_map(|export| match export.split_once('@') {
            Some((v0_1::EXPORT, version)) => Some(version),
            _ => None,
        });
    let Some(version) = version else {
        return Err(LoadError::OtherWorld {
            name: name.into(),
            exports: if exports.is_empty() {
                "nothing".into()
            } else {
                exports.join(", ")
            },
        });
    };
    if !is_version(version, v0_1::VERSION) {
        return Err(LoadError::OtherVersion {
            name: name.into(),
            found: version.into(),
        });
    }
    Ok(version.to_owned())
}

fn check_imports(component: &Component, name: &str) -> Result<Vec<String>, LoadError> {
    let kind = component.component_type();
    let imports: Vec<String> = kind
        .imports(component.engine())
        .map(|(import, _)| import.to_owned())
        .collect();
    let refused: Vec<&str> = imports
        .iter()
        .map(String::as_str)
        .filter(|import| !is_offered(import))
        .collect();
    if !refused.is_empty() {
        return Err(LoadError::NotOffered {
            name: name.into(),
            imports: refused.join(", "),
        });
    }
    Ok(imports)
}

fn is_offered(import: &str) -> bool {
    let Some((interface, version)) = import.split_once('@') else {
        return false;
    };
    (v0_1::IMPORTS.contains(&interface) && is_version(version, v0_1::VERSION))
        || (wasi::is_served(interface) && is_version(version, wasi::VERSION))
}

/// Whether a version like `0.1.3` is one of the line `0.1`.
pub(crate) fn is_version(version: &str, line: &str) -> bool {
    version
        .strip_prefix(line)
        .and_then(|rest| rest.strip_prefix('.'))
        .is_some_and(|patch| patch.bytes().all(|byte| byte.is_ascii_digit()))
}

fn check_description(description: &ModuleDescription) -> Result<(), String> {
    if description.handlers.is_empty() {
        return Err("it lists no handler".into());
    }
    let mut names = BTreeSet::new();
    for handler in &description.handlers {
        if handler.name.is_empty() {
            return Err("it lists a handler without a name".into());
        }
        if !names.insert(&handler.name) {
            return Err(format!("it lists the handler {:?} twice", handler.name));
        }
    }
    Ok(())
}
