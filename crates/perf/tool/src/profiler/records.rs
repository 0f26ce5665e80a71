//! Selects the requests of a window.

use std::mem;

use galatea_perf_types::record::{Nanos, RequestRecord};

/// Requests that have ended but were not counted yet: they may belong to the next window.
#[derive(Debug, Default)]
pub(super) struct PendingRecords(Vec<RequestRecord>);

/// The requests of one window.
#[derive(Debug, Default)]
pub(super) struct WindowRecords {
    /// Latencies, sorted.
    pub latencies: Vec<Nanos>,
    /// Latencies from the scheduled time, sorted.
    pub scheduled_latencies: Vec<Nanos>,
    pub response_count: u64,
    pub sequence_count: u64,
    pub delayed_count: u64,
    /// The requests counted, and those without any response to count.
    pub requests: Vec<RequestRecord>,
}

impl PendingRecords {
    pub(super) fn add(&mut self, records: Vec<RequestRecord>) {
        self.0.extend(records);
    }

    /// Takes the requests that end from `begin` to `end`, both included.
    pub(super) fn take_window(&mut self, begin: Nanos, end: Nanos) -> WindowRecords {
        let mut window = WindowRecords::default();
        for record in mem::take(&mut self.0) {
            match record.end() {
                None => window.requests.push(record),
                Some(ended) if record.start <= ended && (begin..=end).contains(&ended) => {
                    window.count(&record, ended);
                    window.requests.push(record);
                }
                Some(_) => self.0.push(record),
            }
        }
        window.latencies.sort_unstable();
        window.scheduled_latencies.sort_unstable();
        window
    }
}

impl WindowRecords {
    fn count(&mut self, record: &RequestRecord, ended: Nanos) {
        self.latencies.push(ended - record.start);
        if let Some(intended) = record.intended_start {
            self.scheduled_latencies.push(ended.saturating_sub(intended));
        }
        let flags = u64::from(record.last_response_is_empty);
        self.response_count += record.responses.len() as u64 - flags;
        self.sequence_count += u64::from(record.sequence_end);
        self.delayed_count += u64::from(record.delayed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use galatea_perf_types::record::RequestRecord;

    fn record(start: Nanos, responses: &[Nanos]) -> RequestRecord {
        RequestRecord { start, responses: responses.into(), ..RequestRecord::default() }
    }

    #[test]
    fn later_requests_count_in_the_next_window() {
        let mut pending = PendingRecords::default();
        pending.add(vec![record(5, &[30]), record(1, &[20]), record(2, &[10])]);
        assert_eq!(pending.take_window(10, 20).latencies, [8, 19]);
        assert_eq!(pending.take_window(20, 40).latencies, [25]);
        assert!(pending.0.is_empty());
    }

    #[test]
    fn an_empty_last_response_does_not_set_the_end() {
        let mut pending = PendingRecords::default();
        let mut streamed = record(0, &[4, 6, 9]);
        streamed.last_response_is_empty = true;
        let mut empty = record(0, &[5]);
        empty.last_response_is_empty = true;
        pending.add(vec![streamed, empty]);
        let window = pending.take_window(0, 10);
        assert_eq!((window.latencies, window.response_count), (vec![6], 2));
        assert_eq!(window.requests.len(), 2, "the export has both");
    }

    #[test]
    fn sequence_ends_delays_and_schedules_are_counted() {
        let mut pending = PendingRecords::default();
        let mut late = record(10, &[15]);
        (late.delayed, late.sequence_end, late.intended_start) = (true, true, Some(3));
        pending.add(vec![late, record(11, &[15])]);
        let window = pending.take_window(0, 20);
        assert_eq!((window.delayed_count, window.sequence_count), (1, 1));
        assert_eq!(window.scheduled_latencies, [12]);
    }
}
