//! Requests that wait and that nobody waits for: what they hold is free before their turn comes.

use std::sync::Arc;

use galatea_scheduler::Scheduler as _;
use galatea_telemetry::FailureReason;
use galatea_types::{Code, MemoryBudget, RequestContext};

use crate::probe::{Setup, all_succeed, named, wait};

/// Of requests that hold a byte of the budget each.
fn contexts(budget: &Arc<MemoryBudget>, count: usize) -> Vec<RequestContext> {
    let context = |_| {
        let mut memory = budget.reservation();
        memory.try_grow(1).expect("within the budget");
        RequestContext { memory, ..RequestContext::new() }
    };
    (0..count).map(context).collect()
}

#[test]
fn abandoned_requests_free_their_memory_while_the_instance_is_busy() {
    for setup in [Setup::direct(), Setup::dynamic("preserve_ordering: true")] {
        let rig = setup.gated().start();
        let budget = MemoryBudget::new(1000);
        let running = rig.submit("running");
        rig.next_start();
        let submit = |context| rig.submit_in(named("flood", 1), context);
        let mut contexts = contexts(&budget, 500);
        let cancellations: Vec<_> = contexts.iter().map(|c| c.cancellation.clone()).collect();
        let gone: Vec<_> = contexts.drain(250..).map(submit).collect();
        let mut cancelled: Vec<_> = contexts.into_iter().map(submit).collect();
        let kept = rig.submit("kept");
        assert_eq!((rig.scheduler.in_flight(), budget.used()), (502, 500));
        assert_eq!(rig.scheduler.release_abandoned(), 0);

        // One half is cancelled, of the other nobody listens for the response.
        cancellations[..250].iter().for_each(|cancellation| cancellation.cancel());
        drop(gone);
        assert_eq!(rig.scheduler.release_abandoned(), 500);
        assert_eq!((rig.scheduler.in_flight(), budget.used()), (2, 0));
        let counted = rig.statistics.snapshot();
        assert_eq!(counted.failures[FailureReason::Canceled as usize], 500);
        assert_eq!(counted.pending, 1);

        rig.permit(2);
        all_succeed([running, kept]);
        let error = wait(cancelled.remove(0)).expect_err("cancelled");
        assert_eq!(error.code(), Code::Cancelled);
    }
}
