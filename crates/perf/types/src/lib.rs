//! The types of the load tool, and the traits between its parts.
//!
//! The command line becomes [`settings::Settings`]; a [`requests::RequestSource`] knows what to send; a
//! [`load::LoadGenerator`] sends it and leaves [`record::RequestRecord`]s; the profiler turns windows of
//! records and the server's counters into [`status::PerfStatus`]es until they are stable; reports are written
//! from those alone.
//!
//! **Invariants.** Nothing here does I/O. Measurement and reports work on these traits, which tests fill with a
//! fake clock and a fake server; nothing is printed but through [`console::Console`].

#![warn(missing_docs)]

pub mod console;
pub mod failure;
pub mod load;
pub mod model;
pub mod percentile;
pub mod record;
pub mod requests;
pub mod settings;
pub mod status;
pub mod summary;
