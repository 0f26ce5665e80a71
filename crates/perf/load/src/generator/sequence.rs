//! Sequences of requests: ids, lengths, data, and the flags of the first and the last request.

use std::{
    collections::HashSet,
    sync::{
        Mutex,
        atomic::{AtomicUsize, Ordering},
    },
};

use galatea_client::SequenceMark;
use galatea_perf_types::{requests::RequestSource, settings::SequenceSettings};
use galatea_types::LockExt;

/// The shared state of all sequences of a run.
#[derive(Debug)]
pub struct Sequences {
    length: u64,
    /// Variation in percent.
    variation: f64,
    data: SequenceData,
    ids: Mutex<SequenceIds>,
    next_stream: AtomicUsize,
}

#[derive(Debug)]
struct SequenceData {
    /// Number of steps of each stream.
    steps: Vec<usize>,
    /// A sequence takes a stream of its own, step by step.
    by_stream: bool,
    /// The end of the stream ends the sequence.
    sets_length: bool,
}

/// A slot, which runs one sequence at a time.
#[derive(Clone, Copy, Debug, Default)]
pub struct Slot {
    /// Correlation id; zero before the first sequence.
    id: u64,
    stream: usize,
    length: u64,
    remaining: u64,
}

/// A request of a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SequenceStep {
    pub stream: usize,
    pub step: usize,
    pub mark: SequenceMark,
}

impl Sequences {
    pub fn new(settings: &SequenceSettings, source: &dyn RequestSource) -> Self {
        let by_stream = source.is_user_data();
        let steps = (0..source.stream_count()).map(|stream| source.step_count(stream)).collect();
        Self {
            length: settings.length,
            variation: settings.length_variation,
            data: SequenceData {
                steps,
                by_stream,
                sets_length: by_stream && !settings.length_specified,
            },
            ids: Mutex::new(SequenceIds::new(settings.first_id, settings.id_count)),
            next_stream: AtomicUsize::new(0),
        }
    }

    /// Returns the next request of a slot. If the last sequence has ended, it begins a new one.
    pub fn next(&self, slot: &mut Slot) -> SequenceStep {
        let start = slot.remaining == 0;
        if start {
            self.begin(slot);
        }
        let step = SequenceStep {
            stream: slot.stream,
            step: self.data_step(slot),
            mark: SequenceMark { id: slot.id, start, end: slot.remaining == 1 },
        };
        slot.remaining -= 1;
        step
    }

    /// Returns the last request of a sequence that ends early; `None`: no sequence is open.
    pub fn finish(&self, slot: &mut Slot) -> Option<SequenceStep> {
        if slot.remaining == 0 {
            return None;
        }
        slot.remaining = 1;
        Some(self.next(slot))
    }

    fn begin(&self, slot: &mut Slot) {
        slot.id = self.ids.lock_unpoisoned().replace(slot.id);
        slot.stream = 0;
        if self.data.by_stream {
            // Streams take turns, not random picks, so that every window has the same mix of lengths.
            slot.stream =
                self.next_stream.fetch_add(1, Ordering::Relaxed) % self.data.steps.len().max(1);
        }
        slot.length = if self.data.sets_length {
            self.steps(slot.stream) as u64
        } else {
            varied(self.length, self.variation, fastrand::f64())
        };
        slot.remaining = slot.length;
    }

    fn data_step(&self, slot: &Slot) -> usize {
        if !self.data.by_stream {
            return 0;
        }
        (slot.length - slot.remaining) as usize % self.steps(slot.stream)
    }

    fn steps(&self, stream: usize) -> usize {
        self.data.steps.get(stream).copied().unwrap_or(1).max(1)
    }
}

/// Returns `length` give or take `variation` percent of it, at least one; `random` is in 0 to 1.
fn varied(length: u64, variation: f64, random: f64) -> u64 {
    let offset = (2.0 * random - 1.0) * variation / 100.0 * length as f64;
    (length as i64).saturating_add(offset as i64).max(1) as u64
}

/// Correlation ids in turn; no two open sequences have the same one.
#[derive(Debug)]
struct SequenceIds {
    first: u64,
    count: u64,
    next: u64,
    used: HashSet<u64>,
}

impl SequenceIds {
    fn new(first: u64, count: Option<u64>) -> Self {
        // perf_analyzer has as many without a range.
        let count = count.unwrap_or(u64::from(u32::MAX)).max(1);
        Self { first, count, next: 0, used: HashSet::new() }
    }

    /// Returns an id for the next sequence of a slot. Its id `old` is taken again only if no other is free.
    fn replace(&mut self, old: u64) -> u64 {
        for _ in 0..=self.used.len() {
            let id = self.first + self.next;
            self.next = (self.next + 1) % self.count;
            if self.used.insert(id) {
                self.used.remove(&old);
                return id;
            }
        }
        old
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use galatea_client::InferTemplate;
    use galatea_perf_types::requests::ExpectedOutput;
    use proptest::prelude::*;

    use super::*;

    struct Streams {
        steps: Vec<usize>,
        user_data: bool,
    }

    impl RequestSource for Streams {
        fn stream_count(&self) -> usize {
            self.steps.len()
        }

        fn step_count(&self, stream: usize) -> usize {
            self.steps[stream]
        }

        fn template(&self, _: usize, _: usize) -> Arc<InferTemplate> {
            unreachable!("sequences are made of marks alone")
        }

        fn expected(&self, _: usize, _: usize) -> Option<&[ExpectedOutput]> {
            None
        }

        fn is_user_data(&self) -> bool {
            self.user_data
        }
    }

    fn settings(length: u64, variation: f64) -> SequenceSettings {
        SequenceSettings {
            count: 4,
            length,
            length_specified: false,
            length_variation: variation,
            first_id: 1,
            id_count: None,
            serial: false,
        }
    }

    fn steps(sequences: &Sequences, count: usize) -> Vec<SequenceStep> {
        let mut slot = Slot::default();
        (0..count).map(|_| sequences.next(&mut slot)).collect()
    }

    fn marks(steps: &[SequenceStep]) -> Vec<(u64, bool, bool)> {
        steps.iter().map(|step| (step.mark.id, step.mark.start, step.mark.end)).collect()
    }

    #[test]
    fn generated_data_gives_sequences_of_the_requested_length() {
        let source = Streams { steps: vec![1], user_data: false };
        let steps = steps(&Sequences::new(&settings(3, 0.0), &source), 4);
        assert_eq!(
            marks(&steps),
            [(1, true, false), (1, false, false), (1, false, true), (2, true, false)]
        );
        assert!(steps.iter().all(|step| (step.stream, step.step) == (0, 0)));
    }

    #[test]
    fn user_data_sets_the_length_unless_one_is_requested() {
        let source = Streams { steps: vec![2, 1], user_data: true };
        let free = steps(&Sequences::new(&settings(20, 20.0), &source), 5);
        let at: Vec<_> = free.iter().map(|step| (step.stream, step.step)).collect();
        assert_eq!(at, [(0, 0), (0, 1), (1, 0), (0, 0), (0, 1)]);
        assert_eq!(marks(&free)[..3], [(1, true, false), (1, false, true), (2, true, true)]);

        let asked = SequenceSettings { length_specified: true, ..settings(3, 0.0) };
        let asked = steps(&Sequences::new(&asked, &source), 6);
        let at: Vec<_> = asked.iter().map(|step| (step.stream, step.step)).collect();
        assert_eq!(at, [(0, 0), (0, 1), (0, 0), (1, 0), (1, 0), (1, 0)]);
    }

    #[test]
    fn an_open_sequence_ends_with_one_request() {
        let source = Streams { steps: vec![1], user_data: false };
        let sequences = Sequences::new(&settings(5, 0.0), &source);
        let mut slot = Slot::default();
        assert_eq!(sequences.finish(&mut slot), None);
        sequences.next(&mut slot);
        let last = sequences.finish(&mut slot).unwrap();
        assert_eq!(marks(&[last]), [(1, false, true)]);
        assert_eq!(sequences.finish(&mut slot), None);
    }

    #[test]
    fn ids_stay_in_range_and_a_slot_reuses_its_id_if_no_other_is_free() {
        let mut ids = SequenceIds::new(10, Some(2));
        assert_eq!((ids.replace(0), ids.replace(0)), (10, 11));
        assert_eq!(ids.replace(10), 10);
        assert_eq!(ids.replace(11), 11);
    }

    #[test]
    fn lengths_vary_within_bounds_and_are_never_zero() {
        assert_eq!((varied(20, 20.0, 0.0), varied(20, 20.0, 1.0)), (16, 24));
        assert_eq!(varied(1, 500.0, 0.0), 1);
    }

    proptest! {
        #[test]
        fn open_sequences_never_share_an_id(
            slots in 1usize..6, spare in 0u64..3, turns in prop::collection::vec(0usize..6, 1..200),
        ) {
            let source = Streams { steps: vec![1], user_data: false };
            let settings =
                SequenceSettings { id_count: Some(slots as u64 + spare), ..settings(3, 80.0) };
            let sequences = Sequences::new(&settings, &source);
            let mut slots = vec![Slot::default(); slots];
            for turn in turns {
                let turn = turn % slots.len();
                let step = sequences.next(&mut slots[turn]);
                prop_assert_eq!(step.mark.end, slots[turn].remaining == 0);
                let mut open: Vec<_> =
                    slots.iter().filter(|slot| slot.remaining > 0).map(|slot| slot.id).collect();
                let count = open.len();
                open.sort();
                open.dedup();
                prop_assert_eq!(open.len(), count);
            }
        }
    }
}
