//! One function per clause. All return the violation instead of panicking, so that one run shows all.

use std::{sync::mpsc, thread};

use galatea_types::{DataType, InferRequest, InferResponse, PreparedRequest, Shape, Tensor};

use crate::{
    InstanceAlarm, Model, ModelInstance, SequenceState, SequenceStates,
    testing::{
        Clause, Fixture, Sample, Subject, build,
        compare::check_tensor,
        outcome::{LONG, Outcome},
        sample::sample,
        streams,
    },
};

/// Size of the largest tensors in tests, as elements of one variable dimension.
const LARGE: i64 = 4096;

/// Returns `None` if the subject has no model for this clause and type.
pub(super) fn check(subject: &dyn Subject, clause: Clause, data_type: DataType) -> Option<Outcome> {
    if clause == Clause::BrokenModel {
        // Independent of the type, so checked once.
        return (data_type == DataType::Fp32).then(|| broken_model(subject)).flatten();
    }
    if clause == Clause::KilledInstance && data_type != DataType::Fp32 {
        // Slow with processes, and also independent of the type.
        return None;
    }
    if clause.is_about_streams() {
        return streams::check(subject, clause, data_type);
    }
    let cases = [
        subject.identity(data_type).map(|f| (f, Kind::Identity)),
        subject.add_sub(data_type).map(|f| (f, Kind::AddSub)),
    ];
    cases
        .into_iter()
        .flatten()
        .map(|(fixture, kind)| {
            let case = Case { subject, fixture, kind, data_type };
            case.check(clause).map_err(|e| format!("{kind:?}: {e}"))
        })
        .reduce(Result::and)
}

fn broken_model(subject: &dyn Subject) -> Option<Outcome> {
    let (fixture, named) = subject.broken()?;
    Some(match subject.backend().load(build::load_context(&fixture)) {
        Ok(_) => Err("it was loaded".to_owned()),
        Err(e) if e.message().contains(&named) => Ok(()),
        Err(e) => Err(format!("the error does not name `{named}`: {e}")),
    })
}

#[derive(Clone, Copy, Debug)]
enum Kind {
    Identity,
    AddSub,
}

/// One model and one clause to check.
struct Case<'a> {
    subject: &'a dyn Subject,
    fixture: Fixture,
    kind: Kind,
    data_type: DataType,
}

/// A request and the outputs that it must be answered with, in the order of the configuration.
struct Exchange {
    request: PreparedRequest,
    expected: Vec<Tensor>,
}

impl Exchange {
    fn change(&mut self, change: impl FnOnce(&mut InferRequest)) {
        self.request = build::adjusted(self.request.clone(), change);
    }
}

impl Case<'_> {
    fn check(&self, clause: Clause) -> Outcome {
        match clause {
            Clause::SingleRequest => self.single_request(),
            Clause::JoinedRequests => self.joined_requests(),
            Clause::RequestedOutputs => self.requested_outputs(),
            Clause::LargeBatch => self.large_batch(),
            Clause::EmptyTensor => self.empty_tensor(),
            Clause::BadRequestFails => self.bad_request(false),
            Clause::BadRequestAlone => self.bad_request(true),
            Clause::ConcurrentInstances => self.concurrent_instances(),
            Clause::DropWhileIdle => self.drop_while_idle(),
            Clause::KeptStates => self.kept_states(),
            Clause::KilledInstance => self.killed_instance(),
            // Checked elsewhere, with other models.
            Clause::BrokenModel
            | Clause::StreamInOrder
            | Clause::EmptyStream
            | Clause::StreamsSideBySide
            | Clause::CancelledStream
            | Clause::DropWhileStreaming => Ok(()),
        }
    }

    fn single_request(&self) -> Outcome {
        let mut instance = self.instance()?;
        for seed in 0..3 {
            self.run(&mut *instance, vec![self.exchange(1, 3, seed)])?;
        }
        Ok(())
    }

    fn joined_requests(&self) -> Outcome {
        let mut instance = self.instance()?;
        let max = self.fixture.config.max_batch_size();
        if max < 4 {
            return Ok(());
        }
        self.run(&mut *instance, (0..4).map(|seed| self.exchange(1, 5, seed)).collect())?;
        self.run(&mut *instance, vec![self.exchange(1, 2, 7), self.exchange(max - 1, 2, 8)])
    }

    fn requested_outputs(&self) -> Outcome {
        let mut instance = self.instance()?;
        let outputs = self.fixture.config.outputs();
        for wanted in outputs {
            let mut exchange = self.exchange(1, 3, 1);
            exchange.change(|r| r.outputs = vec![wanted.name.clone()]);
            exchange.expected.retain(|t| t.name == wanted.name);
            // Together with a request for everything, if requests may be joined.
            let count = if self.fixture.config.max_batch_size() > 1 { 2 } else { 1 };
            let all = [exchange, self.exchange(1, 3, 2)];
            self.run(&mut *instance, all.into_iter().take(count).collect())?;
        }
        Ok(())
    }

    fn large_batch(&self) -> Outcome {
        let mut instance = self.instance()?;
        let max = self.fixture.config.max_batch_size().max(1);
        self.run(&mut *instance, vec![self.exchange(max, LARGE, 3)])?;
        self.run(&mut *instance, (0..max).map(|n| self.exchange(1, LARGE, n as usize)).collect())
    }

    fn empty_tensor(&self) -> Outcome {
        let is_fixed = |dims: &Shape| !dims.is_variable();
        if self.fixture.config.inputs().iter().any(|i| is_fixed(&i.dims)) {
            return Ok(());
        }
        let mut instance = self.instance()?;
        self.run(&mut *instance, vec![self.exchange(1, 0, 0)])?;
        self.run(&mut *instance, vec![self.exchange(1, 2, 1)])
    }

    /// Sends a bad request between good ones. With `others_survive`, checks the responses to the good ones.
    fn bad_request(&self, others_survive: bool) -> Outcome {
        let mut instance = self.instance()?;
        let count = if self.fixture.config.max_batch_size() >= 3 { 3 } else { 1 };
        let bad = count / 2;
        let mut exchanges: Vec<_> = (0..count).map(|seed| self.exchange(1, 4, seed)).collect();
        exchanges.get_mut(bad).into_iter().for_each(|e| e.change(|r| self.subject.spoil(r)));
        let requests = exchanges.iter().map(|e| e.request.clone()).collect();
        let answers = build::run_batch(&mut *instance, requests);
        for (index, (exchange, answer)) in exchanges.iter().zip(answers).enumerate() {
            match answer {
                Ok(_) if index == bad => return Err("the bad request succeeded".to_owned()),
                Ok(answer) if others_survive => self.check_answer(exchange, &answer)?,
                Err(e) if others_survive && index != bad => {
                    return Err(format!("a good request failed with the bad one: {e}"));
                }
                _ => {}
            }
        }
        // The instance still works.
        self.run(&mut *instance, vec![self.exchange(1, 4, 9)])
    }

    fn concurrent_instances(&self) -> Outcome {
        let model = self.load()?;
        thread::scope(|scope| {
            let work = |index| {
                let mut instance = build::instance(&*model, &self.fixture, index)?;
                (0..16).try_for_each(|n| {
                    self.run(&mut *instance, vec![self.exchange(1, 64, index * 16 + n)])
                })
            };
            let threads: Vec<_> = (0..3).map(|i| scope.spawn(move || work(i))).collect();
            let join = |t: thread::ScopedJoinHandle<'_, Outcome>| {
                t.join().unwrap_or_else(|_| Err("an instance panicked".to_owned()))
            };
            threads.into_iter().map(join).fold(Ok(()), Result::and)
        })
    }

    fn drop_while_idle(&self) -> Outcome {
        let model = self.load()?;
        drop(build::instance(&*model, &self.fixture, 0)?);
        let mut used = build::instance(&*model, &self.fixture, 0)?;
        self.run(&mut *used, vec![self.exchange(1, 3, 0)])?;
        drop(used);
        let mut again = build::instance(&*model, &self.fixture, 1)?;
        self.run(&mut *again, vec![self.exchange(1, 3, 1)])
    }

    /// The sequence keeps the sum of a request as the second summand of the next one.
    fn kept_states(&self) -> Outcome {
        let config = &self.fixture.config;
        let (Kind::AddSub, [first, second], [sum, ..]) =
            (self.kind, config.inputs(), config.outputs())
        else {
            return Ok(());
        };
        let mut instance = self.instance()?;
        let item = first.dims.iter().map(|&d| if d < 0 { 3 } else { d }).collect();
        let shape = with_batch(item, 1, config.has_batching());
        let mut total = sample(shape.clone(), 0, 0);
        let state = SequenceState {
            output: sum.name.clone(),
            is_returned: true,
            value: total.tensor(&second.name, self.data_type),
        };
        let mut states = SequenceStates::new(vec![state]);
        for seed in 1..4 {
            let summand = sample(shape.clone(), 0, seed);
            let request = InferRequest {
                inputs: vec![summand.tensor(&first.name, self.data_type)],
                outputs: vec![sum.name.clone()],
                ..InferRequest::new(config.name().clone())
            };
            total = total.combine(&summand, |a, b| a + b);
            let (answer, left) =
                build::run_step(&mut *instance, build::prepared(request, 1), states);
            let answer = answer.map_err(|e| format!("a step of a sequence failed: {e}"))?;
            let got = answer.output(&sum.name).ok_or("an output is missing")?;
            let expected = total.tensor(&sum.name, self.data_type);
            check_tensor(&expected, got, self.subject.tolerance())?;
            let kept = left.inputs().next().ok_or("no state was left")?;
            let expected = total.tensor(&second.name, self.data_type);
            check_tensor(&expected, kept, self.subject.tolerance())?;
            states = left;
        }
        Ok(())
    }

    fn killed_instance(&self) -> Outcome {
        let model = self.load()?;
        let (raised, alarms) = mpsc::channel();
        let mut spec = build::instance_spec(self.fixture.config.name(), 0);
        spec.alarm = InstanceAlarm::new(move |reason| {
            // A second alarm has no receiver.
            let _ = raised.send(reason);
        });
        let instance = model.new_instance(&spec);
        let mut instance = instance.map_err(|e| format!("making an instance failed: {e}"))?;
        self.run(&mut *instance, vec![self.exchange(1, 3, 0)])?;
        if !self.subject.kill(&spec.name) {
            return Ok(());
        }
        alarms.recv_timeout(LONG).map_err(|_| "no alarm was raised".to_owned())?;
        let answers = build::run_batch(&mut *instance, vec![self.exchange(1, 3, 1).request]);
        if answers.iter().any(Result::is_ok) {
            return Err("the killed instance answered".to_owned());
        }
        drop(instance);
        self.run(&mut *build::instance(&*model, &self.fixture, 0)?, vec![self.exchange(1, 3, 2)])
    }

    fn load(&self) -> Result<Box<dyn Model>, String> {
        build::load(self.subject, &self.fixture)
    }

    fn instance(&self) -> Result<Box<dyn ModelInstance>, String> {
        build::instance(&*self.load()?, &self.fixture, 0)
    }

    /// Returns a request of `items` items whose variable dimensions have size `size`.
    fn exchange(&self, items: u32, size: i64, seed: usize) -> Exchange {
        let config = &self.fixture.config;
        let inputs: Vec<Sample> = config
            .inputs()
            .iter()
            .enumerate()
            .map(|(i, spec)| {
                let item = spec.dims.iter().map(|&d| if d < 0 { size } else { d }).collect();
                let shape = with_batch(item, items, config.has_batching());
                // The first input is never smaller than the second, so that unsigned differences exist.
                sample(shape, if i == 0 { 20 } else { 0 }, seed + i)
            })
            .collect();
        let tensors = inputs.iter().zip(config.inputs());
        let tensors = tensors.map(|(s, spec)| s.tensor(&spec.name, self.data_type)).collect();
        let results = self.results(&inputs);
        let expected = results.iter().zip(config.outputs());
        Exchange {
            request: build::request(config.name(), items, tensors),
            expected: expected.map(|(s, spec)| s.tensor(&spec.name, self.data_type)).collect(),
        }
    }

    fn results(&self, inputs: &[Sample]) -> Vec<Sample> {
        match (self.kind, inputs) {
            (Kind::AddSub, [a, b, ..]) => {
                vec![a.combine(b, |a, b| a + b), a.combine(b, |a, b| a - b)]
            }
            _ => inputs.to_vec(),
        }
    }

    fn run(&self, instance: &mut dyn ModelInstance, exchanges: Vec<Exchange>) -> Outcome {
        let requests = exchanges.iter().map(|e| e.request.clone()).collect();
        let answers = build::run_batch(instance, requests);
        for (exchange, answer) in exchanges.iter().zip(answers) {
            let answer = answer.map_err(|e| format!("a good request failed: {e}"))?;
            self.check_answer(exchange, &answer)?;
        }
        Ok(())
    }

    fn check_answer(&self, exchange: &Exchange, answer: &InferResponse) -> Outcome {
        let names = |tensors: &[Tensor]| {
            let mut names: Vec<_> = tensors.iter().map(|t| t.name.to_string()).collect();
            names.sort();
            names
        };
        let (wanted, got) = (names(&exchange.expected), names(&answer.outputs));
        if wanted != got {
            return Err(format!("outputs {got:?} instead of {wanted:?}"));
        }
        exchange.expected.iter().try_for_each(|expected| {
            let got = answer.output(&expected.name).ok_or("an output is missing")?;
            check_tensor(expected, got, self.subject.tolerance())
        })
    }
}

fn with_batch(item: Shape, items: u32, has_batching: bool) -> Shape {
    if has_batching { item.with_leading(items.into()) } else { item }
}
