//! Times that libraries report: of requests, of executions, of single responses.

use std::{
    sync::{Arc, LazyLock, Mutex},
    time::{Duration, Instant},
};

use galatea_telemetry::{ResponseOutcome, ResponseRecord};
use galatea_triton_c::{Kind, Table, abi, call, objects::errors};
use galatea_types::{Code, Error, LockExt as _, Result};

use crate::{
    instance_object::INSTANCES,
    outlet::{ComputeTimes, Outlet},
    request::REQUESTS,
    response::FACTORIES,
};

const KIND: Kind = Kind { number: 31, name: "TRITONBACKEND_ModelInstanceResponseStatistics" };
static STATISTICS: Table<abi::ResponseStatistics, Mutex<ResponseTimes>> = Table::new(KIND, 1 << 18);

/// Instants of the interface: nanoseconds of the clock that only goes forward.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nanoseconds(pub u64);

/// A moment by both clocks, from which other moments are counted.
#[derive(Clone, Copy)]
struct Anchor {
    instant: Instant,
    nanoseconds: u64,
}

/// The anchor of all reports: the one of some readings between which least time passed, so that a thread that lost its processor
/// in one of them shifts no times.
static ANCHOR: LazyLock<Anchor> = LazyLock::new(|| {
    let readings = (0..16).map(|_| (Anchor::read(), Instant::now()));
    let nearest = readings.min_by_key(|(anchor, after)| *after - anchor.instant);
    nearest.map_or_else(Anchor::read, |(anchor, _)| anchor)
});

impl Anchor {
    /// Reads the clocks. The instant is the earlier one, so that no converted time lies in the future.
    fn read() -> Self {
        let instant = Instant::now();
        let nanoseconds = galatea_system::monotonic_nanoseconds();
        Self { instant, nanoseconds }
    }

    /// Returns the instant; `None` if it is further away than the clock knows.
    fn convert(self, time: Nanoseconds) -> Option<Instant> {
        match time.0.checked_sub(self.nanoseconds) {
            Some(later) => self.instant.checked_add(Duration::from_nanos(later)),
            None => {
                self.instant.checked_sub(Duration::from_nanos(self.nanoseconds.abs_diff(time.0)))
            }
        }
    }
}

/// Returns the reported times, if they are possible.
fn times(start: u64, compute_start: u64, compute_end: u64, end: u64) -> Option<ComputeTimes> {
    let is_in_order = start <= compute_start && compute_start <= compute_end && compute_end <= end;
    if start == 0 || !is_in_order {
        return None;
    }
    let anchor = *ANCHOR;
    let output_start = anchor.convert(Nanoseconds(compute_end))?;
    if output_start > Instant::now() {
        return None;
    }
    Some(ComputeTimes { input_done: anchor.convert(Nanoseconds(compute_start))?, output_start })
}

pub(crate) unsafe extern "C" fn report_statistics(
    instance: *mut abi::ModelInstance,
    request: *mut abi::Request,
    _is_success: bool,
    start: u64,
    compute_start: u64,
    compute_end: u64,
    end: u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceReportStatistics", || {
        INSTANCES.get(instance)?;
        let request = REQUESTS.get(request)?;
        if let Some(times) = times(start, compute_start, compute_end, end) {
            request.outlet.set_times(times);
        }
        Ok(())
    })
}

/// The number of items in the report is not used: the server knows what it has given.
pub(crate) unsafe extern "C" fn report_batch_statistics(
    instance: *mut abi::ModelInstance,
    _batch_size: u64,
    start: u64,
    compute_start: u64,
    compute_end: u64,
    end: u64,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceReportBatchStatistics", || {
        let instance = INSTANCES.get(instance)?;
        *instance.times.lock_unpoisoned() = times(start, compute_start, compute_end, end);
        Ok(())
    })
}

/// The report of one response, as the library fills it in.
#[derive(Default)]
struct ResponseTimes {
    outlet: Option<Arc<Outlet>>,
    start: u64,
    output_start: u64,
    end: u64,
    error: Option<Code>,
}

pub(crate) unsafe extern "C" fn response_statistics_new(
    statistics: *mut *mut abi::ResponseStatistics,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceResponseStatisticsNew", || {
        let handle = STATISTICS.insert(Arc::default())?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(statistics, handle, "the statistics") }
    })
}

pub(crate) unsafe extern "C" fn response_statistics_delete(
    statistics: *mut abi::ResponseStatistics,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceResponseStatisticsDelete", || {
        STATISTICS.remove(statistics).map(drop)
    })
}

fn change(
    function: &'static str,
    statistics: *mut abi::ResponseStatistics,
    change: impl FnOnce(&mut ResponseTimes) -> Result<()>,
) -> *mut abi::Error {
    call::answer(function, || change(&mut STATISTICS.get(statistics)?.lock_unpoisoned()))
}

pub(crate) unsafe extern "C" fn set_instance(
    statistics: *mut abi::ResponseStatistics,
    instance: *mut abi::ModelInstance,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance";
    change(function, statistics, |_| INSTANCES.get(instance).map(drop))
}

pub(crate) unsafe extern "C" fn set_factory(
    statistics: *mut abi::ResponseStatistics,
    factory: *mut abi::ResponseFactory,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory";
    change(function, statistics, |times| {
        times.outlet = Some(FACTORIES.get(factory)?.0.clone());
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_start(
    statistics: *mut abi::ResponseStatistics,
    start: u64,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart";
    change(function, statistics, |times| {
        times.start = start;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_output_start(
    statistics: *mut abi::ResponseStatistics,
    start: u64,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart";
    change(function, statistics, |times| {
        times.output_start = start;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_end(
    statistics: *mut abi::ResponseStatistics,
    end: u64,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd";
    change(function, statistics, |times| {
        times.end = end;
        Ok(())
    })
}

pub(crate) unsafe extern "C" fn set_error(
    statistics: *mut abi::ResponseStatistics,
    error: *mut abi::Error,
) -> *mut abi::Error {
    let function = "TRITONBACKEND_ModelInstanceResponseStatisticsSetError";
    change(function, statistics, |times| {
        times.error = errors::read(error).map(|error| error.code());
        Ok(())
    })
}

impl ResponseTimes {
    fn record(&self) -> ResponseRecord {
        let outcome = match (self.error, self.output_start) {
            (Some(Code::Cancelled), _) => ResponseOutcome::Cancelled,
            (Some(_), _) => ResponseOutcome::Failure,
            (None, 0) => ResponseOutcome::Empty,
            (None, _) => ResponseOutcome::Success,
        };
        let computed = if self.output_start == 0 { self.end } else { self.output_start };
        let between = |from: u64, to: u64| Duration::from_nanos(to.saturating_sub(from));
        ResponseRecord {
            outcome,
            compute_infer: between(self.start, computed),
            compute_output: between(computed, self.end),
        }
    }
}

pub(crate) unsafe extern "C" fn report_response_statistics(
    statistics: *mut abi::ResponseStatistics,
) -> *mut abi::Error {
    call::answer("TRITONBACKEND_ModelInstanceReportResponseStatistics", || {
        let (outlet, record) = {
            let held = STATISTICS.get(statistics)?;
            let times = held.lock_unpoisoned();
            let outlet = times.outlet.clone();
            let missing = || Error::invalid_arg("response statistics need a response factory");
            (outlet.ok_or_else(missing)?, times.record())
        };
        outlet.report(record);
        Ok(())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn impossible_times_are_not_used() {
        let now = Anchor::read();
        let at = |ago: u64| now.nanoseconds - ago;
        let good = times(at(4000), at(3000), at(2000), at(1000)).expect("in order");
        assert_eq!(good.output_start - good.input_done, Duration::from_nanos(1000));
        assert!(good.output_start < Instant::now());
        assert_eq!(times(0, 0, 0, 0), None);
        assert_eq!(times(at(4000), at(2000), at(3000), at(1000)), None);
        let tomorrow = now.nanoseconds + 86_400_000_000_000;
        assert_eq!(times(at(1000), tomorrow, tomorrow, tomorrow), None);
    }

    #[test]
    fn a_response_without_outputs_is_empty() {
        let times = ResponseTimes { start: 10, end: 30, ..ResponseTimes::default() };
        assert_eq!(times.record().outcome, ResponseOutcome::Empty);
        assert_eq!(times.record().compute_infer, Duration::from_nanos(20));
        let sent = ResponseTimes { output_start: 25, ..times };
        assert_eq!(sent.record().outcome, ResponseOutcome::Success);
        assert_eq!(sent.record().compute_output, Duration::from_nanos(5));
        let failed = ResponseTimes { error: Some(Code::Internal), ..sent };
        assert_eq!(failed.record().outcome, ResponseOutcome::Failure);
    }
}
