//! Facts about the machine and its processes from the operating system, and calls that Rust's library lacks.
//!
//! # Invariants
//! - Every function compiles on every Unix. If a system does not report a fact, it is `None`.

#![warn(missing_docs)]

mod alarm;
mod child;
mod clock;
mod control_group;
mod descriptors;
mod file_lock;
mod listeners;
mod machine;
mod memory;
mod process;

pub use self::{
    alarm::Alarm,
    child::{end_with_parent, mark_process, own_program},
    clock::monotonic_nanoseconds,
    control_group::{GroupProcessors, ProcessorUse},
    descriptors::{MOST_DESCRIPTORS, pass_descriptors, receive_descriptors, user_of_peer},
    file_lock::{LockKind, try_lock},
    listeners::who_listens,
    machine::{CpuTimes, MachineMemory, online_processors, physical_cores},
    memory::unnamed_memory,
    process::{ProcessFigures, resident_bytes_of, set_variable_while_alone},
};
