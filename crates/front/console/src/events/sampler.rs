//! Samples of a server, written as events.

use std::{
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

use bytes::Bytes;
use galatea_engine::Engine;
use galatea_frontend::{FailedCall, recent_failures};
use serde::Serialize;

use super::Shared;
use crate::{
    about::About,
    history::History,
    state::{Change, FailureRow, Models, ServerRow, State},
    words::millis,
};

/// The time between two samples.
pub(super) const INTERVAL: Duration = Duration::from_secs(1);

/// The last sample, and its texts.
pub(super) struct Sampler {
    about: About,
    has_new_about: bool,
    models: Models,
    server: Option<ServerRow>,
    sequence: u64,
    sampled_at: Instant,
    /// The number of the last failed request that was sent.
    last_failure: u64,
    /// The failures of the last sample.
    new_failures: Vec<Arc<FailedCall>>,
    /// Nobody has watched since the last sample, which may be older than the last point of the history.
    is_stale: bool,
    /// The whole of the last sample as an event, once a watcher needed it.
    state: Option<Bytes>,
}

impl Sampler {
    pub fn new(now: Instant) -> Self {
        Self {
            about: About::default(),
            has_new_about: false,
            models: Models::default(),
            server: None,
            sequence: 0,
            sampled_at: now,
            last_failure: recent_failures().count(),
            new_failures: Vec::new(),
            is_stale: false,
            state: None,
        }
    }

    pub fn sample(&mut self, shared: &Shared, engine: &Engine, watchers: usize) {
        let now = shared.clock.now();
        let elapsed = now.saturating_duration_since(self.sampled_at);
        (self.sampled_at, self.state, self.is_stale) = (now, None, false);
        self.sequence += 1;
        self.models.sample(engine, elapsed);
        let uptime = shared.clock.since(shared.started);
        let about = shared.sources.about.newer_than(Some(self.about.revision));
        self.has_new_about = about.is_some();
        self.about = about.unwrap_or_else(|| std::mem::take(&mut self.about));
        self.server = Some(ServerRow::of(engine, &shared.sources, uptime, watchers));
        self.new_failures = recent_failures().since(self.last_failure);
        if let Some(last) = self.new_failures.last() {
            self.last_failure = last.sequence;
        }
    }

    /// Returns the changes of the last sample as an event.
    pub fn change(&self) -> Bytes {
        let Some(server) = &self.server else { return Bytes::new() };
        event(
            "change",
            &Change {
                sequence: self.sequence,
                time_ms: millis(SystemTime::now()),
                server,
                about: self.has_new_about.then_some(&self.about),
                models: self.models.changed_rows(),
                removed: self.models.removed(),
                models_left_out: self.models.left_out(),
                failures: self.new_failures.iter().cloned().map(FailureRow).collect(),
            },
        )
    }

    /// Marks the sample as stale while nobody watches, so that the next watcher gets a new one.
    pub fn rest(&mut self) {
        self.is_stale = true;
    }

    /// Returns the whole of the last sample as an event. Takes a sample first if there is none or it is stale.
    pub fn state(&mut self, shared: &Shared, engine: &Engine, history: &History) -> Bytes {
        if self.server.is_none() || self.is_stale {
            self.sample(shared, engine, 1);
        }
        let Self { server: Some(server), state, .. } = self else { return Bytes::new() };
        if let Some(known) = state {
            return known.clone();
        }
        // Excludes failures that the next change will have.
        let kept = recent_failures().since(0);
        let kept = kept.into_iter().filter(|call| call.sequence <= self.last_failure);
        let failures: Vec<_> = kept.map(FailureRow).collect();
        let written = event(
            "state",
            &State {
                sequence: self.sequence,
                time_ms: millis(SystemTime::now()),
                interval_ms: u64::try_from(INTERVAL.as_millis()).unwrap_or(u64::MAX),
                server,
                about: &self.about,
                models: self.models.rows(),
                models_left_out: self.models.left_out(),
                failures_left_out: self.last_failure.saturating_sub(failures.len() as u64),
                failures,
                history: history.row(self.sampled_at, self.models.counted()),
            },
        );
        state.insert(written).clone()
    }
}

/// Writes an event. JSON has no line breaks of its own.
fn event(name: &str, data: &impl Serialize) -> Bytes {
    let mut text = format!("event: {name}\ndata: ").into_bytes();
    if let Err(error) = serde_json::to_writer(&mut text, data) {
        log::error!("console: an event cannot be written: {error}");
        return Bytes::new();
    }
    text.extend_from_slice(b"\n\n");
    text.into()
}
