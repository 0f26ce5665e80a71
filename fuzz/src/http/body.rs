//! Bodies of HTTP requests, any bytes: an answer or an error, never a panic, and never much more memory than bytes.

use bytes::Bytes;
use galatea_engine::RegionTable;
use galatea_protocol::http::{
    decode, decode_cuda_region, decode_generate, decode_index, decode_load, decode_log_change,
    decode_sagemaker_load, decode_system_region, decode_trace_change, decode_unload,
};
use galatea_types::InferRequest;

use crate::{
    memory::{Bound, bounded},
    values::MODEL,
};

/// An empty input of two bytes becomes a tensor.
pub const BOUND: Bound = Bound { per_byte: 64, base: 16 << 10 };

/// An inference request in JSON.
pub fn json(data: &[u8]) {
    let body = Bytes::copy_from_slice(data);
    let model = &*MODEL;
    let decoded = bounded(data.len(), BOUND, || {
        decode(&body, data.len(), model, None, &RegionTable::default())
    });
    if let Ok((request, _)) = decoded {
        // No data is a binary tensor of size 0.
        assert_filled(&request, true);
    }
}

/// An inference request with binary tensors behind its JSON. The first two bytes say where the JSON ends.
pub fn binary(data: &[u8]) {
    let Some((header_length, body)) = data.split_first_chunk::<2>() else { return };
    let (body, model) = (Bytes::copy_from_slice(body), &*MODEL);
    let header_length = usize::from(u16::from_le_bytes(*header_length));
    let _ = bounded(body.len(), BOUND, || {
        decode(&body, header_length, model, Some(1), &RegionTable::default())
    });
}

/// A generate request.
pub fn generate(data: &[u8]) {
    let model = &*MODEL;
    if let Ok(request) = bounded(data.len(), BOUND, || decode_generate(data, model, None)) {
        assert_filled(&request, false);
    }
}

/// Bodies of other requests.
pub fn repository(data: &[u8]) {
    bounded(data.len(), BOUND, || {
        let _ = (decode_load(data), decode_unload(data), decode_index(data));
        let _ = decode_sagemaker_load(data);
        let _ = [false, true].map(|brings_memory| decode_system_region(data, brings_memory));
        let _ = decode_cuda_region(data);
        let _ = decode_log_change(data, &mut Default::default());
        let _ = decode_trace_change(data);
    });
}

/// The data of each input fills its shape. BYTES data is counted by the check against the model.
fn assert_filled(request: &InferRequest, may_be_empty: bool) {
    for input in &request.inputs {
        let expected = input.shape.byte_size(input.data_type);
        let is_empty = may_be_empty && input.data.is_empty();
        assert!(is_empty || expected.is_none_or(|n| n == input.data.len()), "{input:?}");
    }
}
