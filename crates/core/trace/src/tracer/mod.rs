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
    recent::RecentTraces,
    recorder::Recorder,
    request_trace::{ClientSpan, TracePlace},
    setting::Setting,
    settings::{SettingValue, Settings, TraceMode, TraceOptions},
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
    /// Requests that belong to a client's trace may be traced, whatever rate and count say.
    follows_clients: AtomicBool,
    /// The log has a line about tensors, which are not exported.
    has_told_of_tensors: AtomicBool,
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
        let has_destination = options.has_destination();
        let next_setting = AtomicU64::new(0);
        let mut make = setting_maker(&next_setting, has_destination, &sink);
        let table = Table::new(options.settings, &mut make);
        drop(make);
        let recorder = Recorder::new(clock, sink.clone(), options.traces_all_calls);
        let recorder = if options.keeps_recent { recorder.keeping_recent() } else { recorder };
        let tracer = Self {
            has_destination,
            recorder: Arc::new(recorder),
            is_on: AtomicBool::default(),
            follows_clients: AtomicBool::default(),
            has_told_of_tensors: AtomicBool::default(),
            table: ArcSwap::from_pointee(table),
            changing: Mutex::default(),
            next_setting,
            sink,
            options,
        };
        tracer.follow_table();
        tracer
    }

    /// Returns whether traces are spans of distributed traces.
    pub(crate) fn exports_spans(&self) -> bool {
        self.options.mode == TraceMode::OpenTelemetry
    }

    /// Reads from the table what may be traced.
    fn follow_table(&self) {
        let table = self.table.load();
        self.is_on.store(table.can_trace(), Relaxed);
        let follows_clients = self.exports_spans() && table.follows_clients();
        self.follows_clients.store(follows_clients, Relaxed);
        let has_lost_tensors = self.exports_spans() && table.has_tensors();
        if has_lost_tensors && !self.has_told_of_tensors.swap(true, Relaxed) {
            log::warn!(
                "trace level TENSORS has no effect: tensors are not exported in mode 'opentelemetry'"
            );
        }
    }

    /// Returns the names and values of the settings of a model, or of the server, in Triton's order.
    pub fn settings(&self, model: Option<&str>) -> Vec<(String, SettingValue)> {
        self.options.rows(&self.table.load().setting(model).settings())
    }

    /// Returns whether the next requests to a model may be traced.
    pub fn may_trace(&self, model: &str) -> bool {
        self.is_on() && self.table.load().setting(Some(model)).can_trace()
    }

    /// Returns whether a model has settings of its own.
    pub fn has_own_settings(&self, model: &str) -> bool {
        self.table.load().has_own(model)
    }

    /// Returns whether traces have somewhere to go. Without that, no request is traced.
    pub fn has_destination(&self) -> bool {
        self.has_destination
    }

    /// Returns the last traces of each model, if the options keep them.
    pub fn recent(&self) -> Option<&Arc<RecentTraces>> {
        self.recorder.recent.as_ref()
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
        self.table.store(Arc::new(changed.map_err(SettingsError::Invalid)?));
        self.follow_table();
        Ok(())
    }

    /// Returns whether any request may be traced.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.is_on.load(Relaxed)
    }

    /// Returns whether a request that belongs to a client's trace may be traced.
    pub(crate) fn follows_clients(&self) -> bool {
        self.follows_clients.load(Relaxed)
    }

    pub(crate) fn recorder(&self) -> &Arc<Recorder> {
        &self.recorder
    }

    /// Counts a request to `model`. Returns its trace if it is traced. `client` is its span if the client has one.
    pub(crate) fn choose(&self, model: &str, client: Option<&ClientSpan>) -> Option<Arc<Span>> {
        let setting = self.table.load().setting(Some(model)).clone();
        let is_chosen = setting.choose();
        let is_followed = client.is_some() && self.follows_clients() && setting.follows_clients();
        if !is_chosen && !is_followed {
            return None;
        }
        if is_chosen && !setting.can_trace() {
            self.turn_off_if_used_up();
        }
        let place = self.exports_spans().then(|| TracePlace::new(client));
        Some(Arc::new(Span::root(&self.recorder, setting, model, is_chosen, place)))
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
            self.follows_clients.store(false, Relaxed);
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
