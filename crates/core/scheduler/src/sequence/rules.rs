//! The rules by which a model's sequences are scheduled, from its configuration.

use std::time::Duration;

use galatea_config::{ModelConfig, SequenceBatching, SequenceStrategy};

use crate::queue::JoinRules;

/// The rules by which a model's sequences are scheduled.
pub(crate) struct SequenceRules {
    /// The largest number of sequences of an instance at a time.
    pub slots: u32,
    /// A sequence without a request for this time is over.
    pub max_idle: Duration,
    /// If true, an execution may leave its request to be executed again, and a request without a sequence begins one.
    pub is_iterative: bool,
    pub strategy: Strategy,
    pub hold: TestHold,
}

/// The strategy that selects requests executed together.
pub(crate) enum Strategy {
    Direct {
        /// The longest time that a request waits for those of other slots.
        max_delay: Duration,
        /// With requests in this many slots nothing waits; with 0 nothing ever waits.
        enough_slots: u64,
        join_rules: Box<JoinRules>,
    },
    /// Batches are decided as by a dynamic batcher.
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

/// The numbers of requests that must wait before anything is executed, for tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TestHold {
    /// Requests in the queue, or in the slots of sequences; 0 holds nothing back.
    pub queued: usize,
    /// Requests of sequences without a slot, in addition.
    pub backlogged: usize,
}

/// Returns the least number of slots that is this share of all, computed as Triton does.
fn enough_slots(share: f32, rows: u32) -> u64 {
    let needed = (f64::from(share) * f64::from(rows)).ceil() as u64;
    let is_enough = |slots: u64| slots as f32 / rows as f32 >= share;
    match needed.checked_sub(1) {
        Some(less) if is_enough(less) => less,
        _ => needed.min(u64::from(rows)),
    }
}
