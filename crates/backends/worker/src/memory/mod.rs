//! Memory shared with a worker: two anonymous arenas, one for each direction.

mod free_list;
mod input_arena;
mod limits;
mod mapping;
mod output_arena;
mod released_blocks;
mod shared;

pub use limits::{ArenaLimits, MemoryRules};
#[cfg(test)]
pub(crate) use mapping::Mapping;
pub use shared::{BlockAllocation, SharedMemory};
