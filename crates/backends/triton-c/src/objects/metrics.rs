//! Metrics that libraries define: `TRITONSERVER_MetricFamily` and `TRITONSERVER_Metric`.

use std::{
    ffi::c_char,
    sync::{
        Arc, RwLock,
        atomic::{AtomicUsize, Ordering},
    },
};

use galatea_telemetry::{
    CustomFamily, CustomMetric, CustomMetricError, CustomMetricKind, CustomMetrics, Labels,
};
use galatea_types::{Error, Result, RwLockExt as _};

use super::{metric_args, parameters};
use crate::{
    Kind, Table,
    abi::{self, metric_kind as kind},
    call, text,
};

struct HeldFamily {
    family: Arc<CustomFamily>,
    /// The number of its metrics that libraries hold.
    metrics: Arc<AtomicUsize>,
}

struct HeldMetric {
    metric: CustomMetric,
    kind: CustomMetricKind,
    of_family: Arc<AtomicUsize>,
}

const FAMILY: Kind = Kind { number: 7, name: "TRITONSERVER_MetricFamily" };
const METRIC: Kind = Kind { number: 8, name: "TRITONSERVER_Metric" };
/// Each is a line of every reading of the server's metrics.
static FAMILIES: Table<abi::MetricFamily, HeldFamily> = Table::new(FAMILY, 10_000);
static METRICS: Table<abi::Metric, HeldMetric> = Table::new(METRIC, 100_000);
/// Most bytes of the texts of a family or metric.
const MOST_TEXT: usize = 16 << 10;

/// The metrics of the server in this process. The interface does not say to which server a family belongs.
static REGISTRY: RwLock<Option<Arc<CustomMetrics>>> = RwLock::new(None);

/// Makes families that libraries define from now on part of these metrics.
pub fn export_to(metrics: &Arc<CustomMetrics>) {
    *REGISTRY.write_unpoisoned() = Some(metrics.clone());
}

fn registry() -> Arc<CustomMetrics> {
    REGISTRY.read_unpoisoned().clone().unwrap_or_default()
}

fn check_text(length: usize) -> Result<()> {
    match length > MOST_TEXT {
        true => Err(Error::invalid_arg(format!(
            "the texts of a metric may not be longer than {MOST_TEXT} bytes"
        ))),
        false => Ok(()),
    }
}

fn number_of(of: CustomMetricKind) -> u32 {
    match of {
        CustomMetricKind::Counter => kind::COUNTER,
        CustomMetricKind::Gauge => kind::GAUGE,
        CustomMetricKind::Histogram => kind::HISTOGRAM,
    }
}

pub(super) unsafe extern "C" fn family_new(
    family: *mut *mut abi::MetricFamily,
    number: u32,
    name: *const c_char,
    description: *const c_char,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricFamilyNew", || {
        let kind = match number {
            kind::COUNTER => CustomMetricKind::Counter,
            kind::GAUGE => CustomMetricKind::Gauge,
            kind::HISTOGRAM => CustomMetricKind::Histogram,
            _ => return Err(Error::invalid_arg("Unknown metric kind")),
        };
        // SAFETY: the caller gives terminated texts.
        let (name, description) =
            unsafe { (text::read(name, "the name")?, text::read(description, "the description")?) };
        check_text(name.len() + description.len())?;
        let made = registry().family(&name, &description, kind).map_err(Error::from)?;
        let handle =
            FAMILIES.insert(Arc::new(HeldFamily { family: made, metrics: Arc::default() }))?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(family, handle, "the family") }
    })
}

/// Refuses to delete a family whose metrics are not deleted.
pub(super) unsafe extern "C" fn family_delete(family: *mut abi::MetricFamily) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricFamilyDelete", || {
        let open = FAMILIES.get(family)?.metrics.load(Ordering::Relaxed);
        if open > 0 {
            return Err(Error::internal(format!(
                "the family still has {open} metrics: they must be deleted before it"
            )));
        }
        FAMILIES.remove(family).map(drop)
    })
}

pub(super) unsafe extern "C" fn family_kind(
    family: *mut abi::MetricFamily,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_GetMetricFamilyKind", || {
        let kind = number_of(FAMILIES.get(family)?.family.kind);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, kind, "the kind") }
    })
}

/// # Safety
/// `labels` are `count` handles of parameters, and `metric` is a place for the result.
unsafe fn add(
    metric: *mut *mut abi::Metric,
    family: *const abi::MetricFamily,
    labels: *const *const abi::Parameter,
    count: u64,
    args: *const abi::MetricArgs,
) -> Result<()> {
    let family = FAMILIES.get(family)?;
    // SAFETY: the caller's word.
    let listed = unsafe { parameters::read(labels, count) }?;
    let pair = |label: &Arc<parameters::Parameter>| {
        Ok::<_, Error>((label.name.clone(), label.value.text()?.to_owned()))
    };
    let labels: Labels = listed.iter().map(pair).collect::<Result<_>>()?;
    check_text(labels.iter().map(|(name, value)| name.len() + value.len()).sum())?;
    let made = family.family.metric(labels, metric_args::buckets(args)?).map_err(Error::from)?;
    let of_family = family.metrics.clone();
    let kind = family.family.kind;
    let handle = METRICS.insert(Arc::new(HeldMetric { metric: made, kind, of_family }))?;
    family.metrics.fetch_add(1, Ordering::Relaxed);
    // SAFETY: the caller's word.
    unsafe { call::put(metric, handle, "the metric") }
}

pub(super) unsafe extern "C" fn metric_new(
    metric: *mut *mut abi::Metric,
    family: *mut abi::MetricFamily,
    labels: *const *const abi::Parameter,
    count: u64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricNew", || {
        // SAFETY: the caller gives that many labels, and a place for the result.
        unsafe { add(metric, family, labels, count, std::ptr::null()) }
    })
}

pub(super) unsafe extern "C" fn metric_new_with_args(
    metric: *mut *mut abi::Metric,
    family: *mut abi::MetricFamily,
    labels: *const *const abi::Parameter,
    count: u64,
    args: *const abi::MetricArgs,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricNewWithArgs", || {
        // SAFETY: the caller gives that many labels, and a place for the result.
        unsafe { add(metric, family, labels, count, args) }
    })
}

pub(super) unsafe extern "C" fn metric_delete(metric: *mut abi::Metric) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricDelete", || {
        METRICS.remove(metric)?.of_family.fetch_sub(1, Ordering::Relaxed);
        Ok(())
    })
}

pub(super) unsafe extern "C" fn metric_value(
    metric: *mut abi::Metric,
    value: *mut f64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricValue", || {
        let current = METRICS.get(metric)?.metric.value().map_err(Error::from)?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(value, current, "the value") }
    })
}

fn change(
    function: &'static str,
    metric: *mut abi::Metric,
    change: impl FnOnce(&CustomMetric) -> Result<(), CustomMetricError>,
) -> *mut abi::Error {
    call::answer(function, || change(&METRICS.get(metric)?.metric).map_err(Error::from))
}

pub(super) unsafe extern "C" fn metric_increment(
    metric: *mut abi::Metric,
    by: f64,
) -> *mut abi::Error {
    change("TRITONSERVER_MetricIncrement", metric, |metric| metric.increment(by))
}

pub(super) unsafe extern "C" fn metric_set(metric: *mut abi::Metric, to: f64) -> *mut abi::Error {
    change("TRITONSERVER_MetricSet", metric, |metric| metric.set(to))
}

pub(super) unsafe extern "C" fn metric_observe(
    metric: *mut abi::Metric,
    seen: f64,
) -> *mut abi::Error {
    change("TRITONSERVER_MetricObserve", metric, |metric| metric.observe(seen))
}

pub(super) unsafe extern "C" fn metric_kind(
    metric: *mut abi::Metric,
    number: *mut u32,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_GetMetricKind", || {
        let kind = number_of(METRICS.get(metric)?.kind);
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(number, kind, "the kind") }
    })
}

#[cfg(test)]
mod tests {
    use std::ptr;

    use super::*;
    use crate::objects::errors;

    fn ok(error: *mut abi::Error) {
        assert!(errors::take(error).is_none());
    }

    #[test]
    fn a_metric_of_a_library_is_one_of_the_server() {
        let metrics = Arc::<CustomMetrics>::default();
        export_to(&metrics);
        let (mut family, mut metric, mut value, mut number) =
            (ptr::null_mut(), ptr::null_mut(), 0.0, 9);
        // SAFETY: valid texts and places; handles are checked.
        unsafe {
            ok(family_new(&mut family, kind::COUNTER, c"seen_by_c".as_ptr(), c"how many".as_ptr()));
            let label = parameters::parameter_new(c"who".as_ptr(), 0, c"me".as_ptr().cast());
            ok(metric_new(&mut metric, family, [label.cast_const()].as_ptr(), 1));
            ok(metric_increment(metric, 2.5));
            ok(metric_value(metric, &mut value));
            ok(metric_kind(metric, &mut number));
            assert_eq!((value, number), (2.5, kind::COUNTER));
            let mut text = String::new();
            metrics.render_into(&mut text);
            assert!(text.contains("seen_by_c{who=\"me\"} 2.5"), "{text}");
            let refused = errors::take(metric_set(metric, 1.0)).expect("a counter");
            assert_eq!(refused.message(), "TRITONSERVER_METRIC_KIND_COUNTER does not support Set");
            let early = errors::take(family_delete(family)).expect("it has a metric");
            assert!(early.message().contains("1 metrics"), "{early}");
            ok(metric_delete(metric));
            assert!(errors::take(metric_increment(metric, 1.0)).is_some());
            ok(family_delete(family));
            assert!(metrics.names().is_empty());
        }
    }

    #[test]
    fn a_histogram_needs_buckets() {
        let (mut family, mut metric, mut args) =
            (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: valid texts and places; handles are checked.
        unsafe {
            ok(family_new(&mut family, kind::HISTOGRAM, c"took_in_c".as_ptr(), c"".as_ptr()));
            assert!(errors::take(metric_new(&mut metric, family, ptr::null(), 0)).is_some());
            ok(metric_args::args_new(&mut args));
            ok(metric_args::set_histogram(args, [1.0, 2.0].as_ptr(), 2));
            ok(metric_new_with_args(&mut metric, family, ptr::null(), 0, args));
            ok(metric_args::args_delete(args));
            ok(metric_observe(metric, 1.5));
            ok(metric_delete(metric));
            ok(family_delete(family));
            let unknown = family_new(&mut family, 9, c"x".as_ptr(), c"".as_ptr());
            assert_eq!(errors::take(unknown).expect("unknown").message(), "Unknown metric kind");
        }
    }
}
