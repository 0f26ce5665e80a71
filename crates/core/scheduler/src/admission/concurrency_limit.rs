//! The smallest number of requests at once with which a model has its full throughput, found by trying.
//!
//! The search compares throughputs, never latencies: batches make each request slower and the model faster. During an
//! overload it measures the present limit, then a lower one, then a higher one. It keeps the lower limit if that costs
//! almost no throughput, and the higher one if it gains some. Afterwards it rests for some measurements.

use crate::model_shape::ModelShape;

/// The share of a change of the limit that must be found again in the throughput, else the change is not worth it.
const WORTH: f64 = 0.05;
/// One step of the search, as a divisor of the limit.
const STEP: u32 = 4;
/// The number of measurements between two searches that changed nothing.
const REST: u32 = 8;

/// The present step of the search.
#[derive(Clone, Copy, Debug)]
enum Search {
    Present,
    Lower { from: u32, throughput: f64 },
    Higher { from: u32, throughput: f64 },
    Rest(u32),
}

/// The limit of one model.
pub(super) struct ConcurrencyLimit {
    shape: ModelShape,
    places: u32,
    search: Search,
}

impl ConcurrencyLimit {
    pub fn new(shape: ModelShape) -> Self {
        Self { shape, places: shape.initial(), search: Search::Present }
    }

    pub fn places(&self) -> u32 {
        self.places
    }

    pub fn shape(&self) -> ModelShape {
        self.shape
    }

    /// Begins again if the model has changed.
    pub fn set_shape(&mut self, shape: ModelShape) {
        if shape != self.shape {
            *self = Self::new(shape);
        }
    }

    /// Continues the search with the throughput that was measured with the present limit.
    pub fn adapt(&mut self, measured: f64) {
        let now = self.places;
        self.search = match self.search {
            Search::Present => self.try_lower(now, measured),
            Search::Lower { from, throughput } => {
                let lost = WORTH * f64::from(from - now) / f64::from(from);
                match measured >= throughput * (1.0 - lost) {
                    true => Search::Present,
                    false => self.try_higher(from, throughput),
                }
            }
            Search::Higher { from, throughput } => {
                let won = WORTH * f64::from(now - from) / f64::from(from);
                match measured >= throughput * (1.0 + won) {
                    true => Search::Present,
                    false => self.rest(from),
                }
            }
            Search::Rest(0) => Search::Present,
            Search::Rest(left) => Search::Rest(left - 1),
        };
    }

    fn try_lower(&mut self, from: u32, throughput: f64) -> Search {
        let lower = from.saturating_sub((from / STEP).max(1)).max(self.shape.lowest());
        if lower >= from {
            return self.try_higher(from, throughput);
        }
        self.places = lower;
        Search::Lower { from, throughput }
    }

    fn try_higher(&mut self, from: u32, throughput: f64) -> Search {
        let higher = from.saturating_add((from / STEP).max(1)).min(self.shape.highest());
        if higher <= from {
            return self.rest(from);
        }
        self.places = higher;
        Search::Higher { from, throughput }
    }

    fn rest(&mut self, places: u32) -> Search {
        self.places = places;
        Search::Rest(REST)
    }
}
