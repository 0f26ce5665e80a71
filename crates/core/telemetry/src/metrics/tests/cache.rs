//! The figures of the response cache, and of models that it answers for.

use super::*;
use crate::CacheHitRecord;

/// Of a model whose answers come from the cache.
pub(super) fn cached() -> ModelStatistics {
    let settings = DistributionSettings {
        has_cache: true,
        quantiles: Some(Arc::new([0.5])),
        ..DistributionSettings::default()
    };
    ModelStatistics::new(&settings, Clock::system())
}

#[test]
fn a_cached_model_has_cache_metrics_and_no_request_quantiles() {
    let counted = cached();
    let micros = Duration::from_micros;
    for (look_up, insertion) in [(3, Some(micros(4))), (5, None)] {
        counted.record_cache_miss(micros(look_up), insertion);
    }
    let hit = CacheHitRecord { total: micros(10), queue: micros(2), look_up: micros(1) };
    counted.record_cache_hit(&hit);
    let (statistics, distributions) = counted.scrape();
    assert_eq!((statistics.success.count, statistics.queue.count), (1, 1));
    assert_eq!(statistics.compute_infer.count, 0);
    assert_eq!(statistics.success.ns, 14_000, "with the insertion that a client waited for");
    let tags = BTreeMap::new();
    let cached = ModelMetrics { has_cache: true, ..metrics(&statistics, &distributions, &tags) };
    let text = page(&[cached], &PROCESS);
    for line in [
        "nv_inference_request_success{model=\"m\",version=\"1\"} 1",
        "nv_inference_request_duration_us{model=\"m\",version=\"1\"} 14",
        "nv_cache_num_hits_per_model{model=\"m\",version=\"1\"} 1",
        "nv_cache_hit_duration_per_model{model=\"m\",version=\"1\"} 1",
        "nv_cache_num_misses_per_model{model=\"m\",version=\"1\"} 2",
        "nv_cache_miss_duration_per_model{model=\"m\",version=\"1\"} 12",
        "nv_inference_queue_summary_us_sum{model=\"m\",version=\"1\"} 2",
        "nv_cache_hit_summary_per_model_count{model=\"m\",version=\"1\"} 1",
        "nv_cache_hit_summary_per_model{model=\"m\",version=\"1\",quantile=\"0.5\"} 1",
        "nv_cache_miss_summary_per_model_sum{model=\"m\",version=\"1\"} 12",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} in {text}");
    }
    assert!(!text.contains("nv_inference_request_summary_us"));
    assert!(
        !text.contains("nv_inference_compute_infer_summary_us_count{model=\"m\",version=\"1\"} 1")
    );
    let plain = ModelMetrics { has_cache: false, ..cached };
    assert!(!page(&[plain], &PROCESS).contains("nv_cache_num"));
}

#[test]
fn the_local_cache_has_gauges() {
    let cache = CacheMetrics {
        capacity: 400,
        bytes: 100,
        entries: 2,
        hits: 5,
        misses: 3,
        evictions: 1,
        lookup_time: Duration::from_nanos(7900),
        insertion_time: Duration::from_micros(9),
    };
    let text = page(&[], &ProcessMetrics { cache: Some(cache), ..PROCESS });
    let names: Vec<&str> = text.lines().filter(|line| line.starts_with("nv_cache")).collect();
    assert_eq!(
        names,
        [
            "nv_cache_util 0.25",
            "nv_cache_num_entries 2",
            "nv_cache_num_hits 5",
            "nv_cache_num_misses 3",
            "nv_cache_num_lookups 8",
            "nv_cache_num_evictions 1",
            "nv_cache_lookup_duration 7",
            "nv_cache_insertion_duration 9",
        ]
    );
}
