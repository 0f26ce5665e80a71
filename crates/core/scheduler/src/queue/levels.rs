//! The priority levels of a queue. Only levels with requests exist, and a few others.

use std::collections::BTreeMap;

use galatea_config::{DynamicBatching, QueuePolicy, TimeoutAction};

use super::{fair_list::FairList, queue_entry::QueueEntry};

/// The number of empty levels kept, so that a model with few levels creates each only once.
const KEPT: usize = 8;

/// The level of requests that were put back, before all others. Without priorities it holds all requests.
pub(super) const FIRST: u64 = 0;

/// Requests of one priority. Those past a `DELAY` timeout come after all timely ones.
pub(super) struct Level<T> {
    pub policy: QueuePolicy,
    pub timely: FairList<T>,
    pub late: FairList<T>,
}

/// The levels of a queue, in the order of execution.
pub(super) struct Levels<T> {
    /// The level [`FIRST`], without a look-up: most models have no other.
    first: Level<T>,
    existing: BTreeMap<u64, Level<T>>,
    rules: Box<LevelRules>,
}

/// The numbers of the levels and the policy of each.
#[derive(Default)]
struct LevelRules {
    /// The number of levels, which are numbered from 1; 0 if requests have no priorities.
    count: u64,
    default_level: u64,
    default_policy: QueuePolicy,
    policies: BTreeMap<u64, QueuePolicy>,
    turn_items: u64,
}

impl LevelRules {
    fn new(config: &DynamicBatching, turn_items: u64) -> Self {
        let rules =
            Self { default_policy: config.default_queue_policy, turn_items, ..Self::default() };
        match config.priority_levels {
            0 => rules,
            count => Self {
                count,
                default_level: config.default_priority_level,
                policies: config.priority_queue_policies.clone(),
                ..rules
            },
        }
    }

    fn new_level<T: QueueEntry>(&self, number: u64) -> Level<T> {
        let list = || FairList::new(self.turn_items);
        let policy = *self.policies.get(&number).unwrap_or(&self.default_policy);
        Level { policy, timely: list(), late: list() }
    }
}

impl<T: QueueEntry> Levels<T> {
    /// Creates the levels. `None` is one level without limits.
    pub fn new(config: Option<&DynamicBatching>, turn_items: u64) -> Self {
        let without_limits = || LevelRules { turn_items, ..LevelRules::default() };
        let rules = config.map_or_else(without_limits, |c| LevelRules::new(c, turn_items));
        Self { first: rules.new_level(FIRST), existing: BTreeMap::new(), rules: Box::new(rules) }
    }

    pub fn has_several(&self) -> bool {
        self.rules.count > 1
    }

    pub fn policies(&self) -> impl Iterator<Item = &QueuePolicy> {
        self.rules.policies.values().chain([&self.rules.default_policy])
    }

    /// Returns the level of a request of this priority. 0 and levels that do not exist mean the default level.
    pub fn of_priority(&mut self, priority: u64) -> &mut Level<T> {
        let number = match (1..=self.rules.count).contains(&priority) {
            true => priority,
            false => self.rules.default_level,
        };
        match number {
            FIRST => &mut self.first,
            _ => self.existing.entry(number).or_insert_with(|| self.rules.new_level(number)),
        }
    }

    /// Returns the level before all others.
    pub fn first(&mut self) -> &mut Level<T> {
        &mut self.first
    }

    pub fn get(&self, number: u64) -> Option<&Level<T>> {
        match number {
            FIRST => Some(&self.first),
            _ => self.existing.get(&number),
        }
    }

    /// Returns the first existing level from this number on, with its number.
    pub fn next(&mut self, number: u64) -> Option<(u64, &mut Level<T>)> {
        if number == FIRST {
            return Some((FIRST, &mut self.first));
        }
        if self.existing.is_empty() {
            return None;
        }
        let found = match self.existing.contains_key(&number) {
            true => number,
            false => *self.existing.range(number..).next()?.0,
        };
        self.existing.get_mut(&found).map(|level| (found, level))
    }

    pub fn iter(&self) -> impl Iterator<Item = &Level<T>> {
        [&self.first].into_iter().chain(self.existing.values())
    }

    /// Calls `work` with each level in turn.
    pub fn for_each(&mut self, mut work: impl FnMut(&mut Level<T>)) {
        work(&mut self.first);
        self.existing.values_mut().for_each(&mut work);
        if self.existing.len() > KEPT {
            self.existing.retain(|_, level| !level.is_empty());
        }
    }

    /// Forgets the level if it has no requests and there are many.
    pub fn release(&mut self, number: u64) {
        let is_empty = |level: &Level<T>| level.is_empty();
        if self.existing.len() > KEPT && self.get(number).is_some_and(is_empty) {
            self.existing.remove(&number);
        }
    }

    #[cfg(test)]
    pub fn existing_count(&self) -> usize {
        self.existing.len() + usize::from(!self.first.is_empty())
    }
}

impl<T: QueueEntry> Level<T> {
    pub fn len(&self) -> usize {
        self.timely.len() + self.late.len()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn list(&mut self, is_late: bool) -> &mut FairList<T> {
        if is_late { &mut self.late } else { &mut self.timely }
    }
}

/// Returns true if a request past its time-out fails under this policy.
pub(super) fn rejects(policy: &QueuePolicy) -> bool {
    policy.default_timeout.is_some() && policy.timeout_action == TimeoutAction::Reject
}
