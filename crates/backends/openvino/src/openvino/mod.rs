//! A thin safe layer over OpenVINO's C interface. Everything unsafe in the crate is in this folder.

mod compiled;
mod core;
mod element;
mod functions;
mod library;
mod message;
mod model;
mod preprocess;
mod request;
mod tensor;
mod texts;

pub(crate) use self::{
    compiled::CompiledModel,
    core::Core,
    library::Library,
    model::{Model, Retyping, TensorInfo},
    preprocess::retyped,
    request::InferRequest,
    tensor::Tensor,
};
