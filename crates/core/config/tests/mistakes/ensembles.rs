//! Ensembles that do not fit the models of their steps.

use galatea_config::ConfigSource;

use crate::{finding, model};

const STEP_MODEL: &str = "name: \"resize\" backend: \"python\" max_batch_size: 2
    input { name: \"RAW\" data_type: TYPE_UINT8 dims: [ -1 ] }
    output { name: \"IMAGE\" data_type: TYPE_FP32 dims: [ 3, -1 ] }";

const HEAD: &str = "name: \"m\" platform: \"ensemble\" max_batch_size: 2
input { name: \"bytes\" data_type: TYPE_UINT8 dims: [ -1 ] }
output { name: \"picture\" data_type: TYPE_FP32 dims: [ 3, -1 ] }
";

#[track_caller]
fn check(head: &str, step: &str, expected: &str) {
    let text = format!(
        "{head}ensemble_scheduling {{ step [\n  {{ model_name: \"resize\" model_version: -1\n{step}\n  }}\n] }}"
    );
    let source = ConfigSource::text("m/config.pbtxt", text.as_str());
    let error = model(&text).with_step_models(&[model(STEP_MODEL)]).expect_err("it does not fit");
    assert_eq!(finding(&source.locate(error)).one_line(), expected);
}

#[test]
fn unknown_tensor_names_of_a_step_are_reported_with_their_place() {
    check(
        HEAD,
        "    input_map { key: \"raw_\" value: \"bytes\" }\n    output_map { key: \"IMAGE\" value: \"picture\" }",
        "m/config.pbtxt:6:5: in ensemble m, ensemble tensor bytes is mapping to non-existing input raw_ in model \
         resize; did you mean `RAW`?",
    );
    check(
        HEAD,
        "    input_map { key: \"RAW\" value: \"bytes\" }\n    output_map { key: \"picture\" value: \"picture\" }",
        "m/config.pbtxt:7:5: in ensemble m, ensemble tensor picture is mapped from non-existing output picture in \
         model resize; `key` is the name in the model, `value` the one in the ensemble; model `resize` has outputs \
         `IMAGE`",
    );
}

#[test]
fn mismatched_types_shapes_and_batch_sizes_are_reported() {
    let maps = "    input_map { key: \"RAW\" value: \"bytes\" }\n    output_map { key: \"IMAGE\" value: \"picture\" }";
    check(
        &HEAD.replace("TYPE_UINT8", "TYPE_INT8"),
        maps,
        "m/config.pbtxt:6:5: in ensemble m, ensemble tensor bytes: inconsistent data type: TYPE_INT8 is inferred from \
         model m while TYPE_UINT8 is inferred from model resize; both must describe the tensor alike: correct the \
         configuration that is wrong",
    );
    check(
        &HEAD.replace("[ 3, -1 ]", "[ 4, -1 ]"),
        maps,
        "m/config.pbtxt:7:5: in ensemble m, ensemble tensor picture: inconsistent shape: [-1,4,-1] is inferred from \
         model m while [-1,3,-1] is inferred from model resize; both must describe the tensor alike: correct the \
         configuration that is wrong",
    );
    check(
        &HEAD.replace("max_batch_size: 2", "max_batch_size: 8"),
        maps,
        "m/config.pbtxt:1:48: ensemble m allows maximum batch size 8, but it contains model resize which only allows \
         maximum batch size to be 2; write `max_batch_size: 2` or less here, or raise it in the configuration of \
         `resize`",
    );
}
