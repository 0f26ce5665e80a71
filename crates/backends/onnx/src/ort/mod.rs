//! A thin safe layer over ONNX Runtime's C interface. Everything unsafe in this crate is in this folder.

mod bound_tensor;
mod library;
mod options;
mod provider_kind;
mod providers;
mod session;
mod threads;
mod value;

pub(crate) use bound_tensor::{BoundTensor, BoundTensors};
pub(crate) use library::{GlobalThreads, Library};
pub(crate) use options::SessionOptions;
pub(crate) use ort_sys::{ExecutionMode, GraphOptimizationLevel};
pub(crate) use provider_kind::ProviderKind;
pub(crate) use providers::Provider;
pub(crate) use session::{RunMode, RunOptions, Session, TensorInfo, ValueKind};
pub(crate) use value::{Value, from_element_type};
