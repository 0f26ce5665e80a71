//! Any bytes as what a server answers over HTTP: tensors or an error, never a panic; and tensors lie within the
//! bytes that came, where they are binary.
#![no_main]

use galatea_client::decode_infer_response;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|data: &[u8]| {
    let Ok(outputs) = decode_infer_response(data) else { return };
    for output in &outputs {
        assert!(output.data.len() <= 8 * data.len(), "{output:?}");
    }
});
