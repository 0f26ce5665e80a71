//! Small runs of shapes that come again: their tensors stay, and are filled and read for every run.
//!
//! To make tensors for a run, to have the library make those of its outputs, and to describe and release them takes it as
//! long as a small model. It is told the outputs' shapes with the tensors, and refuses to compute others into them: then
//! the run is done again without them (ADR 31).

use std::{collections::VecDeque, ffi::CString};

use bytes::Bytes;
use galatea_backend::batching::{Content, JoinedInput, ModelOutput};
use galatea_types::{AlignedBlock, BUFFER_ALIGNMENT, Result, Shape};

use crate::{
    model::OnnxModel,
    ort::{BoundTensor, RunMode, Session, Value},
    signature::TensorBinding,
};

/// Bytes of the inputs and outputs of a run up to which copying them is less work.
const LARGEST: usize = 16 << 10;
/// So many are kept for an instance, the last ones used, and so many shapes remembered that there are none for: batches come
/// in many sizes.
const MOST: usize = 24;
/// One that goes after fewer uses was not worth making: that takes another run, and a use saves a fraction of one.
const WORTH: u32 = 64;
/// After so many that did not come to anything, no more are made: the model's outputs are too long, or their shapes or
/// values do not follow from what is given.
const FAILURES: u32 = 8;

/// An input of a run: its number, its shape and its elements.
pub(crate) type RunInput = (usize, Shape, Bytes);

/// What has to be the same: shapes of the inputs that are given, by their numbers, and the outputs that are wanted.
#[derive(Debug, PartialEq)]
struct Key {
    inputs: Vec<(usize, Shape)>,
    wanted: Vec<usize>,
}

pub(crate) struct BoundRun {
    key: Key,
    input_names: Vec<CString>,
    inputs: Vec<BoundTensor>,
    output_names: Vec<CString>,
    output_shapes: Vec<Shape>,
    outputs: Vec<BoundTensor>,
    uses: u32,
}

impl BoundRun {
    /// For runs as one that was done just now, from `given` to `outputs`. `None`: it is no such run.
    fn new(model: &OnnxModel, key: Key, given: &[RunInput], outputs: &[Value]) -> Option<Self> {
        let mut left = LARGEST.checked_sub(given.iter().map(|(_, _, data)| data.len()).sum())?;
        let library = &model.library;
        let (mut inputs, mut input_names) = (Vec::new(), Vec::new());
        for (number, shape, data) in given {
            let binding = model.inputs.get(*number)?;
            let mut tensor = BoundTensor::new(library, binding.spec.data_type, shape).ok()?;
            fill(&mut tensor, data)?;
            input_names.push(binding.info.c_name.clone());
            inputs.push(tensor);
        }
        let (mut bound, mut output_names, mut output_shapes) = (Vec::new(), Vec::new(), Vec::new());
        for (number, value) in key.wanted.iter().zip(outputs) {
            let binding = model.outputs.get(*number)?;
            let (tensor, shape) = room_for(model, binding, value, left)?;
            left -= tensor.bytes().len();
            output_names.push(binding.info.c_name.clone());
            output_shapes.push(shape);
            bound.push(tensor);
        }
        Some(Self {
            key,
            input_names,
            inputs,
            output_names,
            output_shapes,
            outputs: bound,
            uses: 0,
        })
    }

    /// Whether this run takes inputs of these shapes for these outputs. It has the inputs then.
    fn takes(&mut self, joined: &[Option<JoinedInput<'_>>], wanted: &[usize]) -> bool {
        if self.key.wanted != wanted {
            return false;
        }
        let mut expected = self.key.inputs.iter();
        let mut given = joined.iter().enumerate().filter_map(|(n, one)| Some((n, one.as_ref()?)));
        let are_same = given.by_ref().all(|(number, joined)| {
            expected.next().is_some_and(|(n, shape)| *n == number && *shape == joined.shape)
        });
        if !are_same || expected.next().is_some() {
            return false;
        }
        joined.iter().flatten().zip(&mut self.inputs).all(|(joined, tensor)| {
            match &joined.content {
                Content::Elements(data) => fill(tensor, data).is_some(),
                Content::Texts(_) | Content::OnDevice(_) => false,
            }
        })
    }

    pub fn compute(&mut self, model: &OnnxModel, session: &Session, mode: RunMode) -> Result<()> {
        let inputs = (&*self.input_names, &*self.inputs);
        let outputs = (&*self.output_names, &mut *self.outputs);
        session.run_bound(&model.run_options, inputs, outputs, mode)
    }

    /// A copy of what it was filled with.
    pub fn given(&self) -> Vec<RunInput> {
        let inputs = self.key.inputs.iter().zip(&self.inputs);
        inputs
            .map(|((n, shape), t)| (*n, shape.clone(), Bytes::copy_from_slice(t.bytes())))
            .collect()
    }

    /// What was computed, in one block.
    pub fn copy_outputs(&self) -> Vec<ModelOutput> {
        let padded = |tensor: &BoundTensor| tensor.bytes().len().next_multiple_of(BUFFER_ALIGNMENT);
        let mut block = AlignedBlock::with_capacity(self.outputs.iter().map(padded).sum());
        for tensor in &self.outputs {
            block.extend_from_slice(tensor.bytes());
            block.extend_zeroed(padded(tensor) - tensor.bytes().len());
        }
        let (block, mut start) = (block.into_bytes(), 0);
        let cut = |(tensor, shape): (&BoundTensor, &Shape)| {
            let data = block.slice(start..start + tensor.bytes().len());
            start += padded(tensor);
            ModelOutput { shape: shape.clone(), data: data.into() }
        };
        self.outputs.iter().zip(&self.output_shapes).map(cut).collect()
    }
}

fn fill(tensor: &mut BoundTensor, data: &[u8]) -> Option<()> {
    let room = tensor.bytes_mut();
    (room.len() == data.len()).then(|| room.copy_from_slice(data))
}

/// A tensor like this output, holding everything but what this one does: what is not computed into it shows.
fn room_for(
    model: &OnnxModel,
    binding: &TensorBinding,
    value: &Value,
    left: usize,
) -> Option<(BoundTensor, Shape)> {
    let (data_type, shape) = value.describe().ok()?;
    let data_type = data_type.filter(|&found| found == binding.spec.data_type)?;
    let size = shape.byte_size(data_type).filter(|&size| size <= left)?;
    let mut tensor = BoundTensor::new(&model.library, data_type, &shape).ok()?;
    let (room, computed) = (tensor.bytes_mut(), value.bytes(size).ok()?);
    room.iter_mut().zip(computed).for_each(|(byte, computed)| *byte = !computed);
    Some((tensor, shape))
}

/// Those of an instance.
pub(crate) struct BoundRuns {
    /// None are made.
    is_off: bool,
    failures: u32,
    /// The one used last is the last.
    runs: Vec<BoundRun>,
    /// Of the last runs there were none for.
    missed: VecDeque<Key>,
}

impl BoundRuns {
    pub fn new(is_off: bool) -> Self {
        Self { is_off, failures: 0, runs: Vec::new(), missed: VecDeque::new() }
    }

    /// The one from these inputs, with which it is filled, to these outputs.
    pub fn take(
        &mut self,
        joined: &[Option<JoinedInput<'_>>],
        wanted: &[usize],
    ) -> Option<BoundRun> {
        let found = self.runs.iter_mut().rposition(|run| run.takes(joined, wanted))?;
        Some(self.runs.remove(found))
    }

    pub fn put_back(&mut self, mut run: BoundRun) {
        run.uses = run.uses.saturating_add(1);
        if self.runs.len() == MOST && self.runs.remove(0).uses < WORTH {
            self.failed();
        }
        if !self.is_off {
            self.runs.push(run);
        }
    }

    #[cfg(test)]
    pub fn kept(&self) -> usize {
        self.runs.len()
    }

    /// The inputs, where a run of their kind may come to stay.
    pub fn candidate(&self, joined: &[Option<JoinedInput<'_>>]) -> Option<Vec<RunInput>> {
        if self.is_off {
            return None;
        }
        let (mut left, mut given) = (LARGEST, Vec::with_capacity(joined.len()));
        for (number, joined) in joined.iter().enumerate() {
            let Some(joined) = joined else { continue };
            let Content::Elements(data) = &joined.content else { return None };
            left = left.checked_sub(data.len())?;
            given.push((number, joined.shape.clone(), data.clone()));
        }
        Some(given)
    }

    /// After a run from `given` to `outputs`: keeps tensors for it where one of the last, that there were none for, was the
    /// same. `compute` does a run with them, which shows whether they are of use.
    pub fn consider(
        &mut self,
        model: &OnnxModel,
        given: &[RunInput],
        (wanted, outputs): (&[usize], &[Value]),
        compute: impl FnOnce(&mut BoundRun) -> Result<()>,
    ) {
        let inputs = given.iter().map(|(number, shape, _)| (*number, shape.clone())).collect();
        let key = Key { inputs, wanted: wanted.to_vec() };
        let Some(again) = self.missed.iter().position(|missed| *missed == key) else {
            self.missed.truncate(MOST - 1);
            return self.missed.push_front(key);
        };
        self.missed.remove(again);
        let made = BoundRun::new(model, key, given, outputs).and_then(|mut run| {
            compute(&mut run).ok()?;
            let is_same = |(tensor, value): (&BoundTensor, &Value)| {
                value.bytes(tensor.bytes().len()).is_ok_and(|bytes| bytes == tensor.bytes())
            };
            run.outputs.iter().zip(outputs).all(is_same).then_some(run)
        });
        match made {
            Some(run) => self.put_back(run),
            None => self.failed(),
        }
    }

    /// One did not do what the same run does without it.
    pub fn failed(&mut self) {
        self.failures += 1;
        if self.failures == FAILURES {
            self.is_off = true;
            (self.runs, self.missed) = (Vec::new(), VecDeque::new());
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::expect_used, reason = "a test fails by panicking")]

    use std::sync::Arc;

    use galatea_types::{DataType::Int64, Tensor};

    use super::*;
    use crate::{
        instance::OnnxInstance,
        ort::Library,
        sessions::SessionUse,
        test_support::{
            ask, configure, context, infer, ints, library, model_folder, onnx::add_sub,
        },
    };

    fn instance(graph: &[u8]) -> OnnxInstance {
        let folder = model_folder(graph);
        let config = configure(&folder, "").expect("a good configuration");
        let library = Library::open(&library(), None).expect("opens");
        let model = OnnxModel::load(&library, &context(&folder, config)).expect("loads");
        let sessions = model.sessions.values().next().expect("one").clone();
        OnnxInstance::new(Arc::new(model), SessionUse::of(sessions))
    }

    /// How many are kept after rows of such lengths were added.
    fn kept(instance: &mut OnnxInstance, lengths: &[usize]) -> usize {
        lengths.iter().for_each(|&length| add(instance, length, &["SUM"]));
        instance.kept_runs()
    }

    fn add(instance: &mut OnnxInstance, length: usize, outputs: &[&str]) {
        let row = |name| Tensor::new(name, Int64, [1, length as i64], ints(&vec![1; length]));
        let request = ask(1, vec![row("A"), row("B")], outputs);
        infer(instance, request).expect("an answer");
    }

    #[test]
    fn tensors_are_kept_for_what_comes_again_and_is_short() {
        let mut instance = instance(&add_sub(Int64));
        assert_eq!(kept(&mut instance, &[3, 4]), 0);
        assert_eq!(kept(&mut instance, &[4]), 1);
        assert_eq!(kept(&mut instance, &[4, 4, 3]), 2);
        let longest = LARGEST / 3 / 8;
        assert_eq!(kept(&mut instance, &[longest, longest]), 3);
        assert_eq!(kept(&mut instance, &[longest + 1; 4]), 3);
        assert_eq!(kept(&mut instance, &[3, 4]), 3);
    }

    #[test]
    fn runs_to_other_outputs_have_tensors_of_their_own() {
        let mut instance = instance(&add_sub(Int64));
        for _ in 0..4 {
            add(&mut instance, 3, &["SUM"]);
            add(&mut instance, 3, &["DIFFERENCE", "SUM"]);
        }
        assert_eq!(instance.kept_runs(), 2);
    }

    #[test]
    fn only_so_many_are_kept_and_those_that_are_used() {
        let mut instance = instance(&add_sub(Int64));
        let often: Vec<usize> =
            (1..=MOST).flat_map(|length| [length; WORTH as usize + 2]).collect();
        assert_eq!(kept(&mut instance, &often), MOST);
        assert_eq!(kept(&mut instance, &[MOST + 5; 4]), MOST);
    }

    #[test]
    fn none_are_made_any_more_where_it_came_to_nothing_again_and_again() {
        let mut long = instance(&add_sub(Int64));
        let too_long = LARGEST / 3 / 8 + 1;
        assert_eq!(kept(&mut long, &[too_long; 2 * FAILURES as usize]), 0);
        assert_eq!(kept(&mut long, &[3; 4]), 0);
        let mut changing = instance(&add_sub(Int64));
        let seldom: Vec<usize> = (1..100).flat_map(|length| [length; 2]).collect();
        assert_eq!(kept(&mut changing, &seldom), 0);
    }
}
