//! How wasmtime is set up: the same result everywhere, cheap fresh instances, nothing that a guest could exhaust.

use wasmtime::{Config, Enabled, Engine, InstanceAllocationStrategy, PoolingAllocationConfig};

use crate::options::GuestOptions;

/// Core instances of one component. A Python module has 14.
const CORE_INSTANCES: u32 = 32;
/// Linear memories of one component.
const MEMORIES: u32 = 4;
/// Tables of one component.
pub(crate) const TABLES: u32 = 8;
/// Elements of one table. The largest of a JavaScript module has 7,688.
pub(crate) const TABLE_ELEMENTS: usize = 20_000;
/// What a slot keeps of a memory between two instances, instead of giving it back: page faults are what an instance costs.
/// All slots together keep at most an eighth of the memory of guests, beyond it.
const KEEP_MEMORY: u64 = 16 << 20;
/// The largest linear memory, in bytes.
const MAX_MEMORY: u64 = 1 << 32;
/// Memories are reserved in pages of this size, in bytes.
const PAGE: u64 = 64 << 10;
/// What a slot keeps of a table.
const KEEP_TABLE: usize = 1 << 20;
/// What a fiber has of stack for the host, beside the guest's own: conversions of what goes in and comes out.
const HOST_STACK: usize = 2 << 20;
/// Bookkeeping of one component instance, with its core instances.
const INSTANCE_SIZE: usize = 4 << 20;

/// An engine with room for `slots` instances at a time.
///
/// What wasmtime leaves undefined is pinned: NaNs are canonical, relaxed SIMD is off. Threads and concurrency are off.
pub(crate) fn engine(options: &GuestOptions, slots: u32) -> wasmtime::Result<Engine> {
    let mut config = Config::new();
    config
        .cranelift_nan_canonicalization(true)
        .wasm_relaxed_simd(false)
        .concurrency_support(false)
        .epoch_interruption(true)
        // Traps name functions, and nothing else walks these stacks. Without it a precompiled module is smaller by an eighth, and starts sooner.
        .generate_address_map(false)
        .native_unwind_info(false)
        .max_wasm_stack(options.stack)
        .async_stack_size(options.stack.saturating_add(HOST_STACK))
        .allocation_strategy(InstanceAllocationStrategy::Pooling(pool(options, slots)));
    if let Some(functions) = &options.functions {
        config.enable_incremental_compilation(functions.store())?;
    }
    Engine::new(&config)
}

fn pool(options: &GuestOptions, slots: u32) -> PoolingAllocationConfig {
    let memories = slots.saturating_mul(MEMORIES);
    let kept = options.memory / 8 / u64::from(memories.max(1));
    let size = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let mut pool = PoolingAllocationConfig::new();
    pool.total_component_instances(slots)
        .total_stacks(slots)
        .total_core_instances(slots.saturating_mul(CORE_INSTANCES))
        .total_memories(memories)
        .total_tables(slots.saturating_mul(TABLES))
        .max_core_instances_per_component(CORE_INSTANCES)
        .max_memories_per_component(MEMORIES)
        .max_tables_per_component(TABLES)
        .table_elements(TABLE_ELEMENTS)
        .max_component_instance_size(INSTANCE_SIZE)
        .max_memory_size(size(options.memory.min(MAX_MEMORY).next_multiple_of(PAGE)))
        .linear_memory_keep_resident(size(kept.min(KEEP_MEMORY) / PAGE * PAGE))
        .table_keep_resident(KEEP_TABLE)
        .pagemap_scan(Enabled::Auto);
    pool
}
