//! How an instance reports that it stopped working.

use std::{fmt, sync::Arc};

use galatea_types::Error;

type RaiseFn = dyn Fn(Error) + Send + Sync;

/// How an instance reports that it stopped working, from whatever thread notices: its worker process died,
/// its device is gone.
///
/// The scheduler then fails nothing by itself: it stops giving the instance work, drops it on its own
/// thread and starts it again. An alarm raised by an instance that was already replaced is ignored.
#[derive(Clone, Default)]
pub struct InstanceAlarm(Option<Arc<RaiseFn>>);

impl InstanceAlarm {
    /// An alarm that calls `raise`, from whatever thread.
    pub fn new(raise: impl Fn(Error) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(raise)))
    }

    /// Never blocks for long; may be called more than once.
    pub fn raise(&self, reason: Error) {
        if let Some(raise) = &self.0 {
            raise(reason);
        }
    }
}

impl fmt::Debug for InstanceAlarm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("InstanceAlarm")
    }
}
