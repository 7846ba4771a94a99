//! `wasi:io`: stdin is empty, stdout and stderr end in the tail of the log, waiting takes no time.

use wasmtime::component::Resource;

use super::bindings::wasi::io::streams::StreamError;
use super::bindings::wasi::io::{error, poll, streams};
use crate::state::CallState;

/// What a guest may write before it asks again, in bytes.
const PERMIT: u64 = 64 << 10;

/// Pollables that one call of `poll` may name.
const POLLED: usize = 1000;

/// Something to wait for.
#[derive(Debug, Clone, Copy)]
pub enum Pollable {
    /// Has come.
    Ready,
    /// A point of the monotonic clock.
    At(u64),
}

/// The failure of a stream. None ever fails.
pub enum Failure {}

/// A stream without content.
pub struct Empty;

/// A stream into the tail of the log.
pub struct LogTail;

impl error::Host for CallState {}

impl error::HostError for CallState {
    fn to_debug_string(&mut self, failure: Resource<Failure>) -> wasmtime::Result<String> {
        match *self.wasi.table.get(&failure)? {}
    }

    fn drop(&mut self, failure: Resource<Failure>) -> wasmtime::Result<()> {
        match self.wasi.table.delete(failure)? {}
    }
}

impl poll::Host for CallState {
    fn poll(&mut self, pollables: Vec<Resource<Pollable>>) -> wasmtime::Result<Vec<u32>> {
        if pollables.is_empty() || pollables.len() > POLLED {
            return Err(wasmtime::Error::msg(format!(
                "the guest waits for {} things at once; it must be 1 to {POLLED}",
                pollables.len()
            )));
        }
        let instants = pollables
            .iter()
            .map(|pollable| self.instant(pollable))
            .collect::<wasmtime::Result<Vec<u64>>>()?;
        let earliest = instants.iter().min().copied().unwrap_or(0);
        self.wasi.clock.sleep_until(earliest);
        let now = self.wasi.clock.monotonic();
        Ok((0..)
            .zip(instants)
            .filter(|(_, instant)| *instant <= now)
            .map(|(index, _)| index)
            .collect())
    }
}

impl poll::HostPollable for CallState {
    fn ready(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<bool> {
        Ok(self.instant(&pollable)? <= self.wasi.clock.monotonic())
    }

    fn block(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<()> {
        let instant = self.instant(&pollable)?;
        self.wasi.clock.sleep_until(instant);
        Ok(())
    }

    fn drop(&mut self, pollable: Resource<Pollable>) -> wasmtime::Result<()> {
        self.wasi.table.delete(pollable)?;
        Ok(())
    }
}

impl CallState {
    fn instant(&self, pollable: &Resource<Pollable>) -> wasmtime::Result<u64> {
        Ok(match *self.wasi.table.get(pollable)? {
            Pollable::Ready => 0,
            Pollable::At(instant) => instant,
        })
    }
}

type StreamResult<T> = wasmtime::Result<Result<T, StreamError>>;

impl streams::Host for CallState {}

impl streams::HostInputStream for CallState {
    fn read(&mut self, _stream: Resource<Empty>, _len: u64) -> StreamResult<Vec<u8>> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_read(&mut self, _stream: Resource<Empty>, _len: u64) -> StreamResult<Vec<u8>> {
        Ok(Err(StreamError::Closed))
    }

    fn skip(&mut self, _stream: Resource<Empty>, _len: u64) -> StreamResult<u64> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_skip(&mut self, _stream: Resource<Empty>, _len: u64) -> StreamResult<u64> {
        Ok(Err(StreamError::Closed))
    }

    fn subscribe(&mut self, _stream: Resource<Empty>) -> wasmtime::Result<Resource<Pollable>> {
        self.wasi.ready()
    }

    fn drop(&mut self, stream: Resource<Empty>) -> wasmtime::Result<()> {
        self.wasi.table.delete(stream)?;
        Ok(())
    }
}

impl streams::HostOutputStream for CallState {
    fn check_write(&mut self, _stream: Resource<LogTail>) -> StreamResult<u64> {
        Ok(Ok(PERMIT))
    }

    fn write(&mut self, _stream: Resource<LogTail>, contents: Vec<u8>) -> StreamResult<()> {
        self.log.output(&contents);
        Ok(Ok(()))
    }

    fn blocking_write_and_flush(
        &mut self,
        _stream: Resource<LogTail>,
        contents: Vec<u8>,
    ) -> StreamResult<()> {
        self.log.output(&contents);
        Ok(Ok(()))
    }

    fn flush(&mut self, _stream: Resource<LogTail>) -> StreamResult<()> {
        Ok(Ok(()))
    }

    fn blocking_flush(&mut self, _stream: Resource<LogTail>) -> StreamResult<()> {
        Ok(Ok(()))
    }

    fn subscribe(&mut self, _stream: Resource<LogTail>) -> wasmtime::Result<Resource<Pollable>> {
        self.wasi.ready()
    }

    fn write_zeroes(&mut self, _stream: Resource<LogTail>, _len: u64) -> StreamResult<()> {
        Ok(Ok(()))
    }

    fn blocking_write_zeroes_and_flush(
        &mut self,
        _stream: Resource<LogTail>,
        _len: u64,
    ) -> StreamResult<()> {
        Ok(Ok(()))
    }

    fn splice(
        &mut self,
        _stream: Resource<LogTail>,
        _source: Resource<Empty>,
        _len: u64,
    ) -> StreamResult<u64> {
        Ok(Err(StreamError::Closed))
    }

    fn blocking_splice(
        &mut self,
        _stream: Resource<LogTail>,
        _source: Resource<Empty>,
        _len: u64,
    ) -> StreamResult<u64> {
        Ok(Err(StreamError::Closed))
    }

    fn drop(&mut self, stream: Resource<LogTail>) -> wasmtime::Result<()> {
        self.wasi.table.delete(stream)?;
        Ok(())
    }
}
