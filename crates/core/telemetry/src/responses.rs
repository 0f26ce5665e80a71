//! Statistics of responses by their position among the responses to a request.

use std::time::Duration;

use crate::duration_count::DurationCount;

/// Number of responses to a request that are counted apart. Later ones are not: a stream may have millions.
pub const MAX_COUNTED_RESPONSES: usize = 1024;

/// A backend's report of a response to a request.
#[derive(Clone, Copy, Debug)]
pub struct ResponseRecord {
    /// The outcome of the response.
    pub outcome: ResponseOutcome,
    /// Time to compute its content.
    pub compute_infer: Duration,
    /// Time to make its outputs; 0 when there are none.
    pub compute_output: Duration,
}

/// The outcome of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResponseOutcome {
    /// It was sent.
    Success,
    /// It was an error.
    Failure,
    /// It was computed, and there was nothing to send.
    Empty,
    /// The request was cancelled meanwhile.
    Cancelled,
}

/// All responses at one position among the responses to their requests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResponseStatistics {
    /// Computing.
    pub compute_infer: DurationCount,
    /// Making outputs.
    pub compute_output: DurationCount,
    /// Responses that were sent, from beginning to end.
    pub success: DurationCount,
    /// Errors, from beginning to end.
    pub fail: DurationCount,
    /// Responses with nothing to send.
    pub empty_response: DurationCount,
    /// Responses whose request was cancelled.
    pub cancel: DurationCount,
}

impl ResponseStatistics {
    /// Adds a response as Triton does: a cancelled response counts no phases, and one without outputs counts no output phase.
    pub(crate) fn add(&mut self, record: &ResponseRecord) {
        let ResponseRecord { outcome, compute_infer, compute_output } = *record;
        let of_outcome = match outcome {
            ResponseOutcome::Success => &mut self.success,
            ResponseOutcome::Failure => &mut self.fail,
            ResponseOutcome::Empty => &mut self.empty_response,
            ResponseOutcome::Cancelled => &mut self.cancel,
        };
        of_outcome.add(1, compute_infer + compute_output);
        if outcome == ResponseOutcome::Cancelled {
            return;
        }
        self.compute_infer.add(1, compute_infer);
        if outcome == ResponseOutcome::Success || !compute_output.is_zero() {
            self.compute_output.add(1, compute_output);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(outcome: ResponseOutcome, infer: u64, output: u64) -> ResponseRecord {
        let [compute_infer, compute_output] = [infer, output].map(Duration::from_nanos);
        ResponseRecord { outcome, compute_infer, compute_output }
    }

    #[test]
    fn each_outcome_updates_its_counters() {
        let mut counted = ResponseStatistics::default();
        for (outcome, infer, output) in [
            (ResponseOutcome::Success, 1, 0),
            (ResponseOutcome::Failure, 2, 20),
            (ResponseOutcome::Failure, 4, 0),
            (ResponseOutcome::Empty, 8, 0),
            (ResponseOutcome::Cancelled, 16, 0),
        ] {
            counted.add(&record(outcome, infer, output));
        }
        let of = |count, ns| DurationCount { count, ns };
        let expected = ResponseStatistics {
            compute_infer: of(4, 15),
            compute_output: of(2, 20),
            success: of(1, 1),
            fail: of(2, 26),
            empty_response: of(1, 8),
            cancel: of(1, 16),
        };
        assert_eq!(counted, expected);
    }
    #[test]
    fn only_the_first_responses_are_counted_separately() {
        let statistics = crate::ModelStatistics::default();
        let success = record(ResponseOutcome::Success, 1, 1);
        statistics.record_response(usize::MAX, &success);
        assert_eq!(statistics.snapshot().responses, []);
        (0..2000).for_each(|number| statistics.record_response(number, &success));
        let counted = statistics.snapshot().responses;
        assert_eq!(counted.len(), MAX_COUNTED_RESPONSES);
        assert!(counted.iter().all(|responses| responses.success.count == 1));
    }
}
