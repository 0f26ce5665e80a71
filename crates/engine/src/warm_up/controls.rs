//! What the control inputs of a sequence batcher are in the first request of a sequence.

use galatea_config::{ControlKind, FalseTrue, ModelConfig, Scheduling};
use galatea_types::{DataType, Shape, Tensor};

/// The controls of the model; none where it has no sequences.
pub(super) fn of_first_request(config: &ModelConfig) -> impl Iterator<Item = Tensor> {
    let controls = match config.scheduling() {
        Scheduling::Sequence(batching) => batching.controls.as_slice(),
        _ => &[],
    };
    let one = Shape::from([1]);
    let shape = if config.has_batching() { one.with_leading(1) } else { one };
    controls.iter().map(move |control| {
        let data = match &control.kind {
            ControlKind::Start(values) | ControlKind::Ready(values) => element(values, true),
            ControlKind::End(values) => element(values, false),
            ControlKind::CorrelationId(data_type) => first_id(*data_type),
        };
        Tensor::new(control.input.clone(), control.kind.data_type(), shape.clone(), data)
    })
}

fn element(values: &FalseTrue, is_true: bool) -> Vec<u8> {
    fn of<T: Copy>([no, yes]: [T; 2], is_true: bool) -> T {
        if is_true { yes } else { no }
    }
    match *values {
        FalseTrue::Int32(values) => of(values, is_true).to_le_bytes().to_vec(),
        FalseTrue::Fp32(values) => of(values, is_true).to_le_bytes().to_vec(),
        FalseTrue::Bool(values) => vec![u8::from(of(values, is_true))],
    }
}

/// Sequence 1: 0 is none.
fn first_id(data_type: DataType) -> Vec<u8> {
    match data_type.byte_size() {
        Some(size) => 1_u64.to_le_bytes().into_iter().take(size).collect(),
        None => [1, 0, 0, 0, b'1'].to_vec(),
    }
}
