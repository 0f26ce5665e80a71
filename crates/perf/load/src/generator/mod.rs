//! Workers, schedules and sequences.
//!
//! A run has a few workers ([`worker`]), each a thread ([`worker_thread`]) with its own runtime and connections.
//! Their requests come from closed loops ([`closed_loop`]), a schedule ([`rate`]) or growing concurrency ([`periodic`]). All
//! send a request and record it in the same way ([`request_sender`]).

mod closed_loop;
mod idle;
mod load;
mod periodic;
mod progress;
mod rate;
mod records;
mod request_sender;
mod schedule;
mod sequence;
mod shared;
mod stream;
mod timer;
mod worker;
mod worker_thread;

pub use load::Load;
