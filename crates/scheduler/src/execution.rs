use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Instant,
};

use galatea_backend::{StreamEnd, StreamObserver};
use galatea_telemetry::{BatchRecord, RequestRecord};

use crate::{
    desk::{Desk, failure_reason},
    line::Line,
};

/// One execution of a decoupled model, which goes on after `execute` returned until the last of its
/// requests has ended.
///
/// It counts once for all its requests, as soon as `execute` returns or the first of them ends: whoever
/// has a whole answer finds it counted.
pub(crate) struct Execution {
    line: Arc<Line>,
    desk: Arc<Desk>,
    items: u64,
    is_counted: AtomicBool,
}

impl Execution {
    pub fn new(line: Arc<Line>, desk: Arc<Desk>, items: u64) -> Self {
        Self { line, desk, items, is_counted: AtomicBool::new(false) }
    }

    /// True for one caller, who must count it.
    pub fn is_first_to_count(&self) -> bool {
        !self.is_counted.swap(true, Ordering::Relaxed)
    }
}

impl StreamObserver for Execution {
    fn ended(&self, end: &StreamEnd) {
        let record = record(end, Instant::now());
        let statistics = &self.desk.statistics;
        if self.is_first_to_count() {
            let batch = BatchRecord {
                batch_size: self.items,
                compute_input: record.compute_input,
                compute_infer: record.compute_infer,
                compute_output: record.compute_output,
            };
            statistics.record_execution(&batch, []);
        }
        if let Some(code) = end.failure {
            let is_step = end.step_times.is_some();
            self.desk.record_failure(failure_reason(Some(code)), is_step, record.total);
            return;
        }
        if let Some(times) = &end.step_times {
            times.add(record.compute_input, record.compute_infer, record.compute_output);
        }
        statistics.record_successes([record]);
    }

    fn left(&self) {
        self.line.settle(1);
    }
}

/// Computing and answering are one here: responses leave while others are computed.
fn record(stream: &StreamEnd, end: Instant) -> RequestRecord {
    let input_done = stream.input_done_at.unwrap_or(stream.started_at);
    RequestRecord {
        total: end.saturating_duration_since(stream.received_at),
        queue: stream.started_at.saturating_duration_since(stream.queued_at),
        compute_input: input_done.saturating_duration_since(stream.started_at),
        compute_infer: end.saturating_duration_since(input_done),
        ..RequestRecord::default()
    }
}
