//! Ragged batches of TorchScript models.

use crate::support::{archive::Script, ask, floats, instance};
use galatea_backend::testing::run_batch;
use galatea_types::{DataType::Fp32, Tensor};

fn tensor(name: &str, shape: [i64; 2], values: &[f32]) -> Tensor {
    Tensor::new(name, Fp32, shape, floats(values))
}

/// The model sums up all numbers in a row and picks the sums at the ends of the requests.
#[test]
fn a_ragged_batch_passes_all_requests_and_their_ends() {
    let script = Script::new(
        "x: Tensor,\n    ends: Tensor) -> Tuple[Tensor, Tensor]:\n    \
         sums = torch.cumsum(x, 0)\n    \
         last = torch.index_select(sums, 0, torch.sub(ends, 1))\n    \
         return (torch.unsqueeze(last, 1), torch.neg(x))",
    );
    let text = "max_batch_size: 8
        input { name: 'INPUT__0' data_type: TYPE_FP32 dims: -1 allow_ragged_batch: true }
        batch_input { kind: BATCH_ACCUMULATED_ELEMENT_COUNT target_name: 'INPUT__1' data_type: TYPE_INT32
                      source_input: 'INPUT__0' }
        output { name: 'OUTPUT__0' data_type: TYPE_FP32 dims: 1 }
        output { name: 'OUTPUT__1' data_type: TYPE_FP32 dims: -1 }
        batch_output { target_name: 'OUTPUT__1' source_input: 'INPUT__0' }";
    let mut instance = instance(&script, text);
    let all: [&[f32]; 3] = [&[1.0, 2.0], &[10.0], &[100.0, 200.0, 300.0]];
    let requests =
        all.map(|values| ask(1, vec![tensor("INPUT__0", [1, values.len() as i64], values)], &[]));
    let answers = run_batch(&mut *instance, requests.into());
    for ((answer, values), sum) in answers.into_iter().zip(all).zip([3.0, 13.0, 613.0]) {
        let negated: Vec<f32> = values.iter().map(|value| -value).collect();
        let shape = [1, values.len() as i64];
        let expected = [tensor("OUTPUT__0", [1, 1], &[sum]), tensor("OUTPUT__1", shape, &negated)];
        assert_eq!(answer.expect("answered").outputs, expected);
    }
}
