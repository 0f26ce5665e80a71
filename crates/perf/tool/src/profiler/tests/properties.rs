//! Properties of every run.

use std::time::Duration;

use galatea_perf_types::settings::Window;

use super::{
    super::latency::LatencyFigures,
    fake::{MILLI, SECOND, Sent, after},
    fake_run::FakeRun,
};

/// Numbers that look random and are the same every time.
fn shuffled(seed: u64, count: u64) -> Vec<u64> {
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut next = || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    (0..count).map(|_| next() % 5_000_000).collect()
}

fn fake_run(seed: u64) -> FakeRun {
    let mut fake_run = FakeRun::new(Box::new(move |sent: &Sent| {
        after(3 * MILLI + shuffled(seed + sent.index, 1)[0])
    }))
    .concurrency(1 + seed % 5, 1 + seed % 5, 1);
    fake_run.settings.profile_export_file = Some("export.json".into());
    fake_run.settings.max_trials = 20;
    if seed.is_multiple_of(2) {
        fake_run.settings.window = Window::Count(100 + seed);
    }
    fake_run
}

#[test]
fn every_request_counts_in_exactly_one_window() {
    for seed in 0..12 {
        let mut fake_run = fake_run(seed);
        let (outcome, _) = fake_run.run();
        let [profiled] = outcome.profile.as_slice() else { panic!("{outcome:?}") };
        let bounds = &profiled.window_boundaries;
        let (first, last) = (bounds[0], *bounds.last().unwrap());
        let mut counted: Vec<_> =
            profiled.requests.iter().map(|r| (r.start, r.end().unwrap())).collect();
        let mut sent = fake_run.world.borrow().log.clone();
        sent.retain(|(_, end)| (first..=last).contains(end));
        counted.sort_unstable();
        sent.sort_unstable();
        assert!(counted == sent, "seed {seed}: {} of {}", counted.len(), sent.len());
    }
}

#[test]
fn a_merged_result_equals_the_pooled_one() {
    for seed in 0..12 {
        let (outcome, _) = fake_run(seed).run();
        let [point] = outcome.points.as_slice() else { panic!("seed {seed}: {outcome:?}") };
        let bounds = &outcome.profile[0].window_boundaries;
        let [begin, .., end] = bounds[bounds.len() - 4..] else { panic!("{bounds:?}") };
        let mut pooled: Vec<u64> = outcome.profile[0]
            .requests
            .iter()
            .filter(|r| r.end().unwrap() > begin && r.end().unwrap() <= end)
            .map(|r| r.end().unwrap() - r.start)
            .collect();
        pooled.sort_unstable();
        assert_eq!(point.client.latencies, pooled);
        assert_eq!(point.client.request_count, pooled.len() as u64);
        assert_eq!(point.client.duration_ns, end - begin);
        let rate = pooled.len() as f64 * SECOND as f64 / (end - begin) as f64;
        assert!((point.client.infer_per_sec / rate - 1.0).abs() < 1e-6);
        assert_eq!(point.server.as_ref().unwrap().counters.success.count, pooled.len() as u64);
        let windows: u64 = point.windows.iter().map(|window| window.duration_ns).sum();
        assert_eq!(windows, point.client.duration_ns);
    }
}

#[test]
fn percentiles_agree_with_a_naive_count() {
    for count in [1, 2, 3, 10, 99, 100, 101, 1000] {
        let mut latencies = shuffled(count, count);
        latencies.sort_unstable();
        for percentile in 1..=99u8 {
            let figures = LatencyFigures::of(&latencies, Some(percentile)).unwrap();
            let found = figures.percentiles_ns[&percentile];
            // The rank nearest to that fraction of the index range, halves up.
            let rank = (2 * u64::from(percentile) * (count - 1) + 100) / 200;
            let below = latencies.partition_point(|latency| *latency < found) as u64;
            let not_above = latencies.partition_point(|latency| *latency <= found) as u64;
            assert!((below..not_above).contains(&rank), "p{percentile} of {count}");
        }
    }
}

#[test]
fn progress_shows_point_window_time_and_rate() {
    let mut fake_run = FakeRun::steady().concurrency(2, 2, 1);
    let (_, console) = fake_run.run();
    assert_eq!(console.progress.len(), 3 * 6);
    assert_eq!(console.progress[0], "Concurrency 2, window 1: 0.0 of 1.2 s, 0 requests/s");
    assert!(
        console.progress[8].starts_with("Concurrency 2, window 2: 0.4 of 1.2 s, 49"),
        "{:?}",
        console.progress[8]
    );
}

#[test]
fn a_fixed_number_of_requests_is_counted_completely() {
    for mut fake_run in
        [FakeRun::steady().concurrency(2, 2, 1), FakeRun::steady().rate(200.0, 200.0, 1.0)]
    {
        fake_run.settings.request_count = Some(40);
        fake_run.settings.warmup_request_count = 7;
        fake_run.world.borrow_mut().start_takes = Duration::from_millis(50);
        let (outcome, _) = fake_run.run();
        let [point] = outcome.points.as_slice() else { panic!("{outcome:?}") };
        assert_eq!(point.client.request_count, 40);
        assert_eq!(point.server.as_ref().unwrap().counters.success.count, 40);
    }
}
