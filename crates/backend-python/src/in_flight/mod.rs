//! What is under way between the server and one worker. All of it fails when the worker is gone.

mod calls;
mod readiness;
mod requests;
mod tracker;

pub(crate) use requests::{ActiveRequest, ActiveRequests, ResponseContent};
pub(crate) use tracker::InFlight;
