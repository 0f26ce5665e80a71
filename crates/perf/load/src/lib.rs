//! The load: requests, their schedule, and the record of each.
//!
//! [`data`] turns the user's data and the model's facts into requests; [`generator`] sends them.
//!
//! **Invariants.** One thread per worker, each with its own runtime and connections. The path of a request takes no lock that
//! another worker holds for longer than a push.

#![warn(missing_docs)]

pub mod data;
pub mod generator;
