//! Traces: the path of sampled requests through the server, with the instant of each event.
//!
//! A [`Tracer`] holds the settings of the server and of its models, and decides for each request whether it is traced. The trace
//! of a request observes it and the requests that it causes ([`galatea_types::Observer`]); when the last of them is done, it goes
//! to a [`TraceSink`]. [`TraceFiles`] is the sink that writes the files of Triton's mode `triton`; that of mode `opentelemetry` is
//! a crate of its own.
//!
//! **Invariants.** While no request is traced, a request costs one atomic load. Traces that wait to be written are bounded in
//! bytes; those beyond are lost and counted. A file holds a whole JSON array whenever nothing writes to it.

#![warn(missing_docs)]

mod change;
mod clock_time;
mod files;
mod front_end;
mod level;
mod number;
mod recent;
mod recorder;
mod render;
mod request_trace;
mod sampler;
mod setting;
mod settings;
mod sink;
mod span;
mod table;
mod tensor_text;
mod trace_memory;
mod tracer;

pub use self::{
    change::{NumberField, SettingsChange, SettingsError, unknown_model},
    files::TraceFiles,
    front_end::{FrontEndTrace, SendTrace},
    level::Levels,
    recent::{RecentTrace, RecentTraces},
    request_trace::{ClientSpan, Event, RequestTrace, TensorPlace, TracePlace, TracedTensor},
    settings::{SettingValue, Settings, TraceMode, TraceOptions},
    sink::{FinishedTrace, TraceSink},
    tracer::Tracer,
};
