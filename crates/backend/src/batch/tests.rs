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
    Buffer, Code, DataType, Device, DeviceKind, DeviceMemory, Memory, Region, RegionSpan,
};

use super::*;
use crate::{
    RequestEnd, SequenceState,
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
fn a_taken_request_outlives_its_batch_and_is_released_apart_from_its_answer() {
    let (mut batch, mut answers, released) = batch(3);
    let ends = Arc::<Ends>::default();
    batch.observe(ends.clone());
    batch.mark_input_done();
    let TakenRequest { request, mut responder } = batch.take(1).expect("it is there");
    assert!(batch.take(1).is_none() && batch.take(9).is_none() && batch.request(1).is_none());
    assert_eq!(
        (batch.taken(), batch.len()),
        (Taken { requests: 1, items: 2, has_failed: false }, 3)
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
fn a_taken_request_that_is_answered_first_keeps_its_inputs() {
    let (mut batch, mut answers, released) = batch(1);
    let TakenRequest { request, responder } = batch.take(0).expect("it is there");
    responder.finish(Some(Err(Error::cancelled("enough"))));
    assert!(answers[0].try_recv().expect("answered").is_err());
    assert_eq!(released.load(Ordering::SeqCst), 0);
    drop(request);
    assert_eq!(released.load(Ordering::SeqCst), 1);
}

#[test]
fn requests_that_stay_get_the_times_of_the_execution() {
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
fn outputs_that_are_states_are_kept_for_the_next_execution() {
    let (first, mut answer) = pending(request("m", 1, Vec::new()));
    let (second, _) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { states: states(), ..first };
    let mut batch = Batch::new("m".into(), 1, vec![first, second]);
    for (index, output) in [(0, "u"), (1, "s"), (5, "s")] {
        let error = batch.set_state(index, state(output, 2)).expect_err("not kept");
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

#[test]
fn a_failed_step_leaves_the_states_as_they_were() {
    let (first, _answer) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { states: states(), ..first };
    let mut batch = Batch::new("m".into(), 1, vec![first]);
    let other = Tensor::new("t", DataType::Int8, [1], vec![3]);
    batch.respond(0, Ok(vec![state("s", 2), other]));
    assert!(batch.outcomes().all(|(_, outcome)| matches!(outcome, Outcome::Answered(Err(_)))));
    assert_eq!(batch.take_states(0), states());
}

#[test]
fn requests_are_executed_again_with_their_caller() {
    let (responder, mut answer) = crate::testing::stream();
    let (first, _) = pending(request("m", 1, Vec::new()));
    let first = PendingRequest { responder, ..first };
    let (second, _) = pending(request("m", 1, Vec::new()));
    let mut batch = Batch::new("m".into(), 1, vec![first, second]);
    let mut taken = batch.take(0).expect("it is there");
    taken.responder.send(Ok((vec![state("y", 1)], Vec::new())));
    batch.put_back(0, taken);
    batch.execute_again(1);
    assert_eq!(batch.taken(), Taken::default());
    let again = batch.take_executed_again();
    assert_eq!(again.iter().map(|(i, p)| (*i, p.responses)).collect::<Vec<_>>(), [(0, 1), (1, 0)]);
    assert_eq!(batch.into_outcomes().count(), 0);
    assert!(answer.try_recv().is_ok_and(|response| !response.is_final));
    // Nothing has told the caller that it was over.
    assert!(answer.try_recv().is_err());
    drop(again);
}

#[test]
fn output_buffers_are_for_outputs_that_are_wanted() {
    let wanted = galatea_types::InferRequest {
        outputs: vec![galatea_types::RequestedOutput::plain("y")],
        ..galatea_types::InferRequest::new("m")
    };
    let batch = Batch::new("m".into(), 1, vec![pending(prepared(wanted, 1)).0]);
    let gpu = Memory::Device(Device { kind: DeviceKind::Gpu, index: 0 });
    let mut buffer = batch.output_buffer(0, "y", 3, gpu).expect("wanted");
    assert_eq!(buffer.memory(), Memory::Host, "the model has to look");
    buffer.as_mut_slice().copy_from_slice(b"abc");
    let buffer = buffer.into_buffer();
    assert!(buffer.is_aligned_to(galatea_types::BUFFER_ALIGNMENT));
    assert_eq!(buffer.host().expect("host memory"), b"abc");
    let error = batch.output_buffer(0, "z", 3, gpu).err().expect("not wanted");
    assert_eq!(error.message(), "[request id: <id_unknown>] output 'z' was not requested");
    assert!(batch.output_buffer(1, "y", 3, gpu).is_err());
}

/// A device's region that keeps what is written to it, or refuses it.
#[derive(Debug)]
struct DeviceRegion {
    content: std::sync::Mutex<Vec<u8>>,
    is_full: bool,
}

const GPU_2: Device = Device { kind: DeviceKind::Gpu, index: 2 };

#[derive(Debug)]
struct OnDevice(usize);

impl DeviceMemory for OnDevice {
    fn device(&self) -> Device {
        GPU_2
    }

    fn address(&self) -> usize {
        0x1000
    }

    fn len(&self) -> usize {
        self.0
    }

    fn slice(self: Arc<Self>, range: std::ops::Range<usize>) -> Arc<dyn DeviceMemory> {
        Arc::new(Self(range.len()))
    }

    fn copy_to_host(&self, _: &mut [u8]) -> Result<()> {
        Err(Error::internal("not in this test"))
    }
}

impl Region for DeviceRegion {
    fn memory(&self) -> Memory {
        Memory::Device(GPU_2)
    }

    fn read(&self, _: u64, byte_size: u64) -> Result<Buffer> {
        Ok(Buffer::Device(Arc::new(OnDevice(usize::try_from(byte_size).expect("small")))))
    }

    fn write(&self, _: u64, data: &Buffer) -> Result<()> {
        if self.is_full {
            return Err(Error::invalid_arg("no room"));
        }
        self.content.lock().expect("no panic").extend_from_slice(data.host()?);
        Ok(())
    }
}

/// Where 3 bytes of an output go that is wanted in `byte_size` bytes of a region, as what, and what the region holds
/// then.
fn written_to_region(byte_size: u64, is_full: bool) -> (Memory, Buffer, Vec<u8>) {
    let region = Arc::new(DeviceRegion { content: Vec::new().into(), is_full });
    let destination = Some(RegionSpan { region: region.clone(), offset: 0, byte_size });
    let output = galatea_types::RequestedOutput { name: "y".into(), destination };
    let wanted = galatea_types::InferRequest {
        outputs: vec![output],
        ..galatea_types::InferRequest::new("m")
    };
    let batch = Batch::new("m".into(), 1, vec![pending(prepared(wanted, 1)).0]);
    let mut buffer = batch.output_buffer(0, "y", 3, Memory::Host).expect("wanted");
    let memory = buffer.memory();
    buffer.as_mut_slice().copy_from_slice(b"abc");
    assert!(region.content.lock().expect("no panic").is_empty(), "it is not complete");
    let data = buffer.into_buffer();
    let content = region.content.lock().expect("no panic").clone();
    (memory, data, content)
}

#[test]
fn an_output_goes_to_the_region_that_the_client_named() {
    let (memory, data, content) = written_to_region(8, false);
    assert_eq!((memory, data.memory(), data.len()), (Memory::Device(GPU_2), memory, 3));
    assert_eq!(content, b"abc");
}

#[test]
fn an_output_that_its_region_does_not_take_stays_in_host_memory() {
    for (byte_size, is_full) in [(2, false), (8, true)] {
        let (_, data, content) = written_to_region(byte_size, is_full);
        assert_eq!(data.host().expect("host memory"), b"abc");
        assert!(content.is_empty());
    }
}
