//! A thin safe layer over the shim. Everything unsafe is here.

mod answer;
mod element;
mod input;
mod interface;
mod library;
mod message;
mod module;

pub(crate) use answer::Output;
pub(crate) use element::{data_type_of, scalar_type_of};
pub(crate) use input::{Input, copy, fixed};
pub(crate) use library::{Library, Setting};
pub(crate) use module::{Argument, ArgumentKind, ForwardForm, Module, ModuleDevice, RunSettings};
