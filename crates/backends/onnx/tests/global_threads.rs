//! One thread pool for all models. The library's environment is made once in a process, hence a
//! test program of its own.
#![allow(clippy::unwrap_used, clippy::expect_used)]

#[path = "it/support/mod.rs"]
mod support;

use std::collections::BTreeMap;

use galatea_backend::testing::{instance_spec, model_config, tensors};
use galatea_backend_onnx::OnnxBackend;
use galatea_types::{DataType::Fp32, Tensor};
use support::{ask, context, floats, infer, library, model_folder, onnx};

#[test]
fn models_share_the_thread_pool_set_on_the_command_line() {
    let settings: BTreeMap<String, String> =
        [("enable-global-threadpool", "1"), ("intra_op_thread_count", "2")]
            .map(|(k, v)| (k.to_owned(), v.to_owned()))
            .into();
    let backend = OnnxBackend::open(&library(), &settings).expect("opens");
    let folder = model_folder(&onnx::identity(Fp32));
    let config = model_config(&format!(
        "backend: 'onnxruntime' max_batch_size: 4 {} {}",
        tensors("input", ["X"], Fp32, &[-1]),
        tensors("output", ["Y"], Fp32, &[-1]),
    ));
    let mut load_context = context(&folder, config);
    load_context.backend_config = settings;
    let model = backend.load(load_context).expect("loads");
    let mut instance = model.new_instance(&instance_spec("m", 0)).expect("instance");
    let input = Tensor::new("X", Fp32, [1, 2], floats(&[1.0, 2.0]));
    let answer = infer(&mut *instance, ask(1, vec![input], &[])).expect("answer");
    assert_eq!(answer.outputs[0].host().expect("host memory"), floats(&[1.0, 2.0]));

    let bad = BTreeMap::from([("enable-global-threadpool".to_owned(), "perhaps".to_owned())]);
    let error = OnnxBackend::open(&library(), &bad).err().expect("an error");
    let expected = "failed to convert enable-global-threadpool 'perhaps' to boolean value";
    assert_eq!(error.message(), expected);
}
