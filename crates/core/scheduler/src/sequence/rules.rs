//! How the sequences of a model are scheduled, as its configuration says.

use std::time::Duration;

use galatea_config::{ModelConfig, SequenceBatching, SequenceStrategy};

use crate::queue::JoinRules;

/// How the sequences of a model are scheduled.
pub(crate) struct SequenceRules {
    /// The most sequences that an instance has at a time.
    pub slots: u32,
    /// A sequence that has had no request for so long is over.
    pub max_idle: Duration,
    /// An execution may leave its request to be executed again; a request without a sequence begins one.
    pub is_iterative: bool,
    pub strategy: Strategy,
    pub hold: TestHold,
}

/// What is executed together.
pub(crate) enum Strategy {
    Direct {
        /// How long a request may wait for those of other slots.
        max_delay: Duration,
        /// With requests in this many slots nothing waits; 0: nothing ever does.
        enough_slots: u64,
        join_rules: Box<JoinRules>,
    },
    /// As a dynamic batcher decides.
    Oldest,
}

impl SequenceRules {
    pub fn new(config: &ModelConfig, batching: &SequenceBatching, hold: TestHold) -> Self {
        let rows = config.max_batch_size().max(1);
        let (slots, strategy) = match &batching.strategy {
            SequenceStrategy::Direct { max_queue_delay, minimum_slot_utilization } => {
                let strategy = Strategy::Direct {
                    max_delay: *max_queue_delay,
                    enough_slots: enough_slots(*minimum_slot_utilization, rows),
                    join_rules: Box::new(JoinRules::from_config(config)),
                };
                (rows, strategy)
            }
            SequenceStrategy::Oldest { max_candidate_sequences: 0, .. } => (rows, Strategy::Oldest),
            SequenceStrategy::Oldest { max_candidate_sequences, .. } => {
                (*max_candidate_sequences, Strategy::Oldest)
            }
        };
        Self {
            slots,
            max_idle: batching.max_idle,
            is_iterative: batching.is_iterative,
            strategy,
            hold,
        }
    }
}

/// What must wait before anything is executed, for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestHold {
    /// Requests in the queue, or in the slots of sequences; 0: nothing is held back.
    pub queued: usize,
    /// And requests of sequences that have no slot.
    pub backlogged: usize,
}

/// The least number of slots that is this share of all, by the arithmetic of Triton.
fn enough_slots(share: f32, rows: u32) -> u64 {
    let needed = (f64::from(share) * f64::from(rows)).ceil() as u64;
    let is_enough = |slots: u64| slots as f32 / rows as f32 >= share;
    match needed.checked_sub(1) {
        Some(less) if is_enough(less) => less,
        _ => needed.min(u64::from(rows)),
    }
}
