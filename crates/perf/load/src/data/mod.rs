//! Turns options, files and the model's facts into requests.
//!
//! [`read_model`] asks the server for the model's facts, and [`check_settings`] checks whether the settings suit it.
//! [`Requests`] holds the data of every stream and step, generated or read from files, and
//! makes requests from it. With [`Regions`] the tensors are in shared memory instead of in the requests.
//!
//! **Invariants.** Every error of the data is reported before the first request: making a request from data
//! that was accepted cannot fail. Texts of failures are whole lines for stderr.

mod batch;
mod dataset;
mod directory;
mod error;
mod generate;
mod json;
mod model;
mod regions;
mod requests;
mod settings_check;
#[cfg(test)]
mod tests;

pub use dataset::Dataset;
pub use json::read_json;
pub use model::{model_info, read_model};
pub use regions::{RegionNames, Regions};
pub use requests::Requests;
pub use settings_check::check_settings;
