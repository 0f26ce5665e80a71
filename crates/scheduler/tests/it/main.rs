//! The scheduler with real threads. Nothing sleeps: tests wait for what they want to see.

mod answers;
mod batching;
mod life;
mod probe;
mod stress;
