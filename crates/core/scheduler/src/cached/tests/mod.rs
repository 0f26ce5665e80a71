//! The cache before a scheduler that answers when the test says so.

mod fixture;

use galatea_backend::testing::{Answer, adjusted};
use galatea_response_cache::LocalCache;
use galatea_types::{
    Cancellation, DataType, Error, InferResponse, LockExt as _, ParameterValue, Tensor,
};

use self::fixture::{Elsewhere, Fixture, asking, entry, got, is_open, once, with_id};
use super::*;

#[test]
fn a_hit_is_answered_at_once_and_counts_as_success_without_execution() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let mut first = fixture.submit(with_id(1, "a"));
        assert!(is_open(&mut first) && fixture.executing() == 1);
        fixture.execute(Ok(7));
        assert_eq!(got(&mut first), Ok(7));
        let mut second = fixture.submit(with_id(1, "b"));
        let response = second.try_recv().expect("at once").expect("a response");
        assert_eq!((&*response.id, response.model_version), ("b", 2));
        assert_eq!(response.parameters, [("p".to_owned(), ParameterValue::Int(7))]);
        let mut other = fixture.submit(asking(2));
        assert!(is_open(&mut other));
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (1, 1));
        assert_eq!((counted.success.count, counted.queue.count), (1, 1), "the fake counts nothing");
        assert_eq!((counted.execution_count, counted.inference_count), (0, 0));
        fixture.execute(Ok(8));
    });
}

#[test]
fn simultaneous_equal_requests_are_executed_once() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let mut answers: Vec<Answer> = (0..5).map(|_| fixture.submit(asking(1))).collect();
        assert_eq!((fixture.executing(), fixture.cached.in_flight()), (1, 5));
        fixture.execute(Ok(7));
        assert!(answers.iter_mut().all(|answer| got(answer) == Ok(7)));
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (4, 1));
        let cache = fixture.cached.0.spec.cache.metrics().expect("counted");
        assert_eq!((cache.hits, cache.misses, cache.entries), (4, 1, 1));
        assert_eq!(fixture.cached.in_flight(), 0);
    });
}

#[test]
fn requests_with_other_priorities_or_timeouts_do_not_wait() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let timeout = Some(Duration::from_secs(1));
        let mut answers = [
            fixture.submit(asking(1)),
            fixture.submit(adjusted(asking(1), |request| request.priority = 1)),
            fixture.submit(adjusted(asking(1), |request| request.timeout = timeout)),
        ];
        assert_eq!(fixture.executing(), 3);
        (0..3).for_each(|_| fixture.execute(Ok(7)));
        assert!(answers.iter_mut().all(|answer| got(answer) == Ok(7)));
        // The first to be stored is the miss; the others found an answer there, as in Triton.
        assert_eq!(fixture.counted().cache_miss.count, 1);
    });
}

#[test]
fn without_joining_each_request_is_executed() {
    once(|| {
        let fixture = Fixture::new(Arc::new(LocalCache::new(10_000)), false, "");
        let _answers = [fixture.submit(asking(1)), fixture.submit(asking(1))];
        assert_eq!(fixture.executing(), 2);
        (0..2).for_each(|_| fixture.execute(Ok(7)));
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (0, 1));
    });
}

#[test]
fn a_failure_is_sent_only_to_the_first_request_and_not_stored() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let mut answers: Vec<Answer> = (0..3).map(|_| fixture.submit(asking(1))).collect();
        fixture.execute(Err(Error::internal("odd")));
        assert_eq!(got(&mut answers[0]), Err("odd".to_owned()));
        assert_eq!(fixture.executing(), 2, "each of the others by itself");
        fixture.execute(Err(Error::internal("odd again")));
        fixture.execute(Ok(7));
        assert_eq!(got(&mut answers[1]), Err("odd again".to_owned()));
        assert_eq!(got(&mut answers[2]), Ok(7));
        assert_eq!(fixture.counted().cache_miss.count, 3);
        assert_eq!(got(&mut fixture.submit(asking(1))), Ok(7));
    });
}

#[test]
fn a_lost_first_request_does_not_fail_the_waiting_ones() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let (mut first, mut second) = (fixture.submit(asking(1)), fixture.submit(asking(1)));
        let lost = fixture.executor.pending.lock_unpoisoned().remove(0);
        lost.2.discard();
        assert!(got(&mut first).is_err_and(|error| error.contains("without a response")));
        assert_eq!(fixture.executing(), 1);
        fixture.execute(Ok(7));
        assert_eq!(got(&mut second), Ok(7));
    });
}

#[test]
fn an_abandoned_first_request_is_executed_while_others_wait() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let is_closed =
            || fixture.executor.pending.lock_unpoisoned().first().is_some_and(|p| p.2.is_closed());
        let (first, second) = (fixture.submit(asking(1)), fixture.submit(asking(1)));
        assert!(!is_closed());
        drop(first);
        assert!(!is_closed());
        drop(second);
        assert_eq!(fixture.cached.release_abandoned(), 1);
        assert!(is_closed());
        assert_eq!((fixture.cached.in_flight(), fixture.counted().fail.count), (1, 1));
        fixture.execute(Ok(7));
    });
}

#[test]
fn a_cancelled_request_does_not_affect_the_waiting_ones() {
    once(|| {
        let fixture = Fixture::local(10_000);
        let mut first = fixture.submit(asking(1));
        let cancellation = Cancellation::default();
        let context =
            RequestContext { cancellation: cancellation.clone(), ..RequestContext::new() };
        let mut second = fixture.submit_with(asking(1), context).expect("accepted");
        let mut third = fixture.submit(asking(1));
        assert_eq!(fixture.cached.release_abandoned(), 0);
        cancellation.cancel();
        assert_eq!(fixture.cached.release_abandoned(), 1);
        assert_eq!(got(&mut second), Err("Request was cancelled".to_owned()));
        fixture.execute(Ok(7));
        assert_eq!((got(&mut first), got(&mut third)), (Ok(7), Ok(7)));
    });
}

#[test]
fn a_response_too_large_for_the_cache_is_shared_but_not_stored() {
    once(|| {
        let fixture = Fixture::local(10);
        let mut answers = [fixture.submit(asking(1)), fixture.submit(asking(1))];
        fixture.execute(Ok(7));
        assert!(answers.iter_mut().all(|answer| got(answer) == Ok(7)));
        let mut again = fixture.submit(asking(1));
        assert!(is_open(&mut again));
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (1, 1));
        fixture.execute(Ok(8));
        assert_eq!(got(&mut again), Ok(8));
    });
}

#[test]
fn a_refusal_returns_its_responder() {
    once(|| {
        let fixture = Fixture::local(10_000);
        *fixture.executor.is_full.lock_unpoisoned() = true;
        let refused = fixture.submit_with(asking(1), RequestContext::new());
        assert_eq!(refused.expect_err("full").message(), "full");
        let (responder, mut answer) = Responder::unary();
        let refused = fixture.cached.submit(asking(1), RequestContext::new(), responder);
        refused.expect_err("full").answer();
        assert_eq!(got(&mut answer), Err("full".to_owned()));
        *fixture.executor.is_full.lock_unpoisoned() = false;
        let mut next = fixture.submit(asking(1));
        fixture.execute(Ok(7));
        assert_eq!(got(&mut next), Ok(7));
    });
}

#[test]
fn a_hit_does_not_overtake_when_ordering_is_preserved() {
    once(|| {
        let order = "dynamic_batching { preserve_ordering: true }";
        let fixture = Fixture::new(Arc::new(LocalCache::new(10_000)), true, order);
        let mut known = fixture.submit(asking(1));
        fixture.execute(Ok(7));
        assert_eq!(got(&mut known), Ok(7));
        let mut earlier = fixture.submit(asking(2));
        let mut hit = fixture.submit(asking(1));
        *fixture.executor.is_full.lock_unpoisoned() = true;
        let mut refused = fixture.submit(asking(3));
        assert!(is_open(&mut hit) && is_open(&mut refused));
        fixture.execute(Ok(8));
        let answers = [got(&mut earlier), got(&mut hit), got(&mut refused)];
        assert_eq!(answers, [Ok(8), Ok(7), Err("full".to_owned())]);
    });
}

#[test]
fn a_request_continues_after_a_remote_lookup() {
    once(|| {
        let cache = Arc::<Elsewhere>::default();
        let fixture = Fixture::new(cache.clone(), true, "");
        let mut answers = [1, 1, 2].map(|value| fixture.submit(asking(value)));
        assert_eq!(cache.asked.lock_unpoisoned().len(), 2, "equal requests are looked up once");
        assert_eq!((fixture.executing(), fixture.cached.in_flight()), (0, 3));
        cache.answer(Some(entry(7)));
        cache.answer(None);
        assert_eq!((got(&mut answers[0]), got(&mut answers[1])), (Ok(7), Ok(7)));
        fixture.execute(Ok(8));
        assert_eq!(got(&mut answers[2]), Ok(8));
        assert_eq!(cache.stored.lock_unpoisoned().len(), 1);
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (2, 1));
    });
}

#[test]
fn remote_entries_must_match_the_model() {
    once(|| {
        let cache = Arc::<Elsewhere>::default();
        let fixture = Fixture::new(cache.clone(), true, "");
        let response = |name: &str, data_type| InferResponse {
            outputs: vec![Tensor::new(name, data_type, [2], vec![0; 2])],
            ..entry(0).response("m".into(), 2, String::new())
        };
        for wrong in [response("Z", DataType::Uint8), response("Y", DataType::Int8)] {
            let mut answer = fixture.submit(asking(1));
            cache.answer(Entry::of(&wrong));
            fixture.execute(Ok(7));
            assert_eq!(got(&mut answer), Ok(7));
        }
    });
}

#[test]
fn a_lost_lookup_fails_its_request_and_the_next_one_is_executed() {
    once(|| {
        let cache = Arc::<Elsewhere>::default();
        let fixture = Fixture::new(cache.clone(), true, "");
        let (mut first, mut second) = (fixture.submit(asking(1)), fixture.submit(asking(1)));
        cache.asked.lock_unpoisoned().clear();
        assert!(got(&mut first).is_err());
        fixture.execute(Ok(7));
        assert_eq!(got(&mut second), Ok(7));
        assert_eq!(fixture.cached.in_flight(), 0);
    });
}

#[test]
fn closing_waits_for_lookups_and_refuses_later_requests() {
    once(|| {
        let cache = Arc::<Elsewhere>::default();
        let fixture = Fixture::new(cache.clone(), true, "");
        let mut early = fixture.submit(asking(1));
        fixture.cached.close();
        let late = fixture.submit_with(asking(2), RequestContext::new());
        assert!(late.expect_err("closed").message().contains("stopped accepting"));
        assert!(!*fixture.executor.is_closed.lock_unpoisoned());
        assert!(!fixture.cached.drain(Instant::now()));
        cache.answer(None);
        assert!(*fixture.executor.is_closed.lock_unpoisoned());
        fixture.execute(Ok(7));
        assert_eq!(got(&mut early), Ok(7));
        assert!(fixture.cached.drain(Instant::now()));
    });
}

/// Threads send the same request while another answers: each gets its response from one execution.
#[test]
fn concurrent_threads_share_one_execution() {
    let run = || {
        let fixture = Arc::new(Fixture::local(10_000));
        let askers: Vec<_> = (0..3)
            .map(|_| {
                let fixture = fixture.clone();
                shuttle::thread::spawn(move || fixture.submit(asking(1)))
            })
            .collect();
        let executor = {
            let fixture = fixture.clone();
            shuttle::thread::spawn(move || {
                while fixture.executing() == 0 {
                    shuttle::thread::yield_now();
                }
                fixture.execute(Ok(7));
            })
        };
        let answers = askers.into_iter().map(|asker| asker.join().expect("no panic"));
        let mut answers: Vec<Answer> = answers.collect();
        executor.join().expect("no panic");
        assert!(answers.iter_mut().all(|answer| got(answer) == Ok(7)));
        assert_eq!(fixture.executing(), 0);
        let counted = fixture.counted();
        assert_eq!((counted.cache_hit.count, counted.cache_miss.count), (2, 1));
        let cache = fixture.cached.0.spec.cache.metrics().expect("counted");
        assert_eq!((cache.hits, cache.misses), (2, 1));
    };
    galatea_test_support::interleavings::check_random(run, 2000);
    galatea_test_support::interleavings::check_pct(run, 2000, 3);
}
