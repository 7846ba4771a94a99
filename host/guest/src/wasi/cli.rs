//! `wasi:cli`: no environment, no arguments, no terminal.

use wasmtime::component::Resource;

use super::bindings::wasi::cli::{
    environment, exit, stderr, stdin, stdout, terminal_input, terminal_output, terminal_stderr,
    terminal_stdin, terminal_stdout,
};
use super::io::{Empty, LogTail};
use crate::state::CallState;

/// A terminal. There is none.
pub enum Terminal {}

impl environment::Host for CallState {
    fn get_environment(&mut self) -> wasmtime::Result<Vec<(String, String)>> {
        Ok(Vec::new())
    }

    fn get_arguments(&mut self) -> wasmtime::Result<Vec<String>> {
        Ok(Vec::new())
    }

    fn initial_cwd(&mut self) -> wasmtime::Result<Option<String>> {
        Ok(None)
    }
}

impl exit::Host for CallState {
    fn exit(&mut self, status: Result<(), ()>) -> wasmtime::Result<()> {
        Err(exited(u8::from(status.is_err())))
    }

    fn exit_with_code(&mut self, status_code: u8) -> wasmtime::Result<()> {
        Err(exited(status_code))
    }
}

fn exited(status: u8) -> wasmtime::Error {
    wasmtime::Error::msg(format!("the guest ended itself with exit status {status}"))
}

impl stdin::Host for CallState {
    fn get_stdin(&mut self) -> wasmtime::Result<Resource<Empty>> {
        self.wasi.push(Empty)
    }
}

impl stdout::Host for CallState {
    fn get_stdout(&mut self) -> wasmtime::Result<Resource<LogTail>> {
        self.wasi.push(LogTail)
    }
}

impl stderr::Host for CallState {
    fn get_stderr(&mut self) -> wasmtime::Result<Resource<LogTail>> {
        self.wasi.push(LogTail)
    }
}

impl terminal_input::Host for CallState {}

impl terminal_input::HostTerminalInput for CallState {
    fn drop(&mut self, terminal: Resource<Terminal>) -> wasmtime::Result<()> {
        match self.wasi.table.delete(terminal)? {}
    }
}

impl terminal_output::Host for CallState {}

impl terminal_output::HostTerminalOutput for CallState {
    fn drop(&mut self, terminal: Resource<Terminal>) -> wasmtime::Result<()> {
        match self.wasi.table.delete(terminal)? {}
    }
}

impl terminal_stdin::Host for CallState {
    fn get_terminal_stdin(&mut self) -> wasmtime::Result<Option<Resource<Terminal>>> {
        Ok(None)
    }
}

impl terminal_stdout::Host for CallState {
    fn get_terminal_stdout(&mut self) -> wasmtime::Result<Option<Resource<Terminal>>> {
        Ok(None)
    }
}

impl terminal_stderr::Host for CallState {
    fn get_terminal_stderr(&mut self) -> wasmtime::Result<Option<Resource<Terminal>>> {
        Ok(None)
    }
}
