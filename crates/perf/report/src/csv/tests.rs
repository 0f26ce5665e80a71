//! Against files of perf_analyzer.

use galatea_perf_types::{settings::MetricsSettings, status::GpuMetrics};

use super::cells::UNACCOUNTED;
use super::*;
use crate::tests::samples;

fn to_file(name: &str) -> Settings {
    Settings { csv_file: Some(PathBuf::from(name)), ..samples::settings() }
}

fn only_file(tables: &Tables) -> &str {
    assert_eq!(tables.files.len(), 1, "{tables:?}");
    &tables.files[0].1
}

#[test]
fn a_plain_table_equals_perf_analyzers() {
    let tables = write(&[samples::http_point()], &to_file("x.csv"), &samples::model());
    assert_eq!(only_file(&tables), include_str!("../../testdata/http.csv"));
    assert_eq!(tables.files[0].0, PathBuf::from("x.csv"));
    assert_eq!(tables.warnings, [""; 0]);
}

#[test]
fn a_verbose_table_equals_perf_analyzers() {
    let settings = Settings { verbose_csv: true, percentile: Some(95), ..to_file("x.csv") };
    let tables = write(&samples::percentile_points(), &settings, &samples::model());
    assert_eq!(only_file(&tables), include_str!("../../testdata/verbose_percentile.csv"));
}

#[test]
fn rows_are_sorted_by_throughput() {
    let tables = write(&samples::late_points(), &to_file("x.csv"), &samples::model());
    assert_eq!(only_file(&tables), include_str!("../../testdata/late.csv"));
}

#[test]
fn a_decoupled_table_equals_perf_analyzers() {
    let settings = Settings { verbose_csv: true, ..to_file("x.csv") };
    let model = ModelInfo { decoupled: true, ..samples::model() };
    let tables = write(&[samples::decoupled_point()], &settings, &model);
    assert_eq!(only_file(&tables), include_str!("../../testdata/decoupled.csv"));
}

#[test]
fn tables_of_ensemble_steps_equal_perf_analyzers() {
    let tables =
        write(&[samples::ensemble_point()], &to_file("dir/ensemble.csv"), &samples::model());
    assert_eq!(tables.warnings, [""; 0]);
    let files = [
        ("dir/ensemble.csv", include_str!("../../testdata/ensemble.csv")),
        ("dir/plain_v1.ensemble.csv", include_str!("../../testdata/plain_v1.ensemble.csv")),
        ("dir/simple_v1.ensemble.csv", include_str!("../../testdata/simple_v1.ensemble.csv")),
    ];
    assert_eq!(tables.files, files.map(|(name, text)| (PathBuf::from(name), text.to_owned())));
}

#[test]
fn tables_with_cache_columns_equal_perf_analyzers() {
    let model = ModelInfo { response_cache: true, ..samples::model() };
    let tables = write(&[samples::cached_point()], &to_file("x.csv"), &model);
    assert_eq!(only_file(&tables), include_str!("../../testdata/cached.csv"));
    assert_eq!(tables.warnings, [UNACCOUNTED]);

    let texts = |tables: Tables| tables.files.into_iter().map(|(_, text)| text).collect::<Vec<_>>();
    let tables = write(&[samples::cached_step_point()], &to_file("x.csv"), &model);
    assert_eq!(tables.warnings, [""; 0]);
    assert_eq!(
        texts(tables),
        [
            include_str!("../../testdata/ensemble_of_cached.csv"),
            include_str!("../../testdata/cached_v1.ensemble_of_cached.csv"),
            include_str!("../../testdata/plain_v1.ensemble_of_cached.csv"),
        ]
    );

    let tables = write(&[samples::cached_ensemble_point()], &to_file("x.csv"), &model);
    assert_eq!(tables.warnings, [UNACCOUNTED; 2]);
    assert_eq!(tables.files[1].0, PathBuf::from("cached_v-1.x.csv"));
    assert_eq!(
        texts(tables),
        [
            include_str!("../../testdata/ensemble_from_cache.csv"),
            include_str!("../../testdata/cached_v-1.ensemble_from_cache.csv"),
            include_str!("../../testdata/plain_v-1.ensemble_from_cache.csv"),
        ]
    );
}

#[test]
fn gpu_columns_equal_perf_analyzers() {
    let interval = std::time::Duration::from_secs(1);
    let metrics = Some(MetricsSettings { url: String::new(), interval });
    let settings = Settings { verbose_csv: true, metrics, ..to_file("x.csv") };
    let mut status = samples::metrics_point();
    let tables = write(std::slice::from_ref(&status), &settings, &samples::model());
    assert_eq!(only_file(&tables), include_str!("../../testdata/metrics.csv"));

    status.metrics[0] = GpuMetrics {
        utilization: [("b".to_owned(), 0.25), ("a".to_owned(), 1.0 / 3.0)].into(),
        power_watts: [("a".to_owned(), 70.5)].into(),
        memory_used_bytes: [("a".to_owned(), 12_345_678)].into(),
        memory_total_bytes: [("a".to_owned(), 80_000_000_000)].into(),
    };
    let tables = write(&[status], &settings, &samples::model());
    let gauges = ",a:0.333333;b:0.25;,a:70.5;,a:12345678;,a:80000000000;\n";
    assert!(only_file(&tables).ends_with(gauges), "{}", only_file(&tables));
}

#[test]
fn without_statistics_server_columns_are_omitted() {
    let status = samples::status(1, 1234567.0, [1, 2, 3, 4]);
    let tables = write(&[status], &to_file("x.csv"), &samples::model());
    assert_eq!(
        only_file(&tables),
        "Concurrency,Inferences/Second,Client Send,Client Recv,p50 latency,p90 latency,p95 latency,p99 latency\n1,1.23457e+06,0,0,1,2,3,4\n"
    );
}

#[test]
fn no_file_is_written_without_a_name_or_points() {
    let (settings, model) = (to_file("x.csv"), samples::model());
    assert_eq!(write(&[], &settings, &model), Tables::default());
    assert_eq!(write(&[samples::http_point()], &samples::settings(), &model), Tables::default());
}

/// Scripts read columns by name: every cell of a real file has the same name in ours.
#[test]
fn columns_are_found_by_name() {
    let tables = write(&[samples::http_point()], &to_file("x.csv"), &samples::model());
    let cells = |text: &str| -> Vec<(String, String)> {
        let mut lines = text.lines().map(|line| line.split(',').map(str::to_owned));
        lines.next().unwrap().zip(lines.next().unwrap()).collect()
    };
    let ours = cells(only_file(&tables));
    assert_eq!(ours, cells(include_str!("../../testdata/http.csv")));
    assert_eq!(ours[3], ("Network+Server Send/Recv".to_owned(), "226".to_owned()));
}

#[test]
fn unstable_points_add_a_column_that_marks_them() {
    let unstable = PerfStatus { is_stable: false, ..samples::http_point() };
    let tables = write(&[unstable, samples::http_point()], &to_file("x.csv"), &samples::model());
    let mut plain = include_str!("../../testdata/http.csv").lines();
    let (head, row) = (plain.next().unwrap(), plain.next().unwrap());
    assert_eq!(only_file(&tables), format!("{head},Stable\n{row},0\n{row},1\n"));
}
