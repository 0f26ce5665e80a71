//! Reads a server's statistics, its index of models and its metrics page at intervals.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use galatea_client::{
    Admin, Connector, Endpoint, GetOptions, ModelIndexEntry, ModelStatistics, Target, Tls, get,
};
use galatea_types::{Code, Error};

use super::{
    counters::Counters,
    options::TopOptions,
    page::{MOST_MODELS, ModelFigures, ModelKey, Page},
    row::{Observation, Quantiles, Row},
};
use crate::{error::CommandError, session};

/// Longest metrics page in bytes.
const PAGE_LIMIT: usize = 16 << 20;
/// Time between two reads of the index. A server may read its whole repository for one.
const INDEX_EVERY: Duration = Duration::from_secs(5);
/// Timeout of one look, in seconds.
const DEFAULT_TIMEOUT: f64 = 10.0;
/// Shortest interval for a rate, in seconds; rates over less are noise.
const SHORTEST: f64 = 0.001;

/// Asks one server.
pub(crate) struct Observer {
    target: Target,
    connector: Connector,
    limit: Duration,
    metrics: MetricsAddress,
    /// TLS settings for `https://` metrics.
    tls: Tls,
    link: Option<ServerConnection>,
    before: Option<ObservedCounts>,
}

struct MetricsAddress {
    url: String,
    is_guessed: bool,
}

/// A connection to a server that answers.
struct ServerConnection {
    admin: Admin,
    server: String,
    index: Result<Vec<ModelIndexEntry>, String>,
    index_at: Option<Instant>,
}

/// The counts of one look.
struct ObservedCounts {
    at: Instant,
    models: BTreeMap<ModelKey, SeenCounters>,
}

#[derive(Clone, Default)]
struct SeenCounters {
    counters: Option<Counters>,
    page: ModelFigures,
}

impl Observer {
    pub fn new(options: &TopOptions) -> Result<Self, CommandError> {
        let target = session::target(&options.server)?;
        let connector = session::connector(&target)?;
        let metrics = match &options.metrics_url {
            Some(url) => MetricsAddress { url: metrics_url(url), is_guessed: false },
            None => MetricsAddress { url: guessed(&target), is_guessed: true },
        };
        let limit = Duration::from_secs_f64(options.server.timeout.unwrap_or(DEFAULT_TIMEOUT));
        let tls = session::tls(&options.server);
        Ok(Self { target, connector, limit, metrics, tls, link: None, before: None })
    }

    pub fn url(&self) -> String {
        self.target.url()
    }

    /// Reads everything once.
    ///
    /// # Errors
    /// If the server cannot be reached, or does not answer in time.
    pub async fn look(&mut self) -> Result<Observation, CommandError> {
        let limit = self.limit;
        let looked = tokio::time::timeout(limit, self.attempt()).await;
        let looked = looked.unwrap_or_else(|_| {
            Err(CommandError::Late { url: self.target.url(), seconds: limit.as_secs_f64() })
        });
        if looked.is_err() {
            // After a pause the counts may be those of another server.
            self.link = None;
            self.before = None;
        }
        looked
    }

    async fn attempt(&mut self) -> Result<Observation, CommandError> {
        let mut link = match self.link.take() {
            Some(link) => link,
            None => ServerConnection::open(&self.connector).await?,
        };
        let is_ready = match link.admin.is_ready().await {
            Ok(is_ready) => Some(is_ready),
            Err(error) if is_away(&error) => return Err(error.into()),
            Err(_) => None,
        };
        let statistics = match link.admin.statistics("", "").await {
            Ok(statistics) => Ok(statistics),
            Err(error) if is_away(&error) => return Err(error.into()),
            Err(error) => Err(error.message().to_owned()),
        };
        let at = Instant::now();
        link.refresh_index(statistics.as_deref().unwrap_or_default()).await;
        let page = self.page(statistics.as_deref().unwrap_or_default()).await;
        let observation = self.observe(at, &link, statistics, page);
        self.link = Some(link);
        Ok(Observation { is_ready, ..observation })
    }

    async fn page(&self, statistics: &[ModelStatistics]) -> Result<Page, String> {
        let url = &self.metrics.url;
        let headers = match self.sends_headers_for_metrics() {
            true => self.target.headers.clone(),
            false => Vec::new(),
        };
        let options = GetOptions { tls: Some(self.tls.clone()), headers, limit: PAGE_LIMIT };
        let (status, body) = get(url, options).await.map_err(|error| error.message().to_owned())?;
        if status != 200 {
            return Err(format!("{url} answers with status {status}"));
        }
        let page = Page::read(&String::from_utf8_lossy(&body));
        match self.metrics.is_guessed && !is_of_same_server(&page, statistics) {
            true => Err(format!("the metrics at {url} are of another server")),
            false => Ok(page),
        }
    }

    /// Returns true if headers go to the metrics port. Credentials sent over TLS never go in the clear to a guessed port.
    fn sends_headers_for_metrics(&self) -> bool {
        self.target.tls.is_none() || !self.metrics.is_guessed
    }

    fn observe(
        &mut self,
        at: Instant,
        link: &ServerConnection,
        statistics: Result<Vec<ModelStatistics>, String>,
        page: Result<Page, String>,
    ) -> Observation {
        let notes = self.notes(link, &statistics, &page);
        let page = page.unwrap_or_default();
        let look = ObservedCounts { at, models: joined(statistics, page.models) };
        let seconds = self.before.as_ref().map(|before| (at - before.at).as_secs_f64());
        let seconds = seconds.filter(|&seconds| seconds >= SHORTEST);
        let index = link.index.as_deref().unwrap_or_default();
        let rows = rows(&look, self.before.as_ref().zip(seconds), index);
        self.before = Some(look);
        Observation {
            server: link.server.clone(),
            seconds,
            rows,
            machine: page.machine,
            notes,
            is_ready: None,
        }
    }

    fn notes(
        &self,
        link: &ServerConnection,
        statistics: &Result<Vec<ModelStatistics>, String>,
        page: &Result<Page, String>,
    ) -> Vec<String> {
        let mut notes = Vec::new();
        if let Err(reason) = statistics {
            notes.push(format!("No statistics, so all figures come from the metrics: {reason}"));
        }
        match page {
            Err(reason) if self.metrics.is_guessed => notes.push(format!(
                "No metrics, so no p50, p99, machine or pending requests: {reason}; --metrics-url says where they are"
            )),
            Err(reason) => notes.push(format!("No metrics (--metrics-url): {reason}")),
            Ok(page) if page.models.values().all(|model| !has_quantiles(model)) => {
                notes.push("No p50 and p99, only averages, because the server has no summaries or histograms of \
                            durations (--metrics-config summary_latencies=true)".to_owned());
            }
            Ok(_) => {}
        }
        if let Err(reason) = &link.index {
            notes.push(format!("No states of models: {reason}"));
        }
        notes
    }
}

impl ServerConnection {
    async fn open(connector: &Connector) -> Result<Self, CommandError> {
        let mut admin = connector.admin().await?;
        let server = match admin.server_metadata().await {
            Ok(server) => {
                let named = format!("{} {}", server.name, server.version);
                match server.implementation.is_empty() {
                    true => named,
                    false => format!("{named} ({})", server.implementation),
                }
            }
            Err(error) if is_away(&error) => return Err(error.into()),
            Err(_) => String::new(),
        };
        Ok(Self { admin, server, index: Ok(Vec::new()), index_at: None })
    }

    /// Reads the index again after a time, or when it does not have a loaded model as ready.
    #[expect(
        clippy::disallowed_methods,
        reason = "what was read is fresh for a while, in real time"
    )]
    async fn refresh_index(&mut self, statistics: &[ModelStatistics]) {
        let is_fresh = self.index_at.is_some_and(|at| at.elapsed() < INDEX_EVERY);
        if is_fresh && self.fits(statistics) {
            return;
        }
        self.index_at = Some(Instant::now());
        self.index = match self.admin.repository_index().await {
            Ok(mut index) => {
                index.truncate(MOST_MODELS);
                Ok(index)
            }
            Err(error) => Err(error.message().to_owned()),
        };
    }

    fn fits(&self, statistics: &[ModelStatistics]) -> bool {
        let Ok(index) = &self.index else { return true };
        let ready = index.iter().filter(|entry| entry.state == "READY");
        let ready: std::collections::BTreeSet<_> =
            ready.map(|entry| (entry.name.as_str(), entry.version.as_str())).collect();
        let counted = statistics.iter().map(|model| (model.name.as_str(), model.version.as_str()));
        statistics.is_empty() || counted.collect::<std::collections::BTreeSet<_>>() == ready
    }
}

/// Returns true if the server is gone, rather than only unable to answer this call.
fn is_away(error: &Error) -> bool {
    error.code() == Code::Unavailable
}

fn metrics_url(given: &str) -> String {
    let has_path = given.split_once("://").map_or(given, |(_, rest)| rest).contains('/');
    let path = if has_path { "" } else { "/metrics" };
    format!("{given}{path}")
}

/// Returns the URL at Triton's metrics port, on the same host. For a Unix socket that is this one.
fn guessed(target: &Target) -> String {
    let endpoint = Endpoint::Tcp { host: target.endpoint.host().to_owned(), port: 8002 };
    let target = Target { endpoint, base_path: String::new(), tls: None, ..target.clone() };
    format!("http://{}/metrics", target.authority())
}

/// Returns true if the page, read after the statistics, counts at least their requests for every model that has any.
fn is_of_same_server(page: &Page, statistics: &[ModelStatistics]) -> bool {
    statistics.iter().filter(|model| model.success.count > 0).all(|model| {
        let key = ModelKey { name: model.name.clone(), version: model.version.clone() };
        page.models.get(&key).is_some_and(|found| found.counters.success >= model.success.count)
    })
}

fn has_quantiles(model: &ModelFigures) -> bool {
    model.p99_ns.is_some() || model.has_summary || model.requests != Default::default()
}

/// Joins the counters. Those of statistics have priority: they have batch sizes, and nanoseconds.
fn joined(
    statistics: Result<Vec<ModelStatistics>, String>,
    page: BTreeMap<ModelKey, ModelFigures>,
) -> BTreeMap<ModelKey, SeenCounters> {
    let mut page = page;
    let Ok(statistics) = statistics else {
        let seen = |page: ModelFigures| SeenCounters {
            counters: page.has_counters.then(|| page.counters.clone()),
            page,
        };
        return page.into_iter().map(|(key, page)| (key, seen(page))).collect();
    };
    let models = statistics.into_iter().take(MOST_MODELS).map(|model| {
        let counters = Some(Counters::from(&model));
        let key = ModelKey { name: model.name, version: model.version };
        let page = page.remove(&key).unwrap_or_default();
        (key, SeenCounters { counters, page })
    });
    models.collect()
}

/// Returns the versions that have counters, and those that only the index has.
fn rows(
    look: &ObservedCounts,
    before: Option<(&ObservedCounts, f64)>,
    index: &[ModelIndexEntry],
) -> Vec<Row> {
    let mut rows: BTreeMap<ModelKey, Row> =
        look.models.iter().map(|(key, seen)| (key.clone(), row(key, seen, before))).collect();
    for entry in index {
        let key = ModelKey { name: entry.name.clone(), version: entry.version.clone() };
        let row = rows.entry(key.clone()).or_insert_with(|| Row { key, ..Row::default() });
        row.state.clone_from(&entry.state);
        row.reason.clone_from(&entry.reason);
    }
    rows.into_values().take(MOST_MODELS).collect()
}

fn row(key: &ModelKey, seen: &SeenCounters, before: Option<(&ObservedCounts, f64)>) -> Row {
    let earlier = before.and_then(|(look, seconds)| Some((look.models.get(key)?, seconds)));
    let recent = earlier.and_then(|(earlier, seconds)| {
        let recent = seen.counters.as_ref()?.since(earlier.counters.as_ref()?)?;
        Some((recent, seconds))
    });
    let mut page = seen.page.clone();
    let mut quantiles = if page.has_summary { Quantiles::Summary } else { Quantiles::None };
    if quantiles == Quantiles::None && page.requests != Default::default() {
        quantiles = Quantiles::Histogram;
        let recent = earlier.and_then(|(earlier, _)| page.requests.since(&earlier.page.requests));
        page.p50_ns = recent.as_ref().and_then(|recent| recent.quantile(0.5));
        page.p99_ns = recent.as_ref().and_then(|recent| recent.quantile(0.99));
    }
    Row {
        key: key.clone(),
        total: seen.counters.clone(),
        recent,
        page,
        quantiles,
        ..Row::default()
    }
}

#[cfg(test)]
mod tests {
    use galatea_client::CountAndTime;

    use super::*;

    fn key() -> ModelKey {
        ModelKey { name: "m".to_owned(), version: "1".to_owned() }
    }

    fn statistics(count: u64) -> ModelStatistics {
        let ModelKey { name, version } = key();
        let success = CountAndTime { count, ns: count * 1000 };
        ModelStatistics { name, version, success, inference_count: count, ..Default::default() }
    }

    fn look(at: Instant, counts: &[u64], page: &str) -> ObservedCounts {
        let statistics = counts.iter().map(|&count| statistics(count)).collect();
        ObservedCounts { at, models: joined(Ok(statistics), Page::read(page).models) }
    }

    #[test]
    fn rates_cover_the_time_between_two_polls() {
        let at = Instant::now();
        let (before, now) = (look(at, &[10], ""), look(at, &[30], ""));
        let rows = rows(&now, Some((&before, 2.0)), &[]);
        assert_eq!((rows[0].requests(), rows[0].latency()), (Some(10.0), Some(1000.0)));
        assert_eq!((rows[0].queue(), rows[0].batch_size()), (Some(0.0), None));
    }

    #[test]
    fn new_removed_and_restarted_models_have_no_rates() {
        let at = Instant::now();
        let (none, few, many) = (look(at, &[], ""), look(at, &[3], ""), look(at, &[1 << 50], ""));
        for (before, now) in [(&none, &many), (&many, &few)] {
            let rows = rows(now, Some((before, 1.0)), &[]);
            assert!(rows[0].total.is_some() && rows[0].requests().is_none());
        }
        assert!(rows(&none, Some((&many, 1.0)), &[]).is_empty());
    }

    #[test]
    fn the_index_adds_states_and_unloaded_models() {
        let entry = |name: &str, state: &str| ModelIndexEntry {
            name: name.to_owned(),
            version: "1".to_owned(),
            state: state.to_owned(),
            reason: String::new(),
        };
        let now = look(Instant::now(), &[3], "");
        let rows = rows(&now, None, &[entry("m", "READY"), entry("x", "UNAVAILABLE")]);
        assert!(rows[0].is_ready() && rows[1].key.name == "x" && rows[1].total.is_none());
    }

    #[test]
    fn histograms_give_quantiles_of_the_interval() {
        let page = |low: u64, all: u64| {
            let bucket = |le: &str, count: u64| {
                format!(
                    "galatea_inference_request_duration_seconds_bucket{{model=\"m\",version=\"1\",le=\"{le}\"}} {count}\n"
                )
            };
            bucket("0.1", low) + &bucket("0.2", all) + &bucket("+Inf", all)
        };
        let at = Instant::now();
        let (before, now) = (look(at, &[1], &page(9, 9)), look(at, &[2], &page(9, 19)));
        let rows = rows(&now, Some((&before, 1.0)), &[]);
        assert_eq!(rows[0].quantiles, Quantiles::Histogram);
        assert!(rows[0].page.p50_ns.is_some_and(|ns| (ns - 0.15e9).abs() < 1.0));
    }

    #[test]
    fn metrics_of_another_server_are_detected() {
        let page = Page::read("nv_inference_request_success{model=\"m\",version=\"1\"} 5\n");
        assert!(is_of_same_server(&page, &[statistics(5),]));
        assert!(!is_of_same_server(&page, &[statistics(6)]));
        assert!(is_of_same_server(&Page::default(), &[statistics(0)]));
        assert!(!is_of_same_server(&Page::default(), &[statistics(1)]));
    }

    #[test]
    fn metrics_urls_are_completed() {
        assert_eq!(metrics_url("h:1"), "h:1/metrics");
        assert_eq!(metrics_url("http://h:1"), "http://h:1/metrics");
        assert_eq!(metrics_url("http://h:1/a"), "http://h:1/a");
    }
}
