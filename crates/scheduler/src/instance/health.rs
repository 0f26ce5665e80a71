//! Which instances of a queue work, are being started, or broke. Pure: no thread, no lock, no clock.

use galatea_types::Error;

/// Which instances of a queue work.
pub(crate) struct InstanceHealth {
    slots: Vec<Slot>,
    /// Instances that were started and have raised no alarm since.
    working: usize,
    /// Instances that work or are expected to: requests may wait for them.
    expected: usize,
    /// Why requests are refused, while no instance is expected to work.
    outage: Option<Error>,
}

/// The instance of one thread, which is another one after each restart.
struct Slot {
    generation: u64,
    condition: Condition,
    is_given_up: bool,
}

enum Condition {
    Starting,
    Working,
    /// It stopped working and must be restarted.
    Broken(Error),
}

impl InstanceHealth {
    pub fn new(instances: usize) -> Self {
        let slot = |_| Slot { generation: 0, condition: Condition::Starting, is_given_up: false };
        Self {
            slots: (0..instances).map(slot).collect(),
            working: 0,
            expected: instances,
            outage: None,
        }
    }

    /// An instance is about to be started, or the last one is about to go. Its alarm carries the generation:
    /// alarms of the instances before it are ignored from now on.
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

    /// The instance was started. If it broke in the meantime, it stays broken.
    pub fn started(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
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

    /// The instance of this generation does not work any more. False: it was replaced already, or that
    /// is known.
    pub fn break_down(&mut self, index: usize, generation: u64, reason: Error) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
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

    /// Why the instance must be restarted, if it must.
    pub fn defect(&self, index: usize) -> Option<&Error> {
        match &self.slots.get(index)?.condition {
            Condition::Broken(reason) => Some(reason),
            Condition::Starting | Condition::Working => None,
        }
    }

    /// Nobody is to wait for this instance until it works again. True: for no other one either.
    pub fn give_up(&mut self, index: usize, reason: &Error) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        if !std::mem::replace(&mut slot.is_given_up, true) {
            self.expected -= 1;
        }
        if self.expected == 0 {
            self.outage = Some(reason.clone());
        }
        self.expected == 0
    }

    pub fn has_working_instance(&self) -> bool {
        self.working > 0
    }

    pub fn working_count(&self) -> usize {
        self.working
    }

    pub fn outage(&self) -> Option<&Error> {
        self.outage.as_ref()
    }
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
    }

    fn event() -> impl Strategy<Value = (usize, Event)> {
        let events = prop_oneof![
            Just(Event::Begin),
            Just(Event::Started),
            (0..3_u64).prop_map(Event::Break),
            Just(Event::GiveUp),
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
    }

    impl Reference {
        fn apply(&mut self, event: Event) {
            match event {
                Event::Begin => {
                    self.generation += 1;
                    (self.is_started, self.is_broken) = (false, false);
                }
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
        fn matches_the_reference(events in prop::collection::vec(event(), 0..60)) {
            let mut health = InstanceHealth::new(INSTANCES);
            let mut reference = [Reference::default(); INSTANCES];
            for (index, event) in events {
                // What no thread does: report a start twice, give up what works.
                let now = reference[index];
                let is_working = now.is_started && !now.is_broken;
                if is_working && matches!(event, Event::GiveUp | Event::Started) {
                    continue;
                }
                reference[index].apply(event);
                match event {
                    Event::Begin => drop(health.begin(index)),
                    Event::Started => health.started(index),
                    Event::Break(age) => {
                        let Some(generation) = now.generation.checked_sub(age) else { continue };
                        let is_news = health.break_down(index, generation, Error::internal("x"));
                        prop_assert_eq!(is_news, age == 0 && !now.is_broken);
                    }
                    Event::GiveUp => {
                        let is_last = health.give_up(index, &Error::internal("x"));
                        prop_assert_eq!(is_last, reference.iter().all(|p| p.is_given_up));
                    }
                }
                let works = |p: &Reference| p.is_started && !p.is_broken;
                prop_assert_eq!(health.has_working_instance(), reference.iter().any(works));
                prop_assert_eq!(health.defect(index).is_some(), reference[index].is_broken);
                prop_assert_eq!(health.outage().is_some(), reference.iter().all(|p| p.is_given_up));
            }
        }
    }
}
