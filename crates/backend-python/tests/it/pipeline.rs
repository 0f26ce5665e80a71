//! Requests that are handed to a worker while it executes another.

use std::sync::{Arc, mpsc};

use galatea_backend::{Batch, HandedOver, ModelInstance, Outcome, testing};
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

fn hand_over(instance: &mut dyn ModelInstance, batch: &mut Batch) -> Arc<dyn HandedOver> {
    instance.pipeline().expect("it has one").hand_over(batch).expect("there is room")
}

fn complete(instance: &mut dyn ModelInstance, mut batch: Batch) -> Result<InferResponse> {
    instance.pipeline().expect("it has one").complete(&mut batch);
    match batch.into_outcomes().next().expect("one request").1 {
        Outcome::Answered(result) => result,
        Outcome::Unanswered => Err(Error::internal("unanswered")),
    }
}

/// Small ones travel in the message, large ones in shared memory.
#[test]
fn what_waits_in_a_worker_is_taken_back_and_executed_elsewhere() {
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
        // As soon as the worker has read the first.
        let deadline = std::time::Instant::now() + TIMEOUT;
        while !handle.take_back() {
            assert!(std::time::Instant::now() < deadline, "{size}");
        }
        begin(&mut **free, &mut waits);
        assert_eq!(output(complete(&mut **free, waits)), vec![7; size]);
        // The next one takes its place.
        let mut next = batch(100 + round, &vec![8; size]);
        let handle = hand_over(&mut **busy, &mut next);
        std::fs::write(&file, "").expect("written");
        assert_eq!(output(complete(&mut **busy, long)), name);
        assert_eq!(output(complete(&mut **busy, next)), vec![8; size]);
        assert!(!handle.take_back(), "it was begun");
    }
}

#[test]
fn what_waits_behind_the_end_of_a_worker_was_not_begun() {
    let loaded = waiting().load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let (mut last, mut waits) = (batch(1, b"exit"), batch(2, &[7; 100]));
    begin(&mut *instance, &mut last);
    let handle = hand_over(&mut *instance, &mut waits);
    let error = complete(&mut *instance, last).expect_err("it exits");
    assert!(error.message().contains("code 3"), "{error}");
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
    assert!(handle.take_back());
}

/// From another thread, again and again, at the very moment when the worker goes on with it: it is executed once.
#[test]
fn taking_back_races_with_the_worker() {
    const ROUNDS: usize = 300;
    let (mut instance, _loaded) = Written::execute(IDENTITY).instance();
    let (handles, to_take) = mpsc::channel::<Arc<dyn HandedOver>>();
    let (results, taken) = mpsc::channel();
    let taker = std::thread::spawn(move || {
        for handle in to_take {
            results.send(handle.take_back()).expect("the test listens");
        }
    });
    let mut counts = [0, 0];
    for round in 0..ROUNDS {
        let data = vec![round as u8; if round % 3 == 0 { 100_000 } else { 10 }];
        let (mut first, mut second) = (batch(2 * round, &data), batch(2 * round + 1, &data));
        begin(&mut *instance, &mut first);
        let handle = hand_over(&mut *instance, &mut second);
        handles.send(handle).expect("the taker listens");
        assert_eq!(output(complete(&mut *instance, first)), data);
        let is_taken = taken.recv_timeout(TIMEOUT).expect("known");
        counts[usize::from(is_taken)] += 1;
        if is_taken {
            begin(&mut *instance, &mut second);
        }
        assert_eq!(output(complete(&mut *instance, second)), data);
    }
    drop(handles);
    taker.join().expect("no panic");
    assert_eq!(counts[0] + counts[1], ROUNDS);
}
