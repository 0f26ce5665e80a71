//! The mode `opentelemetry` of traces: spans that go to a collector in the OpenTelemetry Protocol (OTLP).
//!
//! [`SpanExporter`] is the [`TraceSink`](galatea_trace::TraceSink). One thread makes spans of finished traces and sends them in
//! batches, as JSON or protobuf over HTTP, or over gRPC. [`ExportOptions`] are the settings as written, [`ExportSettings`] those
//! that were checked.
//!
//! **Invariants.** A request never waits for the collector: giving a trace away is a push to a list that is bounded in spans, and in
//! bytes by the memory for traces. Each export has a time limit, and so has the last one at the end of the process. A trace that
//! is not delivered counts as lost.

#![warn(missing_docs)]

mod attribute;
mod exporter;
mod messages;
mod notice;
mod options;
mod queue;
mod settings;
mod spans;
mod transport;

pub use self::{
    attribute::Attribute,
    exporter::SpanExporter,
    options::{BatchOptions, ExportOptions, ExportProtocol},
    settings::{ExportSettings, SettingsError},
};
