//! The measurements of the client.

use std::fmt::Write as _;

use galatea_client::Protocol;
use galatea_perf_types::{
    model::ModelInfo,
    settings::{Settings, Verbosity},
    status::{ClientStats, PerfStatus},
};

use crate::number::Notation;

pub(super) fn write(
    text: &mut String,
    notation: &mut Notation,
    status: &PerfStatus,
    settings: &Settings,
    model: &ModelInfo,
) {
    let client = &status.client;
    let verbose = settings.verbosity >= Verbosity::Verbose;
    let _ = writeln!(text, "    Request count: {}", client.request_count);
    delayed(text, notation, status);
    if status.on_sequence_model {
        let rate = notation.number(client.sequence_per_sec);
        let _ = writeln!(text, "    Sequence count: {} ({rate} seq/sec)", client.sequence_count);
    }
    let _ = writeln!(text, "    Throughput: {} infer/sec", notation.number(client.infer_per_sec));
    if model.decoupled {
        let rate = notation.number(client.responses_per_sec);
        let _ = writeln!(text, "    Response Throughput: {rate} infer/sec");
    }
    if verbose {
        let _ = writeln!(text, "    Avg client overhead: {:.2}%", status.overhead_percent);
    }
    latencies(text, client, settings);
    // A stream's responses belong to no call, so a decoupled model has no line of call times; perf_analyzer
    // leaves the indentation of that line.
    let calls = if model.decoupled {
        String::new()
    } else {
        call_times(client, settings.protocol, verbose)
    };
    let _ = writeln!(text, "    {calls}");
}

fn delayed(text: &mut String, notation: &mut Notation, status: &PerfStatus) {
    if let Some(percent) = notation.warn_of_late(status) {
        let rate = status.send_request_rate;
        let _ = writeln!(text, "    Avg send request rate: {rate:.2} infer/sec");
        let _ = writeln!(
            text,
            "    [WARNING] Perf Analyzer was not able to keep up with the desired request rate. {percent:.2}% of the requests were delayed. "
        );
    }
}

fn latencies(text: &mut String, client: &ClientStats, settings: &Settings) {
    if settings.percentile.is_none() {
        let _ = writeln!(
            text,
            "    Avg latency: {} usec (standard deviation {} usec)",
            client.avg_latency_ns / 1000,
            client.std_us
        );
    }
    for (percentile, ns) in &client.percentile_latency_ns {
        let _ = writeln!(text, "    p{percentile} latency: {} usec", ns / 1000);
    }
}

fn call_times(client: &ClientStats, protocol: Protocol, verbose: bool) -> String {
    let CallMicros { total, send, wait, receive } = CallMicros::of(client);
    let both = send + receive;
    match (protocol, verbose) {
        (Protocol::Grpc, false) => format!(
            "Avg gRPC time: {total} usec ((un)marshal request/response {both} usec + response wait {wait} usec)"
        ),
        (Protocol::Grpc, true) => format!(
            "Avg gRPC time: {total} usec (marshal {send} usec + response wait {wait} usec + unmarshal {receive} usec)"
        ),
        (Protocol::Http, false) => format!(
            "Avg HTTP time: {total} usec (send/recv {both} usec + response wait {wait} usec)"
        ),
        (Protocol::Http, true) => format!(
            "Avg HTTP time: {total} usec (send {send} usec + response wait {wait} usec + receive {receive} usec)"
        ),
    }
}

/// The parts of an average call in whole microseconds; they add up to the total.
pub(crate) struct CallMicros {
    pub total: u64,
    pub send: u64,
    pub wait: u64,
    pub receive: u64,
}

impl CallMicros {
    pub(crate) fn of(client: &ClientStats) -> Self {
        let total = client.avg_request_time_ns / 1000;
        let send = client.avg_send_time_ns / 1000;
        let receive = client.avg_receive_time_ns / 1000;
        Self { total, send, wait: total.saturating_sub(send).saturating_sub(receive), receive }
    }
}
