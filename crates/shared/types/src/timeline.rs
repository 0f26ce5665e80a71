//! The instants of a request, from which all its durations follow.

use std::time::{Duration, Instant};

/// The instants of a request, in their order. An instant that has not come yet, or never will, is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeline {
    /// The front end had the head of the request; known only if the request is observed.
    pub arrived: Option<Instant>,
    /// The whole request was received: the request duration starts here.
    pub received: Instant,
    /// It entered its model's queue.
    pub queued: Option<Instant>,
    /// An instance took it.
    pub compute_start: Option<Instant>,
    /// Its inputs were ready for the model.
    pub input_done: Option<Instant>,
    /// The model had computed, and its outputs began to be handed out.
    pub output_start: Option<Instant>,
    /// Its last response was ready, about to be sent.
    pub end: Option<Instant>,
}

impl Timeline {
    /// Makes the timeline of a request that was received at `received`.
    pub fn new(received: Instant) -> Self {
        Self {
            arrived: None,
            received,
            queued: None,
            compute_start: None,
            input_done: None,
            output_start: None,
            end: None,
        }
    }

    /// Returns the time from receipt to end.
    pub fn total(&self) -> Duration {
        between(Some(self.received), self.end)
    }

    /// Returns the time in the queue.
    pub fn queue(&self) -> Duration {
        between(self.queued, self.compute_start)
    }

    /// Returns the time to prepare the inputs; zero if its end is unknown.
    pub fn compute_input(&self) -> Duration {
        between(self.compute_start, self.input_done)
    }

    /// Returns the time to compute; up to the end if the start of the outputs is unknown.
    pub fn compute_infer(&self) -> Duration {
        between(self.input_done.or(self.compute_start), self.output_start.or(self.end))
    }

    /// Returns the time to return the outputs; zero if its start is unknown.
    pub fn compute_output(&self) -> Duration {
        between(self.output_start, self.end)
    }

    /// Returns the whole time to compute, with inputs and outputs.
    pub fn compute(&self) -> Duration {
        between(self.compute_start, self.end)
    }

    /// Takes the instants of the request's execution for those that it lacks.
    pub fn complete_from(&mut self, execution: &Timeline) {
        self.compute_start = self.compute_start.or(execution.compute_start);
        self.input_done = self.input_done.or(execution.input_done);
        self.output_start = self.output_start.or(execution.output_start);
        self.end = self.end.or(execution.end);
    }
}

/// Returns zero when an instant is missing or they are in the wrong order.
fn between(from: Option<Instant>, to: Option<Instant>) -> Duration {
    match (from, to) {
        (Some(from), Some(to)) => to.saturating_duration_since(from),
        _ => Duration::ZERO,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_add_up_to_the_total() {
        let start = Instant::now();
        let at = |ms| start + Duration::from_millis(ms);
        let mut timeline = Timeline::new(start);
        timeline.queued = Some(at(1));
        timeline.compute_start = Some(at(3));
        timeline.input_done = Some(at(6));
        timeline.output_start = Some(at(10));
        timeline.end = Some(at(15));
        let durations = [
            timeline.queue(),
            timeline.compute_input(),
            timeline.compute_infer(),
            timeline.compute_output(),
            timeline.total(),
        ];
        assert_eq!(durations.map(|d| d.as_millis()), [2, 3, 4, 5, 15]);
        assert_eq!(timeline.compute().as_millis(), 3 + 4 + 5);
    }

    #[test]
    fn missing_instants_count_as_compute_time() {
        let start = Instant::now();
        let at = |ms| Some(start + Duration::from_millis(ms));
        let execution = Timeline { compute_start: at(2), end: at(9), ..Timeline::new(start) };
        let mut timeline = Timeline { queued: at(1), ..Timeline::new(start) };
        assert_eq!(timeline.queue() + timeline.compute_infer() + timeline.total(), Duration::ZERO);
        timeline.complete_from(&execution);
        assert_eq!(timeline.compute_infer(), Duration::from_millis(7));
        assert_eq!(timeline.compute_input() + timeline.compute_output(), Duration::ZERO);
        timeline.output_start = at(20);
        timeline.input_done = at(4);
        timeline.complete_from(&execution);
        assert_eq!(timeline.compute_output(), Duration::ZERO);
        assert_eq!(timeline.compute_input(), Duration::from_millis(2));
    }
}
