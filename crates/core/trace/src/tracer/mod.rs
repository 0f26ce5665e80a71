//! The tracer of a server: its settings, and the choice of the requests that are traced.

use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::Relaxed},
    },
};

use arc_swap::ArcSwap;
use galatea_types::{Clock, LockExt as _};

use crate::{
    change::{SettingsChange, SettingsError},
    files::TraceFiles,
    recorder::Recorder,
    setting::Setting,
    settings::{SettingValue, Settings, TraceOptions},
    sink::{TraceSink, Unwritten},
    span::Span,
    table::Table,
};

/// Decides which requests are traced, by settings that clients may change.
pub struct Tracer {
    options: TraceOptions,
    /// Traces have somewhere to go.
    has_destination: bool,
    recorder: Arc<Recorder>,
    is_on: AtomicBool,
    table: ArcSwap<Table>,
    /// MemoryShare while the table is replaced.
    changing: Mutex<()>,
    next_setting: AtomicU64,
    sink: Arc<dyn TraceSink>,
}

impl Default for Tracer {
    /// Makes a tracer that is off and has no file.
    fn default() -> Self {
        Self::with_sink(TraceOptions::default(), Arc::new(Unwritten), Clock::system())
    }
}

impl Tracer {
    /// Makes a tracer that writes its traces to the file in the options.
    pub fn new(options: TraceOptions) -> Self {
        let sink: Arc<dyn TraceSink> = match options.file.as_os_str().is_empty() {
            true => Arc::new(Unwritten),
            false => Arc::new(TraceFiles::new(options.file.clone())),
        };
        Self::with_sink(options, sink, Clock::system())
    }

    /// Makes a tracer that gives its traces to `sink`.
    pub fn with_sink(options: TraceOptions, sink: Arc<dyn TraceSink>, clock: Clock) -> Self {
        let has_destination = !options.file.as_os_str().is_empty();
        let next_setting = AtomicU64::new(0);
        let mut make = setting_maker(&next_setting, has_destination, &sink);
        let table = Table::new(options.settings, &mut make);
        drop(make);
        Self {
            has_destination,
            recorder: Arc::new(Recorder::new(clock, sink.clone(), options.traces_all_calls)),
            is_on: AtomicBool::new(table.can_trace()),
            table: ArcSwap::from_pointee(table),
            changing: Mutex::default(),
            next_setting,
            sink,
            options,
        }
    }

    /// Returns the names and values of the settings of a model, or of the server, in Triton's order.
    pub fn settings(&self, model: Option<&str>) -> Vec<(String, SettingValue)> {
        self.options.rows(&self.table.load().setting(model).settings())
    }

    /// Changes the settings of a model, or of the server.
    ///
    /// # Errors
    /// The settings would not fit each other. Nothing is changed then.
    pub fn change(
        &self,
        model: Option<&str>,
        change: &SettingsChange,
    ) -> Result<(), SettingsError> {
        let _changing = self.changing.lock_unpoisoned();
        let mut make = setting_maker(&self.next_setting, self.has_destination, &self.sink);
        let changed = self.table.load().changed(model, change, self.has_destination, &mut make);
        let table = changed.map_err(SettingsError::Invalid)?;
        self.is_on.store(table.can_trace(), Relaxed);
        self.table.store(Arc::new(table));
        Ok(())
    }

    /// Returns whether any request may be traced.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Counts a request to `model`. Returns its trace if it is traced.
    pub(crate) fn choose(&self, model: &str) -> Option<Arc<Span>> {
        let setting = self.table.load().setting(Some(model)).clone();
        if !setting.choose() {
            return None;
        }
        if !setting.can_trace() {
            self.turn_off_if_used_up();
        }
        let span = Span::root(&self.recorder, setting);
        Some(Arc::new(span))
    }

    /// Turns tracing off when no setting has anything left to trace.
    fn turn_off_if_used_up(&self) {
        let _changing = self.changing.lock_unpoisoned();
        self.is_on.store(self.table.load().can_trace(), Relaxed);
    }

    /// Returns how many traces, or requests and tensors of one, found no room.
    pub fn lost(&self) -> u64 {
        self.recorder.lost()
    }

    /// Ends tracing: writes all finished traces and chooses no more requests.
    pub fn close(&self) {
        {
            let _changing = self.changing.lock_unpoisoned();
            self.is_on.store(false, Relaxed);
            let mut make = setting_maker(&self.next_setting, false, &self.sink);
            self.table.store(Arc::new(Table::new(self.options.settings, &mut make)));
        }
        self.sink.close();
    }
}

fn setting_maker(
    numbers: &AtomicU64,
    has_destination: bool,
    sink: &Arc<dyn TraceSink>,
) -> impl FnMut(Settings) -> Arc<Setting> {
    move |settings| {
        let number = numbers.fetch_add(1, Relaxed);
        let can_trace = settings.can_trace(has_destination);
        Arc::new(Setting::new(number, settings, can_trace, sink.clone()))
    }
}

impl fmt::Debug for Tracer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Tracer").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests;
