//! Streams against a server that the test controls.

use std::{sync::Arc, time::Instant};

use galatea_types::DataType;
use tokio::runtime::Builder;

use super::{super::load::tests::streaming, *};

/// A stream whose responses the test makes, with two requests in flight.
fn stream() -> (Stream, Rc<PendingRequest>, Rc<PendingRequest>) {
    let exchanges = [Rc::<PendingRequest>::default(), Rc::default()];
    for pending_request in &exchanges {
        pending_request.reset();
    }
    let [first, second] = exchanges;
    let pending = HashMap::from([(1, first.clone()), (2, second.clone())]);
    let stream = Stream {
        shared: Arc::new(streaming()),
        sender: Mutex::new(None),
        next_id: Cell::new(3),
        pending: RefCell::new(pending),
        broken: RefCell::default(),
    };
    (stream, first, second)
}

fn reply(id: u64) -> StreamReply {
    let output = OutputTensor {
        name: "OUT".into(),
        data_type: DataType::Int32,
        shape: vec![1],
        data: bytes::Bytes::new(),
    };
    StreamReply {
        at: Instant::now(),
        id: Some(id),
        error: None,
        is_final: false,
        is_empty: false,
        outputs: vec![output],
    }
}

fn last(id: u64) -> StreamReply {
    StreamReply { is_final: true, is_empty: true, outputs: Vec::new(), ..reply(id) }
}

fn run<T>(future: impl Future<Output = T>) -> T {
    Builder::new_current_thread().build().unwrap().block_on(future)
}

#[test]
fn responses_find_their_request_by_id() {
    let (stream, first, second) = stream();
    for reply in [reply(2), reply(1), reply(2), last(2), reply(9), last(1)] {
        stream.deliver(reply);
    }
    run(async {
        first.wait_until_done().await;
        second.wait_until_done().await;
    });
    assert_eq!((first.take_error(), second.take_error()), (Ok(()), Ok(())));
    let mut record = RequestRecord::default();
    let outputs: Vec<_> = second.fill(&mut record).iter().map(Vec::len).collect();
    assert_eq!((record.responses.len(), record.last_response_is_empty), (3, true));
    assert_eq!(record.end(), Some(record.responses[1]));
    assert_eq!(outputs, [1, 1, 0]);
    first.fill(&mut record);
    assert_eq!(record.responses.len(), 2);
    assert!(stream.pending.borrow().is_empty());
}

#[test]
fn an_error_ends_its_request_and_a_broken_stream_ends_all() {
    let (stream, first, second) = stream();
    stream.deliver(StreamReply { error: Some("bad input".into()), ..reply(1) });
    run(first.wait_until_done());
    assert_eq!(first.take_error().unwrap_err().text, "bad input");

    stream.deliver(StreamReply { id: None, error: Some("the stream is gone".into()), ..reply(0) });
    run(second.wait_until_done());
    assert_eq!(second.take_error().unwrap_err().text, "the stream is gone");
    assert_eq!(stream.broken.borrow().as_ref().unwrap().text, "the stream is gone");
}

#[test]
fn waiting_for_responses_ends_at_the_count_or_with_the_request() {
    let (stream, first, second) = stream();
    stream.deliver(reply(1));
    stream.deliver(reply(1));
    assert!(run(first.reach(2)));
    stream.deliver(last(2));
    assert!(!run(second.reach(2)));
    assert_eq!(second.take_error(), Ok(()));
}
