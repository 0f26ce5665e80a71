//! Checks the clauses about decoupled models.

use std::sync::mpsc::{Receiver, RecvTimeoutError};

use galatea_types::{
    Cancellation, DataType, InferResponse, PreparedRequest, Response, Shape, Tensor,
};

use crate::{
    ModelInstance,
    testing::{
        Clause, Fixture, Subject, build,
        compare::check_tensor,
        outcome::{LONG, Outcome},
        sample::{Sample, sample},
    },
};

type ResponseStream = Receiver<Response>;

/// The number of elements of a stream that tests do not read to its end: it would take minutes.
const ENDLESS: i64 = 10_000;
const ENDLESS_DELAY: u32 = 20;

/// Returns `None` if the subject has no decoupled model for this type.
pub(super) fn check(subject: &dyn Subject, clause: Clause, data_type: DataType) -> Option<Outcome> {
    let fixture = subject.repeat(data_type)?;
    let case = Case { subject, fixture, data_type };
    Some(case.check(clause).map_err(|e| format!("repeat: {e}")))
}

struct Case<'a> {
    subject: &'a dyn Subject,
    fixture: Fixture,
    data_type: DataType,
}

/// The responses of a stream up to its end.
#[derive(Default)]
struct CollectedResponses {
    responses: Vec<InferResponse>,
    /// The message of an error, if there was one.
    error: Option<String>,
}

impl Case<'_> {
    fn check(&self, clause: Clause) -> Outcome {
        let model = build::load(self.subject, &self.fixture)?;
        let mut instance = build::instance(&*model, &self.fixture, 0)?;
        match clause {
            Clause::StreamInOrder => self.in_order(&mut *instance),
            Clause::EmptyStream => self.answer(&mut *instance, 0, 0),
            Clause::StreamsSideBySide => self.side_by_side(&mut *instance),
            Clause::CancelledStream => self.cancelled(&mut *instance),
            Clause::DropWhileStreaming => self.dropped(instance),
            _ => Ok(()),
        }
    }

    fn in_order(&self, instance: &mut dyn ModelInstance) -> Outcome {
        (0..3).try_for_each(|seed| self.answer(instance, 8, seed))
    }

    fn side_by_side(&self, instance: &mut dyn ModelInstance) -> Outcome {
        // The stream cannot have ended when its execution returns, and others are answered meanwhile.
        let cancellation = Cancellation::default();
        let endless = self.start_endless(instance, &cancellation);
        self.first(&endless)?;
        self.answer(instance, 5, 3)?;
        self.answer(instance, 3, 4)?;
        self.first(&endless)?;
        cancellation.cancel();
        collect(&endless).map(drop)
    }

    fn cancelled(&self, instance: &mut dyn ModelInstance) -> Outcome {
        let cancellation = Cancellation::default();
        let stream = self.start_endless(instance, &cancellation);
        self.first(&stream)?;
        cancellation.cancel();
        if i64::try_from(collect(&stream)?.responses.len()) == Ok(ENDLESS - 1) {
            return Err("cancelling did not end the stream".to_owned());
        }
        // The instance still works.
        self.answer(instance, 2, 5)
    }

    fn dropped(&self, mut instance: Box<dyn ModelInstance>) -> Outcome {
        let stream = self.start_endless(&mut *instance, &Cancellation::default());
        self.first(&stream)?;
        drop(instance);
        let collected = collect(&stream)?;
        match collected.error {
            Some(_) => Ok(()),
            None => Err("a stream that lost its instance ended without an error".to_owned()),
        }
    }

    fn start_endless(
        &self,
        instance: &mut dyn ModelInstance,
        cancellation: &Cancellation,
    ) -> ResponseStream {
        let request = self.request(&self.values(ENDLESS, 1), ENDLESS_DELAY);
        build::run_stream(instance, request, cancellation.clone())
    }

    /// Checks the next response, which must be one that others follow.
    fn first(&self, stream: &ResponseStream) -> Outcome {
        match next(stream)? {
            Response { result: Some(Ok(_)), is_final: false } => Ok(()),
            Response { result: Some(Err(e)), .. } => Err(format!("a good request failed: {e}")),
            _ => Err("the stream ended before its time".to_owned()),
        }
    }

    /// Checks a short stream from beginning to end.
    fn answer(&self, instance: &mut dyn ModelInstance, count: i64, seed: usize) -> Outcome {
        let values = self.values(count, seed);
        let stream = build::run_stream(instance, self.request(&values, 1), Cancellation::default());
        let CollectedResponses { responses, error } = collect(&stream)?;
        if let Some(error) = error {
            return Err(format!("a good request failed: {error}"));
        }
        if responses.len() != values.values.len() {
            return Err(format!("{} responses instead of {count}", responses.len()));
        }
        let expected = (0..).zip(&values.values);
        expected.zip(&responses).try_for_each(|((index, &value), response)| {
            let one = |value| Sample { values: vec![value], shape: Shape::from([1]) };
            let out = one(value).tensor("OUT", self.data_type);
            let idx = one(index).tensor("IDX", DataType::Uint32);
            [out, idx].iter().try_for_each(|expected| {
                let got = response.output(&expected.name).ok_or("an output is missing")?;
                check_tensor(expected, got, self.subject.tolerance())
            })
        })
    }

    fn values(&self, count: i64, seed: usize) -> Sample {
        sample([count], 0, seed)
    }

    fn request(&self, values: &Sample, delay: u32) -> PreparedRequest {
        let bytes =
            |words: &[u32]| -> Vec<u8> { words.iter().flat_map(|w| w.to_le_bytes()).collect() };
        let delays = bytes(&vec![delay; values.values.len()]);
        let inputs = vec![
            values.tensor("IN", self.data_type),
            Tensor::new("DELAY", DataType::Uint32, values.shape.clone(), delays),
            Tensor::new("WAIT", DataType::Uint32, [1], bytes(&[0])),
        ];
        build::request(self.fixture.config.name(), 1, inputs)
    }
}

fn next(stream: &ResponseStream) -> Result<Response, String> {
    stream.recv_timeout(LONG).map_err(|e| match e {
        RecvTimeoutError::Timeout => "no response came".to_owned(),
        RecvTimeoutError::Disconnected => "the stream broke off without an end".to_owned(),
    })
}

/// Collects responses up to the end, after which none may come.
fn collect(stream: &ResponseStream) -> Result<CollectedResponses, String> {
    let mut collected = CollectedResponses::default();
    loop {
        let response = next(stream)?;
        match response.result {
            Some(Ok(response)) => collected.responses.push(response),
            Some(Err(e)) => collected.error = Some(e.message().to_owned()),
            None => {}
        }
        if response.is_final {
            let is_end = next(stream).is_err();
            return if is_end {
                Ok(collected)
            } else {
                Err("there was more after the end".to_owned())
            };
        }
    }
}
