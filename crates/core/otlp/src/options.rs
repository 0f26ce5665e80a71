//! The options of mode `opentelemetry`, as written.

use std::time::Duration;

use crate::attribute::Attribute;

/// The form in which spans are sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ExportProtocol {
    /// JSON over HTTP, as Triton sends it.
    #[default]
    HttpJson,
    /// Protobuf over HTTP.
    HttpProtobuf,
    /// Protobuf over gRPC.
    Grpc,
}

galatea_types::names! {
    /// The name in `--trace-config opentelemetry,protocol=` and in `OTEL_EXPORTER_OTLP_PROTOCOL`.
    pub ExportProtocol::name {
        HttpJson = "http/json", HttpProtobuf = "http/protobuf", Grpc = "grpc",
    }
}

/// Bounds of the spans that wait and of those that are sent together, as far as they are given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BatchOptions {
    /// The most spans that wait.
    pub max_queue_size: Option<u32>,
    /// The longest time that a span waits for others, in milliseconds.
    pub schedule_delay: Option<u32>,
    /// The most spans that are sent together.
    pub max_export_batch_size: Option<u32>,
}

/// Bounds of the spans that wait and of those that are sent together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BatchLimits {
    /// The most spans that wait. A trace that finds no room is lost.
    pub max_queue_size: u32,
    /// The longest time that a span waits for others.
    pub schedule_delay: Duration,
    /// The most spans that are sent together.
    pub max_export_batch_size: u32,
}

impl BatchLimits {
    /// Returns limits with which spans can be sent: one span at least, and no batch that is larger than the queue.
    pub fn usable(self) -> Self {
        let max_queue_size = self.max_queue_size.max(1);
        let max_export_batch_size = self.max_export_batch_size.clamp(1, max_queue_size);
        let schedule_delay = self.schedule_delay.max(Duration::from_millis(1));
        Self { max_queue_size, schedule_delay, max_export_batch_size }
    }
}

/// The options of mode `opentelemetry`.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The address of the collector. `None`: the environment names it, or it is on this machine.
    pub url: Option<String>,
    /// The form of what is sent. `None`: the environment names it, or it is JSON.
    pub protocol: Option<ExportProtocol>,
    /// Attributes of the resource that sends the spans.
    pub resource: Vec<Attribute>,
    /// Bounds of the queue and of batches.
    pub batch: BatchOptions,
}
