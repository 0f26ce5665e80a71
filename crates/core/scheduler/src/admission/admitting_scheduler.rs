//! The scheduler that asks the admission first.

use std::{sync::Arc, time::Instant};

use galatea_telemetry::{FailureReason, RefusalReason};
use galatea_types::{PreparedRequest, Refused, RequestContext, Responder, Result};

use super::Admission;
use crate::{Scheduler, accounting::RequestAccounting};

/// Passes the requests that are accepted to another scheduler.
pub struct AdmittingScheduler {
    admission: Arc<Admission>,
    accounting: RequestAccounting,
    inner: Arc<dyn Scheduler>,
}

impl AdmittingScheduler {
    /// Puts `admission` in front of `inner`.
    pub fn new(admission: Arc<Admission>, inner: Arc<dyn Scheduler>) -> Self {
        let accounting = RequestAccounting::beside_executor(admission.statistics.clone());
        Self { admission, accounting, inner }
    }
}

impl Scheduler for AdmittingScheduler {
    fn submit(
        &self,
        request: PreparedRequest,
        mut context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        let Err(refusal) = self.admission.admit(&request, &mut context) else {
            return self.inner.submit(request, context, responder);
        };
        let error = self.admission.error(&request.message_prefix(), refusal);
        self.accounting.statistics.record_refusal(RefusalReason::Overload);
        self.accounting.failed(&request.id, &mut context, FailureReason::Rejected, &error);
        Err(Refused::new(error, responder))
    }

    fn in_flight(&self) -> usize {
        self.inner.in_flight()
    }

    fn release_abandoned(&self) -> usize {
        self.inner.release_abandoned()
    }

    fn wait_until_idle(&self, deadline: Instant) -> bool {
        self.inner.wait_until_idle(deadline)
    }

    fn expect_no_more(&self) {
        self.inner.expect_no_more();
    }

    fn close(&self) {
        self.inner.close();
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.inner.drain(deadline)
    }
}
