//! Single rules of the policy.

use std::time::{Duration, Instant};

use proptest::prelude::*;

use super::super::policy::{AdmissionPolicy, Overload};
use crate::model_shape::ModelShape;

const ONE: ModelShape = ModelShape { instances: 1, per_execution: 1, is_open: false };
const MS: Duration = Duration::from_millis(1);

/// A policy that has seen many requests one after the other, 10 ms each, and the time after them.
fn known(shape: ModelShape) -> (AdmissionPolicy, Instant) {
    let mut now = Instant::now();
    let mut policy = AdmissionPolicy::new(shape, now);
    for _ in 0..400 {
        policy.take(now, 1);
        now += 10 * MS;
        if policy.answered(now, 1, 10 * MS) {
            policy.learn(now);
        }
    }
    (policy, now)
}

#[test]
fn a_request_that_would_be_late_is_refused() {
    let (mut policy, now) = known(ONE);
    policy.take(now, 1);
    policy.take(now, 1);
    assert_eq!(policy.check(now, 1, None), Ok(()), "a burst may take more");
    assert_eq!(policy.check(now, 1, Some(31 * MS)), Ok(()));
    let refusal = policy.check(now, 1, Some(25 * MS)).expect_err("30 ms are needed");
    let Overload::TooLate { estimate, budget } = refusal.reason else { panic!("{refusal:?}") };
    assert_eq!((estimate.as_millis(), budget.as_millis()), (30, 25));
    assert_eq!(refusal.wait.as_millis(), 20, "two are before it");
}

#[test]
fn an_idle_model_refuses_nothing() {
    let (mut policy, now) = known(ONE);
    assert_eq!(policy.check(now, 1000, Some(Duration::ZERO)), Ok(()));
}

#[test]
fn nothing_is_refused_for_its_deadline_before_anything_is_known() {
    let now = Instant::now();
    let mut policy = AdmissionPolicy::new(ONE, now);
    policy.take(now, 1);
    assert_eq!(policy.check(now, 1, Some(MS)), Ok(()));
}

#[test]
fn a_burst_is_accepted_and_a_long_overload_is_not() {
    let (mut policy, mut now) = known(ONE);
    let limit = policy.limit();
    let mut accepted = 0;
    while policy.check(now, 1, None).is_ok() {
        policy.take(now, 1);
        accepted += 1;
    }
    assert_eq!(accepted, 4 * limit);
    // The requests of the burst are answered, and one comes for each.
    for _ in 0..2 * limit {
        now += 10 * MS;
        policy.answered(now, 1, 40 * MS);
        if policy.check(now, 1, None).is_ok() {
            policy.take(now, 1);
        }
    }
    now += 200 * MS;
    assert!(policy.check(now, 1, None).is_err());
    while policy.taken() > limit - 1 {
        policy.answered(now, 1, 40 * MS);
        assert_eq!(policy.check(now, 1, None).is_ok(), policy.taken() < limit);
    }
}

#[test]
fn new_instances_begin_a_new_search() {
    let (mut policy, _) = known(ONE);
    policy.set_shape(ModelShape { instances: 5, ..ONE });
    assert_eq!(policy.limit(), 10);
}

proptest! {
    /// Whatever happens, in whatever order: places are counted exactly, the limit stays within its bounds, and an idle
    /// model accepts.
    #[test]
    fn every_place_is_freed(
        instances in 1u32..8,
        per_execution in 1u32..64,
        steps in prop::collection::vec((0u8..4, 0u64..50, 1u32..70), 1..400),
    ) {
        let shape = ModelShape { instances, per_execution, is_open: false };
        let mut now = Instant::now();
        let mut policy = AdmissionPolicy::new(shape, now);
        let mut taken: Vec<u32> = Vec::new();
        for (step, ms, places) in steps {
            now += Duration::from_millis(ms);
            match step {
                0 | 1 => {
                    let budget = (step == 1).then(|| Duration::from_millis(ms));
                    let accepted = policy.check(now, places, budget);
                    prop_assert!(accepted.is_ok() || !taken.is_empty());
                    if accepted.is_ok() {
                        policy.take(now, places);
                        taken.push(places);
                    }
                }
                2 => if let Some(places) = taken.pop()
                    && policy.answered(now, places, Duration::from_millis(ms)) {
                    policy.learn(now);
                },
                _ => if let Some(places) = taken.pop() {
                    policy.free(now, places);
                },
            }
            prop_assert_eq!(policy.taken(), taken.iter().sum::<u32>());
            prop_assert!(policy.limit() > instances);
            prop_assert!(policy.limit() <= (2 * instances * per_execution).max(instances + 1));
        }
    }
}
