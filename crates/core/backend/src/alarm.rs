//! The alarm by which an instance reports that it stopped working.

use std::{fmt, sync::Arc};

use galatea_types::Error;

type RaiseFn = dyn Fn(Error) + Send + Sync;

/// Reports that an instance stopped working, for example because its worker process died or its device is gone. Any thread
/// may raise it.
///
/// The scheduler then stops giving work to the instance, drops it on its own thread and starts it again. The alarm fails no
/// request itself. An alarm of an instance that was already replaced is ignored.
#[derive(Clone, Default)]
pub struct InstanceAlarm(Option<Arc<RaiseFn>>);

impl InstanceAlarm {
    /// Creates an alarm that calls `raise`, from any thread.
    pub fn new(raise: impl Fn(Error) + Send + Sync + 'static) -> Self {
        Self(Some(Arc::new(raise)))
    }

    /// Raises the alarm. Never blocks for long; may be called more than once.
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
