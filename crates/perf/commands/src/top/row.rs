//! One line of the view: a model version, its recent counts, and its present figures.

use super::{
    counters::Counters,
    page::{Machine, ModelFigures, ModelKey},
};

/// The observed state of a server.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    /// Name and version of the server.
    pub server: String,
    pub is_ready: Option<bool>,
    /// Time since the look before; `None`: this is the first one.
    pub seconds: Option<f64>,
    pub rows: Vec<Row>,
    pub machine: Machine,
    /// Missing figures, and the reasons.
    pub notes: Vec<String>,
}

/// A model version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub key: ModelKey,
    /// State in the server's index; empty: it has none.
    pub state: String,
    pub reason: String,
    /// Counts since the model was loaded.
    pub total: Option<Counters>,
    /// Counts since the look before, and that time in seconds.
    pub recent: Option<(Counters, f64)>,
    /// Figures from the metrics page.
    pub page: ModelFigures,
    /// The source of the quantiles.
    pub quantiles: Quantiles,
}

/// The source of a model's quantiles.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Quantiles {
    /// There are none.
    #[default]
    None,
    /// Summaries, over about the last minute.
    Summary,
    /// Histograms, over the interval.
    Histogram,
}

impl Quantiles {
    /// Returns the source in words; `None`: there are no quantiles.
    pub fn source(self) -> Option<&'static str> {
        match self {
            Self::None => None,
            Self::Summary => Some("summary of about a minute"),
            Self::Histogram => Some("histogram of the interval"),
        }
    }
}

impl Row {
    pub fn requests(&self) -> Option<f64> {
        self.per_second(|counters| counters.success.saturating_add(counters.fail))
    }

    pub fn failed(&self) -> Option<f64> {
        self.per_second(|counters| counters.fail)
    }

    pub fn inferences(&self) -> Option<f64> {
        self.per_second(|counters| counters.inferences)
    }

    pub fn batch_size(&self) -> Option<f64> {
        self.recent.as_ref()?.0.batch_size()
    }

    /// Returns the average time in the queue, in nanoseconds.
    pub fn queue(&self) -> Option<f64> {
        self.average(|counters| counters.queue_ns)
    }

    pub fn compute(&self) -> Option<f64> {
        self.average(Counters::compute_ns)
    }

    pub fn latency(&self) -> Option<f64> {
        self.average(|counters| counters.request_ns)
    }

    /// Returns the average number of busy instances.
    pub fn busy(&self) -> Option<f64> {
        let (recent, seconds) = self.recent.as_ref()?;
        Some(recent.busy_ns? as f64 / 1e9 / seconds)
    }

    /// Returns the average over the successful requests of the interval.
    pub fn average(&self, ns: impl Fn(&Counters) -> u64) -> Option<f64> {
        let (recent, _) = self.recent.as_ref()?;
        (recent.success > 0).then(|| ns(recent) as f64 / recent.success as f64)
    }

    fn per_second(&self, count: impl Fn(&Counters) -> u64) -> Option<f64> {
        let (recent, seconds) = self.recent.as_ref()?;
        Some(count(recent) as f64 / seconds)
    }

    pub fn is_ready(&self) -> bool {
        self.state == "READY"
    }
}
