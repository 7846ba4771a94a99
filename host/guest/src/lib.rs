//! Runs handler modules: wasmtime, the WIT bindings, WASI that grants nothing, the module cache
