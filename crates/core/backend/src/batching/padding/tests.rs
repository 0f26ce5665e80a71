//! Padded together and cut apart, every request gets what it gets alone.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test fails by panicking, helpers included"
)]

use std::sync::Mutex;

use galatea_types::PreparedRequest;
use proptest::prelude::*;

use super::*;
use crate::{
    Outcome,
    batching::{GroupRunner, ModelOutput, execute},
    testing::{model_config, pending, request},
};

/// `same` is `x`; `sum` adds up its elements, each times its place, times the mask of its place.
struct Model {
    config: ModelConfig,
    /// The shapes of `x` in each run.
    runs: Mutex<Vec<Shape>>,
}

const TENSORS: &str = "name: 'm' backend: 'b' max_batch_size: 64
    input { name: 'x' data_type: TYPE_INT32 dims: [ -1, 2, -1 ] }
    input { name: 'mask' data_type: TYPE_INT32 dims: [ -1, -1 ] optional: true }
    output { name: 'same' data_type: TYPE_INT32 dims: [ -1, 2, -1 ] }
    output { name: 'sum' data_type: TYPE_INT32 dims: 1 }\n";

fn parameters(extra: &[(&str, &str)]) -> String {
    let all = [&[("pad_batches", "true")], extra].concat();
    let one = |(key, value): &(&str, &str)| {
        format!("parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}\n")
    };
    all.iter().map(one).collect()
}

fn model(buckets: &str) -> Model {
    let mut extra = vec![("pad_batches.mask", "mask"), ("pad_batches.value", "-7")];
    extra.extend((!buckets.is_empty()).then_some(("pad_batches.buckets", buckets)));
    let config = model_config(&format!("{TENSORS}{}", parameters(&extra)));
    Model { config, runs: Mutex::default() }
}

fn numbers(bytes: &[u8]) -> Vec<i32> {
    let number = |bytes: &[u8]| i32::from_le_bytes(bytes.try_into().expect("4 bytes"));
    bytes.chunks(4).map(number).collect()
}

fn bytes(numbers: &[i32]) -> Vec<u8> {
    numbers.iter().flat_map(|number| number.to_le_bytes()).collect()
}

/// Of each row: its elements, each times its place, where the mask has a 1.
fn sums(shape: &[i64], x: &[i32], mask: &[i32]) -> Vec<i32> {
    let [rows, height, _, width] = [0, 1, 2, 3].map(|at| usize::try_from(shape[at]).expect("few"));
    let of_row = |row: usize| {
        let mut sum = 0;
        for (i, k) in (0..height).flat_map(|i| (0..width).map(move |k| (i, k))) {
            let at = |half: usize| x[((row * height + i) * 2 + half) * width + k];
            let place = i32::try_from((i + 1) * (k + 2)).expect("few");
            sum += mask[(row * height + i) * width + k] * place * (at(0) - 2 * at(1));
        }
        sum
    };
    (0..rows).map(of_row).collect()
}

impl GroupRunner for Model {
    type Inputs = Vec<(Shape, Vec<u8>)>;
    type Outputs = Vec<(Shape, Vec<u8>)>;

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Self::Inputs> {
        let input = |joined: Option<JoinedInput<'_>>| match joined.expect("brought or made") {
            JoinedInput { shape, content: Content::Elements(data), .. } => (shape, data.to_vec()),
            other => panic!("{other:?}"),
        };
        Ok(joined.into_iter().map(input).collect())
    }

    fn run(&self, inputs: Self::Inputs, _: &[usize]) -> Result<Self::Outputs> {
        let [(shape, x), (mask_shape, mask)] = &inputs[..] else { panic!("two inputs") };
        assert_eq!(**mask_shape, [shape[0], shape[1], shape[3]]);
        self.runs.lock().expect("no panic").push(shape.clone());
        let sums = sums(shape, &numbers(x), &numbers(mask));
        Ok(vec![(shape.clone(), x.clone()), (Shape::from([shape[0], 1]), bytes(&sums))])
    }

    fn outputs(&self, outputs: Self::Outputs, wanted: &[usize]) -> Result<Vec<ModelOutput>> {
        let output = |&number: &usize| {
            let (shape, data) = outputs[number].clone();
            ModelOutput { shape, data: data.into() }
        };
        Ok(wanted.iter().map(output).collect())
    }
}

fn answers(model: &impl GroupRunner, requests: Vec<PreparedRequest>) -> Vec<Result<Vec<Tensor>>> {
    let pending = requests.into_iter().map(|request| pending(request).0);
    let mut batch = Batch::new("m".into(), 1, pending);
    execute(model, &mut batch);
    let answer = |outcome| match outcome {
        Outcome::Answered(answer) => answer.map(|response| response.outputs),
        other => panic!("{other:?}"),
    };
    batch.into_outcomes().map(|(_, outcome)| answer(outcome)).collect()
}

/// A request of these rows and dimensions, with a mask of its own or none.
#[derive(Clone, Debug)]
struct Case {
    rows: i64,
    dims: [i64; 2],
    x: Vec<i32>,
    mask: Option<Vec<i32>>,
}

impl Case {
    fn request(&self) -> PreparedRequest {
        let [height, width] = self.dims;
        let x = Tensor::new("x", DataType::Int32, [self.rows, height, 2, width], bytes(&self.x));
        let mask = self.mask.as_ref().map(|mask| {
            Tensor::new("mask", DataType::Int32, [self.rows, height, width], bytes(mask))
        });
        let rows = u32::try_from(self.rows).expect("few");
        request("m", rows, [Some(x), mask].into_iter().flatten().collect())
    }

    fn expected(&self) -> Vec<Tensor> {
        let shape = [self.rows, self.dims[0], 2, self.dims[1]];
        let ones = vec![1; self.x.len() / 2];
        let sums = sums(&shape, &self.x, self.mask.as_ref().unwrap_or(&ones));
        vec![
            Tensor::new("same", DataType::Int32, shape, bytes(&self.x)),
            Tensor::new("sum", DataType::Int32, [self.rows, 1], bytes(&sums)),
        ]
    }
}

fn case() -> impl Strategy<Value = Case> {
    let dims = (1..3_i64, 0..5_i64, 0..5_i64, any::<bool>());
    dims.prop_flat_map(|(rows, height, width, has_mask)| {
        let count = usize::try_from(rows * height * width).expect("few");
        let x = prop::collection::vec(-9..9_i32, count * 2);
        let mask = prop::collection::vec(0..2_i32, count);
        (x, mask).prop_map(move |(x, mask)| Case {
            rows,
            dims: [height, width],
            x,
            mask: has_mask.then_some(mask),
        })
    })
}

proptest! {
    #[test]
    fn padded_batches_give_the_same_answers_as_single_requests(
        cases in prop::collection::vec(case(), 1..6),
        buckets in prop::sample::select(vec!["", "3", "1,2,4"]),
    ) {
        let model = model(buckets);
        let together = answers(&model, cases.iter().map(Case::request).collect());
        prop_assert_eq!(model.runs.lock().expect("no panic").len(), 1);
        for (case, together) in cases.iter().zip(together) {
            let alone = answers(&model, vec![case.request()]).pop().expect("one");
            prop_assert_eq!(&alone.expect("answered"), &case.expected());
            prop_assert_eq!(together.expect("answered"), case.expected());
        }
    }
}

#[test]
fn a_run_is_padded_to_its_longest_request_or_bucket() {
    let case = |height: i64, width: i64| {
        let x = vec![1; usize::try_from(height * width * 2).expect("few")];
        Case { rows: 1, dims: [height, width], x, mask: None }.request()
    };
    let shapes = |buckets: &str| {
        let model = model(buckets);
        answers(&model, vec![case(1, 3), case(2, 1)]);
        model.runs.into_inner().expect("no panic")
    };
    assert_eq!(shapes(""), [Shape::from([2, 2, 2, 3])]);
    assert_eq!(shapes("4,8"), [Shape::from([2, 4, 2, 4])]);
    assert_eq!(shapes("2"), [Shape::from([2, 2, 2, 3])], "longer than the last bucket");
}

/// A tensor without elements costs a client nothing.
#[test]
fn padding_to_a_huge_tensor_is_refused() {
    let case = Case { rows: 1, dims: [1 << 40, 0], x: vec![], mask: None };
    let error = answers(&model("8"), vec![case.request()]).pop().expect("one").expect_err("huge");
    assert_eq!(error.message(), "input 'x' is too large when it is padded");
}

#[test]
fn a_mask_of_another_shape_fails_its_request_alone() {
    let case = Case { rows: 1, dims: [2, 1], x: vec![1, 2, 3, 4], mask: Some(vec![1; 3]) };
    let good = Case { rows: 1, dims: [1, 1], x: vec![5, 6], mask: None };
    let got = answers(&model(""), vec![case.request(), good.request()]);
    assert!(got[0].as_ref().is_err_and(|error| error.message().contains("do not fill")), "{got:?}");
    assert_eq!(got[1].as_ref().expect("answered"), &good.expected());
    let wide = Tensor::new("mask", DataType::Int32, [1, 1, 2], bytes(&[1, 1]));
    let bad = crate::testing::adjusted(good.request(), |request| request.inputs.push(wide));
    let error = answers(&model(""), vec![bad]).pop().expect("one").expect_err("refused");
    assert_eq!(
        error.message(),
        "input 'mask' has shape [1,1,2], but it is the mask of input 'x' of shape [1,1,2,1]"
    );
}

/// Answers its texts, or some of the first of each row.
struct Texts {
    config: ModelConfig,
    kept: Option<i64>,
}

impl GroupRunner for Texts {
    type Inputs = (Shape, Vec<String>);
    type Outputs = (Shape, Vec<String>);

    fn config(&self) -> &ModelConfig {
        &self.config
    }

    fn prepare(&self, joined: Vec<Option<JoinedInput<'_>>>, _: &[usize]) -> Result<Self::Inputs> {
        match joined.into_iter().flatten().next() {
            Some(JoinedInput { shape, content: Content::Texts(texts), .. }) => {
                let text = |text: &[u8]| String::from_utf8(text.to_vec()).expect("a text");
                Ok((shape, texts.into_iter().map(text).collect()))
            }
            other => panic!("{other:?}"),
        }
    }

    fn run(&self, (mut shape, texts): Self::Inputs, _: &[usize]) -> Result<Self::Outputs> {
        let Some(kept) = self.kept else { return Ok((shape, texts)) };
        let width =
            usize::try_from(std::mem::replace(&mut shape.dims_mut()[1], kept)).expect("few");
        let kept = usize::try_from(kept).expect("few");
        Ok((shape, texts.chunks(width).flat_map(|row| row[..kept].to_vec()).collect()))
    }

    fn outputs(&self, (shape, texts): Self::Outputs, _: &[usize]) -> Result<Vec<ModelOutput>> {
        Ok(vec![ModelOutput { shape, data: byte_strings::pack(&texts).expect("short") }])
    }
}

#[test]
fn texts_are_padded_and_split_like_numbers() {
    let model = |length: &[(&str, &str)], kept| {
        let settings = [&[("pad_batches.value", "[PAD]")], length].concat();
        let tensor =
            |side, name| format!("{side} {{ name: '{name}' data_type: TYPE_STRING dims: -1 }}\n");
        let text = format!(
            "name: 'm' backend: 'b' max_batch_size: 8 {}{}{}",
            tensor("input", "x"),
            tensor("output", "y"),
            parameters(&settings)
        );
        Texts { config: model_config(&text), kept }
    };
    let tensor = |name, texts: &[&str]| {
        let data = byte_strings::pack(texts).expect("short");
        Tensor::new(name, DataType::Bytes, [1, texts.len() as i64], data)
    };
    let ask = |texts: &[&str]| request("m", 1, vec![tensor("x", texts)]);
    let requests = || vec![ask(&["a", "bb", ""]), ask(&["ccc"])];
    let got = answers(&model(&[], None), requests());
    assert_eq!(*got[0].as_ref().expect("answered"), [tensor("y", &["a", "bb", ""])]);
    assert_eq!(*got[1].as_ref().expect("answered"), [tensor("y", &["ccc"])]);
    // An output that has another length than is said.
    let got = answers(&model(&[], Some(2)), requests());
    assert_eq!(
        got[0].as_ref().expect_err("unknown").message(),
        "output 'y' of model 'm' has shape [1,2], and is not as long as the padded input 'x' of shape [1,3]: name the \
         input whose length it has, or none, in the parameter pad_batches.length_of.y"
    );
    let got = answers(&model(&[("pad_batches.length_of.y", "none")], Some(2)), requests());
    assert_eq!(*got[1].as_ref().expect("answered"), [tensor("y", &["ccc", "[PAD]"])]);
}
