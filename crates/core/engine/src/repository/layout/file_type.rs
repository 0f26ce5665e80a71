//! Finds out the kind of a model's file from its name, and for some from its first bytes.

use std::path::Path;

use super::files::read_start;

/// The kind of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FileType {
    /// A model for this backend, which looks for a file with this name.
    Model { backend: &'static str, filename: &'static str },
    /// A model that this backend runs only under this ending: the configuration must name the file.
    Named { backend: &'static str },
    /// A model that no backend here runs.
    Foreign(ForeignFile),
    /// Not known to be a model.
    Unknown,
}

/// A file that people use as a model but that no backend runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ForeignFile {
    /// Completes "it is ...".
    pub what: &'static str,
    /// Advice on serving something else instead.
    pub advice: &'static str,
}

/// Files that no backend runs: ends of names in small letters, descriptions, and advice.
const FOREIGN: [(&[&str], &str, &str); 12] = [
    (
        &["pkl", "pickle", "joblib", "skops"],
        "a pickled Python object",
        "export it to ONNX (for scikit-learn with skl2onnx), or write a model.py that loads it: it needs the code that made it",
    ),
    (
        &["h5", "hdf5", "keras"],
        "a Keras model",
        "save it as a SavedModel (model.export('model.savedmodel') of Keras), or export it to ONNX with tf2onnx",
    ),
    (&["plan", "engine", "trt"], "a TensorRT engine", galatea_config::TENSORRT_ENGINE),
    (
        &["safetensors", "ckpt", "bin", "npz", "npy", "msgpack"],
        "a file of weights",
        "export the model to ONNX (for PyTorch also with torch.jit.script), or write a model.py that loads it",
    ),
    (&["gguf"], "a GGUF model", "serve it from a model.py that loads it (llama-cpp-python)"),
    (
        &["mar"],
        "a TorchServe archive",
        "unpack it (it is a zip archive) and make a model of what is in it: docs/migrate-from-torchserve.md says how",
    ),
    (
        &["nemo"],
        "a NeMo archive",
        "export the model to ONNX (model.export('model.onnx') of NeMo), or write a model.py that loads it",
    ),
    (
        &["zip", "tar", "gz", "tgz", "bz2", "xz", "zst", "7z"],
        "an archive",
        "unpack it, and put the model's file in its place",
    ),
    (&["ubj", "xgb", "bst", "lgb"], "a model of XGBoost or LightGBM", OF_TREES),
    (
        &["cbm"],
        "a CatBoost model",
        "save it as ONNX (save_model('model.onnx', format='onnx') of CatBoost), or write a model.py that loads it",
    ),
    (
        &["pdmodel", "pdiparams"],
        "a PaddlePaddle model",
        "convert it to ONNX with paddle2onnx, or write a model.py that loads it",
    ),
    (
        &["mlmodel", "mlpackage"],
        "a Core ML model",
        "export the model that it was made of to ONNX: Core ML runs on Apple's systems only",
    ),
];

const OF_TREES: &str = "convert it to ONNX with onnxmltools, or write a model.py that loads it";

/// Words in names of JSON and text files that are models of trees.
const TREES: [&str; 4] = ["xgboost", "xgb", "lightgbm", "lgbm"];

const LIGHTGBM: &[u8] = b"tree\nversion=";
const XGBOOST: &[u8] = b"\"learner\"";

/// Returns the kind by the end of the name.
pub(super) fn file_type(name: &str) -> FileType {
    let model = |backend, filename| FileType::Model { backend, filename };
    match ending(name).as_str() {
        "onnx" => model("onnxruntime", "model.onnx"),
        "ort" => FileType::Named { backend: "onnxruntime" },
        "tflite" => FileType::Named { backend: "openvino" },
        "pt" | "pth" | "torchscript" => model("pytorch", "model.pt"),
        "pt2" => model("pytorch", "model.pt2"),
        "py" => model("python", "model.py"),
        "savedmodel" => model("tensorflow", "model.savedmodel"),
        "graphdef" => model("tensorflow", "model.graphdef"),
        _ => foreign_file(name).map_or(FileType::Unknown, FileType::Foreign),
    }
}

/// Returns the description of a file that no backend runs, by the end of its name; `None` if it may be anything else.
pub fn foreign_file(name: &str) -> Option<ForeignFile> {
    let ending = ending(name);
    let is_of_trees = || {
        let lower = name.to_ascii_lowercase();
        matches!(&*ending, "json" | "txt" | "model")
            && TREES.iter().any(|word| lower.contains(word))
    };
    let row = FOREIGN.iter().find(|(endings, ..)| endings.contains(&&*ending));
    match row {
        Some(&(_, what, advice)) => Some(ForeignFile { what, advice }),
        None => is_of_trees().then_some(TREE_MODEL),
    }
}

const TREE_MODEL: ForeignFile =
    ForeignFile { what: "a model of XGBoost or LightGBM", advice: OF_TREES };

/// Returns the kind by the name, and for JSON and text by the first bytes.
pub(super) fn file_type_of(path: &Path, name: &str) -> FileType {
    match file_type(name) {
        FileType::Unknown
            if matches!(&*ending(name), "json" | "txt" | "model") && is_of_trees(path) =>
        {
            FileType::Foreign(TREE_MODEL)
        }
        known => known,
    }
}

/// Returns true if a JSON or text file is a model of XGBoost or LightGBM in their own formats.
fn is_of_trees(path: &Path) -> bool {
    let Ok(start) = read_start(path) else { return false };
    let has = |part: &[u8]| start.windows(part.len()).any(|window| window == part);
    start.starts_with(LIGHTGBM) || (start.trim_ascii_start().starts_with(b"{") && has(XGBOOST))
}

fn ending(name: &str) -> String {
    name.rsplit_once('.').map_or("", |(_, ending)| ending).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn file_types_are_known_by_extension() {
        let model = |name| match file_type(name) {
            FileType::Model { backend, .. } | FileType::Named { backend } => backend,
            FileType::Foreign(foreign) => foreign.what,
            FileType::Unknown => "",
        };
        for (name, expected) in [
            ("iris.onnx", "onnxruntime"),
            ("Model.ONNX", "onnxruntime"),
            ("model.ort", "onnxruntime"),
            ("a.b.pth", "pytorch"),
            ("model.pt2", "pytorch"),
            ("x.py", "python"),
            ("clf.joblib", "a pickled Python object"),
            ("model.plan", "a TensorRT engine"),
            ("densenet161.mar", "a TorchServe archive"),
            ("model.tar.gz", "an archive"),
            ("XGBoost.json", "a model of XGBoost or LightGBM"),
            ("config.json", ""),
            ("labels.txt", ""),
            ("onnx", ""),
        ] {
            assert_eq!(model(name), expected, "{name}");
        }
    }

    #[test]
    fn tree_models_are_known_by_their_first_bytes() {
        let folder = tempfile::tempdir().expect("folder");
        for (text, expected) in [
            ("{\"learner\":{\"attributes\":{}}}", true),
            ("{\n  \"version\": [2, 0, 0], \"learner\": {", true),
            ("tree\nversion=v4\nnum_class=1\n", true),
            ("{\"model_type\": \"bert\"}", false),
            ("learner", false),
            ("cat\ndog\n", false),
        ] {
            let path = folder.path().join("model.json");
            std::fs::write(&path, text).expect("written");
            let is_foreign = matches!(file_type_of(&path, "model.json"), FileType::Foreign(_));
            assert_eq!(is_foreign, expected, "{text}");
        }
        assert_eq!(file_type_of(&folder.path().join("gone"), "gone.json"), FileType::Unknown);
    }
}
