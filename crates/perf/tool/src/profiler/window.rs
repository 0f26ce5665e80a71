//! Measures one window of a point.

use std::time::Duration;

use galatea_perf_types::{
    failure::{Exit, Failure, Result},
    record::{CallTotals, Nanos},
    settings::Window,
    status::{ClientStats, GpuMetrics, LoadPoint, PerfStatus, ServerStats},
};

use super::{
    PROGRESS_INTERVAL, ProfiledLoad, Run,
    latency::{LatencyFigures, ONE_REQUEST_WARNING},
    records::{PendingRecords, WindowRecords},
    seconds,
    server::{Change, Snapshot},
};

/// Time between two checks of a window of a count, which ends at such a check.
const COUNT_STEP: Duration = Duration::from_secs(1);

/// The outcome of a window.
pub(super) enum WindowOutcome {
    Measured(Box<PerfStatus>),
    /// The window has no result, but the next one may.
    Failed(Failure),
    Interrupted,
}

/// A point whose windows are being measured.
pub(super) struct PointState {
    pub load: LoadPoint,
    /// Number of the window, from 1.
    pub window: u32,
    /// Start of the next window; `None` before the first.
    begin: Option<CounterSnapshot>,
    pending: PendingRecords,
    pub profile: ProfiledLoad,
}

/// All counters at one moment.
#[derive(Clone, Default)]
pub(super) struct CounterSnapshot {
    at: Nanos,
    server: Option<Snapshot>,
    calls: CallTotals,
    cpu: Duration,
}

impl PointState {
    pub(super) fn new(load: LoadPoint) -> Self {
        let profile = ProfiledLoad { load, requests: Vec::new(), window_boundaries: Vec::new() };
        Self { load, window: 1, begin: None, pending: PendingRecords::default(), profile }
    }
}

impl Run<'_> {
    /// Measures a window. Fails only if continuing would not help.
    pub(super) fn measure_window(&mut self, point: &mut PointState) -> Result<WindowOutcome> {
        let mut window = self.window(point).unwrap_or_else(WindowOutcome::Failed);
        // A GPU that cannot be queried now cannot be queried in the next window either.
        let metrics = self.take_metrics()?;
        if let WindowOutcome::Measured(status) = &mut window {
            status.metrics = metrics;
        }
        Ok(window)
    }

    fn window(&mut self, point: &mut PointState) -> Result<WindowOutcome> {
        self.parts.load.reset_idle_time();
        // If this window does not complete, the next one starts from scratch.
        let begin = match point.begin.take() {
            Some(begin) => begin,
            None => self.first_moment(point)?,
        };
        let is_complete = self.wait_for_window(point, begin.at)?;
        let at = self.parts.clock.now();
        if !is_complete {
            self.take_window(point, begin.at, at);
            return Ok(WindowOutcome::Interrupted);
        }
        self.complete_window(point, begin, at)
            .map(|status| WindowOutcome::Measured(Box::new(status)))
    }

    fn complete_window(
        &mut self,
        point: &mut PointState,
        begin: CounterSnapshot,
        at: Nanos,
    ) -> Result<PerfStatus> {
        let end = self.moment(at)?;
        point.begin = Some(end.clone());
        let records = self.take_window(point, begin.at, end.at);
        let mut status = self.client_status(point.load, &begin, &end, records)?;
        status.server = self.server_stats(&begin, &end)?;
        Ok(status)
    }

    fn take_window(&mut self, point: &mut PointState, begin: Nanos, end: Nanos) -> WindowRecords {
        point.pending.add(self.parts.load.take_records());
        let mut records = point.pending.take_window(begin, end);
        if self.parts.settings.profile_export_file.is_some() {
            point.profile.window_boundaries.push(end);
            point.profile.requests.append(&mut records.requests);
        }
        records
    }

    /// Opens the window before the first request is sent, so that all of a fixed number count.
    pub(super) fn open_window(&mut self) {
        drop(self.parts.load.take_records());
        // If the server gives no figures, it is asked again at the window's begin, which reports the error.
        self.opened = self.moment(self.parts.clock.now()).ok();
    }

    fn first_moment(&mut self, point: &mut PointState) -> Result<CounterSnapshot> {
        let opened = self.opened.take();
        let at = opened.as_ref().map_or_else(|| self.parts.clock.now(), |moment| moment.at);
        if let (1, Some(metrics)) = (point.window, &mut self.parts.metrics) {
            metrics.start();
        }
        point.profile.window_boundaries.push(at);
        opened.map_or_else(|| self.moment(at), Ok)
    }

    fn moment(&mut self, at: Nanos) -> Result<CounterSnapshot> {
        let all_models = !self.parts.model.composing.is_empty();
        let server = match &mut self.parts.statistics {
            None => None,
            Some(statistics) => Some(statistics.read(all_models)?.into_iter().collect()),
        };
        let calls = self.parts.load.call_totals();
        Ok(CounterSnapshot { at, server, calls, cpu: self.parts.clock.cpu_time() })
    }

    fn wait_for_window(&mut self, point: &PointState, begin: Nanos) -> Result<bool> {
        match self.window_length() {
            Window::Time(ms) => {
                // A fifth longer than requested, as in perf_analyzer.
                let length = Duration::from_millis((ms as f64 * 1.2) as u64);
                let total = length.as_secs_f64();
                Ok(self.sleep(
                    length,
                    |elapsed, collected| {
                        progress(
                            point,
                            &format!("{elapsed:.1} of {total:.1} s"),
                            elapsed,
                            collected,
                        )
                    },
                    begin,
                ))
            }
            Window::Count(count) => self.wait_for_requests(point, begin, count),
        }
    }

    /// Returns the window. A run of a fixed number of requests is one window of that count.
    fn window_length(&self) -> Window {
        let settings = self.parts.settings;
        settings.request_count.map_or(settings.window, Window::Count)
    }

    fn wait_for_requests(&mut self, point: &PointState, begin: Nanos, count: u64) -> Result<bool> {
        loop {
            self.parts.load.check_health()?;
            let show = |elapsed: f64, collected: u64| {
                progress(point, &format!("{collected} of {count} requests"), elapsed, collected)
            };
            if !self.sleep(COUNT_STEP, show, begin) {
                return Ok(false);
            }
            let is_last =
                self.parts.settings.request_count.is_some() && self.parts.load.is_finished();
            if self.parts.load.collected() >= count || is_last {
                return Ok(true);
            }
        }
    }

    /// Sleeps and shows progress: `show` makes its text from the seconds and the requests since `begin`.
    fn sleep(&mut self, length: Duration, show: impl Fn(f64, u64) -> String, begin: Nanos) -> bool {
        let clock = self.parts.clock;
        let until = clock.now() + length.as_nanos() as Nanos;
        loop {
            let now = clock.now();
            let left = Duration::from_nanos(until.saturating_sub(now));
            if left.is_zero() {
                return true;
            }
            let elapsed = seconds(now.saturating_sub(begin));
            self.parts.console.progress(&show(elapsed, self.parts.load.collected()));
            if !clock.sleep(left.min(PROGRESS_INTERVAL)) {
                self.interrupted = true;
                return false;
            }
        }
    }

    fn take_metrics(&mut self) -> Result<Vec<GpuMetrics>> {
        let Some(metrics) = &mut self.parts.metrics else { return Ok(Vec::new()) };
        let samples = metrics.take();
        for warning in metrics.take_warnings() {
            self.warn(warning);
        }
        samples
    }

    fn client_status(
        &mut self,
        load: LoadPoint,
        begin: &CounterSnapshot,
        end: &CounterSnapshot,
        records: WindowRecords,
    ) -> Result<PerfStatus> {
        let duration_ns = end.at.saturating_sub(begin.at);
        let overhead_percent = overhead_percent(duration_ns, self.parts.load.idle_time());
        let sent = self.parts.load.take_sent_count();
        let mut status = PerfStatus {
            load,
            batch_size: self.parts.settings.batch_size.max(1),
            on_sequence_model: self.parts.model.is_sequence(),
            is_stable: true,
            client: ClientStats {
                request_count: records.latencies.len() as u64,
                sequence_count: records.sequence_count,
                delayed_request_count: records.delayed_count,
                response_count: records.response_count,
                duration_ns,
                latencies: records.latencies,
                ..ClientStats::default()
            },
            server: None,
            metrics: Vec::new(),
            stabilizing_latency_ns: 0,
            overhead_percent,
            send_request_rate: sent as f64 / seconds(duration_ns),
            windows: Vec::new(),
            scheduled_latencies: records.scheduled_latencies,
            tool_cpu_ns: end.cpu.saturating_sub(begin.cpu).as_nanos() as u64,
            instability: None,
        };
        self.summarize(&mut status)?;
        // The calls of a decoupled model's stream cannot be distinguished.
        if !self.parts.model.decoupled {
            average_calls(&mut status.client, &begin.calls, &end.calls);
        }
        Ok(status)
    }

    /// Computes the figures that follow from counts, latencies and the duration.
    pub(super) fn summarize(&mut self, status: &mut PerfStatus) -> Result<()> {
        let percentile = self.parts.settings.percentile;
        let client = &mut status.client;
        let Some(figures) = LatencyFigures::of(&client.latencies, percentile) else {
            return Err(Failure {
                exit: Exit::Option,
                message: "No valid requests recorded within time interval. Please use a larger time window.".into(),
            });
        };
        // Single precision, as in perf_analyzer.
        let seconds = client.duration_ns as f32 / 1e9;
        let rate = |count: u64| f64::from(count as f32 / seconds);
        client.infer_per_sec = rate(client.request_count * status.batch_size);
        client.responses_per_sec = rate(client.response_count);
        client.sequence_per_sec = rate(client.sequence_count);
        client.avg_latency_ns = figures.avg_ns;
        client.std_us = figures.std_us;
        client.percentile_latency_ns = figures.percentiles_ns;
        status.stabilizing_latency_ns = percentile
            .and_then(|percentile| client.percentile_latency_ns.get(&percentile))
            .copied()
            .unwrap_or(figures.avg_ns);
        if client.latencies.len() == 1 {
            self.warn(ONE_REQUEST_WARNING);
        }
        Ok(())
    }

    fn server_stats(
        &mut self,
        begin: &CounterSnapshot,
        end: &CounterSnapshot,
    ) -> Result<Option<ServerStats>> {
        let (Some(begin), Some(end)) = (&begin.server, &end.server) else { return Ok(None) };
        let mut change = Change { begin, end, model: self.parts.model, warnings: Vec::new() };
        let stats = change.stats();
        for warning in change.warnings {
            self.warn(warning);
        }
        stats.map(Some)
    }
}

fn progress(point: &PointState, how_far: &str, elapsed: f64, collected: u64) -> String {
    let load = match point.load {
        LoadPoint::Concurrency(concurrency) => format!("Concurrency {concurrency}"),
        LoadPoint::RequestRate(rate) => {
            format!("Request rate {}", galatea_perf_report::text::general(rate))
        }
    };
    let window = point.window;
    let rate = if elapsed > 0.0 { collected as f64 / elapsed } else { 0.0 };
    format!("{load}, window {window}: {how_far}, {rate:.0} requests/s")
}

/// Returns the busy share. A window's start and end take time, so workers may have been idle for longer than it lasted.
fn overhead_percent(duration_ns: Nanos, idle: Duration) -> f64 {
    let idle_ns = idle.as_nanos() as f64;
    let duration = duration_ns as f64;
    if duration <= 0.0 { 0.0 } else { ((duration - idle_ns) / duration * 100.0).max(0.0) }
}

fn average_calls(client: &mut ClientStats, begin: &CallTotals, end: &CallTotals) {
    let calls = end.calls.saturating_sub(begin.calls);
    let average = |end: u64, begin: u64| end.saturating_sub(begin).checked_div(calls).unwrap_or(0);
    client.completed_count = calls;
    client.avg_request_time_ns = average(end.request_ns, begin.request_ns);
    client.avg_send_time_ns = average(end.send_ns, begin.send_ns);
    client.avg_receive_time_ns = average(end.receive_ns, begin.receive_ns);
}
