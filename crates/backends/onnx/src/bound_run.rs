//! Repeated small runs with equal shapes. Their tensors are kept, and are filled and read for every run.
//!
//! Creating, describing and releasing the tensors of a run takes as long as a small model. With the kept tensors the library
//! gets the outputs' shapes, and refuses to compute others into them. The run is then repeated without them (ADR 31).

use std::collections::VecDeque;

use bytes::Bytes;
use galatea_backend::batching::{Content, JoinedInput, ModelOutput};
use galatea_types::{AlignedBlock, BUFFER_ALIGNMENT, Result, Shape};

use crate::{
    model::OnnxModel,
    ort::{BoundTensor, BoundTensors, RunMode, Session, Value},
    signature::TensorBinding,
};

/// Most bytes of the inputs and outputs of a run for which copying is cheaper than new tensors.
const LARGEST: usize = 16 << 10;
/// Most runs that are kept for an instance, the last ones used, and most shapes without a kept run that are remembered.
/// Batches come in many sizes.
const MOST: usize = 24;
/// Uses that make a kept run worth its cost: making it takes another run, and each use saves a fraction of one.
const WORTH: u32 = 64;
/// Failures after which no more runs are kept: the model's outputs are too long, or their shapes or values do not follow
/// from the inputs.
const FAILURES: u32 = 8;

/// An input of a run: its number, its shape and its elements.
pub(crate) type RunInput = (usize, Shape, Bytes);

/// The properties in which runs must agree: shapes of the given inputs, by their numbers, and the requested outputs.
#[derive(Debug, PartialEq)]
struct Key {
    inputs: Vec<(usize, Shape)>,
    wanted: Vec<usize>,
}

/// A run that has finished: its inputs, and its outputs with their numbers.
pub(crate) struct FinishedRun<'a> {
    pub inputs: &'a [RunInput],
    pub wanted: &'a [usize],
    pub outputs: &'a [Value],
}

pub(crate) struct BoundRun {
    key: Key,
    inputs: BoundTensors,
    output_shapes: Vec<Shape>,
    outputs: BoundTensors,
    uses: u32,
}

impl BoundRun {
    /// Makes a kept run from a finished one. Returns `None` if that is not possible.
    fn new(model: &OnnxModel, key: Key, run: &FinishedRun<'_>) -> Option<Self> {
        let mut left =
            LARGEST.checked_sub(run.inputs.iter().map(|(_, _, data)| data.len()).sum())?;
        let library = &model.library;
        let (mut inputs, mut outputs) = (BoundTensors::default(), BoundTensors::default());
        for (number, shape, data) in run.inputs {
            let binding = model.inputs.get(*number)?;
            let mut tensor = BoundTensor::new(library, binding.spec.data_type, shape).ok()?;
            fill(&mut tensor, data)?;
            inputs.push(&binding.info.c_name, tensor);
        }
        let mut output_shapes = Vec::new();
        for (number, value) in key.wanted.iter().zip(run.outputs) {
            let binding = model.outputs.get(*number)?;
            let (tensor, shape) = room_for(model, binding, value, left)?;
            left -= tensor.bytes().len();
            outputs.push(&binding.info.c_name, tensor);
            output_shapes.push(shape);
        }
        Some(Self { key, inputs, output_shapes, outputs, uses: 0 })
    }

    /// Returns true if this run has inputs of these shapes and these outputs. Its tensors then hold the inputs.
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
        joined.iter().flatten().zip(&mut self.inputs.tensors).all(|(joined, tensor)| match &joined
            .content
        {
            Content::Elements(data) => fill(tensor, data).is_some(),
            Content::Texts(_) | Content::OnDevice(_) => false,
        })
    }

    pub fn compute(&mut self, model: &OnnxModel, session: &Session, mode: RunMode) -> Result<()> {
        session.run_bound(&model.run_options, &self.inputs, &mut self.outputs, mode)
    }

    /// Returns a copy of its inputs.
    pub fn given(&self) -> Vec<RunInput> {
        let inputs = self.key.inputs.iter().zip(&self.inputs.tensors);
        inputs
            .map(|((n, shape), t)| (*n, shape.clone(), Bytes::copy_from_slice(t.bytes())))
            .collect()
    }

    /// Returns a copy of its outputs, in one block.
    pub fn copy_outputs(&self) -> Vec<ModelOutput> {
        let padded = |tensor: &BoundTensor| tensor.bytes().len().next_multiple_of(BUFFER_ALIGNMENT);
        let mut block = AlignedBlock::with_capacity(self.outputs.tensors.iter().map(padded).sum());
        for tensor in &self.outputs.tensors {
            block.extend_from_slice(tensor.bytes());
            block.extend_zeroed(padded(tensor) - tensor.bytes().len());
        }
        let (block, mut start) = (block.into_bytes(), 0);
        let cut = |(tensor, shape): (&BoundTensor, &Shape)| {
            let data = block.slice(start..start + tensor.bytes().len());
            start += padded(tensor);
            ModelOutput { shape: shape.clone(), data: data.into() }
        };
        self.outputs.tensors.iter().zip(&self.output_shapes).map(cut).collect()
    }
}

fn fill(tensor: &mut BoundTensor, data: &[u8]) -> Option<()> {
    let room = tensor.bytes_mut();
    (room.len() == data.len()).then(|| room.copy_from_slice(data))
}

/// Makes a tensor like this output, with other content everywhere, so that elements that are not computed show.
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

/// The kept runs of an instance.
pub(crate) struct BoundRuns {
    /// True if no runs are kept any more.
    is_off: bool,
    failures: u32,
    /// The kept runs, ordered by last use. The latest is the last.
    runs: Vec<BoundRun>,
    /// Keys of the last runs that had no kept run.
    missed: VecDeque<Key>,
}

impl BoundRuns {
    pub fn new(is_off: bool) -> Self {
        Self { is_off, failures: 0, runs: Vec::new(), missed: VecDeque::new() }
    }

    /// Takes the kept run for these inputs and outputs, filled with the inputs.
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

    /// Returns the inputs if a run of this kind may be kept.
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

    /// Decides after a run if its tensors are kept. They are if an equal run came shortly before. `compute` does a run with
    /// them, which shows if they work.
    pub fn consider(
        &mut self,
        model: &OnnxModel,
        finished: &FinishedRun<'_>,
        compute: impl FnOnce(&mut BoundRun) -> Result<()>,
    ) {
        let inputs = finished.inputs.iter().map(|(number, shape, _)| (*number, shape.clone()));
        let key = Key { inputs: inputs.collect(), wanted: finished.wanted.to_vec() };
        let Some(again) = self.missed.iter().position(|missed| *missed == key) else {
            self.missed.truncate(MOST - 1);
            return self.missed.push_front(key);
        };
        self.missed.remove(again);
        let made = BoundRun::new(model, key, finished).and_then(|mut run| {
            compute(&mut run).ok()?;
            let is_same = |(tensor, value): (&BoundTensor, &Value)| {
                value.bytes(tensor.bytes().len()).is_ok_and(|bytes| bytes == tensor.bytes())
            };
            run.outputs.tensors.iter().zip(finished.outputs).all(is_same).then_some(run)
        });
        match made {
            Some(run) => self.put_back(run),
            None => self.failed(),
        }
    }

    /// Counts a kept run that differs from the same run without it.
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
    fn tensors_are_kept_for_repeated_short_shapes() {
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
    fn each_set_of_requested_outputs_keeps_its_own_tensors() {
        let mut instance = instance(&add_sub(Int64));
        for _ in 0..4 {
            add(&mut instance, 3, &["SUM"]);
            add(&mut instance, 3, &["DIFFERENCE", "SUM"]);
        }
        assert_eq!(instance.kept_runs(), 2);
    }

    #[test]
    fn the_number_of_kept_runs_is_bounded() {
        let mut instance = instance(&add_sub(Int64));
        let often: Vec<usize> =
            (1..=MOST).flat_map(|length| [length; WORTH as usize + 2]).collect();
        assert_eq!(kept(&mut instance, &often), MOST);
        assert_eq!(kept(&mut instance, &[MOST + 5; 4]), MOST);
    }

    #[test]
    fn tensors_are_no_longer_kept_after_repeated_misses() {
        let mut long = instance(&add_sub(Int64));
        let too_long = LARGEST / 3 / 8 + 1;
        assert_eq!(kept(&mut long, &[too_long; 2 * FAILURES as usize]), 0);
        assert_eq!(kept(&mut long, &[3; 4]), 0);
        let mut changing = instance(&add_sub(Int64));
        let seldom: Vec<usize> = (1..100).flat_map(|length| [length; 2]).collect();
        assert_eq!(kept(&mut changing, &seldom), 0);
    }
}
