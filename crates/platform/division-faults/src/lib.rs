//! Makes failed integer divisions (by zero, and of the smallest number by -1) fail the model's run instead of the process.
//!
//! On x86-64 such a division raises SIGFPE, which ends the process. The installed handler gives the instruction the result
//! that AArch64 defines for it, records the run, and continues after it. Backends run models in a [`FaultDomain`], which
//! drops the result of such a run. No frame of foreign code is skipped, and no lock stays locked: ADR 13 has the reasons and
//! the limits.
//!
//! On other processors integer divisions do not trap, and nothing is installed.
//!
//! # Invariants
//! - The handler touches atomics, its own thread's pointer and the saved registers, nothing else.
//! - A fault that belongs to no run ends the process, as it did before.

#![warn(missing_docs)]

mod domain;
#[cfg(target_arch = "x86_64")]
mod handler;
#[cfg(target_arch = "x86_64")]
mod instruction;
mod owner;

pub use self::domain::{DivisionFault, FaultDomain};

/// Makes the process survive such divisions in runs of a [`FaultDomain`]. May be called any number of times.
pub fn install() {
    #[cfg(target_arch = "x86_64")]
    handler::install();
}
