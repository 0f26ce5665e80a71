//! The reports of the load tool. Every report is a function of results; nothing here measures or connects.

#![warn(missing_docs)]

mod breakdown;
pub mod csv;
pub mod html;
mod instability;
mod number;
pub mod profile_export;
pub mod summary;
#[cfg(test)]
mod tests;
pub mod text;
