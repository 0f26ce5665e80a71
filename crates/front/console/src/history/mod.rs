//! The history of the last quarter of an hour, kept even while nobody watches, so that a page opened after a fault
//! shows its causes.
//!
//! Its figures are counters that exist anyway, so no request costs more for it. Memory is bounded: an active version
//! takes [`BYTES_OF_MODEL`], and at most [`MOST_MODELS`] are kept.

mod point;

use std::{
    collections::{BTreeMap, VecDeque},
    time::{Duration, Instant, SystemTime},
};

use galatea_engine::{Engine, ServedModel};
use galatea_types::Clock;
use serde::Serialize;

pub(crate) use self::point::VersionCounts;
use self::point::{Point, TotalPoint};
use crate::words::{key, millis};

/// The time between two points.
const INTERVAL: Duration = Duration::from_secs(5);
/// The number of points that are kept: 15 minutes of them.
const MOST_POINTS: usize = 180;
/// The most versions with points. Others get their turn when one of these was idle.
const MOST_MODELS: usize = 500;
/// The memory of one version's points. docs/console.md states it.
const BYTES_OF_MODEL: usize = 7_200;
const _: () = assert!(MOST_POINTS * size_of::<Point>() == BYTES_OF_MODEL);

pub(crate) struct History {
    clock: Clock,
    /// The time of the last point.
    last_at: Instant,
    ticks: VecDeque<HistoryTick>,
    total: VecDeque<TotalPoint>,
    models: BTreeMap<String, VersionHistory>,
    /// The number of `models` that have points.
    working: usize,
}

/// The time of a point, and the interval before it.
#[derive(Clone, Copy, Debug)]
struct HistoryTick {
    at: Instant,
    span: Duration,
}

/// A ready version: its counts at the last point, and its points, the newest of which belongs to the last tick. It gets
/// points once it is active, and loses them after an idle quarter of an hour.
#[derive(Debug, Default)]
struct VersionHistory {
    counted: VersionCounts,
    points: VecDeque<Point>,
    quiet: usize,
}

/// The history as it is sent: the kept points, and one for the time since the last.
#[derive(Debug, Serialize)]
pub(crate) struct HistoryRow {
    /// Ends of the intervals.
    times_ms: Vec<u64>,
    /// Lengths of the intervals.
    spans_ms: Vec<u64>,
    /// Each list of points ends with the last interval.
    total: Vec<TotalPoint>,
    models: BTreeMap<String, Vec<Point>>,
}

impl History {
    pub fn new(clock: Clock) -> Self {
        Self {
            last_at: clock.now(),
            clock,
            ticks: VecDeque::new(),
            total: VecDeque::new(),
            models: BTreeMap::new(),
            working: 0,
        }
    }

    pub fn due(&self) -> Instant {
        self.last_at + INTERVAL
    }

    /// Takes a point of each ready version and of the server.
    pub fn tick(&mut self, engine: &Engine) {
        let at = self.clock.now();
        let span = at.saturating_duration_since(self.last_at);
        self.last_at = at;
        push(&mut self.ticks, HistoryTick { at, span });
        let mut before = std::mem::take(&mut self.models);
        let mut total = TotalPoint::now();
        self.working = 0;
        for model in engine.ready_models() {
            let key = key_of(&model);
            let mut kept = before.remove(&key).unwrap_or_default();
            total.add(&kept.tick(&model, self.working < MOST_MODELS));
            self.working += usize::from(!kept.points.is_empty());
            self.models.insert(key, kept);
        }
        push(&mut self.total, total);
    }

    /// Returns the kept points and one for the time since the last. `sampled`: the counts of ready versions at `now`,
    /// by their keys.
    pub fn row<'a>(
        &self,
        now: Instant,
        sampled: impl Iterator<Item = (&'a str, VersionCounts)>,
    ) -> HistoryRow {
        let now_ms = millis(SystemTime::now()).saturating_sub(whole_millis(self.clock.since(now)));
        let last = HistoryTick { at: now, span: now.saturating_duration_since(self.last_at) };
        let ticks = || self.ticks.iter().copied().chain([last]);
        let ago = |tick: HistoryTick| whole_millis(now.saturating_duration_since(tick.at));
        let mut total = TotalPoint::now();
        let mut models = BTreeMap::new();
        let nothing = VersionHistory::default();
        for (key, counted) in sampled {
            let kept = self.models.get(key).unwrap_or(&nothing);
            let point = Point::between(&kept.counted, &counted);
            total.add(&point);
            let is_kept = !kept.points.is_empty() || !point.is_quiet();
            if is_kept && models.len() < MOST_MODELS {
                let points = kept.points.iter().copied().chain([point]).collect();
                models.insert(key.to_owned(), points);
            }
        }
        HistoryRow {
            times_ms: ticks().map(|tick| now_ms.saturating_sub(ago(tick))).collect(),
            spans_ms: ticks().map(|tick| whole_millis(tick.span)).collect(),
            total: self.total.iter().copied().chain([total]).collect(),
            models,
        }
    }
}

impl VersionHistory {
    /// Takes a point of the version. `may_begin`: there is room for a version without points.
    fn tick(&mut self, model: &ServedModel, may_begin: bool) -> Point {
        let counted = VersionCounts::of(model);
        let point = Point::between(&self.counted, &counted);
        self.counted = counted;
        self.quiet = if point.is_quiet() { self.quiet + 1 } else { 0 };
        let has_begun = !self.points.is_empty();
        if has_begun && self.quiet >= MOST_POINTS || !has_begun && !may_begin {
            self.points = VecDeque::new();
        } else if has_begun || self.quiet == 0 {
            self.points.reserve_exact(MOST_POINTS - self.points.len());
            push(&mut self.points, point);
        }
        point
    }
}

fn push<T>(points: &mut VecDeque<T>, point: T) {
    if points.len() >= MOST_POINTS {
        points.pop_front();
    }
    points.push_back(point);
}

fn key_of(model: &ServedModel) -> String {
    key(model.namespace(), model.config().name(), Some(model.version()))
}

fn whole_millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
