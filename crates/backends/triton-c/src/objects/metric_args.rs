//! More arguments of a metric: the buckets of a histogram (`TRITONSERVER_MetricArgs`).

use std::sync::{Arc, Mutex};

use galatea_types::{LockExt as _, Result};

use crate::{Kind, Table, abi, call};

/// Most buckets of a histogram.
const MOST_BUCKETS: usize = 1000;

const KIND: Kind = Kind { number: 6, name: "TRITONSERVER_MetricArgs" };
static ARGUMENTS: Table<abi::MetricArgs, Mutex<Option<Vec<f64>>>> = Table::new(KIND, 1 << 12);

/// Returns the buckets, if any were set.
pub(super) fn buckets(handle: *const abi::MetricArgs) -> Result<Option<Vec<f64>>> {
    if handle.is_null() {
        return Ok(None);
    }
    Ok(ARGUMENTS.get(handle)?.lock_unpoisoned().clone())
}

pub(super) unsafe extern "C" fn args_new(args: *mut *mut abi::MetricArgs) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricArgsNew", || {
        let handle = ARGUMENTS.insert(Arc::default())?;
        // SAFETY: the caller gives a place for the result.
        unsafe { call::put(args, handle, "the arguments") }
    })
}

pub(super) unsafe extern "C" fn set_histogram(
    args: *mut abi::MetricArgs,
    buckets: *const f64,
    count: u64,
) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricArgsSetHistogram", || {
        // SAFETY: the caller gives that many bounds.
        let buckets = unsafe { call::list(buckets, count, MOST_BUCKETS, "buckets") }?;
        *ARGUMENTS.get(args)?.lock_unpoisoned() = Some(buckets.to_vec());
        Ok(())
    })
}

pub(super) unsafe extern "C" fn args_delete(args: *mut abi::MetricArgs) -> *mut abi::Error {
    call::answer("TRITONSERVER_MetricArgsDelete", || ARGUMENTS.delete(args))
}
