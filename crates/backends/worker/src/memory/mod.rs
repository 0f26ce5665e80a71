//! Memory shared with a worker: two anonymous arenas, one for each direction.

mod free_list;
mod inbox;
mod limits;
mod mapping;
mod outbox;
mod releases;
mod shared;

pub use limits::{ArenaLimits, MemoryRules};
#[cfg(test)]
pub(crate) use mapping::Mapping;
pub use shared::{BlockAllocation, SharedMemory};
