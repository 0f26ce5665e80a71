//! What the load tool sends, when, and the record it keeps.
//!
//! [`data`] turns the user's data and the model's facts into requests; [`generator`] sends them.
//!
//! **Invariants.** One thread per worker, each with its own runtime and connections; the way of a request takes
//! no lock that another worker holds for longer than a push.

pub mod data;
pub mod generator;
