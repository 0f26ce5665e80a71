//! Whole runs with a fake clock and a fake server.

mod fake;
mod fake_run;
mod golden;
mod properties;
