//! What is recorded, and what is not.

use super::*;

#[test]
fn distributions_are_recorded_only_on_request() {
    let off = DistributionSettings::default();
    assert!(Distributions::new(&off, Instant::now()).is_none());
}

#[test]
fn histograms_include_the_time_to_the_first_response() {
    let settings = DistributionSettings { has_histograms: true, ..DistributionSettings::default() };
    let made = Distributions::new(&settings, Instant::now()).expect("asked for");
    assert!(made.has_first_response() && made.window.is_none());
}

#[test]
fn a_family_may_have_its_own_bounds() {
    let bounds = Bounds::new(&[0.5]).expect("ascending");
    let family = "galatea_inference_queue_duration_seconds";
    assert!(
        DistributionSettings::is_histogram(family) && !DistributionSettings::is_histogram("mine")
    );
    let settings = DistributionSettings {
        has_histograms: true,
        bounds: BTreeMap::from([(family.to_owned(), bounds)]),
        ..DistributionSettings::default()
    };
    let mut made = Distributions::new(&settings, Instant::now()).expect("asked for");
    made.succeeded(
        Instant::now(),
        &RequestRecord { queue: Duration::from_secs(1), ..RequestRecord::default() },
    );
    let histograms = made.snapshot(Instant::now()).histograms.expect("on");
    assert_eq!(histograms.phases[1].cumulated().collect::<Vec<_>>(), [(0.5, 0)]);
    assert_eq!(histograms.phases[0].cumulated().count(), SECONDS.len());
}

#[test]
fn watched_distributions_are_recorded_until_the_watcher_is_dropped() {
    let second = RequestRecord { total: Duration::from_secs(1), ..RequestRecord::default() };
    for has_histograms in [false, true] {
        let settings = DistributionSettings { has_histograms, ..DistributionSettings::default() };
        let statistics = crate::ModelStatistics::new(&settings, galatea_types::Clock::system());
        statistics.record_successes([second]);
        assert_eq!(statistics.recent(), None, "nobody watches");
        statistics.set_watched(true);
        statistics.record_successes([second, second]);
        statistics.set_watched(true);
        let recent = statistics.recent().expect("two requests");
        assert_eq!(recent.count, 2);
        assert!(recent.p50.abs_diff(1_000_000) < 1_000_000 / 64);
        statistics.set_watched(false);
        assert_eq!(statistics.recent(), None);
        assert_eq!(statistics.scrape().1.histograms.is_some(), has_histograms);
        assert_eq!(statistics.activity().ended, 3);
    }
}
