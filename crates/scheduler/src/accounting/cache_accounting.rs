//! Counting what the response cache answered, and what it could not answer.

use std::time::Duration;

use galatea_telemetry::CacheHitRecord;
use galatea_types::RequestContext;

use super::request_accounting::RequestAccounting;

impl RequestAccounting {
    /// A request is about to be answered with what an equal one was answered with. `waited`: for the execution of that one.
    pub fn cache_hit(&self, context: &mut RequestContext, waited: Duration, look_up: Duration) {
        let end = self.clock().now();
        context.timeline.end = Some(end);
        let total = context.timeline.total();
        self.statistics.record_cache_hit(&CacheHitRecord { total, queue: waited, look_up });
        context.finish(end);
    }

    /// A request that the cache could not answer is about to be answered. `insertion`: of its answer; `None` where there was
    /// none.
    pub fn cache_miss(&self, look_up: Duration, insertion: Option<Duration>) {
        self.statistics.record_cache_miss(look_up, insertion);
    }
}
