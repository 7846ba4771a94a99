//! `wasi:random`: chance that follows from the run's seed.

use super::bindings::wasi::random::{insecure, insecure_seed, random};
use crate::state::CallState;

/// Bytes that one call may ask for.
const MOST: u64 = 1 << 20;

/// SplitMix64. Not for keys: the host makes those, and a pure function must not.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    fn bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        if len > MOST {
            return Err(wasmtime::Error::msg(format!(
                "the guest asked for {len} random bytes at once; at most {MOST} are given"
            )));
        }
        let len = usize::try_from(len).unwrap_or(0);
        let mut bytes = Vec::with_capacity(len + 8);
        while bytes.len() < len {
            bytes.extend_from_slice(&self.next().to_le_bytes());
        }
        bytes.truncate(len);
        Ok(bytes)
    }
}

impl random::Host for CallState {
    fn get_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.wasi.random.bytes(len)
    }

    fn get_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.random.next())
    }
}

impl insecure::Host for CallState {
    fn get_insecure_random_bytes(&mut self, len: u64) -> wasmtime::Result<Vec<u8>> {
        self.wasi.random.bytes(len)
    }

    fn get_insecure_random_u64(&mut self) -> wasmtime::Result<u64> {
        Ok(self.wasi.random.next())
    }
}

impl insecure_seed::Host for CallState {
    fn insecure_seed(&mut self) -> wasmtime::Result<(u64, u64)> {
        Ok((self.wasi.random.next(), self.wasi.random.next()))
    }
}
