//! Integer divisions that the processor refuses (by zero, and of the smallest number by -1) fail the run of the model
//! that they are part of, not the process.
//!
//! On x86-64 such a division raises SIGFPE, which ends the process. The handler installed here gives the
//! instruction the result that AArch64 defines for it, notes whose division it was, and goes on behind it. What runs
//! models asks a [`FaultDomain`] to run them, and no result of a run that divided so is ever used. No frame of
//! foreign code is skipped, no lock stays locked: ADR 13 has the reasons and the limits.
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
