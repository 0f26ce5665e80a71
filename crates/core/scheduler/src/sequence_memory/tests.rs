//! Which sequences give way to which, over several models.

use std::{collections::VecDeque, time::Duration};

use galatea_types::ManualClock;
use proptest::prelude::*;

use super::*;

/// Sequences that rest, oldest first: since when, and what each keeps.
struct Resting {
    begin: Instant,
    memory: Weak<SequenceMemory>,
    all: Mutex<VecDeque<(u64, usize)>>,
    ended: Mutex<Vec<u64>>,
}

impl RestingSequences for Resting {
    fn resting_since(&self) -> Option<Instant> {
        let first = self.all.lock_unpoisoned().front().copied();
        first.map(|(since, _)| self.begin + Duration::from_secs(since))
    }

    fn bytes_at_rest(&self, enough: usize) -> usize {
        self.all.lock_unpoisoned().iter().map(|(_, bytes)| bytes).sum::<usize>().min(enough)
    }

    fn give_way(&self) -> Option<(CorrelationId, usize)> {
        let (since, bytes) = self.all.lock_unpoisoned().pop_front()?;
        self.ended.lock_unpoisoned().push(since);
        self.memory.upgrade().expect("it is there").give_back(bytes);
        Some((CorrelationId::Number(since), bytes))
    }
}

/// Models with these sequences, whose states are counted.
fn models(memory: &Arc<SequenceMemory>, of_each: &[&[(u64, usize)]]) -> Vec<Arc<Resting>> {
    let begin = ManualClock::new().now();
    let model = |all: &&[(u64, usize)]| {
        all.iter().for_each(|(_, bytes)| memory.take(*bytes).expect("room for what rests"));
        let (all, ended) = (Mutex::new(all.iter().copied().collect()), Mutex::default());
        let model = Arc::new(Resting { begin, memory: Arc::downgrade(memory), all, ended });
        let sequences: Weak<Resting> = Arc::downgrade(&model);
        memory.add("m".into(), sequences);
        model
    };
    of_each.iter().map(model).collect()
}

fn memory(budget: usize) -> (Arc<MemoryBudget>, Arc<SequenceMemory>) {
    let budget = MemoryBudget::new(budget);
    (budget.clone(), Arc::new(SequenceMemory::of(budget)))
}

#[test]
fn the_oldest_idle_sequences_of_all_models_are_evicted() {
    let (budget, memory) = memory(200);
    let models = models(&memory, &[&[(1, 20), (4, 20)], &[(2, 20), (3, 20)]]);
    memory.take(20).expect("room");
    memory.take(30).expect("room for which two give way");
    let ended: Vec<_> = models.iter().map(|m| m.ended.lock_unpoisoned().clone()).collect();
    assert_eq!(ended, [vec![1], vec![2]]);
    assert_eq!((memory.used(), budget.used()), (90, 90));
    assert_eq!((memory.metrics().gave_way, memory.metrics().refused), (2, 0));
}

#[test]
fn no_sequence_is_evicted_in_vain_and_the_refusal_names_the_flag() {
    let (budget, memory) = memory(200);
    let models = models(&memory, &[&[(1, 20)]]);
    memory.take(70).expect("of sequences that do not rest");
    for bytes in [40, 101, usize::MAX] {
        let error = memory.take(bytes).expect_err("too much");
        assert_eq!(error.code(), Code::Exhausted);
        assert!(error.message().contains("90 of the 100 bytes"), "{error}");
        assert!(error.message().contains("--memory-budget"), "{error}");
    }
    assert!(models[0].ended.lock_unpoisoned().is_empty());
    assert_eq!((budget.used(), memory.metrics().refused), (90, 3));
    memory.give_back(70);
    assert_eq!(budget.used(), 20);
}

#[test]
fn states_are_evicted_when_requests_use_more_than_their_half() {
    let (budget, memory) = memory(80 << 10);
    let models = models(&memory, &[&[(1, 20 << 10)]]);
    let mut requests = budget.reservation();
    requests.grow(45 << 10);
    memory.take(10 << 10).expect("room for which one gives way");
    assert_eq!(*models[0].ended.lock_unpoisoned(), [1]);
    requests.grow(80 << 10);
    memory.take(10 << 10).expect_err("requests have all");
}

proptest! {
    #[test]
    fn states_never_exceed_their_share(
        limit in 1usize..100_000,
        steps in proptest::collection::vec((any::<bool>(), 0usize..60_000), 1..60),
    ) {
        let (budget, memory) = memory(limit);
        let models = models(&memory, &[&[], &[]]);
        for ((rests, bytes), number) in steps.iter().zip(0u64..) {
            let before = memory.used();
            let at_rest: usize = models.iter().map(|m| m.bytes_at_rest(usize::MAX)).sum();
            let fits = *bytes <= limit / 2 && before - at_rest + bytes <= limit / 2;
            prop_assert_eq!(memory.take(*bytes).is_ok(), fits);
            if fits && *rests {
                models[number as usize % 2].all.lock_unpoisoned().push_back((number, *bytes));
            }
            if !fits {
                prop_assert_eq!(memory.used(), before, "nothing gave way in vain");
            }
            prop_assert!(memory.used() <= limit / 2);
            prop_assert_eq!(memory.used(), budget.used());
        }
        let ended = models.iter().map(|model| model.ended.lock_unpoisoned().clone());
        let mut ended: Vec<_> = ended.flat_map(|ended| { assert!(ended.is_sorted()); ended }).collect();
        ended.sort_unstable();
        let oldest_left = models.iter().filter_map(|m| m.all.lock_unpoisoned().front().copied());
        if let (Some(last), Some((oldest, _))) = (ended.last(), oldest_left.min()) {
            prop_assert!(*last < oldest, "the oldest gave way first");
        }
    }
}
