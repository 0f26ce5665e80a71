//! Load against a server that the test controls.

mod fake_server;

use bytes::Bytes;
use galatea_client::{Endpoint, InferTemplate, InputData, InputTensor, TensorFormat};
use galatea_perf_types::{
    model::SchedulingKind,
    requests::ExpectedOutput,
    settings::{Calls, DataSettings, Range, SequenceSettings},
};
use galatea_test_support::eventually;
use galatea_types::DataType;

use self::fake_server::{Answer, FakeServer};
use super::*;

struct Source {
    steps: usize,
    expected: Vec<ExpectedOutput>,
}

impl RequestSource for Source {
    fn stream_count(&self) -> usize {
        1
    }

    fn step_count(&self, _: usize) -> usize {
        self.steps
    }

    fn template(&self, _: usize, step: usize) -> Arc<InferTemplate> {
        let data = Bytes::copy_from_slice(&(step as i32).to_le_bytes());
        let input = InputTensor {
            name: "IN".into(),
            data_type: DataType::Int32,
            shape: vec![1],
            data: InputData::Inline(data),
        };
        Arc::new(InferTemplate {
            model: "m".into(),
            version: String::new(),
            inputs: vec![input],
            outputs: Vec::new(),
            parameters: Vec::new(),
            input_format: TensorFormat::Json,
            output_format: TensorFormat::Json,
        })
    }

    fn expected(&self, _: usize, _: usize) -> Option<&[ExpectedOutput]> {
        (!self.expected.is_empty()).then_some(&self.expected)
    }

    fn is_user_data(&self) -> bool {
        self.steps > 1
    }
}

const PLAIN: Source = Source { steps: 1, expected: Vec::new() };

fn settings(load: settings::Load) -> Settings {
    let format = TensorFormat::Json;
    Settings {
        load,
        sequences: SequenceSettings {
            count: 3,
            length: 4,
            length_variation: 0.0,
            ..SequenceSettings::default()
        },
        data: DataSettings {
            input_format: format,
            output_format: format,
            ..DataSettings::default()
        },
        ..Settings::defaults("m")
    }
}

fn concurrency(end: u64) -> Settings {
    settings(settings::Load::Concurrency(Range { start: 1, end, step: 1 }))
}

fn rate() -> Settings {
    settings(settings::Load::RequestRate {
        range: Range { start: 1.0, end: 1.0, step: 1.0 },
        distribution: Distribution::Constant,
    })
}

fn model(scheduling: SchedulingKind) -> ModelInfo {
    ModelInfo {
        name: "m".into(),
        version: String::new(),
        max_batch_size: 0,
        scheduling,
        decoupled: false,
        response_cache: false,
        top_level_response_cache: false,
        inputs: Vec::new(),
        outputs: Vec::new(),
        composing: Vec::new(),
    }
}

fn load(server: &FakeServer, settings: &Settings, source: Source) -> Load {
    Load::new(settings, &model(SchedulingKind::None), server.target(), Arc::new(source)).unwrap()
}

fn sequences(server: &FakeServer, settings: &Settings) -> Load {
    Load::new(settings, &model(SchedulingKind::Sequence), server.target(), Arc::new(PLAIN)).unwrap()
}

/// For tests of streams, which need no server.
pub fn streaming() -> Shared {
    let calls = Calls { asynchronous: true, forced_sync: false, streaming: true };
    let settings = Settings { calls, profile_export_file: Some("x".into()), ..concurrency(1) };
    let target = FakeServer::start().target();
    Shared::new(&settings, &model(SchedulingKind::None), target, Arc::new(PLAIN)).unwrap()
}

#[test]
fn a_closed_loop_keeps_its_concurrency_and_sends_the_exact_count() {
    let server = FakeServer::start();
    server.with(|seen| seen.together = 3);
    let mut load = load(&server, &concurrency(3), PLAIN);
    load.start(LoadStart::Concurrency(3), Some(30)).unwrap();
    eventually("the load is finished", || load.is_finished());
    load.check_health().unwrap();
    assert_eq!((load.collected(), load.take_sent_count(), load.take_sent_count()), (30, 30, 0));
    let totals = load.call_totals();
    assert_eq!(totals.calls, 30);
    let records = load.take_records();
    assert_eq!((records.len(), load.collected()), (30, 0));
    let latency: u64 = records.iter().map(|record| record.end().unwrap() - record.start).sum();
    assert!(latency.abs_diff(totals.request_ns) <= 30, "{latency} {totals:?}");
    assert!(records.iter().all(|record| record.intended_start.is_none() && !record.delayed));
    load.stop().unwrap();
    server.with(|seen| assert_eq!((seen.bodies.len(), seen.peak, seen.connections), (30, 3, 3)));
}

#[test]
fn a_warm_up_leaves_only_open_connections() {
    let server = FakeServer::start();
    let mut load = load(&server, &concurrency(2), PLAIN);
    load.warm_up(LoadStart::Concurrency(2), 5).unwrap();
    assert_eq!((load.collected(), load.take_sent_count(), load.call_totals().calls), (0, 0, 0));
    server.with(|seen| assert_eq!(seen.bodies.len(), 5));
    load.start(LoadStart::Concurrency(2), Some(6)).unwrap();
    eventually("the load is finished", || load.is_finished());
    assert_eq!((load.collected(), load.take_sent_count()), (6, 6));
    server.with(|seen| assert_eq!((seen.bodies.len(), seen.connections), (11, 2)));
}

#[test]
fn the_concurrency_changes_without_new_connections() {
    let server = FakeServer::start();
    let mut load = load(&server, &concurrency(4), PLAIN);
    let more = |load: &Load, count| {
        let until = load.collected() + count;
        eventually("more requests are answered", || load.collected() >= until);
    };
    load.start(LoadStart::Concurrency(1), None).unwrap();
    more(&load, 20);
    server.with(|seen| assert_eq!((seen.peak, seen.connections), (1, 1)));
    server.with(|seen| seen.together = 4);
    load.start(LoadStart::Concurrency(4), None).unwrap();
    more(&load, 20);
    server.with(|seen| assert_eq!((seen.peak, seen.connections), (4, 4)));
    load.start(LoadStart::Concurrency(2), None).unwrap();
    server.with(|seen| seen.requests.fill(0));
    server.wait_for(|seen| seen.requests.iter().filter(|count| **count >= 20).count() == 2);
    // A worker that was about to send when it was told to pause sends this one request.
    server.with(|seen| assert_eq!(seen.requests.iter().filter(|count| **count > 1).count(), 2));
    load.check_health().unwrap();
    load.stop().unwrap();
}

#[test]
fn user_data_is_sent_step_by_step() {
    let server = FakeServer::start();
    let source = Source { steps: 4, expected: Vec::new() };
    let mut load = load(&server, &Settings { batch_size: 2, ..concurrency(1) }, source);
    load.start(LoadStart::Concurrency(1), Some(3)).unwrap();
    eventually("the load is finished", || load.is_finished());
    let data = |body: &String| body.split("\"data\":").nth(1).map(|data| data[..3].to_owned());
    let data: Vec<_> = server.with(|seen| seen.bodies.iter().filter_map(data).collect());
    assert_eq!(data, ["[0]", "[2]", "[0]"]);
}

#[test]
fn a_failed_request_ends_the_load_with_the_servers_message() {
    let server = FakeServer::start();
    server.with(|seen| seen.answer = Answer::Error("model 'boom' was told to fail"));
    let mut load = load(&server, &concurrency(1), PLAIN);
    load.start(LoadStart::Concurrency(1), None).unwrap();
    eventually("the load has failed", || load.check_health().is_err());
    let failure = load.check_health().unwrap_err();
    assert_eq!(
        failure.message,
        "Failed to maintain requested inference load. Worker thread(s) failed to generate concurrent \
         requests.\nThread [0] had error: model 'boom' was told to fail\n"
    );
    assert_eq!(load.collected(), 0);
    assert!(load.warm_up(LoadStart::Concurrency(1), 3).is_err());
    load.stop().unwrap();
}

#[test]
fn failed_asynchronous_calls_have_their_own_message() {
    let server = FakeServer::start();
    server.with(|seen| seen.answer = Answer::Nothing);
    let calls = Calls { asynchronous: true, forced_sync: false, streaming: false };
    let mut load = load(&server, &Settings { calls, ..concurrency(1) }, PLAIN);
    assert!(load.warm_up(LoadStart::Concurrency(1), 3).is_err());
    let message = load.check_health().unwrap_err().message;
    let start = "Failed to retrieve results from inference request.\nThread [0] had error: ";
    assert!(message.starts_with(start), "{message}");
}

#[test]
fn an_unreachable_server_is_named() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let endpoint = Endpoint::Tcp { host: "127.0.0.1".into(), port };
    let target = Target { endpoint, ..FakeServer::start().target() };
    let mut load =
        Load::new(&rate(), &model(SchedulingKind::None), target, Arc::new(PLAIN)).unwrap();
    let failure = load.warm_up(LoadStart::RequestRate(100.0), 3).unwrap_err();
    assert!(failure.message.contains(&port.to_string()), "{failure}");
    load.stop().unwrap();
}

#[test]
fn outputs_are_compared_with_validation_data() {
    let expect = |value: i32| {
        let data = Bytes::copy_from_slice(&value.to_le_bytes());
        Source { steps: 1, expected: vec![ExpectedOutput { name: "OUT".into(), data }] }
    };
    let server = FakeServer::start();
    let mut good = load(&server, &concurrency(1), expect(7));
    good.warm_up(LoadStart::Concurrency(1), 3).unwrap();
    let mut bad = load(&server, &concurrency(1), expect(8));
    let failure = bad.warm_up(LoadStart::Concurrency(1), 3).unwrap_err();
    assert!(failure.message.contains("Output doesn't match expected output"), "{failure}");
}

#[test]
fn outputs_are_kept_for_the_profile_export() {
    let server = FakeServer::start();
    let settings = Settings { profile_export_file: Some("x".into()), ..concurrency(1) };
    let mut load = load(&server, &settings, PLAIN);
    load.start(LoadStart::Concurrency(1), Some(1)).unwrap();
    eventually("the load is finished", || load.is_finished());
    let record = load.take_records().remove(0);
    let exported = record.exported.unwrap();
    assert_eq!((exported.stream, exported.step, exported.outputs.len()), (0, 0, 1));
    assert_eq!(exported.outputs[0][0].data, 7i32.to_le_bytes()[..]);
}

#[test]
fn a_rate_is_kept_without_responses() {
    let server = FakeServer::start();
    server.with(|seen| seen.held = true);
    let calls = Calls { asynchronous: true, forced_sync: false, streaming: false };
    // One worker: of several, one that gets no processor leaves its share of the schedule to the others.
    let settings = Settings { calls, max_threads: Some(1), ..rate() };
    let mut load = load(&server, &settings, PLAIN);
    load.start(LoadStart::RequestRate(1000.0), Some(8)).unwrap();
    server.wait_for(|seen| seen.in_flight == 8);
    assert_eq!((load.collected(), load.take_sent_count()), (0, 8));
    server.with(|seen| seen.held = false);
    eventually("the load is finished", || load.is_finished());
    let mut records = load.take_records();
    records.sort_by_key(|record| record.intended_start);
    let intended: Vec<_> = records.iter().map(|record| record.intended_start.unwrap()).collect();
    assert!(intended.windows(2).all(|pair| pair[1] - pair[0] == 1_000_000), "{intended:?}");
    assert!(records.iter().all(|record| record.start >= record.intended_start.unwrap()));
    load.stop().unwrap();
}

#[test]
#[expect(clippy::disallowed_methods, reason = "requests are late by the real time")]
fn late_requests_of_synchronous_calls_are_marked() {
    let server = FakeServer::start();
    server.with(|seen| seen.held = true);
    let mut load = load(&server, &Settings { max_threads: Some(1), ..rate() }, PLAIN);
    load.start(LoadStart::RequestRate(1000.0), Some(3)).unwrap();
    server.wait_for(|seen| seen.in_flight == 1);
    let second = Instant::now();
    eventually("the next two are late", || second.elapsed() > Duration::from_millis(10));
    server.with(|seen| {
        assert_eq!(seen.bodies.len(), 1);
        seen.held = false;
    });
    eventually("the load is finished", || load.is_finished());
    let delayed: Vec<_> = load.take_records().iter().map(|record| record.delayed).collect();
    assert_eq!(delayed[1..], [true, true]);
    server.with(|seen| assert_eq!((seen.peak, seen.connections), (1, 1)));
}

#[test]
fn custom_intervals_form_a_schedule() {
    let server = FakeServer::start();
    let intervals = vec![Duration::from_millis(1), Duration::from_millis(2)];
    // One worker: of several, one that gets no processor leaves its share of the schedule to the others.
    let settings =
        Settings { max_threads: Some(1), ..settings(settings::Load::CustomIntervals(intervals)) };
    let mut load = load(&server, &settings, PLAIN);
    assert_eq!(load.custom_request_rate(), Some(666.0));
    load.start(LoadStart::CustomIntervals, Some(4)).unwrap();
    eventually("the load is finished", || load.is_finished());
    let mut intended: Vec<_> =
        load.take_records().iter().map(|record| record.intended_start.unwrap()).collect();
    intended.sort();
    let gaps: Vec<_> = intended.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps, [2_000_000, 1_000_000, 2_000_000]);
}

/// Sequence id and flags of each request the server saw, in order.
fn marks(server: &FakeServer) -> Vec<(u64, bool, bool)> {
    let mark = |body: &String| {
        let field = |name: &str| {
            let value = body.split(&format!("\"{name}\":")).nth(1).unwrap();
            value.split([',', '}']).next().unwrap().to_owned()
        };
        let flag = |name| field(name) == "true";
        (field("sequence_id").parse().unwrap(), flag("sequence_start"), flag("sequence_end"))
    };
    server.with(|seen| seen.bodies.iter().map(mark).collect())
}

#[track_caller]
fn check_sequences(marks: &[(u64, bool, bool)], most: usize) {
    let mut open = std::collections::BTreeSet::new();
    for (id, start, end) in marks {
        assert_eq!(open.insert(*id), *start, "sequence {id}: {marks:?}");
        assert!(open.len() <= most);
        if *end {
            open.remove(id);
        }
    }
    assert!(open.is_empty(), "left open: {open:?}");
}

#[test]
fn sequences_start_and_end_when_the_load_changes() {
    let server = FakeServer::start();
    let mut load = sequences(&server, &concurrency(3));
    load.start(LoadStart::Concurrency(3), None).unwrap();
    eventually("more than 30 requests are answered", || load.collected() > 30);
    load.start(LoadStart::Concurrency(1), None).unwrap();
    eventually("more than 60 requests are answered", || load.collected() > 60);
    load.start(LoadStart::Concurrency(2), None).unwrap();
    eventually("more than 90 requests are answered", || load.collected() > 90);
    load.stop().unwrap();
    let marks = marks(&server);
    check_sequences(&marks, 3);
    let ends = marks.iter().filter(|(_, _, end)| *end).count();
    assert!(ends >= marks.len() / 4, "{ends} of {}", marks.len());
}

#[test]
fn serial_sequences_at_a_rate_take_turns() {
    let server = FakeServer::start();
    let mut settings = rate();
    settings.sequences.serial = true;
    let mut load = sequences(&server, &settings);
    load.start(LoadStart::RequestRate(2000.0), None).unwrap();
    server.wait_for(|seen| seen.bodies.len() >= 20);
    load.start(LoadStart::RequestRate(4000.0), None).unwrap();
    server.wait_for(|seen| seen.bodies.len() >= 40);
    load.stop().unwrap();
    check_sequences(&marks(&server), 3);
}

/// Three workers.
fn wide(server: &FakeServer, settings: &Settings, scheduling: SchedulingKind) -> Load {
    let load = Load::with_cores(6, settings, &model(scheduling), server.target(), Arc::new(PLAIN));
    let load = load.unwrap();
    assert_eq!(load.worker_settings.len(), 3);
    load
}

#[test]
fn workers_keep_the_concurrency_together() {
    let server = FakeServer::start();
    server.with(|seen| seen.together = 7);
    let mut load = wide(&server, &concurrency(7), SchedulingKind::None);
    load.warm_up(LoadStart::Concurrency(7), 10).unwrap();
    load.start(LoadStart::Concurrency(7), Some(50)).unwrap();
    eventually("the load is finished", || load.is_finished());
    assert_eq!((load.collected(), load.take_sent_count(), load.call_totals().calls), (50, 50, 50));
    assert_eq!(load.take_records().len(), 50);
    load.stop().unwrap();
    server.with(|seen| assert_eq!((seen.bodies.len(), seen.peak, seen.connections), (60, 7, 7)));
}

#[test]
fn workers_keep_the_rate_together() {
    let server = FakeServer::start();
    let mut load = wide(&server, &rate(), SchedulingKind::None);
    load.start(LoadStart::RequestRate(2000.0), Some(30)).unwrap();
    eventually("the load is finished", || load.is_finished());
    let records = load.take_records();
    let mut intended: Vec<_> =
        records.iter().map(|record| record.intended_start.unwrap()).collect();
    intended.sort();
    intended.dedup();
    assert_eq!(intended.len(), 30);
    assert!(intended.iter().all(|at| (at - intended[0]) % 500_000 == 0), "{intended:?}");
}

#[test]
fn sequences_of_several_workers_share_no_id() {
    let server = FakeServer::start();
    let mut load = wide(&server, &concurrency(6), SchedulingKind::Sequence);
    load.start(LoadStart::Concurrency(6), None).unwrap();
    server.wait_for(|seen| seen.bodies.len() >= 200);
    load.stop().unwrap();
    check_sequences(&marks(&server), 6);
}

#[test]
fn workers_split_streams_and_slots() {
    let server = FakeServer::start();
    let sums = |cores, settings: &Settings, scheduling| {
        let model = model(scheduling);
        let load = Load::with_cores(cores, settings, &model, server.target(), Arc::new(PLAIN));
        let worker_settings = load.unwrap().worker_settings.clone();
        let sum =
            |part: fn(&WorkerSettings) -> usize| worker_settings.iter().map(part).sum::<usize>();
        (worker_settings.len(), sum(|place| place.streams), sum(|place| place.slots))
    };
    let one = Settings { max_threads: Some(1), ..concurrency(64) };
    assert_eq!(sums(64, &one, SchedulingKind::None), (1, 1, 0));
    assert_eq!(sums(64, &concurrency(64), SchedulingKind::None), (16, 16, 0));
    assert_eq!(sums(64, &concurrency(2), SchedulingKind::None).0, 2);
    let many = Settings { max_threads: Some(5), ..rate() };
    assert_eq!(sums(4, &many, SchedulingKind::None), (2, 5, 0));
    assert_eq!(sums(64, &many, SchedulingKind::Sequence), (3, 5, 3));
    assert_eq!(sums(1, &rate(), SchedulingKind::None).0, 1);
}

#[test]
#[expect(clippy::disallowed_methods, reason = "workers are idle by the real time")]
fn idle_time_is_time_without_work() {
    let server = FakeServer::start();
    server.with(|seen| seen.held = true);
    let mut load = load(&server, &concurrency(1), PLAIN);
    load.start(LoadStart::Concurrency(1), Some(1)).unwrap();
    server.wait_for(|seen| seen.in_flight == 1);
    let start = Instant::now();
    load.reset_idle_time();
    eventually("idle time counts", || load.idle_time() > Duration::from_millis(20));
    assert!(load.idle_time() <= start.elapsed());
    server.with(|seen| seen.held = false);
    load.stop().unwrap();
}
