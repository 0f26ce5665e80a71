//! (see the crate)
