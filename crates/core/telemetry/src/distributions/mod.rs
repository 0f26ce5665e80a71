//! Distributions of the durations and batch sizes of a model version: histograms since the start, and quantiles of the last
//! minute. Off by default.

mod histogram;
mod quantiles;
mod window;

use std::{collections::BTreeMap, sync::Arc, time::Duration, time::Instant};

use self::window::Window;
pub use self::{
    histogram::{Bounds, BoundsError, Histogram},
    window::{RecentDurations, Summary},
};
use crate::{
    families::{BATCH_SIZE_HISTOGRAM, FIRST_RESPONSE_HISTOGRAM, Family, PHASE_HISTOGRAMS},
    records::{BatchRecord, CacheHitRecord, PHASES, RequestRecord},
};

/// Upper bounds of the durations of phases, in seconds. They range from a small model to a large model under high load.
const SECONDS: &[f64] = &[
    0.000_05, 0.000_1, 0.000_25, 0.000_5, 0.001, 0.002_5, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5,
    1.0, 2.5, 5.0, 10.0, 30.0,
];

/// Upper bounds of batch sizes.
const ITEMS: &[f64] = &[1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0, 512.0];

/// Upper bounds of the time to the first response, in milliseconds: Triton's.
const MILLISECONDS: &[f64] = &[100.0, 500.0, 2000.0, 5000.0];

/// The distributions that are recorded for a model version.
#[derive(Clone, Debug, Default)]
pub struct DistributionSettings {
    /// Record histograms of phases, of batch sizes, and of the time to the first response.
    pub has_histograms: bool,
    /// The quantiles of phases; `None` records no summaries.
    pub quantiles: Option<Arc<[f64]>>,
    /// Responses come from the response cache. Quantiles of whole requests are then not those of the model, and the cache has
    /// quantiles of its own.
    pub has_cache: bool,
    /// Bounds that replace the usual ones, by the name of the histogram's family.
    pub bounds: BTreeMap<String, Bounds>,
}

impl DistributionSettings {
    /// Returns whether a histogram of this name can have bounds of its own.
    pub fn is_histogram(family: &str) -> bool {
        let mut all =
            PHASE_HISTOGRAMS.iter().chain([&BATCH_SIZE_HISTOGRAM, &FIRST_RESPONSE_HISTOGRAM]);
        all.any(|histogram| histogram.name == family)
    }

    fn histogram(&self, family: &Family, usual: &[f64]) -> Histogram {
        let own = self.bounds.get(family.name).cloned();
        // The usual bounds ascend.
        Histogram::new(own.or_else(|| Bounds::new(usual).ok()).unwrap_or_else(Bounds::none))
    }
}

/// The distributions of a model version. The lock of its counters guards them too, so that sums and counts agree.
#[derive(Clone, Debug)]
pub(crate) struct Distributions {
    histograms: Option<Histograms>,
    first_response: Option<Histogram>,
    window: Option<Window<PHASES>>,
    /// Durations of cache hits, and of misses.
    cache: Option<[Window<1>; 2]>,
    quantiles: Arc<[f64]>,
    /// Durations of whole requests, while a caller watches them.
    watched: Option<Window<1>>,
}

/// The histograms of a model version.
#[derive(Clone, Debug)]
pub struct Histograms {
    /// Durations in seconds, in the order of the phases.
    pub phases: [Histogram; PHASES],
    /// Items per execution.
    pub batch_size: Histogram,
}

/// All distributions of a model version at one moment.
#[derive(Clone, Debug, Default)]
pub struct DistributionsSnapshot {
    /// The histograms; `None` when they are off.
    pub histograms: Option<Histograms>,
    /// The time to the first response, in milliseconds; `None` when it is off.
    pub first_response: Option<Histogram>,
    /// The summaries in the order of the phases; `None` when they are off.
    pub summaries: Option<[Summary; PHASES]>,
    /// The summaries of cache hits and of misses; `None` when they are off or the model does not use the response cache.
    pub of_cache: Option<[Summary; 2]>,
    /// The quantiles of the summaries.
    pub quantiles: Arc<[f64]>,
}

impl Distributions {
    /// Returns `None` when there is nothing to record.
    pub fn new(settings: &DistributionSettings, now: Instant) -> Option<Box<Self>> {
        let DistributionSettings { has_histograms, ref quantiles, .. } = *settings;
        let histograms = has_histograms.then(|| Histograms {
            phases: PHASE_HISTOGRAMS.each_ref().map(|family| settings.histogram(family, SECONDS)),
            batch_size: settings.histogram(&BATCH_SIZE_HISTOGRAM, ITEMS),
        });
        let first_response =
            has_histograms.then(|| settings.histogram(&FIRST_RESPONSE_HISTOGRAM, MILLISECONDS));
        let window = quantiles.as_ref().map(|_| Window::new(now));
        let has_cache = settings.has_cache && quantiles.is_some();
        let cache = has_cache.then(|| [Window::new(now), Window::new(now)]);
        let is_empty = histograms.is_none() && window.is_none();
        let quantiles = quantiles.clone().unwrap_or_default();
        (!is_empty).then(|| {
            Box::new(Self { histograms, first_response, window, cache, quantiles, watched: None })
        })
    }

    /// Makes a value that records nothing yet.
    pub fn nothing() -> Box<Self> {
        Box::new(Self {
            histograms: None,
            first_response: None,
            window: None,
            cache: None,
            quantiles: Arc::default(),
            watched: None,
        })
    }

    /// Starts to record whole requests, unless it does so already.
    pub fn watch(&mut self, now: Instant) {
        self.watched.get_or_insert_with(|| Window::new(now));
    }

    /// Stops recording whole requests. Returns whether there is nothing else to record.
    pub fn unwatch(&mut self) -> bool {
        self.watched = None;
        self.histograms.is_none() && self.window.is_none()
    }

    /// Returns the durations of whole requests in the last minute; `None` when there were none or no caller watches.
    pub fn recent(&mut self, now: Instant) -> Option<RecentDurations> {
        self.watched.as_mut()?.recent(now)
    }

    pub fn has_first_response(&self) -> bool {
        self.first_response.is_some()
    }

    pub fn executed(&mut self, batch: &BatchRecord) {
        if let Some(histograms) = &mut self.histograms {
            histograms.batch_size.observe(batch.batch_size as f64);
        }
    }

    pub fn succeeded(&mut self, now: Instant, request: &RequestRecord) {
        let phases = request.phases();
        if let Some(histograms) = &mut self.histograms {
            for (histogram, duration) in histograms.phases.iter_mut().zip(phases) {
                histogram.observe(duration.as_secs_f64());
            }
        }
        if let Some(window) = &mut self.window {
            window.observe(now, phases);
        }
        if let Some(watched) = &mut self.watched {
            watched.observe(now, [request.total]);
        }
    }

    /// Records a request that needed no computation.
    pub fn cache_hit(&mut self, now: Instant, hit: &CacheHitRecord) {
        let CacheHitRecord { total, queue, look_up } = *hit;
        if let Some(histograms) = &mut self.histograms {
            for (histogram, duration) in histograms.phases.iter_mut().zip([total, queue]) {
                histogram.observe(duration.as_secs_f64());
            }
        }
        if let Some(window) = &mut self.window {
            window.observe_some(now, [Some(total), Some(queue), None, None, None]);
        }
        if let Some([hits, _]) = &mut self.cache {
            hits.observe(now, [look_up]);
        }
        if let Some(watched) = &mut self.watched {
            watched.observe(now, [total]);
        }
    }

    pub fn cache_miss(&mut self, now: Instant, took: Duration) {
        if let Some([_, misses]) = &mut self.cache {
            misses.observe(now, [took]);
        }
    }

    /// Records the duration in whole milliseconds, as Triton counts it.
    pub fn responded_first(&mut self, after: Duration) {
        if let Some(histogram) = &mut self.first_response {
            histogram.observe(after.as_millis() as f64);
        }
    }

    pub fn snapshot(&mut self, now: Instant) -> DistributionsSnapshot {
        let quantiles = self.quantiles.clone();
        let of_cache = self.cache.as_mut().map(|windows| {
            windows.each_mut().map(|window| {
                let [summary] = window.summaries(now, &quantiles);
                summary
            })
        });
        DistributionsSnapshot {
            histograms: self.histograms.clone(),
            first_response: self.first_response.clone(),
            summaries: self.window.as_mut().map(|window| window.summaries(now, &quantiles)),
            of_cache,
            quantiles,
        }
    }
}

#[cfg(test)]
mod tests;
