use galatea_types::Error;

/// Which instances of a model work.
pub(crate) struct Health {
    slots: Vec<Slot>,
    /// Instances that are made and have raised no alarm since.
    working: usize,
    /// Instances that work or are on the way to: requests may wait for them.
    hopeful: usize,
    /// Why requests are refused, while nothing is hopeful.
    outage: Option<Error>,
}

/// The instance of one thread, which is another one after each renewal.
struct Slot {
    generation: u64,
    condition: Condition,
    is_given_up: bool,
}

enum Condition {
    Making,
    Working,
    /// It stopped working and must be made anew.
    Broken(Error),
}

impl Health {
    pub fn new(instances: usize) -> Self {
        let slot = |_| Slot { generation: 0, condition: Condition::Making, is_given_up: false };
        Self {
            slots: (0..instances).map(slot).collect(),
            working: 0,
            hopeful: instances,
            outage: None,
        }
    }

    /// An instance is about to be made, or the last one is about to go. The generation makes its alarm its
    /// own: those of instances before it are ignored from now on.
    pub fn begin(&mut self, index: usize) -> u64 {
        let Some(slot) = self.slots.get_mut(index) else { return 0 };
        slot.generation += 1;
        if let Condition::Working = std::mem::replace(&mut slot.condition, Condition::Making) {
            self.working -= 1;
        }
        slot.generation
    }

    pub fn generation(&self, index: usize) -> u64 {
        self.slots.get(index).map_or(0, |slot| slot.generation)
    }

    /// The instance was made. If it broke in the meantime, it stays broken.
    pub fn made(&mut self, index: usize) {
        let Some(slot) = self.slots.get_mut(index) else { return };
        if !matches!(slot.condition, Condition::Making) {
            return;
        }
        slot.condition = Condition::Working;
        self.working += 1;
        if std::mem::take(&mut slot.is_given_up) {
            self.hopeful += 1;
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
            Condition::Making => true,
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

    /// Why the instance must be made anew, if it must.
    pub fn defect(&self, index: usize) -> Option<&Error> {
        match &self.slots.get(index)?.condition {
            Condition::Broken(reason) => Some(reason),
            Condition::Making | Condition::Working => None,
        }
    }

    /// Nobody is to wait for this instance until it works again. True: for no other one either.
    pub fn give_up(&mut self, index: usize, reason: &Error) -> bool {
        let Some(slot) = self.slots.get_mut(index) else { return false };
        if !std::mem::replace(&mut slot.is_given_up, true) {
            self.hopeful -= 1;
        }
        if self.hopeful == 0 {
            self.outage = Some(reason.clone());
        }
        self.hopeful == 0
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
        Made,
        /// An alarm of the instance made so many generations ago.
        Break(u64),
        GiveUp,
    }

    fn event() -> impl Strategy<Value = (usize, Event)> {
        let events = prop_oneof![
            Just(Event::Begin),
            Just(Event::Made),
            (0..3_u64).prop_map(Event::Break),
            Just(Event::GiveUp),
        ];
        (0..INSTANCES, events)
    }

    /// The same rules in the plainest words.
    #[derive(Clone, Copy, Default)]
    struct Plain {
        generation: u64,
        is_made: bool,
        is_broken: bool,
        is_given_up: bool,
    }

    impl Plain {
        fn apply(&mut self, event: Event) {
            match event {
                Event::Begin => {
                    self.generation += 1;
                    (self.is_made, self.is_broken) = (false, false);
                }
                Event::Made if !self.is_broken => {
                    (self.is_made, self.is_given_up) = (true, false);
                }
                Event::Break(0) => self.is_broken = true,
                Event::GiveUp => self.is_given_up = true,
                Event::Made | Event::Break(_) => {}
            }
        }
    }

    proptest! {
        #[test]
        fn follows_the_plain_rules(events in prop::collection::vec(event(), 0..60)) {
            let mut health = Health::new(INSTANCES);
            let mut plain = [Plain::default(); INSTANCES];
            for (index, event) in events {
                // What no thread does: making it known twice, giving up what works.
                let now = plain[index];
                let is_working = now.is_made && !now.is_broken;
                if is_working && matches!(event, Event::GiveUp | Event::Made) {
                    continue;
                }
                plain[index].apply(event);
                match event {
                    Event::Begin => drop(health.begin(index)),
                    Event::Made => health.made(index),
                    Event::Break(age) => {
                        let Some(generation) = now.generation.checked_sub(age) else { continue };
                        let is_news = health.break_down(index, generation, Error::internal("x"));
                        prop_assert_eq!(is_news, age == 0 && !now.is_broken);
                    }
                    Event::GiveUp => {
                        let is_last = health.give_up(index, &Error::internal("x"));
                        prop_assert_eq!(is_last, plain.iter().all(|p| p.is_given_up));
                    }
                }
                let works = |p: &Plain| p.is_made && !p.is_broken;
                prop_assert_eq!(health.has_working_instance(), plain.iter().any(works));
                prop_assert_eq!(health.defect(index).is_some(), plain[index].is_broken);
                prop_assert_eq!(health.outage().is_some(), plain.iter().all(|p| p.is_given_up));
            }
        }
    }
}
