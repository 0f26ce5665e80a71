//! A cached model, and what stands in for its scheduler and for a cache elsewhere.

use std::sync::Mutex as StdMutex;

use galatea_backend::testing::{Answer, adjusted, model_config, request};
use galatea_response_cache::{Insertion, LocalCache, LongWork, OnLookUp};
use galatea_telemetry::{StatisticsSnapshot, metrics::CacheMetrics};
use galatea_types::{DataType, Error, InferResponse, LockExt as _, ParameterValue, Tensor};

use super::super::*;

pub type Pending = (PreparedRequest, RequestContext, Responder);

/// Keeps what it is given until it is told to answer.
#[derive(Default)]
pub struct Executor {
    pub pending: StdMutex<Vec<Pending>>,
    pub is_full: StdMutex<bool>,
    pub is_closed: StdMutex<bool>,
}

impl Scheduler for Executor {
    fn submit(
        &self,
        request: PreparedRequest,
        context: RequestContext,
        responder: Responder,
    ) -> Result<(), Refused> {
        if *self.is_full.lock_unpoisoned() || *self.is_closed.lock_unpoisoned() {
            return Err(Refused::new(Error::unavailable("full"), responder));
        }
        self.pending.lock_unpoisoned().push((request, context, responder));
        Ok(())
    }

    fn in_flight(&self) -> usize {
        self.pending.lock_unpoisoned().len()
    }

    fn release_abandoned(&self) -> usize {
        0
    }

    fn wait_until_idle(&self, _: Instant) -> bool {
        self.in_flight() == 0
    }

    fn expect_no_more(&self) {}

    fn close(&self) {
        *self.is_closed.lock_unpoisoned() = true;
    }

    fn drain(&self, deadline: Instant) -> bool {
        self.close();
        self.wait_until_idle(deadline)
    }
}

/// Answers when the test says so, as a cache elsewhere does.
#[derive(Default)]
pub struct Elsewhere {
    pub asked: StdMutex<Vec<(CacheKey, OnLookUp)>>,
    pub stored: StdMutex<Vec<(CacheKey, Entry)>>,
    long_work: LongWork,
}

impl Elsewhere {
    pub fn answer(&self, entry: Option<Entry>) {
        let (_, then) = self.asked.lock_unpoisoned().remove(0);
        then(entry);
    }
}

impl std::fmt::Debug for Elsewhere {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Elsewhere")
    }
}

impl ResponseCache for Elsewhere {
    fn look_up(&self, _: &CacheKey) -> LookUp {
        LookUp::Elsewhere
    }

    fn fetch(&self, key: CacheKey, then: OnLookUp) {
        self.asked.lock_unpoisoned().push((key, then));
    }

    fn insert(&self, key: CacheKey, entry: &Entry) -> Insertion {
        self.stored.lock_unpoisoned().push((key, entry.clone()));
        Insertion::Done
    }

    fn largest_entry(&self) -> usize {
        usize::MAX
    }

    fn long_work(&self) -> &LongWork {
        &self.long_work
    }

    fn is_shared(&self) -> bool {
        true
    }

    fn metrics(&self) -> Option<CacheMetrics> {
        None
    }
}

/// A cached model, and what executes its requests.
pub struct Fixture {
    pub cached: Arc<CachedScheduler>,
    pub executor: Arc<Executor>,
    pub statistics: Arc<ModelStatistics>,
}

impl Fixture {
    pub fn new(cache: Arc<dyn ResponseCache>, joins_equal: bool, more: &str) -> Self {
        let text = format!(
            "name: \"m\" backend: \"x\" max_batch_size: 4 response_cache {{ enable: true }} \
             input {{ name: \"X\" data_type: TYPE_UINT8 dims: -1 }} \
             output {{ name: \"Y\" data_type: TYPE_UINT8 dims: -1 }} {more}"
        );
        let (executor, statistics) =
            (Arc::<Executor>::default(), Arc::<ModelStatistics>::default());
        let cached = Arc::new(CachedScheduler::new(CachedSpec {
            config: Arc::new(model_config(&text)),
            version: 2,
            scope: Scope::of([&b"m"[..]]),
            cache,
            statistics: statistics.clone(),
            joins_equal,
            inner: executor.clone(),
        }));
        Self { cached, executor, statistics }
    }

    pub fn local(capacity: usize) -> Self {
        Self::new(Arc::new(LocalCache::new(capacity)), true, "")
    }

    pub fn submit(&self, request: PreparedRequest) -> Answer {
        self.submit_with(request, RequestContext::new()).expect("accepted")
    }

    pub fn submit_with(&self, request: PreparedRequest, context: RequestContext) -> Result<Answer> {
        let (responder, answer) = Responder::unary();
        match self.cached.submit(request, context, responder) {
            Ok(()) => Ok(answer),
            Err(refused) => Err(refused.into_error()),
        }
    }

    /// Answers the oldest request that is executed.
    pub fn execute(&self, result: Result<u8>) {
        let (request, _, responder) = self.executor.pending.lock_unpoisoned().remove(0);
        responder.finish(result.map(|value| InferResponse {
            parameters: vec![("p".to_owned(), ParameterValue::Int(value.into()))],
            ..entry(value).response("m".into(), 2, request.into_request().id)
        }));
    }

    pub fn executing(&self) -> usize {
        self.executor.in_flight()
    }

    pub fn counted(&self) -> StatisticsSnapshot {
        self.statistics.snapshot()
    }
}

pub fn entry(value: u8) -> Entry {
    let outputs = vec![Tensor::new("Y", DataType::Uint8, [1, 2], vec![value; 2])];
    let response = InferResponse {
        model_name: "m".into(),
        model_version: 2,
        id: String::new(),
        parameters: Vec::new(),
        outputs,
    };
    Entry::of(&response).expect("in host memory")
}

pub fn asking(value: u8) -> PreparedRequest {
    request("m", 1, vec![Tensor::new("X", DataType::Uint8, [1, 2], vec![value; 2])])
}

pub fn with_id(value: u8, id: &str) -> PreparedRequest {
    adjusted(asking(value), |request| request.id = id.to_owned())
}

/// The first byte of the answer; the error.
pub fn got(answer: &mut Answer) -> Result<u8, String> {
    match answer.try_recv().expect("answered") {
        Ok(response) => Ok(response.outputs[0].host().expect("in host memory")[0]),
        Err(error) => Err(error.message().to_owned()),
    }
}

pub fn is_open(answer: &mut Answer) -> bool {
    answer.try_recv().is_err()
}

/// Runs a test that has one thread: locks are those of the model checker.
pub fn once(test: impl Fn() + Send + Sync + 'static) {
    galatea_test_support::interleavings::check_random(test, 1);
}
