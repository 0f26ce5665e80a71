//! A setting in force: it chooses requests, and its end tells the sink that no more traces come.

use std::sync::{Arc, Mutex};

use galatea_types::LockExt as _;

use crate::{sampler::Sampler, settings::Settings, sink::TraceSink};

/// A setting in force, of the server or of a model. It lasts until it is replaced and its last trace is finished.
#[derive(Debug)]
pub(crate) struct Setting {
    /// Names it to the sink.
    number: u64,
    settings: Settings,
    can_trace: bool,
    sampler: Mutex<Sampler>,
    sink: Arc<dyn TraceSink>,
}

impl Setting {
    pub fn new(number: u64, settings: Settings, can_trace: bool, sink: Arc<dyn TraceSink>) -> Self {
        let sampler = Mutex::new(Sampler::new(settings.rate, settings.count));
        Self { number, settings, can_trace, sampler, sink }
    }

    pub fn number(&self) -> u64 {
        self.number
    }

    pub fn sink(&self) -> &Arc<dyn TraceSink> {
        &self.sink
    }

    /// Returns the settings, with the count that is left.
    pub fn settings(&self) -> Settings {
        let count = self.sampler.lock_unpoisoned().left();
        Settings { count, ..self.settings }
    }

    /// Returns the settings, with the count that it began with.
    pub fn first_settings(&self) -> &Settings {
        &self.settings
    }

    /// Returns whether a request may be traced now.
    pub fn can_trace(&self) -> bool {
        self.can_trace && self.sampler.lock_unpoisoned().left() != 0
    }

    /// Returns whether a request that belongs to a client's trace is traced, which rate and count have no say in.
    pub fn follows_clients(&self) -> bool {
        self.settings.levels.is_on()
    }

    /// Counts a request. Returns whether it is traced.
    pub fn choose(&self) -> bool {
        self.can_trace && self.sampler.lock_unpoisoned().choose()
    }

    /// Counts a finished trace. Returns whether it is the last one of the count.
    pub fn finish(&self) -> bool {
        self.sampler.lock_unpoisoned().finish()
    }
}

impl Drop for Setting {
    fn drop(&mut self) {
        if self.can_trace {
            self.sink.retired(self.number);
        }
    }
}
