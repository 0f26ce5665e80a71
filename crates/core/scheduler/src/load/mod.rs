//! How much of what a model's instances can do is asked of them. Nothing is counted for it on the path of a request: an
//! instance tells when its work begins and ends, with instants that are noted anyway.

mod busy_time;
mod meter;

pub(crate) use busy_time::BusyTime;
pub(crate) use meter::{Capacity, LoadMeter};
