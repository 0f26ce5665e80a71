//! A thin layer over TensorFlow's C interface. Everything unsafe is here, and no pointer leaves it.

mod element;
mod functions;
mod graph;
mod library;
mod log_level;
mod options;
mod session;
mod strings;
mod tensor;

pub(crate) use element::{data_type_of, type_name};
pub(crate) use graph::Point;
pub(crate) use library::Library;
pub use log_level::quiet;
pub(crate) use options::SessionOptions;
pub(crate) use session::{RunPlace, Session};
pub(crate) use tensor::Tensor;
