//! What becomes of sequences, case by case and over whole runs of a model.

mod cases;
mod fake;
mod simulation;
