//! What the load tool sends, when, and the record it keeps.
//!
//! [`data`] turns the user's data and the model's facts into requests; [`generator`] sends them.
//!
//! **Invariants.** One thread per worker, each with its own runtime and connections; the path of a request takes
//! no lock that another worker holds for longer than a push.

#![warn(missing_docs)]

pub mod data;
pub mod generator;
