//! Order, wake-ups and the bound of the response queue.

mod model_check;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
};

use galatea_types::{
    Buffer, Cancellation, DataType, InferResponse, MemoryBudget, Responder, Result, Tensor,
};

use super::{KeyedResponse, OnOverflow, Overflow, ResponseKey, ResponseReceiver};

#[derive(Default)]
struct Wakes(AtomicUsize);

impl Wake for Wakes {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }
}

fn responder(receiver: &ResponseReceiver, key: ResponseKey) -> Responder {
    receiver.responder(key, Cancellation::default())
}

fn answer(data: &Buffer) -> Result<InferResponse> {
    let shape = [i64::try_from(data.len()).expect("small")];
    Ok(InferResponse {
        model_name: "m".into(),
        model_version: 1,
        id: String::new(),
        parameters: Vec::new(),
        outputs: vec![Tensor::new("OUT", DataType::Uint8, shape, data.clone())],
    })
}

fn bytes(count: usize) -> Result<InferResponse> {
    answer(&Buffer::from(vec![0; count]))
}

fn poll(receiver: &mut ResponseReceiver) -> Poll<Result<KeyedResponse, Overflow>> {
    receiver.poll_next(&mut Context::from_waker(Waker::noop()))
}

trait Polled {
    fn received(self) -> KeyedResponse;
    fn is_overflow(&self) -> bool;
}

impl Polled for Poll<std::result::Result<KeyedResponse, Overflow>> {
    fn received(self) -> KeyedResponse {
        match self {
            Poll::Ready(Ok(response)) => response,
            other => panic!("{other:?}"),
        }
    }

    fn is_overflow(&self) -> bool {
        matches!(self, Poll::Ready(Err(Overflow)))
    }
}

#[test]
fn only_a_response_that_can_be_sent_wakes_the_task() {
    let mut receiver = ResponseReceiver::new(1000, OnOverflow::Discard, &MemoryBudget::unlimited());
    let wakes = Arc::new(Wakes::default());
    let waker = Waker::from(wakes.clone());
    let mut context = Context::from_waker(&waker);
    receiver.await_ordered(3);
    assert!(receiver.poll_next(&mut context).is_pending());
    responder(&receiver, ResponseKey::Ordered(4)).finish(bytes(0));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 0);
    responder(&receiver, ResponseKey::Ordered(3)).finish(bytes(0));
    assert_eq!(wakes.0.load(Ordering::Relaxed), 1);
    for number in [4, 3] {
        let key = receiver.poll_next(&mut context).received().key;
        assert_eq!(key, ResponseKey::Ordered(number));
    }
    receiver.await_ordered(5);
    assert!(receiver.poll_next(&mut context).is_pending());
    responder(&receiver, ResponseKey::Unordered(0)).close();
    assert_eq!(wakes.0.load(Ordering::Relaxed), 2);
}

#[test]
fn an_overflow_discards_waiting_responses_and_cancels() {
    let mut receiver = ResponseReceiver::new(4000, OnOverflow::Discard, &MemoryBudget::unlimited());
    let cancellation = Cancellation::default();
    let mut big = receiver.responder(ResponseKey::Unordered(0), cancellation.clone());
    assert!(big.send(bytes(5000)), "a single response may be of any size");
    let weight = poll(&mut receiver).received().weight();
    receiver.release(weight);
    assert!(big.send(bytes(1000)));
    responder(&receiver, ResponseKey::Ordered(0)).finish(bytes(9000));
    assert!(!big.is_closed(), "ordered responses are not counted");
    assert!(!cancellation.is_cancelled());
    assert!(!big.send(bytes(1000)));
    assert!(cancellation.is_cancelled());
    assert!(poll(&mut receiver).is_overflow());
}

#[test]
fn an_overflow_can_keep_waiting_responses() {
    let limit = 1 << 20;
    let mut receiver =
        ResponseReceiver::new(limit, OnOverflow::Deliver, &MemoryBudget::unlimited());
    let mut responder = responder(&receiver, ResponseKey::Unordered(0));
    let quarter = Buffer::from(vec![0; limit / 4]);
    let sent = (0..10).take_while(|_| responder.send(answer(&quarter))).count();
    assert_eq!(sent, 3);
    drop(responder);
    for _ in 0..3 {
        assert!(!poll(&mut receiver).received().response.is_final);
    }
    assert!(poll(&mut receiver).is_overflow());
    assert!(poll(&mut receiver).is_overflow());
}

#[test]
fn a_dropped_receiver_is_reported_to_the_model() {
    let receiver = ResponseReceiver::new(1000, OnOverflow::Deliver, &MemoryBudget::unlimited());
    let mut responder = responder(&receiver, ResponseKey::Unordered(0));
    assert!(responder.send(bytes(1)));
    drop(receiver);
    assert!(responder.is_closed() && !responder.send(bytes(1)));
}

#[test]
fn a_closed_receiver_keeps_no_responses() {
    let mut receiver = ResponseReceiver::new(1000, OnOverflow::Discard, &MemoryBudget::unlimited());
    let data = Buffer::from(vec![0; 10]);
    let mut responder = responder(&receiver, ResponseKey::Unordered(0));
    assert!(responder.send(answer(&data)));
    receiver.close();
    assert!(responder.is_closed() && !responder.send(answer(&data)));
    assert!(poll(&mut receiver).is_pending());
}
