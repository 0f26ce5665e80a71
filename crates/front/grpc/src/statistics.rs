//! Statistics into their messages.

use std::collections::BTreeMap;

use galatea_engine::ModelStatisticsEntry;
use galatea_proto::inference::{
    InferBatchStatistics, InferResponseStatistics, InferStatistics, ModelStatistics,
    StatisticDuration,
};
use galatea_telemetry::{BatchStatistics, DurationCount, ResponseStatistics, StatisticsSnapshot};

pub(crate) fn model_statistics(entry: ModelStatisticsEntry) -> ModelStatistics {
    let ModelStatisticsEntry { name, version, statistics } = entry;
    ModelStatistics {
        name,
        version: version.to_string(),
        last_inference: statistics.last_inference_ms,
        inference_count: statistics.inference_count,
        execution_count: statistics.execution_count,
        inference_stats: Some(infer_statistics(&statistics)),
        batch_stats: statistics
            .batches
            .iter()
            .map(|(&size, s)| batch_statistics(size, s))
            .collect(),
        response_stats: response_statistics(&statistics.responses),
        ..ModelStatistics::default()
    }
}

/// By the place of the response among those to one request.
fn response_statistics(
    responses: &[ResponseStatistics],
) -> BTreeMap<String, InferResponseStatistics> {
    let of_place = |(place, s): (usize, &ResponseStatistics)| {
        let statistics = InferResponseStatistics {
            compute_infer: duration(s.compute_infer),
            compute_output: duration(s.compute_output),
            success: duration(s.success),
            fail: duration(s.fail),
            empty_response: duration(s.empty_response),
            cancel: duration(s.cancel),
        };
        (place.to_string(), statistics)
    };
    responses.iter().enumerate().map(of_place).collect()
}

/// Every field is there, also those that count nothing: clients read them without asking.
fn infer_statistics(s: &StatisticsSnapshot) -> InferStatistics {
    InferStatistics {
        success: duration(s.success),
        fail: duration(s.fail),
        queue: duration(s.queue),
        compute_input: duration(s.compute_input),
        compute_infer: duration(s.compute_infer),
        compute_output: duration(s.compute_output),
        cache_hit: duration(s.cache_hit),
        cache_miss: duration(s.cache_miss),
    }
}

fn batch_statistics(batch_size: u64, s: &BatchStatistics) -> InferBatchStatistics {
    InferBatchStatistics {
        batch_size,
        compute_input: duration(s.compute_input),
        compute_infer: duration(s.compute_infer),
        compute_output: duration(s.compute_output),
    }
}

fn duration(d: DurationCount) -> Option<StatisticDuration> {
    Some(StatisticDuration { count: d.count, ns: d.ns })
}
