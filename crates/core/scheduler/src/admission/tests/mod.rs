//! Tests of admission.

mod cases;
mod requests;
mod simulated_server;
mod simulation;
