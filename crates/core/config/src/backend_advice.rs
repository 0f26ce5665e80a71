//! Advice for a backend or platform that does not exist.

use galatea_types::suggest;

use crate::backend_table::{ENSEMBLE_PLATFORM, MODEL_FILES};

/// Advice for a configuration that names neither backend nor platform.
pub(crate) const NAME_A_BACKEND: &str = "write `backend: \"onnxruntime\"` for a model.onnx, `backend: \"pytorch\"` for a \
     model.pt or `backend: \"python\"` for a model.py; a file of one of these names in the version folder says it too";

/// Other names of existing backends.
const OTHER_NAMES: &[(&str, &str)] = &[
    ("onnxruntime", "onnx ort onnxrt onnx_runtime onnx-runtime onnxruntime_onnx onnxruntime_gpu"),
    ("pytorch", "torch libtorch pytorch_libtorch torchscript torch_script pt torch_aoti"),
    (
        "tensorflow",
        "tf tensorflow1 tensorflow2 savedmodel saved_model graphdef tensorflow_savedmodel tensorflow_graphdef",
    ),
    ("python", "py python3 python_backend"),
];

/// Advice for TensorRT engines, whichever file or name shows that one is meant.
pub const TENSORRT_ENGINE: &str = "an engine (model.plan) runs on the kind of GPU and with the TensorRT that it was built \
     for, in a library made for Triton, and such libraries are not loaded yet. Serve the ONNX model that it was built from \
     with `backend: \"onnxruntime\"`: on the CPU, or on a GPU with TensorRT by `optimization { execution_accelerators { \
     gpu_execution_accelerator [ { name: \"tensorrt\" } ] } }`";

/// Backends of Triton that Galatea does not have, each with its replacement here.
const ELSEWHERE: &[(&[&str], &str, &str)] = &[
    (&["tensorrt", "tensorrt_plan", "trt", "plan"], "tensorrt", TENSORRT_ENGINE),
    (
        &["vllm"],
        "vllm",
        "it is written in Python. Copy its folder (backends/vllm in Triton's container) into `--backend-directory`, and \
         install the package vllm into the Python that runs it: its models are then served here",
    ),
    (
        &["tensorrtllm", "tensorrt_llm", "trtllm"],
        "tensorrtllm",
        "its engines run on the kind of GPU that they were built for, in a library made for Triton, and such libraries \
         are not loaded yet. Serve the checkpoint that they were built from in a model.py with `backend: \"python\"` \
         (transformers, vllm), or use a server made for language models, as `trtllm-serve`",
    ),
    (
        &["dali"],
        "dali",
        "a model.dali runs in NVIDIA's DALI, mostly on a GPU, by a library made for Triton, and such libraries are not \
         loaded yet. Do the preprocessing in a model.py with `backend: \"python\"` (numpy, Pillow, OpenCV), as a step of \
         an ensemble",
    ),
    (
        &["fil", "xgboost", "lightgbm", "sklearn", "scikit-learn", "treelite"],
        "fil",
        "tree models (xgboost.json, model.txt, checkpoint.tl) run there in a library made for Triton, and such libraries \
         are not loaded yet. Convert the model to ONNX (XGBoost and LightGBM with onnxmltools, scikit-learn with \
         skl2onnx) and use `backend: \"onnxruntime\"`, or load it in a model.py with `backend: \"python\"`",
    ),
];

/// Returns advice for a backend that does not exist. `known` are the existing backends.
///
/// ```
/// use galatea_config::backend_advice;
///
/// assert_eq!(backend_advice("onnx", ["onnxruntime"]), "did you mean `backend: \"onnxruntime\"`?");
/// ```
pub fn backend_advice<'a>(backend: &str, known: impl IntoIterator<Item = &'a str>) -> String {
    if let Some(advice) = backend_of(backend) {
        return advice;
    }
    let known: Vec<_> = known.into_iter().collect();
    match suggest::nearest(backend, known.iter().copied()).first() {
        Some(near) => format!("did you mean `backend: \"{near}\"`?"),
        None => format!("this server has the backends {}", known.join(", ")),
    }
}

/// Returns advice for backends with another name here, and for those that are no part of this server.
pub(crate) fn backend_of(backend: &str) -> Option<String> {
    let name = backend.to_ascii_lowercase();
    if name == ENSEMBLE_PLATFORM {
        return Some(
            "write `platform: \"ensemble\"` in its place: an ensemble has no backend".to_owned(),
        );
    }
    if let Some((right, _)) = OTHER_NAMES.iter().find(|(_, others)| has_word(others, &name)) {
        return Some(format!("did you mean `backend: \"{right}\"`?"));
    }
    let (_, of, instead) = ELSEWHERE.iter().find(|(names, ..)| names.contains(&name.as_str()))?;
    let what = if name == *of { backend } else { of };
    Some(format!("Triton's backend `{what}` is not part of Galatea: {instead}"))
}

fn has_word(list: &str, word: &str) -> bool {
    list.split_whitespace().any(|known| known == word)
}

/// Returns advice for a platform that does not exist.
pub(crate) fn platform_advice(platform: &str) -> String {
    let name = platform.to_ascii_lowercase();
    let is_other = |(right, others): &&(&str, &str)| *right == name || has_word(others, &name);
    if let Some((backend, _)) = OTHER_NAMES.iter().find(is_other) {
        let is_its_name = if *backend == name { "it is the name of a backend: " } else { "" };
        let of_backend =
            MODEL_FILES.iter().find(|f| f.backend == *backend && !f.platform.is_empty());
        let or =
            of_backend.map(|f| format!(" or `platform: \"{}\"`", f.platform)).unwrap_or_default();
        return format!("{is_its_name}write `backend: \"{backend}\"`{or}");
    }
    if let Some(advice) = backend_of(&name) {
        return advice;
    }
    let known = MODEL_FILES.iter().map(|f| f.platform).chain([ENSEMBLE_PLATFORM]);
    let known: Vec<_> = known.filter(|platform| !platform.is_empty()).collect();
    match suggest::nearest(platform, known).first() {
        Some(near) => format!("did you mean `platform: \"{near}\"`?"),
        None => NAME_A_BACKEND.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const KNOWN: [&str; 4] = ["onnxruntime", "python", "pytorch", "identity"];

    #[test]
    fn misspelled_and_foreign_backends_get_advice() {
        let check = |backend: &str, expected: &str| {
            let advice = backend_advice(backend, KNOWN);
            assert!(advice.contains(expected), "{backend}: {advice}");
        };
        check("onnx", "did you mean `backend: \"onnxruntime\"`?");
        check("pytorch_libtorch", "did you mean `backend: \"pytorch\"`?");
        check("tf", "did you mean `backend: \"tensorflow\"`?");
        check("pyhton", "did you mean `backend: \"python\"`?");
        check("ensemble", "write `platform: \"ensemble\"` in its place");
        for elsewhere in ["tensorrt", "vllm", "tensorrtllm", "dali", "fil"] {
            check(elsewhere, &format!("Triton's backend `{elsewhere}` is not part of Galatea: "));
        }
        check(
            "trtllm",
            "Triton's backend `tensorrtllm` is not part of Galatea: its engines run on",
        );
        check("xgboost", "Triton's backend `fil` is not part of Galatea: tree models");
        check(
            "nothing_like_it",
            "this server has the backends onnxruntime, python, pytorch, identity",
        );
    }

    #[test]
    fn unknown_platforms_get_advice() {
        let cases = [
            (
                "onnxruntime",
                "it is the name of a backend: write `backend: \"onnxruntime\"` or `platform: \"onnxruntime_onnx\"`",
            ),
            ("onnx", "write `backend: \"onnxruntime\"` or `platform: \"onnxruntime_onnx\"`"),
            ("python", "it is the name of a backend: write `backend: \"python\"`"),
            ("pytorch_libtroch", "did you mean `platform: \"pytorch_libtorch\"`?"),
        ];
        for (platform, expected) in cases {
            assert_eq!(platform_advice(platform), expected);
        }
        assert!(platform_advice("keras").contains(NAME_A_BACKEND));
    }
}
