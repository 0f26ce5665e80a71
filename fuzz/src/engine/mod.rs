//! The engine with the built-in backends.

pub mod overrides;
pub mod sequence;
pub mod states;
