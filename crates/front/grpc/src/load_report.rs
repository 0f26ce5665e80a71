//! Load reports (ORCA): a trailer of inference calls, and a stream of its own for balancers.

use std::{
    sync::Arc,
    task::{Context, Poll, ready},
    time::Duration,
};

use galatea_engine::Engine;
use galatea_frontend::{Caller, RequestGuard};
use galatea_proto::{load_report::OrcaLoadReport, load_report_service::OrcaLoadReportRequest};
use galatea_protocol::{LoadReport, ReportForm, ReportPlace};
use http::{HeaderMap, HeaderName, HeaderValue};
use tokio::time::{Instant, Interval, MissedTickBehavior};
use tonic::{Status, metadata::MetadataMap};

use crate::state::{SHUTTING_DOWN, ServerState};

/// The metadata with which a client asks, the same as the header over HTTP. The trailer has one form only.
const ASKED: HeaderName = HeaderName::from_static("endpoint-load-metrics-format");
const TRAILER: HeaderName = HeaderName::from_static("endpoint-load-metrics-bin");

/// The time between two reports of a stream, where the client names none.
const USUAL_INTERVAL: Duration = Duration::from_secs(1);
/// Shorter intervals become this one.
const SHORTEST_INTERVAL: Duration = Duration::from_millis(100);
/// Longer intervals become this one.
const LONGEST_INTERVAL: Duration = Duration::from_secs(3600);
/// The longest time between two looks for the exit of the server.
const LOOK_INTERVAL: Duration = Duration::from_millis(250);

/// Returns `true` if the trailers of an inference call with this head have a report.
pub(crate) fn is_wanted(headers: &HeaderMap, state: &ServerState) -> bool {
    let is_asked = |value: &HeaderValue| ReportForm::named(value.as_bytes()).is_some();
    state.options.always_reports_load || headers.get(ASKED).is_some_and(is_asked)
}

/// Adds the report of now to trailers, for this caller.
pub(crate) fn add_to(trailers: &mut HeaderMap, engine: &Engine, caller: &Caller) {
    let load = engine.server_load();
    let value = match caller.may_read_all() {
        true => HeaderValue::from_str(LoadReport::shared_text(&load, ReportForm::Binary)),
        false => {
            let may_know = |model: &str| caller.may_read(model);
            let report = LoadReport::new(&load, ReportPlace::Answer, may_know);
            HeaderValue::try_from(report.to_base64())
        }
    };
    // Base64 is always the value of a header.
    if let Ok(value) = value {
        trailers.insert(TRAILER, value);
    }
}

/// Returns the status with a report in its trailers.
pub(crate) fn added_to(status: &Status, engine: &Engine, caller: &Caller) -> Status {
    let mut metadata = status.metadata().clone().into_headers();
    add_to(&mut metadata, engine, caller);
    let metadata = MetadataMap::from_headers(metadata);
    let details = status.details().to_vec().into();
    Status::with_details_and_metadata(status.code(), status.message(), details, metadata)
}

/// The reporter of a call with many messages, whose trailers come long after its head.
pub(crate) struct Reporter {
    engine: Arc<Engine>,
    caller: Caller,
}

impl Reporter {
    /// Returns `None` if the trailers of the call have no report.
    pub fn of_call(has_report: bool, engine: &Arc<Engine>, caller: &Caller) -> Option<Self> {
        has_report.then(|| Self { engine: engine.clone(), caller: caller.clone() })
    }

    pub fn add_to(&self, trailers: &mut HeaderMap) {
        add_to(trailers, &self.engine, &self.caller);
    }
}

/// A stream of reports: the first at once, then one after each interval. It ends with UNAVAILABLE when the server exits.
pub(crate) struct LoadStream {
    state: Arc<ServerState>,
    interval: Duration,
    next: Instant,
    timer: Interval,
    _guard: RequestGuard,
}

impl LoadStream {
    pub fn begin(state: Arc<ServerState>, request: &OrcaLoadReportRequest) -> Result<Self, Status> {
        let interval = interval_of(request)?;
        let guard = state.begin_watch()?;
        let next = Instant::now();
        let mut timer = tokio::time::interval(interval.min(LOOK_INTERVAL));
        timer.set_missed_tick_behavior(MissedTickBehavior::Delay);
        Ok(Self { state, interval, next, timer, _guard: guard })
    }

    pub fn poll_next(&mut self, cx: &mut Context<'_>) -> Poll<Result<OrcaLoadReport, Status>> {
        loop {
            ready!(self.timer.poll_tick(cx));
            if self.state.in_flight.is_closed() {
                return Poll::Ready(Err(Status::unavailable(SHUTTING_DOWN)));
            }
            let now = Instant::now();
            if now >= self.next {
                // A client that did not read for a while gets one report, not all that it has missed.
                self.next = (self.next + self.interval).max(now);
                let load = self.state.engine.server_load();
                let report = LoadReport::new(&load, ReportPlace::Message, |_| true);
                return Poll::Ready(Ok(report.into_message()));
            }
        }
    }
}

/// Returns the time between two reports, within the bounds.
fn interval_of(request: &OrcaLoadReportRequest) -> Result<Duration, Status> {
    let Some(wanted) = request.report_interval else { return Ok(USUAL_INTERVAL) };
    let wanted = Duration::try_from(wanted).map_err(|_| {
        Status::invalid_argument(
            "report_interval is negative or no duration: leave it out for one second, or send 100 milliseconds or more",
        )
    })?;
    Ok(match wanted {
        Duration::ZERO => USUAL_INTERVAL,
        wanted => wanted.clamp(SHORTEST_INTERVAL, LONGEST_INTERVAL),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_reports_has_bounds() {
        let of = |seconds: i64, nanos: i32| {
            let report_interval = Some(prost_types::Duration { seconds, nanos });
            interval_of(&OrcaLoadReportRequest { report_interval, ..Default::default() })
        };
        let usual = interval_of(&OrcaLoadReportRequest::default());
        assert_eq!(usual.expect("one second"), USUAL_INTERVAL);
        assert_eq!(of(0, 0).expect("one second"), USUAL_INTERVAL);
        assert_eq!(of(0, 1).expect("the shortest"), SHORTEST_INTERVAL);
        assert_eq!(of(2, 500_000_000).expect("as asked"), Duration::from_millis(2500));
        assert_eq!(of(i64::MAX, 0).expect("the longest"), LONGEST_INTERVAL);
        let refused = of(-1, 0).expect_err("no time");
        assert!(refused.message().contains("report_interval"), "{refused:?}");
    }

    #[test]
    fn a_status_keeps_what_it_had() {
        let engine = galatea_engine::Engine::new(
            galatea_engine::EngineOptions::default(),
            galatea_engine::BackendRegistry::default(),
        );
        let status = added_to(&Status::not_found("no such model"), &engine, &Caller::default());
        assert_eq!((status.code(), status.message()), (tonic::Code::NotFound, "no such model"));
        assert!(status.metadata().get_bin("endpoint-load-metrics-bin").is_some());
    }
}
