//! A request that is nothing but what a queue must know of it.

use std::time::{Duration, Instant};

use galatea_backend::testing::model_config;
use galatea_config::{DynamicBatching, Scheduling};

use crate::queue::{Extent, JoinRules, Placement, QueueEntry};

#[derive(Clone, Debug, PartialEq)]
pub struct Fake {
    pub id: usize,
    pub items: u64,
    pub shape: u8,
    pub client: Option<u64>,
    pub queued_at: Instant,
    pub is_abandoned: bool,
    pub placement: Placement,
}

impl QueueEntry for Fake {
    fn item_count(&self) -> u64 {
        self.items
    }

    fn queued_at(&self) -> Instant {
        self.queued_at
    }

    fn is_abandoned(&self) -> bool {
        self.is_abandoned
    }

    fn placement(&self) -> Placement {
        self.placement
    }

    fn client(&self) -> Option<u64> {
        self.client
    }

    fn set_arrival(&mut self, _: u64) {}

    fn can_join(&self, other: &Self, _: &JoinRules) -> bool {
        same_shape(self, other)
    }
}

/// Of fakes, what [`QueueEntry::joins`] is of requests.
pub fn joins(first: &Fake, new: &Fake, _: &mut Extent) -> bool {
    same_shape(first, new)
}

pub fn same_shape(a: &Fake, b: &Fake) -> bool {
    a.shape == b.shape
}

pub const MS: Duration = Duration::from_millis(1);

/// Without preferred sizes there is no batch dimension either: the default would be the largest batch.
pub fn batching(preferred: &[u32], delay: Duration) -> DynamicBatching {
    let max_batch_size = preferred.iter().max().copied().unwrap_or(0);
    let config = model_config(&format!(
        "backend: 'any' max_batch_size: {max_batch_size} dynamic_batching {{
           preferred_batch_size: {preferred:?} max_queue_delay_microseconds: {} }}",
        delay.as_micros()
    ));
    match config.scheduling() {
        Scheduling::Dynamic(dynamic) => dynamic.clone(),
        other => panic!("{other:?}"),
    }
}

pub fn fake(id: usize, items: u64, queued_at: Instant) -> Fake {
    let placement = Placement::default();
    Fake { id, items, shape: 0, client: None, queued_at, is_abandoned: false, placement }
}
