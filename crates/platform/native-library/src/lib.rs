//! Common parts of the backends of native libraries: opening a library and finding its functions, objects that it releases,
//! and tensors that stay in its memory.

#![warn(missing_docs)]

mod in_memory;
mod memory;
mod open;
mod owned;
mod tensors;
mod typical;

pub use self::{
    in_memory::{MemoryLibrary, open_from_memory},
    memory::buffer_over,
    open::{Handle, open, open_lazily, reason},
    owned::{Owned, Release},
    tensors::{check_over, check_texts, no_fit, push_text, room_for},
    typical::TypicalDuration,
};
