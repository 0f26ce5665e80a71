//! The shared state of a run's workers.

use std::sync::{Arc, OnceLock};

use galatea_client::{KeepResponse, OutputTensor, PreparedInfer, SequenceMark, Target};
use galatea_perf_types::{
    model::ModelInfo,
    record::{ExportedRequest, RequestRecord},
    requests::{ExpectedOutput, RequestSource},
    settings::Settings,
};
use galatea_types::Result;

use super::{
    progress::{FailedSide, Progress, RequestFailure},
    records::Epoch,
    sequence::Sequences,
};

pub struct Shared {
    pub target: Target,
    pub requests: PreparedRequests,
    /// Sequences; `None`: the model has none.
    pub sequences: Option<Sequences>,
    pub calls: CallStyle,
    pub epoch: Epoch,
    pub progress: Progress,
}

#[derive(Clone, Copy, Debug)]
pub struct CallStyle {
    pub batch_size: u64,
    pub asynchronous: bool,
    pub streaming: bool,
    /// Outputs are kept in the records.
    pub export: bool,
    /// Some outputs are compared.
    pub validate: bool,
}

/// One request to send.
#[derive(Clone, Copy, Debug, Default)]
pub struct Job {
    pub stream: usize,
    pub step: usize,
    pub sequence: Option<SequenceMark>,
    /// Index of the worker's gRPC stream that takes it.
    pub grpc_stream: usize,
    pub due: DueTime,
}

/// The scheduled time of a request (rate modes).
#[derive(Clone, Copy, Debug, Default)]
pub struct DueTime {
    pub at: Option<std::time::Instant>,
    pub delayed: bool,
}

impl Shared {
    pub fn new(
        settings: &Settings,
        model: &ModelInfo,
        target: Target,
        source: Arc<dyn RequestSource>,
    ) -> Result<Self> {
        let sequences = model.is_sequence().then(|| Sequences::new(&settings.sequences, &*source));
        let calls = CallStyle {
            batch_size: settings.batch_size,
            asynchronous: settings.is_asynchronous(model),
            streaming: settings.calls.streaming,
            export: settings.profile_export_file.is_some(),
            validate: has_expectations(&*source),
        };
        let requests = PreparedRequests::new(target.clone(), source);
        // Reports a request that cannot be encoded before the run begins.
        requests.get(0, 0)?;
        let (epoch, progress) = (Epoch::now(), Progress::default());
        Ok(Self { target, requests, sequences, calls, epoch, progress })
    }

    /// Returns the part of the response to `job` that is needed.
    pub fn keep(&self, job: &Job) -> KeepResponse {
        let needed = self.calls.export || self.expected(job).is_some();
        if needed { KeepResponse::Outputs } else { KeepResponse::Nothing }
    }

    pub fn keep_on_streams(&self) -> KeepResponse {
        if self.calls.export || self.calls.validate {
            KeepResponse::Outputs
        } else {
            KeepResponse::Nothing
        }
    }

    pub fn expected(&self, job: &Job) -> Option<&[ExpectedOutput]> {
        if !self.calls.validate {
            return None;
        }
        self.requests.source.expected(job.stream, job.step)
    }

    /// Returns a record without the times of its response.
    pub fn record(&self, job: &Job, start: std::time::Instant) -> RequestRecord {
        RequestRecord {
            start: self.epoch.nanos(start),
            intended_start: job.due.at.map(|at| self.epoch.nanos(at)),
            delayed: job.due.delayed,
            sequence_id: job.sequence.map_or(0, |mark| mark.id),
            sequence_end: job.sequence.is_some_and(|mark| mark.end),
            ..RequestRecord::default()
        }
    }

    /// `outputs`: those of each response.
    pub fn export(
        &self,
        job: &Job,
        outputs: Vec<Vec<OutputTensor>>,
    ) -> Option<Box<ExportedRequest>> {
        let exported = ExportedRequest { stream: job.stream, step: job.step, outputs };
        self.calls.export.then(|| Box::new(exported))
    }

    /// The failure of a response rather than of sending, if the calls distinguish them.
    pub fn response_failure(&self, text: impl Into<String>) -> RequestFailure {
        let side = if self.calls.asynchronous { FailedSide::Response } else { FailedSide::Send };
        RequestFailure { side, text: text.into() }
    }
}

pub fn send_failure(error: impl ToString) -> RequestFailure {
    RequestFailure { side: FailedSide::Send, text: error.to_string() }
}

fn has_expectations(source: &dyn RequestSource) -> bool {
    (0..source.stream_count()).any(|stream| {
        (0..source.step_count(stream)).any(|step| source.expected(stream, step).is_some())
    })
}

/// Compares a response with `validation_data`. The texts are perf_analyzer's.
pub fn validate(expected: &[ExpectedOutput], outputs: &[OutputTensor]) -> Result<(), &'static str> {
    for expected in expected {
        let found = outputs.iter().find(|output| output.name == expected.name);
        let found: &[u8] = found.map_or(&[], |output| &output.data);
        match found.get(..expected.data.len()) {
            None => return Err("Output size doesn't match expected size"),
            Some(start) if start != expected.data => {
                return Err("Output doesn't match expected output");
            }
            Some(start) if start.len() < found.len() => {
                return Err("Output size doesn't match expected size");
            }
            Some(_) => {}
        }
    }
    Ok(())
}

/// The requests of a run. Each is encoded at its first use and kept.
pub struct PreparedRequests {
    target: Target,
    source: Arc<dyn RequestSource>,
    /// Requests by stream and step.
    encoded: Vec<Vec<OnceLock<PreparedInfer>>>,
}

impl PreparedRequests {
    fn new(target: Target, source: Arc<dyn RequestSource>) -> Self {
        let steps = |stream| (0..source.step_count(stream)).map(|_| OnceLock::new()).collect();
        let encoded = (0..source.stream_count()).map(steps).collect();
        Self { target, source, encoded }
    }

    pub fn get(&self, stream: usize, step: usize) -> Result<&PreparedInfer> {
        let missing = || galatea_types::Error::internal("no such step in the input data");
        let cell =
            self.encoded.get(stream).and_then(|steps| steps.get(step)).ok_or_else(missing)?;
        if cell.get().is_none() {
            let template = self.source.template(stream, step);
            // Another worker may have been first; both values are equal.
            let _ = cell.set(PreparedInfer::new(&self.target, &template)?);
        }
        cell.get().ok_or_else(missing)
    }

    /// Returns the number of steps that requests outside of sequences repeat: those of the first stream.
    pub fn plain_steps(&self) -> u64 {
        self.source.step_count(0).max(1) as u64
    }
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;
    use galatea_types::DataType;

    use super::*;

    fn output(data: &'static [u8]) -> OutputTensor {
        OutputTensor {
            name: "OUT".into(),
            data_type: DataType::Uint8,
            shape: vec![data.len() as i64],
            data: Bytes::from_static(data),
        }
    }

    #[test]
    fn outputs_are_compared_byte_by_byte() {
        let expected = [ExpectedOutput { name: "OUT".into(), data: Bytes::from_static(b"abc") }];
        let check = |data| validate(&expected, &[output(data)]);
        assert_eq!(check(b"abc"), Ok(()));
        assert_eq!(check(b"abd"), Err("Output doesn't match expected output"));
        assert_eq!(check(b"ab"), Err("Output size doesn't match expected size"));
        assert_eq!(check(b"abcd"), Err("Output size doesn't match expected size"));
        assert_eq!(validate(&expected, &[]), Err("Output size doesn't match expected size"));
    }
}
