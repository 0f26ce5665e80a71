//! What loads, what is refused, and with which words.

use std::{collections::BTreeMap, fs, path::Path};

use crate::support::{
    Folder, complete, configure,
    graph::{self, Builder, Dims},
    load, load_error, model_folder,
};
use galatea_backend::{
    CompletionContext, Inspector, InstanceSpec, PathRules, testing::instance_spec,
};
use galatea_backend_tensorflow::{TensorFlowBackend, TensorFlowInspector};
use galatea_config::{Diagnostic, InstanceKind};
use galatea_types::DataType::{Fp32, Int64};
use prost::Message;

const IDENTITY: &str = r#"max_batch_size: 8
    input { name: "X" data_type: TYPE_FP32 dims: -1 }
    output { name: "Y" data_type: TYPE_FP32 dims: -1 }"#;

fn identity() -> Folder {
    model_folder(&graph::identity(Fp32).bytes())
}

#[track_caller]
fn assert_refused(folder: &Folder, text: &str, expected: &str) {
    assert_eq!(load_error(folder, text), expected);
}

/// What is to be done about the error that loading gives.
#[track_caller]
fn advice(folder: &Folder, text: &str) -> String {
    let error = load(folder, text).err().expect("an error");
    Diagnostic::of(&error).and_then(|found| found.advice.clone()).expect("advice")
}

#[test]
fn a_file_that_is_not_a_library_is_refused_by_name() {
    let open =
        |path: &Path| TensorFlowBackend::open(path).err().expect("an error").message().to_owned();
    let folder = tempfile::tempdir().unwrap();
    let missing = folder.path().join("libnone.so");
    assert!(open(&missing).contains("libnone.so"));
    let text = folder.path().join("libtext.so");
    fs::write(&text, "no library").unwrap();
    assert!(open(&text).contains("libtext.so"));
    let libc = open(Path::new("libc.so.6"));
    assert!(libc.contains("libc.so.6") && libc.contains("TF_Version"), "{libc}");
}

#[test]
fn unknown_names_types_and_counts_are_refused() {
    let text = |from, to| IDENTITY.replacen(from, to, 1);
    assert_refused(
        &identity(),
        &text("\"X\"", "\"Z\""),
        "unexpected inference input 'Z', allowed inputs are: X",
    );
    assert_refused(
        &identity(),
        &text("\"Y\"", "\"Z\""),
        "unexpected inference output 'Z', allowed outputs are: Y",
    );
    let expected = "unable to load model 'm', configuration expects datatype TYPE_INT64 for input 'X', model provides TYPE_FP32";
    assert_refused(&identity(), &text("TYPE_FP32", "TYPE_INT64"), expected);
    let folder = model_folder(&graph::add_sub(Fp32).bytes());
    let one = r#"max_batch_size: 8 input { name: "A" data_type: TYPE_FP32 dims: -1 }
        output { name: "SUM" data_type: TYPE_FP32 dims: -1 }"#;
    let expected = "unable to load model 'm', configuration expects 1 inputs, model provides 2";
    assert_refused(&folder, one, expected);
}

#[test]
fn mismatched_shapes_are_refused() {
    let text = IDENTITY.replacen("dims: -1", "dims: [ -1, 3 ]", 1);
    assert_refused(
        &identity(),
        &text,
        "model 'm', tensor 'X': the model expects 2 dimensions (shape [-1,-1]) but the model configuration specifies 3 \
         dimensions (an initial batch dimension because max_batch_size > 0 followed by the explicit tensor shape, making \
         complete shape [-1,-1,3])",
    );
    assert!(advice(&identity(), &text).contains("`dims: [ -1 ]`"));
    let fixed = Builder::default()
        .input("X", Fp32, &[1, 4])
        .node("Identity", "same", &["in_X"], Fp32)
        .output("Y", "same", Fp32, &[1, 4]);
    assert_refused(
        &model_folder(&fixed.bytes()),
        &IDENTITY.replace("dims: -1", "dims: 4"),
        "model 'm', tensor 'X': for the model to support batching the shape should have at least 1 dimension and the \
         first dimension must be -1; but shape expected by the model is [1,4]",
    );
    assert!(
        advice(&model_folder(&fixed.bytes()), &IDENTITY.replace("dims: -1", "dims: 4"))
            .contains("(None)")
    );
}

#[test]
fn unknown_signatures_and_tags_are_refused() {
    let mut model = graph::identity(Fp32).saved_model();
    let signature = model.graphs[0].signatures.remove("serving_default").unwrap();
    model.graphs[0].signatures.insert("half".to_owned(), signature);
    let init =
        graph::Node { name: "init".to_owned(), kind: "NoOp".to_owned(), ..Default::default() };
    model.graphs[0].graph.as_mut().unwrap().nodes.push(init);
    let internal = graph::Signature {
        outputs: BTreeMap::from([(
            "__saved_model_init_op".to_owned(),
            graph::Info { name: "init".to_owned(), ..Default::default() },
        )]),
        ..Default::default()
    };
    model.graphs[0].signatures.insert("__saved_model_init_op".to_owned(), internal);
    let folder = model_folder(&model.encode_to_vec());
    load(&folder, IDENTITY).map(drop).expect("the only one that can be called");
    let with = |key: &str, value: &str| {
        format!("{IDENTITY} parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}")
    };
    load(&folder, &with("TF_SIGNATURE_DEF", "half")).map(drop).expect("by its name");
    let error = load_error(&folder, &with("TF_SIGNATURE_DEF", "halve"));
    assert!(error.contains("expected 'halve' signature; its signatures are: half"), "{error}");
    let error = load_error(&folder, &with("TF_GRAPH_TAG", "train"));
    assert!(error.contains("expected 'train' tag; the tags of its graphs are: serve"), "{error}");
    model.graphs[0].signatures.remove("half");
    let folder = model_folder(&model.encode_to_vec());
    assert!(load_error(&folder, IDENTITY).contains("it has no signature that can be called"));
    model.graphs.clear();
    let folder = model_folder(&model.encode_to_vec());
    assert!(load_error(&folder, IDENTITY).contains("it has no graph"));
}

#[test]
fn invalid_parameters_are_refused() {
    let error = |key: &str, value: &str| {
        let text =
            format!("{IDENTITY} parameters {{ key: '{key}' value {{ string_value: '{value}' }} }}");
        load_error(&identity(), &text)
    };
    let must_be =
        |key, what| format!("parameter '{key}' must be {what} number for TensorFlow model 'm'");
    for (key, value, what) in [
        ("MAX_SESSION_SHARE_COUNT", "0", "positive"),
        ("TF_NUM_INTRA_THREADS", "-1", "non-negative"),
        ("TF_NUM_INTER_THREADS", "-2", "non-negative"),
    ] {
        assert!(error(key, value).starts_with(&must_be(key, what)), "{}", error(key, value));
    }
    assert!(
        error("TF_NUM_INTRA_THREADS", "many")
            .starts_with("failed to convert TF_NUM_INTRA_THREADS 'many'")
    );
    assert!(error("TF_USE_PER_SESSION_THREADS", "maybe").contains("boolean"));
    assert!(
        error("TF_INIT_OPS_FILE", "none.json").contains("the file 'none.json' of TF_INIT_OPS_FILE")
    );
}

#[test]
fn gpus_and_accelerators_are_refused() {
    let error =
        load_error(&identity(), &format!("{IDENTITY} instance_group {{ kind: KIND_GPU gpus: 0 }}"));
    assert!(
        error.contains("is for GPUs (KIND_GPU), which TensorFlow models do not use here"),
        "{error}"
    );
    let with = |accelerator: &str| {
        format!("{IDENTITY} optimization {{ execution_accelerators {{ {accelerator} }} }}")
    };
    load(&identity(), &with("gpu_execution_accelerator { name: 'tensorrt' }"))
        .map(drop)
        .expect("passed over on the CPU");
    let error = load_error(&identity(), &with("gpu_execution_accelerator { name: 'magic' }"));
    assert!(error.contains("unknown Execution Accelerator 'magic' is requested"), "{error}");
    let error = load_error(&identity(), &with("cpu_execution_accelerator { name: 'openvino' }"));
    assert!(
        error.contains("CPU Execution Accelerator is not supported in TensorFlow backend"),
        "{error}"
    );
    let model = load(&identity(), IDENTITY).expect("loads");
    let gpu = InstanceSpec { kind: InstanceKind::Gpu, ..instance_spec("m", 0) };
    assert!(model.can_have(&[instance_spec("m", 0)]) && !model.can_have(&[gpu]));
}

#[test]
fn other_files_in_place_of_a_model_are_refused() {
    let folder = |file: &str| Folder::with_file(file, b"x");
    for (file, expected) in [
        (
            "saved_model.pb",
            "move saved_model.pb, variables and assets into a folder 'model.savedmodel'",
        ),
        ("net.keras", "there is a Keras file"),
        ("net.h5", "model.export('model.savedmodel') of Keras"),
        ("model.ckpt.index", "a checkpoint holds weights and no graph"),
        ("checkpoint", "a checkpoint holds weights and no graph"),
        ("net.tflite", "TensorFlow Lite"),
        ("frozen.pb", "`default_model_filename: \"frozen.pb\"`"),
        ("model.savedmodel/saved_model.pbtxt", "in the form of text"),
        ("model.savedmodel/keras_metadata.pb", "the folder has no saved_model.pb"),
        ("x.txt", "copy the model to the version folder as 'model.savedmodel'"),
    ] {
        let text = format!("platform: 'tensorflow_savedmodel' {IDENTITY}");
        let found = advice(&folder(file), &text);
        assert!(found.contains(expected), "{file}: {found}");
        let error = load_error(&folder(file), &text);
        assert!(error.contains("unable to find '"), "{file}: {error}");
    }
    let half = identity().and_file("model.savedmodel/variables/variables.index", b"x");
    assert!(load_error(&half, IDENTITY).contains("the values of its variables"));
    let text = format!("platform: 'tensorflow_lite' backend: 'tensorflow' {IDENTITY}");
    assert!(configure(&identity(), &text).is_err() || load(&identity(), &text).is_err());
}

/// Each model fails its load with an error, and none ends the process.
#[test]
fn hostile_models_are_refused() {
    let good = graph::identity(Fp32);
    let whole = good.bytes();
    for length in (0..whole.len()).step_by(7) {
        assert!(
            load(&model_folder(&whole[..length]), IDENTITY).is_err(),
            "the first {length} bytes"
        );
    }
    let refused = |change: &dyn Fn(&mut graph::Graph), expected: &str| {
        let mut model = good.saved_model();
        change(model.graphs[0].graph.as_mut().unwrap());
        let error = load_error(&model_folder(&model.encode_to_vec()), IDENTITY);
        assert!(error.contains(expected), "{error}");
        assert!(error.contains("model.savedmodel"), "{error}");
    };
    refused(&|graph| graph.nodes[1].kind = "NoSuchOperation".to_owned(), "NoSuchOperation");
    refused(&|graph| graph.nodes[1].inputs = vec!["nobody".to_owned()], "nobody");
    refused(&|graph| graph.nodes[1].inputs = vec!["same".to_owned()], "cycle");
    refused(&|graph| graph.nodes[1].attributes.clear(), "attr");
    refused(&|graph| graph.nodes[1].name = "a b\n".to_owned(), "name");
    refused(
        &|graph| {
            let mut attributes = graph.nodes[1].attributes.clone();
            attributes.get_mut("T").unwrap().data_type = Some(3);
            graph.nodes[1].attributes = attributes;
        },
        "same",
    );
    let mut model = good.saved_model();
    model.graphs[0].graph = None;
    let error = load_error(&model_folder(&model.encode_to_vec()), IDENTITY);
    assert!(error.contains("'in_X:0', which its graph does not have"), "{error}");
    let dangling = good.clone().signature(|signature| {
        signature.outputs.get_mut("Y").unwrap().name = "same:7".to_owned();
    });
    assert!(load_error(&model_folder(&dangling.bytes()), IDENTITY).contains("'same:7'"));
}

#[test]
fn data_types_that_requests_cannot_carry_are_refused() {
    let resource = graph::identity(Fp32).signature(|signature| {
        signature.inputs.get_mut("X").unwrap().data_type = 20;
    });
    let error = load_error(&model_folder(&resource.bytes()), IDENTITY);
    let expected = "unable to load model 'm', input 'X' is a tensor of TensorFlow's type resource, which is not supported";
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn a_graph_is_checked_for_names_and_types_only() {
    let folder = Folder::with_file("model.graphdef", &graph::add_sub(Fp32).graph_bytes());
    let graph = |input: &str, data_type: &str, output: &str| {
        format!(
            r#"platform: "tensorflow_graphdef" max_batch_size: 8
            input [ {{ name: "{input}" data_type: {data_type} dims: -1 }}, {{ name: "in_B" data_type: TYPE_FP32 dims: -1 }} ]
            output {{ name: "{output}" data_type: TYPE_FP32 dims: -1 }}"#
        )
    };
    load(&folder, &graph("in_A", "TYPE_FP32", "sum")).map(drop).expect("by the names of nodes");
    load(&folder, &graph("in_A:0", "TYPE_FP32", "sum:0"))
        .map(drop)
        .expect("by the names of tensors");
    assert_refused(
        &folder,
        &graph("A", "TYPE_FP32", "sum"),
        "unexpected inference input 'A', allowed inputs are: in_A, in_B",
    );
    assert_refused(
        &folder,
        &graph("in_A", "TYPE_FP32", "summe"),
        "unexpected inference output 'summe', allowed outputs are: difference, sum",
    );
    let error = load_error(&folder, &graph("in_A", "TYPE_INT64", "sum"));
    assert!(
        error.contains("expects datatype TYPE_INT64 for input 'in_A', model provides TYPE_FP32"),
        "{error}"
    );
    let broken = Folder::with_file("model.graphdef", b"not a graph");
    let error = load_error(&broken, &graph("in_A", "TYPE_FP32", "sum"));
    assert!(error.contains("model.graphdef"), "{error}");
}

#[test]
fn omitted_fields_are_completed_from_the_signature() {
    let defaults = BTreeMap::new();
    let folder = model_folder(&graph::add_sub(Fp32).bytes());
    let raw = complete(&folder, "", &defaults).expect("completed");
    let names: Vec<_> =
        raw.input.iter().map(|input| (input.name.as_str(), &input.dims[..])).collect();
    assert_eq!(names, [("A", &[-1][..]), ("B", &[-1])]);
    assert_eq!((raw.max_batch_size, raw.output.len()), (4, 2));
    assert!(raw.scheduling_choice.is_some());
    let one = BTreeMap::from([("default-max-batch-size".to_owned(), "1".to_owned())]);
    let raw = complete(&folder, "", &one).expect("completed");
    assert_eq!((raw.max_batch_size, raw.scheduling_choice.is_some()), (1, false));
    // Tensors that are given tell whether the first dimension is a batch.
    let given = |dims: &str| {
        let text = format!(
            r#"input [ {{ name: "A" data_type: TYPE_FP32 dims: {dims} }},
            {{ name: "B" data_type: TYPE_FP32 dims: {dims} }} ]"#
        );
        complete(&folder, &text, &defaults).expect("completed")
    };
    assert_eq!(
        (given("[ -1, -1 ]").max_batch_size, given("[ -1, -1 ]").output[0].dims.len()),
        (0, 2)
    );
    assert_eq!((given("[ -1 ]").max_batch_size, given("[ -1 ]").output[0].dims.len()), (4, 1));
    let both = r#"input { name: "A" data_type: TYPE_FP32 dims: [ -1, -1 ] } output { name: "SUM" dims: -1 }"#;
    let error = complete(&folder, both, &defaults).expect_err("contradicting");
    assert!(error.message().contains("contradicting each other"));
    let only = r#"output { name: "SUM" data_type: TYPE_FP32 dims: -1 }"#;
    assert_eq!(complete(&folder, only, &defaults).expect("completed").output.len(), 1);
}

#[test]
fn impossible_completions_are_refused() {
    let defaults = BTreeMap::new();
    let fixed = Builder::default()
        .input("X", Fp32, &[2])
        .node("Identity", "same", &["in_X"], Fp32)
        .output("Y", "same", Fp32, &[2]);
    let fixed = model_folder(&fixed.bytes());
    let error = complete(&fixed, "max_batch_size: 4", &defaults).expect_err("no batch");
    assert!(error.message().contains(
        "configuration specified max-batch 4 but model signature does not support batching"
    ));
    assert_eq!(complete(&fixed, "", &defaults).expect("completed").max_batch_size, 0);
    let unknown = graph::identity(Fp32).signature(|signature| {
        signature.inputs.get_mut("X").unwrap().shape =
            Some(Dims { dims: vec![], unknown_rank: true });
    });
    let error = complete(&model_folder(&unknown.bytes()), "", &defaults).expect_err("no rank");
    assert!(error.message().contains("the rank of model tensor 'X' is unknown"), "{error}");
    load(&model_folder(&unknown.bytes()), IDENTITY).map(drop).expect("as the configuration has it");
}

#[test]
fn inspection_without_the_library_gives_the_same_result() {
    let inspect = |folder: &Folder, text: &str| {
        let config = configure(folder, text)?;
        let (version_dir, backend_config) = (folder.version_dir(), BTreeMap::new());
        let context = CompletionContext {
            model_name: "m",
            model_dir: folder.path(),
            version: 1,
            version_dir: &version_dir,
            backend_config: &backend_config,
            paths: &PathRules::anywhere(),
        };
        TensorFlowInspector.inspect(&config, &context)
    };
    inspect(&identity(), IDENTITY).expect("fits");
    let wrong = IDENTITY.replacen("TYPE_FP32", "TYPE_INT64", 1);
    let error = inspect(&identity(), &wrong).expect_err("another type");
    assert_eq!(error.message(), load_error(&identity(), &wrong));
    let folder = Folder::with_file("model.graphdef", &graph::identity(Int64).graph_bytes());
    let text = IDENTITY.replace("\"X\"", "\"in_X\"").replace("FP32", "INT64");
    let text = format!("platform: 'tensorflow_graphdef' {text}");
    let error = inspect(&folder, &text).expect_err("no such node");
    assert!(error.message().starts_with("unexpected inference output 'Y'"), "{error}");
    inspect(&folder, &text.replace("\"Y\"", "\"same:0\"")).expect("fits");
}
