//! The history of an engine with models, whose counters and clock the tests set.

use super::*;
use crate::testing::TestEngine;

struct Server {
    test: TestEngine,
    history: History,
}

impl Server {
    fn with(names: &[&str]) -> Self {
        let test = TestEngine::with(names);
        Self { history: History::new(test.time.clock()), test }
    }

    /// An interval passes.
    fn pass(&mut self) {
        self.test.time.set(self.history.due());
        self.history.tick(&self.test.engine);
    }

    fn row(&self) -> HistoryRow {
        let sampled: Vec<_> = self.test.engine.ready_models();
        let sampled: Vec<_> = sampled.iter().map(|m| (key_of(m), VersionCounts::of(m))).collect();
        let sampled = sampled.iter().map(|(key, counted)| (key.as_str(), *counted));
        self.history.row(self.test.time.now(), sampled)
    }

    /// (succeeded, failed, milliseconds) of each point.
    fn points(&self, key: &str) -> Vec<(u32, u32, f32)> {
        let row = self.row();
        let points = row.models.get(key).into_iter().flatten();
        points.map(|point| (point.succeeded, point.failed, point.ms[0])).collect()
    }
}

#[test]
fn a_later_watcher_gets_the_points_before_a_fault() {
    let mut server = Server::with(&["m"]);
    server.pass();
    server.test.work("m", 10, 0);
    server.pass();
    server.test.work("m", 5, 5);
    server.pass();
    server.test.work("m", 0, 3);
    server.test.time.advance(Duration::from_secs(2));
    assert_eq!(server.points("m/1"), [(10, 0, 40.0), (5, 5, 20.0), (0, 3, 0.0)]);
    let row = server.row();
    assert_eq!(row.spans_ms, [5000, 5000, 5000, 2000]);
    let apart = row.times_ms.windows(2).map(|pair| pair[1] - pair[0]);
    assert_eq!(apart.collect::<Vec<_>>(), [5000, 5000, 2000]);
    let total: Vec<_> = row.total.iter().map(|total| (total.ended, total.failed)).collect();
    assert_eq!(total, [(0, 0), (10, 0), (10, 5), (3, 3)]);
    assert!(row.total.iter().all(|total| total.resident_bytes > Some(1 << 20)));
}

#[test]
fn a_long_idle_model_has_no_points_and_uses_no_memory() {
    let mut server = Server::with(&["m", "idle"]);
    server.test.work("m", 1, 0);
    server.pass();
    let points = |server: &Server, key: &str| server.history.models[key].points.capacity();
    assert_eq!(points(&server, "m/1") * size_of::<Point>(), BYTES_OF_MODEL);
    assert_eq!(points(&server, "idle/1"), 0);
    (1..MOST_POINTS).for_each(|_| server.pass());
    assert_eq!(server.points("m/1").first(), Some(&(1, 0, 4.0)), "a quarter of an hour ago");
    assert_eq!(points(&server, "m/1") * size_of::<Point>(), BYTES_OF_MODEL, "it has not grown");
    server.pass();
    assert_eq!((points(&server, "m/1"), server.points("m/1").len()), (0, 0));
    assert_eq!(server.row().times_ms.len(), MOST_POINTS + 1);
    server.test.work("m", 2, 0);
    server.pass();
    assert_eq!(server.points("m/1"), [(2, 0, 8.0), (0, 0, 0.0)]);
}

#[test]
fn models_over_the_limit_get_history_when_others_are_idle() {
    let server = Server::with(&["m"]);
    let model = server.test.engine.model("m", None).expect("ready");
    server.test.work("m", 1, 0);
    let mut kept = VersionHistory::default();
    assert_eq!(kept.tick(&model, false).succeeded, 1, "the server's own points have it");
    assert!(kept.points.is_empty());
    server.test.work("m", 2, 0);
    kept.tick(&model, true);
    server.test.work("m", 3, 0);
    kept.tick(&model, false);
    let succeeded: Vec<_> = kept.points.iter().map(|point| point.succeeded).collect();
    assert_eq!(succeeded, [2, 3], "what has begun goes on");
}

#[test]
fn a_load_and_an_unload_leave_no_wrong_points() {
    let mut server = Server::with(&["m"]);
    server.test.work("m", 10, 0);
    server.pass();
    server.test.load("m");
    server.test.work("m", 3, 0);
    server.pass();
    let points: Vec<_> = server.points("m/1").iter().map(|point| point.0).collect();
    assert_eq!(points, [10, 3, 0]);
    server.test.engine.unload_model("m", false).expect("unloaded");
    server.pass();
    assert!(server.row().models.is_empty() && server.history.models.is_empty());
    assert_eq!(server.row().total.len(), 4, "the server's points stay");
}
