//! Measures the load of a model's instances. The path of a request counts nothing for it: an instance records when its work
//! begins and ends, with instants that are recorded anyway.

mod busy_time;
mod meter;

pub(crate) use busy_time::BusyTime;
pub(crate) use meter::{Capacity, LoadMeter};
