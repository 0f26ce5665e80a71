//! The records and sums that one worker collects, and the clock they are stamped with.

use std::{
    mem,
    sync::{
        Mutex, MutexGuard,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant, SystemTime, UNIX_EPOCH},
};

use galatea_client::CallTimes;
use galatea_perf_types::record::{CallTotals, Nanos, RequestRecord};
use galatea_types::LockExt;

/// Records and sums of one worker. Its lock is held only for a push or a swap.
#[derive(Debug, Default)]
pub struct WorkerRecords {
    collected: Mutex<CollectedRecords>,
    sent: AtomicU64,
    /// True during the warm-up.
    is_paused: AtomicBool,
}

#[derive(Debug, Default)]
struct CollectedRecords {
    records: Vec<RequestRecord>,
    totals: CallTotals,
}

impl WorkerRecords {
    pub fn set_recording(&self, on: bool) {
        self.is_paused.store(!on, Ordering::Relaxed);
    }

    pub fn count_sent(&self) {
        if !self.is_paused.load(Ordering::Relaxed) {
            self.sent.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Adds a record. `times`: of a unary call.
    pub fn push(&self, record: RequestRecord, times: Option<&CallTimes>) {
        if self.is_paused.load(Ordering::Relaxed) {
            return;
        }
        let mut collected = self.collected();
        if let Some(times) = times {
            add(&mut collected.totals, times);
        }
        collected.records.push(record);
    }

    pub fn len(&self) -> usize {
        self.collected().records.len()
    }

    pub fn take_records(&self) -> Vec<RequestRecord> {
        let mut collected = self.collected();
        // The next window will hold about as many records.
        let room = Vec::with_capacity(collected.records.len());
        mem::replace(&mut collected.records, room)
    }

    pub fn totals(&self) -> CallTotals {
        self.collected().totals
    }

    pub fn take_sent(&self) -> u64 {
        self.sent.swap(0, Ordering::Relaxed)
    }

    fn collected(&self) -> MutexGuard<'_, CollectedRecords> {
        self.collected.lock_unpoisoned()
    }
}

fn add(totals: &mut CallTotals, times: &CallTimes) {
    totals.calls += 1;
    totals.request_ns += nanos(times.end.saturating_duration_since(times.start));
    totals.send_ns += nanos(times.sent.saturating_duration_since(times.start));
    totals.receive_ns += nanos(times.end.saturating_duration_since(times.first_byte));
}

/// Converts moments of the monotonic clock to Unix nanoseconds, with one offset for a whole run.
#[derive(Clone, Copy, Debug)]
pub struct Epoch {
    start: Instant,
    unix: Duration,
}

impl Epoch {
    pub fn now() -> Self {
        let unix = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self { start: Instant::now(), unix }
    }

    pub fn nanos(&self, moment: Instant) -> Nanos {
        let before = nanos(self.start.saturating_duration_since(moment));
        (nanos(self.unix) + nanos(moment.saturating_duration_since(self.start)))
            .saturating_sub(before)
    }
}

pub fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_closed_ledger_counts_no_requests() {
        let records = WorkerRecords::default();
        let start = Instant::now();
        let at = |millis| start + Duration::from_millis(millis);
        let times = CallTimes { start, sent: at(1), first_byte: at(5), end: at(7) };

        records.set_recording(false);
        records.count_sent();
        records.push(RequestRecord::default(), Some(&times));
        assert_eq!(
            (records.len(), records.take_sent(), records.totals()),
            (0, 0, CallTotals::default())
        );

        records.set_recording(true);
        records.count_sent();
        records.push(RequestRecord::default(), Some(&times));
        records.push(RequestRecord::default(), None);
        let totals = CallTotals {
            calls: 1,
            request_ns: 7_000_000,
            send_ns: 1_000_000,
            receive_ns: 2_000_000,
        };
        assert_eq!((records.len(), records.take_sent(), records.totals()), (2, 1, totals));
        assert_eq!((records.take_records().len(), records.len(), records.take_sent()), (2, 0, 0));
    }

    #[test]
    fn unix_times_keep_their_distances() {
        let epoch = Epoch::now();
        let unix = epoch.nanos(epoch.start);
        assert_eq!(epoch.nanos(epoch.start + Duration::from_nanos(5)), unix + 5);
        assert_eq!(epoch.nanos(epoch.start - Duration::from_nanos(5)), unix - 5);
    }
}
