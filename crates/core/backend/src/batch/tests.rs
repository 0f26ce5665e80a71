//! What leaves a batch owns its request and its times; states and output buffers belong to one request.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, helpers included"
)]

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use bytes::Bytes;
use galatea_types::{
    Buffer, Code, DataType, Device, DeviceKind, Memory, OutputAllocator, OutputMemory,
};

use super::*;
use crate::{
    OutputBuffer, RequestEnd, SequenceState, StateMemory,
    testing::{pending, prepared, request},
};

/// Counts how often it is dropped: the memory of an input.
struct Input(Arc<AtomicUsize>);

impl AsRef<[u8]> for Input {
    fn as_ref(&self) -> &[u8] {
        &[7]
    }
}

impl Drop for Input {
    fn drop(&mut self) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

/// A batch of requests of 1, 2, ... items whose inputs count their release.
fn batch(count: u32) -> (Batch, Vec<crate::testing::Answer>, Arc<AtomicUsize>) {
    let released = Arc::<AtomicUsize>::default();
    let (pending, answers): (Vec<_>, _) = (1..=count)
        .map(|items| {
            let data = Buffer::from(Bytes::from_owner(Input(released.clone())));
            pending(request("m", items, vec![Tensor::new("x", DataType::Uint8, [1], data)]))
        })
        .unzip();
    (Batch::new("m".into(), 3, pending), answers, released)
}

/// Notes the ends of taken requests.
#[derive(Default)]
struct Ends(std::sync::Mutex<Vec<(u32, u64, Timeline)>>);

impl RequestObserver for Ends {
    fn ended(&self, end: RequestEnd<'_>) {
        let mut ends = self.0.lock().expect("no panic");
        ends.push((end.batch_size, end.responses, end.context.timeline));
    }
}

#[test]
fn a_taken_request_outlives_its_batch_and_is_released_apart_from_its_response() {
    let (mut batch, mut answers, released) = batch(3);
    let ends = Arc::<Ends>::default();
    batch.observe(ends.clone());
    batch.mark_input_done();
    let TakenRequest { request, mut responder } = batch.take(1).expect("it is there");
    assert!(batch.take(1).is_none() && batch.take(9).is_none() && batch.request(1).is_none());
    assert_eq!(
        (batch.taken(), batch.len()),
        (BatchExit { requests: 1, items: 2, has_failed: false }, 3)
    );
    batch.mark_output_started();
    batch.respond(1, Ok(Vec::new()));
    batch.fail_all(&Error::internal("the others"));
    let outcomes: Vec<_> = batch.into_outcomes().map(|(p, _)| p.request.batch_size()).collect();
    assert_eq!(outcomes, [1, 3]);

    assert_eq!(request.inputs[0].host().expect("host memory"), [7]);
    assert_eq!(released.load(Ordering::SeqCst), 2, "those that stayed are gone with the batch");
    drop(request);
    assert_eq!(released.load(Ordering::SeqCst), 3);
    assert!(answers[1].try_recv().is_err(), "releasing it does not answer it");
    assert!(responder.timeline().output_start.is_none(), "its outputs are its own affair");
    responder.mark_output_started();
    responder.finish(Some(Ok((Vec::new(), Vec::new()))));
    let response = answers[1].try_recv().expect("answered").expect("success");
    assert_eq!((&*response.model_name, response.model_version), ("m", 3));
    let ends = ends.0.lock().expect("no panic");
    let [(2, 1, timeline)] = ends[..] else { panic!("{ends:?}") };
    assert!(timeline.compute_start <= timeline.input_done);
    assert!(timeline.input_done <= timeline.output_start);
}

#[test]
fn a_taken_request_keeps_its_inputs_after_its_response() {
    let (mut batch, mut answers, released) = batch(1);
    let TakenRequest { request, responder } = batch.take(0).expect("it is there");
    responder.finish(Some(Err(Error::cancelled("enough"))));
    assert!(answers[0].try_recv().expect("answered").is_err());
    assert_eq!(released.load(Ordering::SeqCst), 0);
    drop(request);
    assert_eq!(released.load(Ordering::SeqCst), 1);
}

#[test]
fn requests_left_in_a_batch_get_the_times_of_the_execution() {
    let (mut batch, _answers, _) = batch(2);
    batch.mark_input_done();
    batch.mark_output_started();
    batch.end_at(Instant::now());
    let execution = *batch.execution();
    for pending in batch.pending() {
        let timeline = &pending.context.timeline;
        assert_eq!(timeline.compute_start, execution.compute_start);
        assert_eq!(timeline.compute_infer(), execution.compute_infer());
        assert!(timeline.end.is_some() && timeline.end == execution.end);
    }
}

fn state(name: &str, value: u8) -> Tensor {
    Tensor::new(name, DataType::Uint8, [1], vec![value])
}

/// Two states that begin with 1; the model gives `s` and `t`, and clients get `t` as well.
fn states() -> SequenceStates {
    let of = |output: &str, is_returned| SequenceState {
        output: output.into(),
        is_returned,
        value: state(&format!("{output}_in"), 1),
    };
    SequenceStates::new(vec![of("s", false), of("t", true)])
}

#[test]
fn state_outputs_are_kept_for_the_next_execution() {
    let (first, mut answer) = pending(request("m", 1, Vec::new()));
    let (second, _) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { states: states(), ..first };
    let mut batch = Batch::new("m".into(), 1, vec![first, second]);
    for (index, output) in [(0, "u"), (1, "s")] {
        let pending = batch.pending_at_mut(index).expect("it is there");
        let error = pending.set_state(state(output, 2)).expect_err("not kept");
        assert_eq!(error.code(), Code::InvalidArg);
    }
    batch.respond(0, Ok(vec![state("y", 5), state("s", 2), state("t", 3)]));
    let kept = batch.take_states(0);
    assert!(kept.inputs().eq(&[state("s_in", 2), state("t_in", 3)]));
    assert!(batch.take_states(1).is_empty());
    for (pending, outcome) in batch.into_outcomes() {
        let Outcome::Answered(result) = outcome else { continue };
        pending.responder.finish(result);
    }
    let outputs = answer.try_recv().expect("answered").expect("succeeds").outputs;
    assert_eq!(outputs, [state("y", 5), state("t", 3)]);
}

/// Has a hundred bytes.
#[derive(Debug, Default)]
struct HundredBytes(std::sync::atomic::AtomicUsize);

impl StateMemory for HundredBytes {
    fn take(&self, bytes: usize) -> Result<()> {
        let used = self.0.load(std::sync::atomic::Ordering::SeqCst) + bytes;
        if used > 100 {
            return Err(Error::new(Code::Exhausted, "no memory; --memory-budget"));
        }
        self.0.store(used, std::sync::atomic::Ordering::SeqCst);
        Ok(())
    }

    fn give_back(&self, bytes: usize) {
        self.0.fetch_sub(bytes, std::sync::atomic::Ordering::SeqCst);
    }
}

#[test]
fn states_are_counted_and_growth_over_the_budget_fails_the_request() {
    let memory = Arc::new(HundredBytes::default());
    let used = || memory.0.load(std::sync::atomic::Ordering::SeqCst);
    let long = |length: usize| Tensor::new("s", DataType::Uint8, [length as i64], vec![2; length]);
    let of_sequence = galatea_types::InferRequest {
        correlation_id: galatea_types::CorrelationId::Number(7),
        ..galatea_types::InferRequest::new("m")
    };
    let mut kept = states().counted_by(memory.clone());
    assert_eq!(used(), 0, "what a sequence begins with is shared");
    for (length, counted) in [(60, 61), (10, 11), (100, 11), (99, 100)] {
        let (pending, _answer) = pending(prepared(of_sequence.clone(), 1));
        let mut batch = Batch::new("m".into(), 1, vec![PendingRequest { states: kept, ..pending }]);
        batch.respond(0, Ok(vec![long(length)]));
        kept = batch.take_states(0);
        assert_eq!((used(), kept.counted_bytes()), (counted, counted));
        let failure = batch.outcomes().find_map(|(_, outcome)| match outcome {
            Outcome::Answered(Err(error)) => Some(error.message().to_owned()),
            _ => None,
        });
        let text = "inference request for sequence 7 to model 'm': no memory; --memory-budget";
        assert_eq!(failure.as_deref(), (length == 100).then_some(text));
        let pending = batch.pending_at_mut(0).expect("it is there");
        assert!(pending.set_state(long(1)).is_err(), "its states were taken");
    }
    drop(kept.clone());
    assert_eq!(used(), 100, "a copy has taken nothing");
    drop(kept);
    assert_eq!(used(), 0);
}

#[test]
fn a_state_that_is_a_slice_of_a_batch_does_not_keep_the_batch() {
    let block = galatea_types::Buffer::from(vec![1; 200]);
    for count in [1, 2] {
        let requests = (0..count).map(|_| {
            let (pending, _answer) = pending(request("m", 1, Vec::new()));
            PendingRequest { states: states(), ..pending }
        });
        let mut batch = Batch::new("m".into(), 1, requests.collect::<Vec<_>>());
        let data = block.slice(0..100).expect("a part");
        batch.respond(0, Ok(vec![Tensor { data: data.clone(), ..state("s", 0) }]));
        let kept = batch.take_states(0);
        let state = &kept.inputs().next().expect("a state").data;
        assert_eq!((state, state.is_same_memory(&data)), (&data, count == 1));
    }
}

#[test]
fn a_failed_step_does_not_change_the_states() {
    let (first, _answer) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { states: states(), ..first };
    let mut batch = Batch::new("m".into(), 1, vec![first]);
    let other = Tensor::new("t", DataType::Int8, [1], vec![3]);
    batch.respond(0, Ok(vec![state("s", 2), other]));
    assert!(batch.outcomes().all(|(_, outcome)| matches!(outcome, Outcome::Answered(Err(_)))));
    assert_eq!(batch.take_states(0), states());
}

/// Notes the states that taken requests leave.
#[derive(Default)]
struct States(std::sync::Mutex<Vec<(usize, SequenceStates)>>);

impl RequestObserver for States {
    fn take_states(&self, row: usize, states: SequenceStates) {
        self.0.lock().expect("no panic").push((row, states));
    }

    fn ended(&self, _: RequestEnd<'_>) {
        assert_eq!(self.0.lock().expect("no panic").len(), 1, "the states are there first");
    }
}

#[test]
fn a_taken_request_owns_its_states_until_it_ends() {
    let (responder, mut answers) = crate::testing::stream();
    let (first, _) = pending(request("m", 1, Vec::new()));
    let (second, _) = pending(request("m", 1, Vec::new()));
    let second = PendingRequest { states: states(), responder, ..second };
    let mut batch = Batch::new("m".into(), 1, vec![first, second]);
    let left = Arc::<States>::default();
    batch.observe(left.clone());
    let mut taken = batch.take(1).expect("it is there");
    assert!(batch.take_states(1).is_empty());
    drop(batch);
    assert!(taken.set_state(state("u", 2)).is_err());
    taken.set_state(state("s", 2)).expect("it is kept");
    let TakenRequest { request, mut responder } = taken;
    drop(request);
    responder.send(Ok((vec![state("y", 5), state("t", 3)], Vec::new())));
    let outputs = |response: galatea_types::Response| {
        response.result.expect("a response").map(|response| response.outputs)
    };
    let first = outputs(answers.try_recv().expect("sent")).expect("succeeds");
    assert_eq!(first, [state("y", 5), state("t", 3)]);
    assert!(left.0.lock().expect("no panic").is_empty(), "the next one has to wait");
    // One that fails leaves what there was.
    let wrong = Tensor::new("t", DataType::Int8, [1], vec![4]);
    responder.finish(Some(Ok((vec![state("s", 9), wrong], Vec::new()))));
    assert!(outputs(answers.try_recv().expect("sent")).is_err());
    let left = left.0.lock().expect("no panic");
    let [(1, kept)] = &left[..] else { panic!("{left:?}") };
    assert!(kept.inputs().eq(&[state("s_in", 2), state("t_in", 3)]));
}

#[test]
fn rescheduled_requests_keep_their_caller() {
    let (responder, mut answer) = crate::testing::stream();
    let (first, _) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { responder, ..first };
    let (second, _) = pending(request("m", 1, Vec::new()));
    let mut batch = Batch::new("m".into(), 1, vec![first, second]);
    let mut taken = batch.take(0).expect("it is there");
    taken.responder.send(Ok((vec![state("y", 1)], Vec::new())));
    batch.put_back(0, taken);
    batch.execute_again(1);
    assert_eq!(batch.taken(), BatchExit::default());
    let again = batch.take_executed_again();
    assert_eq!(again.iter().map(|(i, p)| (*i, p.responses)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    assert_eq!(batch.into_outcomes().count(), 0);
    assert!(answer.try_recv().is_ok_and(|response| !response.is_final));
    // Nothing has told the caller that it was over.
    assert!(answer.try_recv().is_err());
    drop(again);
}

#[test]
fn only_requested_outputs_get_buffers() {
    let wanted = galatea_types::InferRequest {
        outputs: vec!["y".into()],
        ..galatea_types::InferRequest::new("m")
    };
    let batch = Batch::new("m".into(), 1, vec![pending(prepared(wanted, 1)).0]);
    let gpu = Memory::Device(Device { kind: DeviceKind::Gpu, index: 0 });
    let pending = batch.pending_at(0).expect("it is there");
    let mut buffer = OutputBuffer::of(&pending.request, "y", 3, gpu).expect("wanted");
    buffer.as_mut_slice().copy_from_slice(b"abc");
    let buffer = buffer.into_buffer();
    assert!(buffer.is_aligned_to(galatea_types::BUFFER_ALIGNMENT));
    assert_eq!(buffer.host().expect("host memory"), b"abc");
    let error = OutputBuffer::of(&pending.request, "z", 3, gpu).err().expect("not wanted");
    assert_eq!(error.message(), "[request id: <id_unknown>] output 'z' was not requested");
}

/// Gives memory of as many bytes as it has, filled with ones.
#[derive(Debug)]
struct Sender(Option<usize>);

struct Given(Vec<u8>);

impl OutputMemory for Given {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn into_buffer(self: Box<Self>) -> Buffer {
        self.0.into()
    }
}

impl OutputAllocator for Sender {
    fn allocate(
        &self,
        output: &str,
        byte_size: usize,
        preferred: Memory,
    ) -> Result<Option<Box<dyn OutputMemory>>> {
        assert_eq!((output, byte_size, preferred), ("y", 3, Memory::Host));
        let given = self.0.ok_or_else(|| Error::unavailable("no memory for 'y'"))?;
        Ok((given > 0).then(|| Box::new(Given(vec![1; given])) as Box<dyn OutputMemory>))
    }

    fn place(&self, _: &str, _: &Buffer) -> Result<Buffer> {
        Err(Error::internal("no batch asks for it"))
    }
}

/// The data of an output that is written into the memory of its sender.
fn written_for(sender: Sender) -> Result<Buffer> {
    let wanted = galatea_types::InferRequest {
        output_allocator: Some(Arc::new(sender)),
        ..galatea_types::InferRequest::new("m")
    };
    let mut batch = Batch::new("m".into(), 1, vec![pending(prepared(wanted, 1)).0]);
    // The request has its sender's memory with it, in its batch and out of it.
    let taken = batch.take(0).expect("it is there");
    let mut buffer = OutputBuffer::of(&taken.request, "y", 3, Memory::Host)?;
    buffer.as_mut_slice()[..2].copy_from_slice(b"ab");
    Ok(buffer.into_buffer())
}

#[test]
fn an_output_is_written_into_the_callers_memory() {
    assert_eq!(written_for(Sender(Some(3))).expect("given").host(), Ok(&b"ab\x01"[..]));
    assert_eq!(written_for(Sender(Some(0))).expect("the server's").host(), Ok(&b"ab\0"[..]));
    let error = written_for(Sender(None)).expect_err("refused");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "no memory for 'y'"));
    let error = written_for(Sender(Some(2))).expect_err("too little");
    assert_eq!(error.message(), "2 bytes were given for an output of 3 bytes");
}
