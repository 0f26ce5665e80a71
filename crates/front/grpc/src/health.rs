//! The standard health service.

use std::{
    sync::{Arc, Mutex},
    task::{Context, Poll, ready},
    time::Duration,
};

use galatea_frontend::RequestGuard;
use galatea_proto::health::{
    HealthCheckRequest, HealthCheckResponse, health_check_response::ServingStatus,
};
use galatea_types::{Code, LockExt};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tonic::Status;

use crate::state::{SHUTTING_DOWN, ServerState};

/// The interval at which watches check for changes.
const WATCH_INTERVAL: Duration = Duration::from_millis(250);

/// The longest name in bytes that is looked up, because each watch keeps its own.
const LONGEST_NAME: usize = 4096;
/// The names that mean the server itself.
const SERVICES: [&str; 6] = [
    "",
    "inference.GRPCInferenceService",
    "grpc.health.v1.Health",
    "xds.service.orca.v3.OpenRcaService",
    "grpc.reflection.v1.ServerReflection",
    "grpc.reflection.v1alpha.ServerReflection",
];

/// The health service: liveness and readiness of the server or a model, by the name that a client asks for.
#[derive(Clone)]
pub(crate) struct HealthService {
    state: Arc<ServerState>,
    last: Arc<LastReadiness>,
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

/// Returns `None` if the name is neither a service nor a model.
fn status_of_model(state: &ServerState, name: &str) -> Option<ServingStatus> {
    let is_open = !state.in_flight.is_closed() && state.engine.is_live();
    match state.engine.model(name, None) {
        Ok(model) if is_open && model.is_ready() => Some(ServingStatus::Serving),
        Err(error) if error.code() == Code::NotFound => None,
        _ => Some(ServingStatus::NotServing),
    }
}

fn checked_name(request: HealthCheckRequest) -> Result<String, Status> {
    let name = request.service;
    match name.len() <= LONGEST_NAME {
        true => Ok(name),
        false => Err(Status::invalid_argument(format!(
            "the name of the service has {} bytes, {LONGEST_NAME} at most are allowed",
            name.len()
        ))),
    }
}

fn response(status: ServingStatus) -> HealthCheckResponse {
    HealthCheckResponse { status: status.into() }
}

impl HealthService {
    pub fn check(&self, request: HealthCheckRequest) -> Result<HealthCheckResponse, Status> {
        let name = checked_name(request)?;
        let found = match SERVICES.contains(&name.as_str()) {
            true => Some(status_now(&self.state)),
            false => status_of_model(&self.state, &name),
        };
        let unknown = || {
            let shown = name.escape_debug();
            Status::not_found(format!("'{shown}' is neither a service nor a model of this server"))
        };
        found.map(response).ok_or_else(unknown)
    }

    pub fn watch(&self, request: HealthCheckRequest) -> Result<HealthWatch, Status> {
        let name = checked_name(request)?;
        let guard = self.state.begin_watch()?;
        let mut timer = tokio::time::interval(WATCH_INTERVAL);
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(HealthWatch {
            state: self.state.clone(),
            last: self.last.clone(),
            model: (!SERVICES.contains(&name.as_str())).then_some(name),
            told: None,
            timer,
            _guard: guard,
        })
    }
}

/// The last readiness, shared by all watches, because each check asks every model.
#[derive(Default)]
struct LastReadiness(Mutex<Option<(Instant, ServingStatus)>>);

impl LastReadiness {
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

/// A watch: the status when the call begins, then each change. It ends with UNAVAILABLE when the server exits.
pub(crate) struct HealthWatch {
    state: Arc<ServerState>,
    last: Arc<LastReadiness>,
    /// `None`: the server itself is watched.
    model: Option<String>,
    told: Option<ServingStatus>,
    timer: Interval,
    _guard: RequestGuard,
}

impl HealthWatch {
    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<HealthCheckResponse, Status>> {
        loop {
            ready!(self.timer.poll_tick(cx));
            let status = match &self.model {
                None => self.last.status(&self.state),
                // The model may be loaded later, so the call continues.
                Some(name) => {
                    status_of_model(&self.state, name).unwrap_or(ServingStatus::ServiceUnknown)
                }
            };
            if self.told != Some(status) {
                self.told = Some(status);
                return Poll::Ready(Ok(response(status)));
            }
            if self.state.in_flight.is_closed() && status != ServingStatus::Serving {
                return Poll::Ready(Err(Status::unavailable(SHUTTING_DOWN)));
            }
        }
    }
}
