//! The standard health service.

use std::{
    pin::Pin,
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::Duration,
};

use galatea_frontend::RequestGuard;
use galatea_proto::health::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
    health_server::Health,
};
use galatea_types::LockExt;
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tonic::{Request, Response, Status, codegen::tokio_stream::Stream};

use crate::state::{SHUTTING_DOWN, ServerState};

/// How often those who watch are told of changes.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// Whether the server is live and ready. The service name a client asks for makes no difference, as in Triton.
pub(crate) struct HealthService {
    state: Arc<ServerState>,
    last: Arc<LastLook>,
}

impl HealthService {
    pub fn new(state: Arc<ServerState>) -> Self {
        Self { state, last: Arc::default() }
    }
}

fn status_now(state: &ServerState) -> ServingStatus {
    let engine = &state.engine;
    let is_ready = !state.in_flight.is_closed() && engine.is_live() && engine.is_ready();
    if is_ready { ServingStatus::Serving } else { ServingStatus::NotServing }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

#[tonic::async_trait]
impl Health for HealthService {
    type WatchStream = Watch;

    async fn check(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<HealthCheckResponse>, Status> {
        Ok(Response::new(response(status_now(&self.state))))
    }

    async fn watch(
        &self,
        _: Request<HealthCheckRequest>,
    ) -> Result<Response<Self::WatchStream>, Status> {
        let guard = self.state.begin_watch()?;
        let mut timer = tokio::time::interval(WATCH_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Response::new(Watch {
            state: self.state.clone(),
            last: self.last.clone(),
            told: None,
            timer,
            _guard: guard,
        }))
    }
}

/// What was seen last, for all who watch: readiness is a question to every model.
#[derive(Default)]
struct LastLook(Mutex<Option<(Instant, ServingStatus)>>);

impl LastLook {
    fn status(&self, state: &ServerState) -> ServingStatus {
        let mut last = self.0.lock_unpoisoned();
        match *last {
            Some((at, status)) if at.elapsed() < WATCH_INTERVAL / 2 => status,
            _ => {
                let status = status_now(state);
                *last = Some((Instant::now(), status));
                status
            }
        }
    }
}

/// The status when the call begins, and each that is another; UNAVAILABLE when the server exits, after which there can
/// be no other.
pub(crate) struct Watch {
    state: Arc<ServerState>,
    last: Arc<LastLook>,
    told: Option<ServingStatus>,
    timer: Interval,
    _guard: RequestGuard,
}

impl Stream for Watch {
    type Item = Result<HealthCheckResponse, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        loop {
            ready!(self.timer.poll_tick(cx));
            let status = self.last.status(&self.state);
            if self.told != Some(status) {
                self.told = Some(status);
                return Poll::Ready(Some(Ok(response(status))));
            }
            if self.state.in_flight.is_closed() && status == ServingStatus::NotServing {
                return Poll::Ready(Some(Err(Status::unavailable(SHUTTING_DOWN))));
            }
        }
    }
}
