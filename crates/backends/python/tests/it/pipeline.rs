//! Requests that are handed to a worker while it executes another.

use std::sync::{Arc, mpsc};

use galatea_backend::{Batch, ModelInstance, Outcome, ReturnedRequests, WaitingBatches, testing};
use galatea_types::{Error, InferResponse, Result};

use crate::common::{IDENTITY, TIMEOUT, Written, bytes, output, request};

/// Waits until the file that the first request names is there, or exits when that is empty.
const WAITS: &str = r#"
        name = bytes(pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy())
        if name == b"exit":
            time.sleep(0.2)
            os._exit(3)
        while name.startswith(b"/") and not os.path.exists(name):
            time.sleep(0.005)
"#;

fn waiting() -> Written {
    Written::execute(&format!("{WAITS}{IDENTITY}"))
}

fn batch(number: usize, data: &[u8]) -> Batch {
    let pending = testing::pending(request(bytes(data))).0;
    Batch::new(Arc::from("m"), 1, vec![pending]).numbered(number)
}

fn begin(instance: &mut dyn ModelInstance, batch: &mut Batch) {
    instance.pipeline().expect("it has one").begin(batch);
}

fn hand_over(instance: &mut dyn ModelInstance, batch: &mut Batch) -> Arc<dyn WaitingBatches> {
    let pipeline = instance.pipeline().expect("it has one");
    assert!(pipeline.hand_over(batch), "there is room");
    pipeline.waiting()
}

/// Takes the first back of those from this number on, as soon as the worker has read what comes before.
fn take_first_back(waiting: &dyn WaitingBatches, from: usize) -> ReturnedRequests {
    let deadline = std::time::Instant::now() + TIMEOUT;
    loop {
        match waiting.take_first_back(from) {
            ReturnedRequests::NotYet => assert!(std::time::Instant::now() < deadline, "not read"),
            taken => return taken,
        }
    }
}

fn complete(instance: &mut dyn ModelInstance, mut batch: Batch) -> Result<InferResponse> {
    instance.pipeline().expect("it has one").complete(&mut batch);
    match batch.into_outcomes().next().expect("one request").1 {
        Outcome::Answered(result) => result,
        Outcome::Unanswered | Outcome::ExecutedAgain => Err(Error::internal("unanswered")),
    }
}

/// Small requests travel in the message, large ones in shared memory.
#[test]
fn requests_queued_in_a_worker_can_be_taken_back_and_run_elsewhere() {
    let folder = tempfile::tempdir().expect("folder");
    let loaded = waiting().load();
    let mut instances = [0, 1].map(|index| loaded.instance(index).expect("an instance"));
    for (round, size) in [10, 100_000, 5 << 20].into_iter().enumerate() {
        let [busy, free] = &mut instances;
        let file = folder.path().join(round.to_string());
        let name = file.to_str().expect("text").as_bytes();
        let (mut long, mut waits) = (batch(2 * round, name), batch(2 * round + 1, &vec![7; size]));
        begin(&mut **busy, &mut long);
        let handle = hand_over(&mut **busy, &mut waits);
        let number = waits.number();
        assert_eq!(take_first_back(&*handle, number), ReturnedRequests::Batch(number), "{size}");
        begin(&mut **free, &mut waits);
        assert_eq!(output(complete(&mut **free, waits)), vec![7; size]);
        // The next one takes its place.
        let mut next = batch(100 + round, &vec![8; size]);
        let handle = hand_over(&mut **busy, &mut next);
        std::fs::write(&file, "").expect("written");
        assert_eq!(output(complete(&mut **busy, long)), name);
        assert_eq!(output(complete(&mut **busy, next)), vec![8; size]);
        assert_eq!(handle.take_first_back(100 + round), ReturnedRequests::Nothing, "it was begun");
    }
}

/// Three requests wait: they return in order, are not executed, and the worker continues with the rest.
#[test]
fn several_queued_requests_are_taken_back_in_order() {
    let folder = tempfile::tempdir().expect("folder");
    let (mut instance, _loaded) = waiting().instance();
    let file = folder.path().join("go");
    let name = file.to_str().expect("text").as_bytes();
    let mut long = batch(1, name);
    begin(&mut *instance, &mut long);
    let mut behind = [2, 3, 4].map(|number| batch(number, &[number as u8; 10]));
    let handles = behind.each_mut().map(|batch| hand_over(&mut *instance, batch));
    assert_eq!(take_first_back(&*handles[0], 2), ReturnedRequests::Batch(2));
    assert_eq!(handles[1].take_first_back(4), ReturnedRequests::NotYet, "3 is said to be begun");
    assert_eq!(handles[0].take_first_back(3), ReturnedRequests::Batch(3));
    let [second, third, fourth] = behind;
    std::fs::write(&file, "").expect("written");
    assert_eq!(output(complete(&mut *instance, long)), name);
    assert_eq!(output(complete(&mut *instance, fourth)), [4; 10]);
    assert_eq!(handles[2].take_first_back(2), ReturnedRequests::Nothing);
    for mut taken in [second, third] {
        let data = [taken.number() as u8; 10];
        begin(&mut *instance, &mut taken);
        assert_eq!(output(complete(&mut *instance, taken)), data);
    }
}

/// Many short requests may be prefetched, but no long or large ones.
#[test]
fn the_prefetch_depth_follows_execution_times() {
    let folder = tempfile::tempdir().expect("folder");
    let (mut instance, _loaded) = waiting().instance();
    let room = |instance: &mut dyn ModelInstance| instance.pipeline().expect("it has one").room();
    assert_eq!(room(&mut *instance), 1, "nothing is known");
    let file = folder.path().join("go");
    let mut long = batch(1, file.to_str().expect("text").as_bytes());
    begin(&mut *instance, &mut long);
    let mut behind = batch(2, &[7; 10]);
    hand_over(&mut *instance, &mut behind);
    assert_eq!(room(&mut *instance), 0);
    // The worker looks for it every five milliseconds.
    std::fs::write(&file, "").expect("written");
    output(complete(&mut *instance, long));
    output(complete(&mut *instance, behind));
    let mut has_more = |number: usize| {
        let mut short = batch(number, &[7; 10]);
        begin(&mut *instance, &mut short);
        output(complete(&mut *instance, short));
        room(&mut *instance) > 1
    };
    assert!((3..10_000).any(&mut has_more), "requests are short enough at some time");
    let mut first = batch(10_001, &[7; 10]);
    begin(&mut *instance, &mut first);
    let mut large = batch(10_002, &vec![7; 300_000]);
    hand_over(&mut *instance, &mut large);
    assert_eq!(room(&mut *instance), 0);
    let mut refused = batch(10_003, &[7; 10]);
    assert!(!instance.pipeline().expect("it has one").hand_over(&mut refused));
    output(complete(&mut *instance, first));
    output(complete(&mut *instance, large));
}

#[test]
fn requests_queued_behind_a_worker_exit_were_not_begun() {
    let loaded = waiting().load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let (mut last, mut waits) = (batch(1, b"exit"), batch(2, &[7; 100]));
    begin(&mut *instance, &mut last);
    let handle = hand_over(&mut *instance, &mut waits);
    let error = complete(&mut *instance, last).expect_err("it exits");
    assert!(error.message().contains("code 3"), "{error}");
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
    assert_eq!(handle.take_first_back(2), ReturnedRequests::Batch(2));
}

/// The worker ends before it reads the requests.
#[test]
fn requests_the_worker_never_read_were_not_begun() {
    let loaded = waiting().load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let mut last = batch(1, b"exit");
    begin(&mut *instance, &mut last);
    let mut behind = [2, 3].map(|number| batch(number, &[7; 100]));
    let handles = behind.each_mut().map(|batch| hand_over(&mut *instance, batch));
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
    // As if it had begun with 2 and not read it.
    assert_eq!(take_first_back(&*handles[0], 3), ReturnedRequests::Batch(3));
    complete(&mut *instance, last).expect_err("it exits");
    let [second, _] = behind;
    complete(&mut *instance, second).expect_err("it ended");
}

/// Another thread takes requests back while the worker begins them: each is executed once.
#[test]
fn taking_back_races_safely_with_the_worker() {
    const ROUNDS: usize = 300;
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    let (handles, to_take) = mpsc::channel::<(Arc<dyn WaitingBatches>, usize)>();
    let (results, taken) = mpsc::channel();
    let taker = std::thread::spawn(move || {
        for (handle, number) in to_take {
            results.send(take_first_back(&*handle, number)).expect("the test listens");
        }
    });
    for round in 0..ROUNDS {
        let data = vec![round as u8; if round % 3 == 0 { 100_000 } else { 10 }];
        let [mut first, mut second, mut third] = [0, 1, 2].map(|n| batch(3 * round + n, &data));
        begin(&mut *instance, &mut first);
        hand_over(&mut *instance, &mut second);
        let handle = hand_over(&mut *instance, &mut third);
        handles.send((handle, second.number())).expect("the taker listens");
        assert_eq!(output(complete(&mut *instance, first)), data);
        let is_taken = taken.recv_timeout(TIMEOUT).expect("known");
        for batch in [second, third] {
            // Neither, or one of the two: it is executed when the other one is complete.
            if is_taken == ReturnedRequests::Batch(batch.number()) {
                continue;
            }
            assert_eq!(output(complete(&mut *instance, batch)), data);
        }
        if let ReturnedRequests::Batch(number) = is_taken {
            let mut again = self::batch(number, &data);
            begin(&mut *instance, &mut again);
            assert_eq!(output(complete(&mut *instance, again)), data);
        }
    }
    drop(handles);
    taker.join().expect("no panic");
}
