//! No bytes make the reader of inference requests panic, however the network cuts them, and the cut makes
//! no difference to what is read.
#![no_main]

use std::sync::LazyLock;

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_protocol::{
    NoRegions,
    grpc::{Pieces, decode, decode_message},
};
use libfuzzer_sys::fuzz_target;

const CONFIG: &str = r#"
backend: "identity"
input { name: "INPUT0" data_type: TYPE_FP32 dims: -1 }
input { name: "INPUT1" data_type: TYPE_STRING dims: -1 }
output { name: "OUTPUT0" data_type: TYPE_FP32 dims: -1 }
"#;

static MODEL: LazyLock<ModelConfig> = LazyLock::new(|| testing::model_config(CONFIG));

fuzz_target!(|input: (u8, Vec<u8>)| {
    let (size, bytes) = input;
    let mut cut = Pieces::default();
    bytes.chunks(usize::from(size) + 1).for_each(|c| cut.push(Bytes::copy_from_slice(c)));
    let mut whole = Pieces::default();
    whole.push(Bytes::from(bytes));
    let message = decode_message(cut).ok();
    // Not-a-number differs from itself, so the comparison is by what is printed.
    assert_eq!(format!("{message:?}"), format!("{:?}", decode_message(whole).ok()));
    if let Some(message) = message {
        let _ = decode(message, &MODEL, &NoRegions);
    }
});
