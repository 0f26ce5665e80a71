//! The record the load keeps of each request.

use galatea_client::OutputTensor;
use smallvec::SmallVec;

/// Nanoseconds since the Unix epoch, from a clock that never goes back within a run.
pub type Nanos = u64;

/// One request that has had its last response.
#[derive(Clone, Debug, Default)]
pub struct RequestRecord {
    /// Time at which sending began.
    pub start: Nanos,
    /// Time at which the schedule wanted it to begin (rate modes). Latencies free of coordinated omission count from here.
    pub intended_start: Option<Nanos>,
    /// Time of each response, in order. Never empty.
    pub responses: SmallVec<[Nanos; 1]>,
    /// The last response carried nothing but the flag that it is the last (decoupled models).
    pub last_response_is_empty: bool,
    /// The correlation id; zero outside of sequences.
    pub sequence_id: u64,
    /// It was the last request of its sequence.
    pub sequence_end: bool,
    /// It could not be sent when the schedule wanted it.
    pub delayed: bool,
    /// Kept only for `--profile-export-file`.
    pub exported: Option<Box<ExportedRequest>>,
}

/// Inputs and outputs for the profile export. Inputs are those of a data step, so that records do not copy them.
#[derive(Clone, Debug, Default)]
pub struct ExportedRequest {
    /// The data stream of its inputs.
    pub stream: usize,
    /// The step in that stream.
    pub step: usize,
    /// One entry for each response.
    pub outputs: Vec<Vec<OutputTensor>>,
}

impl RequestRecord {
    /// Time of the last response with content; `None` if there was none.
    pub fn end(&self) -> Option<Nanos> {
        let without = usize::from(self.last_response_is_empty);
        self.responses
            .len()
            .checked_sub(without + 1)
            .and_then(|last| self.responses.get(last))
            .copied()
    }
}

/// Sums over all calls since the start, for the client's share of the time (unary calls only).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTotals {
    /// Number of calls that have ended.
    pub calls: u64,
    /// Time from start to end, in nanoseconds.
    pub request_ns: u64,
    /// Time from start until the request was sent, in nanoseconds.
    pub send_ns: u64,
    /// Time from the first byte of the response to the last, in nanoseconds.
    pub receive_ns: u64,
}
