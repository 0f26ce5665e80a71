//! Records which instances of a queue work, are starting, or are broken. It is pure: no thread, lock or clock.

use galatea_types::Error;

/// The health of a queue's instances. Instances come and go, and the number of a removed one is reused.
pub(crate) struct InstanceHealth {
    slots: Vec<Slot>,
    /// The number of instances that were started and have raised no alarm since.
    working: usize,
    /// The number of instances that work or are expected to: requests may wait for them.
    expected: usize,
    /// The reason why requests are refused, while no instance is expected to work.
    outage: Option<Error>,
    /// The reason why the last instance was given up.
    last_reason: Option<Error>,
}

/// The place of one thread's instance. Each restart puts another instance there.
struct Slot {
    generation: u64,
    condition: Condition,
    is_given_up: bool,
    membership: Membership,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Membership {
    Member,
    /// It will end, and no longer counts.
    Retired,
    /// Its thread has ended, so that the next instance may have the number.
    Gone,
}

enum Condition {
    Starting,
    Working,
    /// It stopped working and must be restarted.
    Broken(Error),
}

impl InstanceHealth {
    pub fn new(instances: usize) -> Self {
        Self {
            slots: (0..instances).map(|_| Slot::starting(0, false)).collect(),
            working: 0,
            expected: instances,
            outage: None,
            last_reason: None,
        }
    }

    /// Adds an instance and returns its number. Requests do not wait for it until it is started.
    pub fn add(&mut self) -> usize {
        let is_free = |slot: &Slot| slot.membership == Membership::Gone;
        let index = self.slots.iter().position(is_free).unwrap_or(self.slots.len());
        // Alarms of earlier instances with this number have an earlier generation.
        let generation = self.generation(index);
        let slot = Slot::starting(generation, true);
        match self.slots.get_mut(index) {
            Some(free) => *free = slot,
            None => self.slots.push(slot),
        }
        index
    }

    /// Retires the instance: neither it nor its alarms count any more.
    pub fn retire(&mut self, index: usize) {
        let Some(slot) = member(&mut self.slots, index) else { return };
        slot.membership = Membership::Retired;
        let condition = std::mem::replace(&mut slot.condition, Condition::Starting);
        let is_given_up = std::mem::replace(&mut slot.is_given_up, true);
        self.working -= usize::from(matches!(condition, Condition::Working));
        self.expected -= usize::from(!is_given_up);
        if self.expected == 0 {
            self.outage = self.last_reason.clone();
        }
    }

    /// Records that the thread of the instance has ended.
    pub fn gone(&mut self, index: usize) {
        self.retire(index);
        if let Some(slot) = self.slots.get_mut(index) {
            slot.membership = Membership::Gone;
        }
    }

    pub fn is_retired(&self, index: usize) -> bool {
        self.slots.get(index).is_some_and(|slot| slot.membership != Membership::Member)
    }

    pub fn is_gone(&self, index: usize) -> bool {
        self.slots.get(index).is_none_or(|slot| slot.membership == Membership::Gone)
    }

    /// Begins the start or the end of an instance. Its alarm carries the returned generation; alarms of earlier instances are
    /// ignored from now on.
    pub fn begin(&mut self, index: usize) -> u64 {
        let Some(slot) = self.slots.get_mut(index) else { return 0 };
        slot.generation += 1;
        if let Condition::Working = std::mem::replace(&mut slot.condition, Condition::Starting) {
            self.working -= 1;
        }
        slot.generation
    }

    pub fn generation(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(0, |slot| slot.generation)
    }

    /// Records that the instance was started. If it broke meanwhile, it stays broken.
    pub fn started(&mut self, index: usize) {
        let Some(slot) = member(&mut self.slots, index) else { return };
        if !matches!(slot.condition, Condition::Starting) {
            return;
        }
        slot.condition = Condition::Working;
        self.working += 1;
        if std::mem::take(&mut slot.is_given_up) {
            self.expected += 1;
            self.outage = None;
        }
    }

    /// Records that the instance of this generation is broken. Returns false if it was already replaced or is known
    /// to be broken.
    pub fn break_down(&mut self, index: usize, generation: u64, reason: Error) -> bool {
        let Some(slot) = member(&mut self.slots, index) else { return false };
        if slot.generation != generation {
            return false;
        }
        match std::mem::replace(&mut slot.condition, Condition::Broken(reason)) {
            Condition::Starting => true,
            Condition::Working => {
                self.working -= 1;
                true
            }
            known @ Condition::Broken(_) => {
                slot.condition = known;
                false
            }
        }
    }

    /// Returns the reason why the instance must be restarted, if it must.
    pub fn defect(&self, index: usize) -> Option<&Error> {
        match &self.slots.get(index)?.condition {
            Condition::Broken(reason) => Some(reason),
            Condition::Starting | Condition::Working => None,
        }
    }

    /// Stops requests from waiting for this instance until it works again. Returns true if no other is expected to work.
    pub fn give_up(&mut self, index: usize, reason: &Error) -> bool {
        let Some(slot) = member(&mut self.slots, index) else { return false };
        if !std::mem::replace(&mut slot.is_given_up, true) {
            self.expected -= 1;
        }
        self.last_reason = Some(reason.clone());
        if self.expected == 0 {
            self.outage = Some(reason.clone());
        }
        self.expected == 0
    }

    /// Returns the number of members, working or not.
    pub fn member_count(&self) -> usize {
        self.slots.iter().filter(|slot| slot.membership == Membership::Member).count()
    }

    pub fn working_count(&self) -> usize {
        self.working
    }

    pub fn outage(&self) -> Option<&Error> {
        self.outage.as_ref()
    }
}

impl Slot {
    fn starting(generation: u64, is_given_up: bool) -> Self {
        let (condition, membership) = (Condition::Starting, Membership::Member);
        Self { generation, condition, is_given_up, membership }
    }
}

fn member(slots: &mut [Slot], index: usize) -> Option<&mut Slot> {
    slots.get_mut(index).filter(|slot| slot.membership == Membership::Member)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const INSTANCES: usize = 3;

    #[derive(Clone, Copy, Debug)]
    enum Event {
        Begin,
        Started,
        /// An alarm of the instance started so many generations ago.
        Break(u64),
        GiveUp,
        /// An instance is added in the place of one that is gone.
        Add,
        Retire,
        /// Its thread ends.
        Gone,
    }

    fn event() -> impl Strategy<Value = (usize, Event)> {
        let events = prop_oneof![
            Just(Event::Begin),
            Just(Event::Started),
            (0..3_u64).prop_map(Event::Break),
            Just(Event::GiveUp),
            Just(Event::Add),
            Just(Event::Retire),
            Just(Event::Gone),
        ];
        (0..INSTANCES, events)
    }

    /// The same rules, as simple as possible.
    #[derive(Clone, Copy, Default)]
    struct Reference {
        generation: u64,
        is_started: bool,
        is_broken: bool,
        is_given_up: bool,
        is_retired: bool,
        is_gone: bool,
    }

    impl Reference {
        fn is_working(&self) -> bool {
            self.is_started && !self.is_broken && !self.is_retired
        }

        fn apply(&mut self, event: Event) {
            match event {
                Event::Begin => {
                    self.generation += 1;
                    (self.is_started, self.is_broken) = (false, false);
                }
                Event::Add => {
                    let generation = self.generation;
                    *self = Self { generation, is_given_up: true, ..Self::default() };
                }
                Event::Retire => self.is_retired = true,
                Event::Gone => (self.is_retired, self.is_gone) = (true, true),
                _ if self.is_retired => {}
                Event::Started if !self.is_broken => {
                    (self.is_started, self.is_given_up) = (true, false);
                }
                Event::Break(0) => self.is_broken = true,
                Event::GiveUp => self.is_given_up = true,
                Event::Started | Event::Break(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn health_matches_the_reference_model(events in prop::collection::vec(event(), 0..60)) {
            let mut health = InstanceHealth::new(INSTANCES);
            let mut reference = [Reference::default(); INSTANCES];
            for (index, event) in events {
                // What no thread does: report a start twice, give up what works.
                let now = reference[index];
                if now.is_working() && matches!(event, Event::GiveUp | Event::Started) {
                    continue;
                }
                // A number is used again when it is free, the lowest first, and one instance stays.
                let is_first_free = reference.iter().position(|p| p.is_gone) == Some(index);
                let is_last = reference.iter().enumerate().all(|(i, p)| i == index || p.is_retired);
                let is_allowed = match event {
                    Event::Add => is_first_free,
                    Event::Retire | Event::Gone => !is_last,
                    _ => !now.is_gone,
                };
                if !is_allowed {
                    continue;
                }
                reference[index].apply(event);
                match event {
                    Event::Begin => drop(health.begin(index)),
                    Event::Started => health.started(index),
                    Event::Break(age) => {
                        let Some(generation) = now.generation.checked_sub(age) else { continue };
                        let is_news = health.break_down(index, generation, Error::internal("x"));
                        let counts = age == 0 && !now.is_broken && !now.is_retired;
                        prop_assert_eq!(is_news, counts);
                    }
                    Event::GiveUp => {
                        let is_last = health.give_up(index, &Error::internal("x"));
                        let all_given_up = reference.iter().all(|p| p.is_given_up || p.is_retired);
                        prop_assert_eq!(is_last, all_given_up && !now.is_retired);
                    }
                    Event::Add => prop_assert_eq!(health.add(), index),
                    Event::Retire => health.retire(index),
                    Event::Gone => health.gone(index),
                }
                let working = reference.iter().filter(|p| p.is_working()).count();
                prop_assert_eq!(health.working_count(), working);
                let is_broken = reference[index].is_broken && !reference[index].is_retired;
                prop_assert_eq!(health.defect(index).is_some(), is_broken);
                prop_assert_eq!(health.is_retired(index), reference[index].is_retired);
                prop_assert_eq!(health.is_gone(index), reference[index].is_gone);
                // Without a reason nobody was ever given up.
                if health.last_reason.is_some() {
                    let all_given_up = reference.iter().all(|p| p.is_given_up || p.is_retired);
                    prop_assert_eq!(health.outage().is_some(), all_given_up);
                }
            }
        }
    }
}
