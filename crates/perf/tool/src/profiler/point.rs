//! Measures one point of the search: windows until three agree, then its report.

use std::collections::VecDeque;

use galatea_perf_report::text;
use galatea_perf_types::{
    failure::{Failure, Result},
    settings::{Load, Settings, Verbosity, Window},
    status::{Instability, LoadPoint, PerfStatus},
};

use super::{
    Run, exit_signal,
    stability::{History, STABLE_WINDOWS},
    window::{PointState, WindowOutcome},
};

/// The facts about a point that the search needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PointVerdict {
    /// The point is stable, and within the latency limit.
    pub meets_limit: bool,
    pub is_stable: bool,
}

/// The verdict on the windows of a point.
enum PointOutcome {
    Stable(Box<PerfStatus>),
    /// The last windows, which do not agree, and the reason.
    Unstable(Vec<PerfStatus>, Instability),
}

impl Run<'_> {
    /// Measures the load that has been started, and reports it.
    pub(super) fn measure_point(&mut self, load: LoadPoint) -> Result<PointVerdict> {
        let mut point = PointState::new(load);
        if self.opened.is_none() {
            // Requests that ended before belong to the last point.
            drop(self.parts.load.take_records());
        }
        let measured = self.windows(&mut point);
        if let Some(metrics) = &mut self.parts.metrics {
            metrics.stop();
        }
        if self.parts.settings.profile_export_file.is_some() {
            self.profile.push(point.profile);
        }
        match measured? {
            PointOutcome::Stable(status) => {
                let meets_limit = self.is_within_limit(&status);
                if meets_limit {
                    self.report(*status);
                }
                Ok(PointVerdict { meets_limit, is_stable: true })
            }
            PointOutcome::Unstable(windows, why) => {
                self.report_unstable(load, &windows, why);
                Ok(PointVerdict { meets_limit: false, is_stable: false })
            }
        }
    }

    fn windows(&mut self, point: &mut PointState) -> Result<PointOutcome> {
        let mut history = History::default();
        let mut last = VecDeque::with_capacity(STABLE_WINDOWS + 1);
        let mut is_stable = false;
        while point.window <= self.parts.settings.max_trials.max(1) && !is_stable {
            self.parts.load.check_health()?;
            let measured = match self.measure_window(point)? {
                WindowOutcome::Interrupted => break,
                WindowOutcome::Measured(status) => Ok(*status),
                WindowOutcome::Failed(failure) => Err(failure),
            };
            self.report_pass(point.window, &measured);
            history.add(&measured);
            last.push_back(measured);
            if last.len() > STABLE_WINDOWS {
                last.pop_front();
            }
            if self.parts.settings.request_count.is_some() {
                is_stable = true;
                break;
            }
            is_stable = history.is_stable(self.parts.settings.stability);
            let limit = self.parts.settings.latency_limit;
            if limit.is_some_and(|limit| history.is_over(limit)) {
                break;
            }
            point.window += 1;
        }
        if !is_stable && !self.interrupted {
            is_stable = self.accept_throughput_alone(&history);
        }
        let windows = last.into_iter().collect::<Result<Vec<PerfStatus>>>()?;
        if self.interrupted {
            return Err(exit_signal());
        }
        if is_stable {
            return Ok(PointOutcome::Stable(Box::new(self.merge(&windows)?)));
        }
        let Settings { stability, latency_limit, .. } = self.parts.settings;
        let why = history.instability(*stability, *latency_limit);
        Ok(PointOutcome::Unstable(windows, why))
    }

    /// With asynchronous calls the latency may keep growing while the load exceeds the server's capacity.
    fn accept_throughput_alone(&mut self, history: &History) -> bool {
        let settings = self.parts.settings;
        if !settings.calls.asynchronous || !history.has_stable_throughput(settings.stability) {
            return false;
        }
        self.warn(
            "Warning: Request latency is not stabilizing. Please try lowering the request rate.",
        );
        true
    }

    fn report_pass(&mut self, window: u32, measured: &Result<PerfStatus>) {
        if self.parts.settings.verbosity < Verbosity::Verbose {
            return;
        }
        let text = match measured {
            Err(Failure { message, .. }) => format!("  Pass [{window}] cb::Error: {message}\n"),
            Ok(status) => {
                let throughput = self.number(status.client.infer_per_sec);
                format!(
                    "  Pass [{window}] throughput: {throughput} infer/sec. {}\n",
                    self.pass_latency(status)
                )
            }
        };
        self.out(&text);
    }

    fn pass_latency(&self, status: &PerfStatus) -> String {
        let micros = status.stabilizing_latency_ns / 1000;
        match self.parts.settings.percentile {
            Some(percentile) => format!("p{percentile} latency: {micros} usec"),
            None => format!("Avg latency: {micros} usec (std {} usec). ", status.client.std_us),
        }
    }

    /// Reports an unstable point in the words of perf_analyzer, and adds the measurements.
    fn report_unstable(&mut self, load: LoadPoint, windows: &[PerfStatus], why: Instability) {
        self.warn_of_unstable(load);
        // Counters that do not fit together leave the point without figures; it has failed anyway.
        if let Ok(merged) = self.merge(windows) {
            self.report(PerfStatus { is_stable: false, instability: Some(why), ..merged });
        }
    }

    fn warn_of_unstable(&mut self, load: LoadPoint) {
        let settings = self.parts.settings;
        let LoadPoint::Concurrency(concurrency) = load else {
            return self.warn("Failed to obtain stable measurement.");
        };
        let option = match settings.window {
            Window::Time(_) => "--measurement-interval",
            Window::Count(_) => "--measurement-request-count",
        };
        self.warn(format!(
            "Failed to obtain stable measurement within {} measurement windows for concurrency {concurrency}. Please try to increase the {option}.",
            settings.max_trials
        ));
    }

    /// Compares in whole milliseconds, like the limit.
    fn is_within_limit(&mut self, status: &PerfStatus) -> bool {
        match self.parts.settings.latency_limit {
            Some(limit) if status.stabilizing_latency_ns / 1_000_000 >= limit => {
                self.warn(format!("Measured latency went over the set limit of {limit} msec. "));
                false
            }
            _ => true,
        }
    }

    fn report(&mut self, status: PerfStatus) {
        let notation = text::Notation::after(&self.points);
        self.out(&text::point(notation, &status, self.parts.settings, self.parts.model));
        if status.is_bound_by_the_tool() {
            self.warn_of_overhead(status.overhead_percent);
        }
        self.note_idle_end(&status);
        self.points.push(status);
    }

    /// Warns if the tool itself may be the limit. The text report has only this warning about it.
    fn warn_of_overhead(&mut self, percent: f64) {
        let settings = self.parts.settings;
        let is_bound_to_threads =
            matches!(settings.load, Load::Concurrency(_)) && !settings.calls.asynchronous;
        let advice = if is_bound_to_threads {
            "use --async, or run the tool on more or faster cores"
        } else {
            "raise --max-threads, or run the tool on more or faster cores"
        };
        self.warn(format!(
            "The tool's own threads were busy for {percent:.0}% of the time, so they may be the limit and not the server: {advice}."
        ));
    }

    /// Notes an idle end. The window of a fixed number of requests ends at a full second, so its throughput may be too low.
    fn note_idle_end(&mut self, status: &PerfStatus) {
        let busy: u64 = status.client.latencies.iter().sum();
        let LoadPoint::Concurrency(concurrency) = status.load else { return };
        let busy = busy.checked_div(concurrency.min(status.client.request_count)).unwrap_or(0);
        if self.parts.settings.request_count.is_some() && busy < status.client.duration_ns / 2 {
            self.note(format!(
                "The requests of --request-count took about {:.3} s of a window of {:.3} s: its throughput counts the rest as idle.",
                super::seconds(busy),
                super::seconds(status.client.duration_ns)
            ));
        }
    }
}
