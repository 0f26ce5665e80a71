//! Any text as a generate request: an answer or an error, never a panic; and what is taken gives inputs whose
//! data fills their shape.
#![no_main]

mod model;

use galatea_protocol::http::decode_generate;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|json: &[u8]| {
    let Ok(request) = decode_generate(json, &model::config(), None) else { return };
    for input in &request.inputs {
        // BYTES data is counted by the check against the model.
        let expected = input.shape.byte_size(input.data_type);
        assert!(expected.is_none_or(|n| n == input.data.len()), "{input:?}");
    }
});
