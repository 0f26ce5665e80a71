//! What is executed next, and together.

mod cases;
pub(super) mod fake;
mod simulation;
