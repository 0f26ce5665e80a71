//! Requests of sequences that are nothing but what their scheduler must know, and sequences to put them in.

use std::{
    cell::Cell,
    rc::Rc,
    time::{Duration, Instant},
};

use galatea_backend::testing::model_config;
use galatea_config::{ModelConfig, Scheduling};
use galatea_types::CorrelationId;

use crate::{
    queue::{Backlog, JoinRules, Placement, QueueEntry},
    sequence::{SequenceRequest, SequenceRules, Sequences, rules::TestHold, slots::Head},
};

pub const MS: Duration = Duration::from_millis(1);

#[derive(Clone, Debug)]
pub struct Fake {
    pub id: usize,
    pub sequence: CorrelationId,
    pub is_start: bool,
    pub is_end: bool,
    pub shape: u8,
    pub client: Option<u64>,
    pub timeout: Option<Duration>,
    pub queued_at: Instant,
    pub is_abandoned: Rc<Cell<bool>>,
}

/// What a model keeps of a sequence here: the requests it has executed.
pub type Done = Vec<usize>;

impl QueueEntry for Fake {
    fn item_count(&self) -> u64 {
        1
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned.get()
    }

    fn placement(&self) -> Placement {
        Placement { priority: 0, timeout: self.timeout }
    }

    fn client(&self) -> Option<u64> {
        self.client
    }

    fn set_arrival(&mut self, _: u64) {}

    fn can_join(&self, other: &Self, _: &JoinRules) -> bool {
        self.shape == other.shape
    }
}

impl SequenceRequest for Fake {
    type States = Done;

    fn state_bytes(states: &Done) -> usize {
        states.len()
    }

    fn correlation_id(&self) -> &CorrelationId {
        &self.sequence
    }

    fn is_start(&self) -> bool {
        self.is_start
    }

    fn is_end(&self) -> bool {
        self.is_end
    }

    fn begin_own_sequence(&mut self, number: u64) {
        self.sequence = CorrelationId::Number(number);
        self.is_start = true;
    }

    fn continue_sequence(&mut self, _: Instant) {
        (self.is_start, self.is_end) = (false, false);
    }
}

/// A request of sequence `sequence`; `flags` may contain `s` for the first and `e` for the last.
pub fn fake(id: usize, sequence: u64, flags: &str, queued_at: Instant) -> Fake {
    let sequence = match sequence {
        0 => CorrelationId::None,
        number => CorrelationId::Number(number),
    };
    Fake {
        id,
        sequence,
        is_start: flags.contains('s'),
        is_end: flags.contains('e'),
        shape: 0,
        client: None,
        timeout: None,
        queued_at,
        is_abandoned: Rc::default(),
    }
}

pub fn config(max_batch_size: u32, fields: &str) -> ModelConfig {
    model_config(&format!(
        "backend: 'any' max_batch_size: {max_batch_size}
         input {{ name: 'IN' data_type: TYPE_INT32 dims: 1 }}
         output {{ name: 'OUT' data_type: TYPE_INT32 dims: 1 }}
         sequence_batching {{ {fields} }}"
    ))
}

/// Of instances that all work.
pub fn sequences(
    config: &ModelConfig,
    instances: usize,
    hold: (usize, usize),
    now: Instant,
) -> Sequences<Fake> {
    let Scheduling::Sequence(batching) = config.scheduling() else { panic!("no sequences") };
    let hold = TestHold { queued: hold.0, backlogged: hold.1 };
    let rules = SequenceRules::new(config, batching, hold);
    let batcher = || Backlog::<Head<Fake>>::from_config(config, 0);
    let mut sequences = Sequences::new(rules, instances, batcher);
    (0..instances).for_each(|instance| sequences.instance_works(instance, now));
    sequences
}
