//! Families that models define: who holds what, and how long it lives.

use super::*;

fn labels(pairs: &[(&str, &str)]) -> Labels {
    pairs.iter().map(|&(name, value)| (name.to_owned(), value.to_owned())).collect()
}

fn rendered(metrics: &CustomMetrics) -> String {
    let mut text = String::new();
    metrics.render_into(&mut text);
    text
}

#[test]
fn the_same_name_and_labels_share_one_value() {
    let metrics = CustomMetrics::default();
    let one = metrics.family("seen", "what was seen", CustomMetricKind::Counter).expect("a family");
    let two = metrics.family("seen", "another text", CustomMetricKind::Counter).expect("the same");
    assert!(Arc::ptr_eq(&one, &two));
    let a = one.metric(labels(&[("model", "m")]), None).expect("a series");
    let b = two.metric(labels(&[("model", "m")]), None).expect("the same series");
    let c = two.metric(labels(&[]), None).expect("another series");
    a.increment(1.5).expect("a counter");
    b.increment(2.0).expect("a counter");
    assert_eq!((a.value(), c.value()), (Ok(3.5), Ok(0.0)));
    assert_eq!(
        rendered(&metrics),
        "# HELP seen what was seen\n# TYPE seen counter\nseen 0\nseen{model=\"m\"} 3.5\n"
    );
}

#[test]
fn a_dropped_metric_removes_its_series() {
    let metrics = CustomMetrics::default();
    let family = metrics.family("level", "", CustomMetricKind::Gauge).expect("a family");
    let metric = family.metric(labels(&[]), None).expect("a series");
    let again = metric.clone();
    metric.set(-4.0).expect("a gauge");
    drop(metric);
    assert_eq!(rendered(&metrics), "# TYPE level gauge\nlevel -4\n");
    drop(again);
    assert_eq!(rendered(&metrics), "", "a family without series is not shown");
    let again = family.metric(labels(&[]), None).expect("a series");
    assert_eq!(again.value(), Ok(0.0));
    drop(family);
    assert_eq!(metrics.names(), ["level"], "its series still holds it");
    drop(again);
    assert_eq!(metrics.names(), Vec::<String>::new());
    metrics.family("level", "", CustomMetricKind::Counter).expect("the name is free again");
}

#[test]
fn a_histogram_renders_all_its_lines() {
    let metrics = CustomMetrics::default();
    let family = metrics.family("took_us", "a \"b\"\\\n", CustomMetricKind::Histogram).expect("ok");
    let metric = family.metric(labels(&[("who", "\"\\\n")]), Some(vec![0.5, 10.0])).expect("ok");
    for seen in [0.5, 0.6, 10.0, 11.0, 12.25] {
        metric.observe(seen).expect("a histogram");
    }
    let expected = r#"# HELP took_us a "b"\\\n
# TYPE took_us histogram
took_us_count{who="\"\\\n"} 5
took_us_sum{who="\"\\\n"} 34.35
took_us_bucket{who="\"\\\n",le="0.5"} 1
took_us_bucket{who="\"\\\n",le="10"} 3
took_us_bucket{who="\"\\\n",le="+Inf"} 5
"#;
    assert_eq!(rendered(&metrics), expected);
}

#[test]
fn special_values_and_labels_are_rendered() {
    let metrics = CustomMetrics::default();
    let family = metrics.family("g", "", CustomMetricKind::Gauge).expect("ok");
    let metric = family.metric(labels(&[]), None).expect("ok");
    for (value, expected) in [
        (f64::INFINITY, "+Inf"),
        (f64::NEG_INFINITY, "-Inf"),
        (f64::NAN, "NaN"),
        (1e21, "1000000000000000000000"),
    ] {
        metric.set(value).expect("a gauge");
        assert_eq!(rendered(&metrics), format!("# TYPE g gauge\ng {expected}\n"));
    }
    let family = metrics.family("h", "", CustomMetricKind::Histogram).expect("ok");
    let metric = family.metric(labels(&[]), Some(vec![1.0, f64::INFINITY])).expect("ok");
    metric.observe(f64::NAN).expect("a histogram");
    metric.observe(2.0).expect("a histogram");
    let text = rendered(&metrics);
    assert_eq!(text.matches("h_bucket{le=\"+Inf\"} 2\n").count(), 1, "{text}");
}

#[test]
fn unsupported_operations_of_a_kind_are_refused() {
    let metrics = CustomMetrics::default();
    let make = |kind: CustomMetricKind, buckets| {
        let family = metrics.family(kind.name(), "", kind).expect("a family");
        family.metric(labels(&[]), buckets).expect("a series")
    };
    let counter = make(CustomMetricKind::Counter, None);
    let gauge = make(CustomMetricKind::Gauge, None);
    let histogram = make(CustomMetricKind::Histogram, Some(vec![]));
    for (result, expected) in [
        (counter.set(1.0), "COUNTER does not support Set"),
        (counter.observe(1.0), "COUNTER does not support Observe"),
        (gauge.observe(1.0), "GAUGE does not support Observe"),
        (histogram.increment(1.0), "HISTOGRAM does not support Increment"),
        (histogram.set(1.0), "HISTOGRAM does not support Set"),
        (histogram.value().map(|_| ()), "HISTOGRAM does not support Value"),
    ] {
        let expected = format!("TRITONSERVER_METRIC_KIND_{expected}");
        assert_eq!(result.map_err(|error| error.to_string()), Err(expected));
    }
    let error = counter.increment(-1.0).expect_err("less than nothing");
    assert_eq!(
        error.to_string(),
        "TRITONSERVER_METRIC_KIND_COUNTER can only be incremented monotonically by non-negative values."
    );
    gauge.increment(-1.0).expect("a gauge goes both ways");
    assert_eq!((counter.value(), gauge.value()), (Ok(0.0), Ok(-1.0)));
}

#[test]
fn invalid_names_are_refused() {
    let metrics = CustomMetrics::default();
    let refusal = |name, kind| metrics.family(name, "", kind).expect_err("refused").to_string();
    for name in ["", "1st", "a-b", "__own", "ä", "a b", "a\n"] {
        assert_eq!(refusal(name, CustomMetricKind::Gauge), "Invalid metric name", "{name:?}");
    }
    for name in ["nv_inference_count", "nv_cpu_utilization", "nv_model_load_duration_secs"] {
        assert_eq!(refusal(name, CustomMetricKind::Counter), "Family name already exists");
    }
    let family = metrics.family("ns:a_1", "", CustomMetricKind::Histogram).expect("a family");
    let text = refusal("ns:a_1", CustomMetricKind::Gauge);
    assert_eq!(text, "Family name already exists with different type");
    for name in ["", "1st", "a:b", "__own", "le"] {
        let error = family.metric(labels(&[(name, "")]), Some(vec![])).expect_err("refused");
        assert_eq!(error.to_string(), "Invalid label name", "{name:?}");
    }
}

#[test]
fn invalid_buckets_are_refused() {
    let metrics = CustomMetrics::default();
    let refusal = |name, kind, buckets| {
        let family = metrics.family(name, "", kind).expect("a family");
        family.metric(labels(&[]), buckets).expect_err("refused").to_string()
    };
    for buckets in [vec![1.0, 1.0], vec![2.0, 1.0], vec![f64::NAN], vec![1.0, f64::NAN]] {
        let text = refusal("h", CustomMetricKind::Histogram, Some(buckets));
        assert_eq!(text, "Bucket Boundaries must be strictly sorted");
    }
    let text = refusal("h", CustomMetricKind::Histogram, None);
    assert_eq!(text, "Bucket boundaries not found in Metric args.");
    let text = refusal("g", CustomMetricKind::Gauge, Some(vec![]));
    assert_eq!(text, "Unexpected args found in gauge Metric constructor.");
}

#[test]
fn no_count_is_lost_between_creating_and_dropping_threads() {
    let metrics = CustomMetrics::default();
    let family = metrics.family("n", "", CustomMetricKind::Counter).expect("a family");
    let kept = family.metric(labels(&[]), None).expect("a series");
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for n in 0..1000 {
                    let family = metrics.family("n", "", CustomMetricKind::Counter).expect("ok");
                    let same = family.metric(labels(&[]), None).expect("ok");
                    same.increment(1.0).expect("ok");
                    let other = metrics.family("other", "", CustomMetricKind::Gauge).expect("ok");
                    other.metric(labels(&[("n", &(n % 3).to_string())]), None).expect("ok");
                    rendered(&metrics);
                }
            });
        }
    });
    assert_eq!(kept.value(), Ok(4000.0));
    assert_eq!(metrics.names(), ["n"]);
    assert!(rendered(&metrics).ends_with("\nn 4000\n"));
}

#[test]
fn the_series_of_a_family_are_found_by_name() {
    let metrics = CustomMetrics::default();
    assert!(metrics.series("cache", 9).is_empty());
    let family = metrics.family("cache", "", CustomMetricKind::Gauge).expect("a family");
    let of = |kind: &str| Labels::from([("type".to_owned(), kind.to_owned())]);
    let kept: Vec<CustomMetric> = ["a", "b", "c"]
        .iter()
        .map(|kind| family.metric(of(kind), None).expect("a series"))
        .collect();
    kept[1].set(5.0).expect("a gauge");
    let found = metrics.series("cache", 2);
    assert_eq!(found.len(), 2, "no more than are asked for");
    assert_eq!((found[1].labels(), found[1].value().expect("a gauge")), (&of("b"), 5.0));
    drop(kept);
    assert_eq!(metrics.series("cache", 9).len(), 2, "these are held still");
    drop(found);
    assert!(metrics.series("cache", 9).is_empty());
}
