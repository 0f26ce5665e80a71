//! Memory shared with a worker: two arenas without a name, one for each direction.

mod block;
mod free_list;
mod inbox;
mod mapping;
mod outbox;

pub(crate) use block::{OutboxBlock, Releases};
pub(crate) use inbox::{Inbox, Placing};
pub(crate) use outbox::Outbox;

/// Bounds of an arena, in bytes.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ArenaLimits {
    pub initial: usize,
    pub growth: usize,
    pub max: Option<usize>,
}
