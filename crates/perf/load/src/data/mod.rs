//! Input data: from options, files and the model to requests.
//!
//! [`read_model`] asks the server what the tool must know of the model, and [`check_settings`] checks whether the
//! settings go with it. [`Requests`] holds the data of every stream and step, generated or read from files, and
//! makes requests of it. With [`Regions`] the tensors lie in shared memory instead of in the requests.
//!
//! **Invariants.** Every fault of the data is reported before the first request: making a request of data
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
pub use regions::Regions;
pub use requests::Requests;
pub use settings_check::check_settings;
