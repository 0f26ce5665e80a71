//! Which requests are refused, and what their clients and the metrics are told.

use std::sync::{Arc, Mutex};

use galatea_backend::testing::{adjusted, model_config, request};
use galatea_telemetry::{ModelStatistics, RefusalReason};
use galatea_types::{
    Cancellation, Code, CorrelationId, Error, LockExt as _, ManualClock, Observers, Overloaded,
    PreparedRequest, Refused, RequestContext, Responder, Result, StepTimes,
};

use super::super::*;
use crate::Scheduler;

type Kept = Mutex<Vec<(PreparedRequest, RequestContext, Responder)>>;

/// Keeps the requests that it is given, or refuses them as a full queue does.
#[derive(Default)]
struct Keeper {
    kept: Kept,
    is_full: Mutex<bool>,
}

impl Scheduler for Keeper {
    fn submit(
        &self,
        request: PreparedRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        if *self.is_full.lock_unpoisoned() {
            context.forgo_place();
            return Err(Refused::new(Error::unavailable("full"), responder));
        }
        self.kept.lock_unpoisoned().push((request, context, responder));
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.kept.lock_unpoisoned().len()
    }

    fn release_abandoned(&self) -> usize {
        0
    }

    fn wait_until_idle(&self, _: Instant) -> bool {
        true
    }

    fn expect_no_more(&self) {}

    fn close(&self) {}

    fn drain(&self, _: Instant) -> bool {
        true
    }
}

struct Fixture {
    clock: ManualClock,
    admission: Arc<Admission>,
    scheduler: AdmittingScheduler,
    keeper: Arc<Keeper>,
}

impl Fixture {
    /// A model with this scheduling, with requests of 10 ms one after the other behind it.
    fn new(scheduling: &str) -> Self {
        let text = format!("name: 'm' backend: 'm' max_batch_size: 4 {scheduling}");
        let clock = ManualClock::new();
        let statistics = Arc::new(ModelStatistics::new(&Default::default(), clock.clock()));
        let admission = Admission::new(Arc::new(model_config(&text)), statistics, None);
        let keeper = Arc::<Keeper>::default();
        let scheduler = AdmittingScheduler::new(admission.clone(), keeper.clone());
        let fixture = Self { clock, admission, scheduler, keeper };
        for _ in 0..400 {
            fixture.submit(asking(), RequestContext::new()).expect("idle");
            fixture.clock.advance(Duration::from_millis(10));
            fixture.answer();
        }
        fixture
    }

    fn submit(&self, request: PreparedRequest, context: RequestContext) -> Result<()> {
        let (responder, _) = Responder::unary();
        self.scheduler.submit(request, context, responder).map_err(Refused::into_error)
    }

    fn answer(&self) {
        let (_, _, responder) = self.keeper.kept.lock_unpoisoned().remove(0);
        responder.discard();
    }

    /// Takes all places of the model.
    fn fill(&self) -> Error {
        loop {
            if let Err(error) = self.submit(asking(), RequestContext::new()) {
                return error;
            }
        }
    }

    fn taken(&self) -> u32 {
        self.admission.policy.lock_unpoisoned().taken()
    }

    fn refused(&self) -> u64 {
        self.admission.statistics.snapshot().refused[RefusalReason::Overload as usize]
    }
}

fn asking() -> PreparedRequest {
    request("m", 1, Vec::new())
}

fn in_sequence(is_start: bool) -> PreparedRequest {
    let mut request = asking();
    request.set_correlation_id(CorrelationId::Number(7));
    request.set_sequence_flags(is_start, false);
    request
}

#[test]
fn a_full_model_says_when_to_try_again() {
    let model = Fixture::new("");
    let error = model.fill();
    assert_eq!(error.code(), Code::Unavailable);
    assert_eq!(
        error.message(),
        "[request id: <id_unknown>] model 'm' is overloaded: its 16 places for requests in progress are taken \
         (--admission); try again later"
    );
    assert!(Overloaded::of(&error).is_some_and(|overloaded| overloaded.wait_seconds() == 1));
    assert_eq!(model.refused(), 1);
    let early = model.admission.check_early(None).expect_err("nothing is decoded");
    assert!(Overloaded::of(&early).is_some());
    let counted = model.admission.statistics.snapshot();
    assert_eq!((model.refused(), counted.fail.count), (2, 2));
    while model.keeper.in_flight() > 0 {
        model.answer();
    }
    assert_eq!(model.taken(), 0);
    model.admission.check_early(None).expect("idle");
}

#[test]
fn work_that_was_accepted_goes_on() {
    let model = Fixture::new("sequence_batching { }");
    model.fill();
    let full = model.taken();
    model.submit(in_sequence(true), RequestContext::new()).expect_err("a new sequence");
    model.submit(in_sequence(false), RequestContext::new()).expect("a sequence goes on");
    model.admission.check_early(None).expect("it may continue a sequence");
    let call = RequestContext::from_model(Cancellation::default(), Observers::default());
    model.submit(asking(), call).expect("a call of a model");
    let outer = RequestContext::new();
    let times = Arc::new(StepTimes::new(&outer.origin));
    let step = outer.derive_step(model.clock.now(), "m", times, Cancellation::default());
    model.submit(asking(), step).expect("a step of an ensemble");
    assert_eq!(model.taken(), full + 3, "they take places");
}

#[test]
fn a_correlation_id_helps_only_where_there_are_sequences() {
    let model = Fixture::new("");
    model.fill();
    model.submit(in_sequence(false), RequestContext::new()).expect_err("no sequence");
}

#[test]
fn each_way_to_state_a_deadline_counts() {
    let model = Fixture::new("");
    let waits = |ms| Some(Duration::from_millis(ms));
    let received = || RequestContext::received_at(model.clock.now());
    model.submit(asking(), received()).expect("idle");
    // The answer comes in 2 times 10 ms divided by the eight that could be executed at once, but not before 10 ms.
    let until = |ms| {
        let deadline = Some(model.clock.now() + Duration::from_millis(ms));
        RequestContext { deadline, ..received() }
    };
    let error = model.submit(asking(), until(9)).expect_err("too late");
    assert!(
        error.message().contains("would come in about 10 ms, and the client waits for 9 ms"),
        "{error}"
    );
    model.submit(asking(), until(11)).expect("in time");
    let timeout = |ms| adjusted(asking(), |request| request.timeout = waits(ms));
    model.submit(timeout(9), received()).expect_err("too late");
    model.submit(timeout(11), until(9)).expect_err("the shorter one counts");
    model.submit(timeout(0), received()).expect("0 is no time-out");
    model.submit(timeout(11), received()).expect("in time");
    let early = received();
    model.clock.advance(Duration::from_millis(5));
    model.submit(timeout(11), early).expect_err("it has waited for 5 ms");
}

#[test]
fn requests_that_are_not_executed_tell_nothing_about_the_model() {
    let model = Fixture::new("");
    let before = model.submit(asking(), RequestContext::new());
    before.expect("idle");
    *model.keeper.is_full.lock_unpoisoned() = true;
    for _ in 0..1000 {
        let error = model.submit(asking(), RequestContext::new()).expect_err("the queue is full");
        assert_eq!(error.message(), "full");
    }
    *model.keeper.is_full.lock_unpoisoned() = false;
    for _ in 0..40 {
        let context = RequestContext::new();
        context.cancellation.cancel();
        model.submit(asking(), context).expect("a burst");
    }
    while model.keeper.in_flight() > 1 {
        model.keeper.kept.lock_unpoisoned().pop();
    }
    assert_eq!(model.taken(), 1);
    let deadline = Some(model.clock.now() + Duration::from_millis(9));
    let context = RequestContext { deadline, ..RequestContext::new() };
    model.submit(asking(), context).expect_err("still 10 ms for an answer");
}
