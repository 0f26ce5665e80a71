use std::sync::Arc;

use galatea_types::{Response, ResponseSink};

use super::{round::SequenceMark, run::Run, work};

/// Where the responses of one step's request arrive.
pub(super) struct StepSink {
    pub run: Arc<Run>,
    /// Number of the step.
    pub step: usize,
    /// Where its inputs came from.
    pub round: usize,
    /// Of its request; 0 when its model does not batch.
    pub batch_size: u32,
    /// Which sequence its request belongs to, when that is not the ensemble request's.
    pub mark: Option<Arc<SequenceMark>>,
}

impl ResponseSink for StepSink {
    fn respond(&mut self, response: Response) {
        let Response { result, is_final } = response;
        work::within(|| {
            self.run.respond(self, result, is_final);
            if is_final {
                self.leave_limiter();
            }
        });
    }

    fn is_closed(&self) -> bool {
        self.run.is_closed()
    }
}

impl StepSink {
    fn leave_limiter(&self) {
        let limiter = self.run.graph().steps.get(self.step).and_then(|s| s.limiter.as_ref());
        if let Some(next) = limiter.and_then(|limiter| limiter.leave()) {
            work::add_admitted(next);
        }
    }
}
