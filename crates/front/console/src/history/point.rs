//! One point of the history: the counts of an interval, in few bytes.

use galatea_engine::ServedModel;
use galatea_telemetry::{DurationCount, StatisticsSnapshot};
use serde::{Serialize, Serializer};

/// The counts of a version at one moment, and its pending and running work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct VersionCounts {
    pub succeeded: u64,
    pub failed: u64,
    pub inferences: u64,
    pub pending: i64,
    pub in_flight: usize,
    /// Nanoseconds of whole requests, in the queue, and of the three parts of computing.
    pub ns: [u64; TIMES],
}

const TIMES: usize = 5;

/// The work of a version in one interval, and its pending and running work at the end.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Point {
    pub succeeded: u32,
    pub failed: u32,
    pub inferences: u32,
    pub pending: u32,
    pub in_flight: u32,
    /// Milliseconds of all requests that succeeded: in total, in the queue, and of the three parts of computing.
    pub ms: [f32; TIMES],
}

/// The same for the whole server.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TotalPoint {
    pub ended: u64,
    pub failed: u64,
    pub pending: u64,
    pub in_flight: u64,
    pub resident_bytes: Option<usize>,
}

impl VersionCounts {
    pub fn of(model: &ServedModel) -> Self {
        let StatisticsSnapshot {
            success,
            fail,
            inference_count,
            queue,
            compute_input,
            compute_infer,
            compute_output,
            pending,
            ..
        } = model.statistics().snapshot();
        let ns = |time: DurationCount| time.ns;
        Self {
            succeeded: success.count,
            failed: fail.count,
            inferences: inference_count,
            ns: [success, queue, compute_input, compute_infer, compute_output].map(ns),
            pending,
            in_flight: model.in_flight(),
        }
    }
}

impl Point {
    /// Returns the point from `before` to `now`. A version that was loaded again counts from zero.
    pub fn between(before: &VersionCounts, now: &VersionCounts) -> Self {
        let grown = |before: u64, now: u64| now.checked_sub(before).unwrap_or(now);
        let times = before.ns.into_iter().zip(now.ns);
        let mut ms = [0.0; TIMES];
        for (ms, (before, now)) in ms.iter_mut().zip(times) {
            // Long intervals lose a fraction of a microsecond, which cannot be seen.
            *ms = (grown(before, now) as f64 / 1e6) as f32;
        }
        Self {
            succeeded: saturated(grown(before.succeeded, now.succeeded)),
            failed: saturated(grown(before.failed, now.failed)),
            inferences: saturated(grown(before.inferences, now.inferences)),
            pending: saturated(now.pending),
            in_flight: saturated(now.in_flight),
            ms,
        }
    }

    /// Returns `true` if nothing happened and no work is pending or running.
    pub fn is_quiet(&self) -> bool {
        [self.succeeded, self.failed, self.inferences, self.pending, self.in_flight] == [0; 5]
    }
}

impl TotalPoint {
    /// Returns the point of a server without work.
    pub fn now() -> Self {
        Self { resident_bytes: galatea_process_memory::resident(), ..Self::default() }
    }

    pub fn add(&mut self, point: &Point) {
        self.ended += u64::from(point.succeeded) + u64::from(point.failed);
        self.failed += u64::from(point.failed);
        self.pending += u64::from(point.pending);
        self.in_flight += u64::from(point.in_flight);
    }
}

/// Written as a list without names, or `0` if nothing happened, because there are many.
impl Serialize for Point {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        if self.is_quiet() {
            return serializer.serialize_u8(0);
        }
        let Self { succeeded, failed, inferences, pending, in_flight, ms } = self;
        (succeeded, failed, inferences, pending, in_flight, ms[0], ms[1], ms[2], ms[3], ms[4])
            .serialize(serializer)
    }
}

impl Serialize for TotalPoint {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { ended, failed, pending, in_flight, resident_bytes } = self;
        (ended, failed, pending, in_flight, resident_bytes).serialize(serializer)
    }
}

/// Returns the count within the bounds of `u32`: 0 for a negative one.
fn saturated<T: TryInto<u32> + PartialOrd + Default>(count: T) -> u32 {
    if count < T::default() { 0 } else { count.try_into().unwrap_or(u32::MAX) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_restarts_the_counters() {
        let counted = |succeeded, ns| VersionCounts {
            succeeded,
            ns: [ns; TIMES],
            ..VersionCounts::default()
        };
        let grown = Point::between(&counted(10, 5_000_000), &counted(12, 9_500_000));
        assert_eq!((grown.succeeded, grown.ms[0]), (2, 4.5));
        let again = Point::between(&counted(10, 5_000_000), &counted(3, 1_000_000));
        assert_eq!((again.succeeded, again.ms[0]), (3, 1.0));
    }

    #[test]
    fn counts_are_saturated() {
        assert_eq!([saturated(-1_i64), saturated(7), saturated(i64::MAX)], [0, 7, u32::MAX]);
    }

    #[test]
    fn an_idle_point_is_sent_as_zero() {
        let text = |point: Point| serde_json::to_string(&point).expect("JSON");
        assert_eq!(text(Point::default()), "0");
        let point =
            Point { succeeded: 2, pending: 1, ms: [1.5, 0.25, 0.0, 1.0, 0.25], ..Point::default() };
        assert_eq!(text(point), "[2,0,0,1,0,1.5,0.25,0.0,1.0,0.25]");
    }
}
