//! The load of the whole server, for those that choose between servers.

use std::{
    cmp::Ordering,
    sync::{Arc, OnceLock},
    time::Duration,
};

/// The load of the server. Rates and the mean wait cover the last second or a little more.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ServerLoad {
    /// The queue and the instances at the moment of the sample.
    pub counts: ServerCounts,
    /// The share of the processors that the control group of the server used; `None`: unknown.
    pub processors: Option<f64>,
    /// The used share of the memory budget.
    pub memory: f64,
    /// Requests that models answered in a second. The steps of an ensemble count too.
    pub requests_per_second: f64,
    /// Requests that failed in a second, without those that their clients cancelled.
    pub failures_per_second: f64,
    /// The mean wait in a queue of the requests that succeeded.
    pub mean_wait: Duration,
    /// The models by their load, the highest first.
    pub models: Vec<ModelLoad>,
    /// The reports in answers to those who may know all models.
    pub reports: ReportTexts,
}

/// The forms of a report that many answers share. Each is made when it is first needed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ReportTexts {
    /// JSON.
    pub json: OnceLock<String>,
    /// Pairs of name and value.
    pub text: OnceLock<String>,
    /// The message in base64.
    pub binary: OnceLock<String>,
}

/// The figures of the server without labels.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerCounts {
    /// The highest load of all models. 0: idle; 1: all instances of a model work and no request waits.
    pub load: f64,
    /// Requests in the queues of all models.
    pub waiting: u64,
    /// Requests that instances execute.
    pub running: u64,
}

/// The load of a model.
#[derive(Clone, Debug, PartialEq)]
pub struct ModelLoad {
    /// Its name.
    pub name: Arc<str>,
    /// The load of its instances; of several versions, the highest.
    pub load: f64,
}

impl ServerCounts {
    /// Adds the requests of a model that has instances. `in_flight` includes those that wait.
    pub fn add(&mut self, waiting: u64, in_flight: u64) {
        self.waiting = self.waiting.saturating_add(waiting);
        self.running = self.running.saturating_add(in_flight.saturating_sub(waiting));
    }
}

impl ModelLoad {
    /// Puts the highest load first, and keeps one entry for each name.
    pub fn sort(models: &mut Vec<Self>) {
        let by_load = |a: &Self, b: &Self| b.load.partial_cmp(&a.load).unwrap_or(Ordering::Equal);
        models.sort_by(|a, b| a.name.cmp(&b.name).then(by_load(a, b)));
        models.dedup_by(|later, kept| later.name == kept.name);
        models.sort_by(by_load);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_most_loaded_model_is_first_and_versions_are_one() {
        let model = |name: &str, load| ModelLoad { name: name.into(), load };
        let mut models = vec![model("b", 0.5), model("a", 0.1), model("b", 2.0), model("c", 0.5)];
        ModelLoad::sort(&mut models);
        assert_eq!(models, [model("b", 2.0), model("c", 0.5), model("a", 0.1)]);
    }

    #[test]
    fn requests_in_flight_wait_or_run() {
        let mut counts = ServerCounts::default();
        counts.add(2, 5);
        // A count that is read a moment later may be lower.
        counts.add(4, 3);
        assert_eq!(counts, ServerCounts { load: 0.0, waiting: 6, running: 3 });
    }
}
