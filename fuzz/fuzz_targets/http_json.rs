//! Any text as an inference request in JSON: an answer or an error, never a panic; and what is taken gives
//! inputs whose data, where it came as JSON, fills their shape.
#![no_main]

mod model;

use bytes::Bytes;
use galatea_protocol::{NoRegions, http::decode};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let body = Bytes::from(json.to_vec());
    let Ok((request, _)) = decode(&body, json.len(), &model::config(), None, &NoRegions) else { return };
    for input in &request.inputs {
        // BYTES data is counted by the check against the model; no data is a binary tensor of size 0.
        let expected = input.shape.byte_size(input.data_type);
        assert!(
            input.data.is_empty() || expected.is_none_or(|n| n == input.data.len()),
            "{input:?}"
        );
    }
});
