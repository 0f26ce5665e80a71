//! One line of the view: a model version, what was counted of it lately, and what is known of it now.

use super::{
    counters::Counters,
    page::{Machine, ModelFigures, ModelKey},
};

/// What a server was seen to do.
#[derive(Clone, Debug, Default)]
pub(crate) struct Observation {
    /// Name and version.
    pub server: String,
    pub is_ready: Option<bool>,
    /// Since the look before; `None`: this is the first one.
    pub seconds: Option<f64>,
    pub rows: Vec<Row>,
    pub machine: Machine,
    /// What is missing, and why.
    pub notes: Vec<String>,
}

/// A model version.
#[derive(Clone, Debug, Default)]
pub(crate) struct Row {
    pub key: ModelKey,
    /// As the server's index has it; empty: it has none.
    pub state: String,
    pub reason: String,
    /// Since the model was loaded.
    pub total: Option<Counters>,
    /// Since the look before, and how long that was.
    pub recent: Option<(Counters, f64)>,
    /// Of the page of metrics.
    pub page: ModelFigures,
    /// Where the quantiles come from.
    pub quantiles: Quantiles,
}

/// Where the quantiles of a model come from.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Quantiles {
    /// There are none.
    #[default]
    None,
    /// Summaries: of about the last minute.
    Summary,
    /// Histograms: of the interval.
    Histogram,
}

impl Quantiles {
    /// As words; `None`: there are none.
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

    /// Nanoseconds, as all times.
    pub fn queue(&self) -> Option<f64> {
        self.average(|counters| counters.queue_ns)
    }

    pub fn compute(&self) -> Option<f64> {
        self.average(Counters::compute_ns)
    }

    pub fn latency(&self) -> Option<f64> {
        self.average(|counters| counters.request_ns)
    }

    /// How many instances were at work, on average.
    pub fn busy(&self) -> Option<f64> {
        let (recent, seconds) = self.recent.as_ref()?;
        Some(recent.busy_ns? as f64 / 1e9 / seconds)
    }

    /// The average over the successful requests of the interval.
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
