//! Requests made of data, shapes and settings.

use galatea_types::DataType::{self, *};
use tempfile::TempDir;

use super::{
    super::tests::{Recorder, model, settings},
    *,
};

/// Requests made of a file.
struct Given {
    settings: Settings,
    model: ModelInfo,
    directory: TempDir,
}

impl Given {
    fn new(tensors: &[(DataType, &[i64])], json: &str) -> Self {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("data.json");
        std::fs::write(&path, json).unwrap();
        let settings = settings(DataSource::Files(vec![path]));
        Self { settings, model: model(tensors), directory }
    }

    fn batch(mut self, size: u64) -> Self {
        self.settings.batch_size = size;
        self
    }

    fn requests(&self) -> Requests {
        Requests::new(&self.settings, &self.model, &mut Recorder::default()).unwrap()
    }

    fn refused(&self) -> String {
        match Requests::new(&self.settings, &self.model, &mut Recorder::default()) {
            Ok(_) => panic!("accepted"),
            Err(failure) => failure.message,
        }
    }
}

fn inline(template: &InferTemplate, input: usize) -> &[u8] {
    match &template.inputs[input].data {
        InputData::Inline(bytes) => bytes,
        InputData::Region(region) => panic!("in {region:?}"),
    }
}

const INT8: &[(DataType, &[i64])] = &[(Int8, &[1])];
const THREE: &str = r#"{"data":[{"INPUT0":[1]},{"INPUT0":[2]},{"INPUT0":[3]}]}"#;

#[test]
fn a_request_with_generated_data_is_built() {
    let mut settings = settings(DataSource::Zero);
    settings.batch_size = 2;
    let model = model(&[(Int16, &[2]), (Bytes, &[1])]);
    let requests = Requests::new(&settings, &model, &mut Recorder::default()).unwrap();
    assert!(!requests.is_user_data());
    assert_eq!((requests.stream_count(), requests.step_count(0)), (1, 1));
    let template = requests.template(0, 0);
    assert_eq!(template.model, "m");
    assert_eq!(template.inputs[0].shape, [2, 2]);
    assert_eq!(inline(&template, 0), [0; 8]);
    assert_eq!(inline(&template, 1).len(), 2 * (4 + 128));
    let outputs: Vec<_> = template.outputs.iter().map(|output| &output.name[..]).collect();
    assert_eq!(outputs, ["OUTPUT0", "OUTPUT1"]);
    assert!(template.parameters.is_empty());
    assert!(Arc::ptr_eq(&template, &requests.template(0, 0)));
}

#[test]
fn grpc_requests_ask_for_an_empty_final_response() {
    let mut settings = settings(DataSource::Zero);
    settings.protocol = Protocol::Grpc;
    settings.request_parameters = vec![("a".to_owned(), ParameterValue::Int(1))];
    let requests = Requests::new(&settings, &model(INT8), &mut Recorder::default()).unwrap();
    let expected = [
        ("a".to_owned(), ParameterValue::Int(1)),
        ("triton_enable_empty_final_response".to_owned(), ParameterValue::Bool(true)),
    ];
    assert_eq!(requests.template(0, 0).parameters, expected);
}

#[test]
fn the_amount_of_data_is_printed() {
    let line = |json: &str| {
        let given = Given::new(INT8, json);
        let mut console = Recorder::default();
        Requests::new(&given.settings, &given.model, &mut console).unwrap();
        console.out
    };
    assert_eq!(line(THREE), " Successfully read data for 1 stream/streams with 3 step/steps.\n");
    let two = r#"{"data":[[{"INPUT0":[1]}],[{"INPUT0":[1]}]]}"#;
    assert_eq!(line(two), " Successfully read data for 2 stream/streams.\n");
}

#[test]
fn batches_wrap_around() {
    let given = Given::new(INT8, THREE).batch(2);
    let requests = given.requests();
    assert!(requests.is_user_data());
    let bytes = |step| inline(&requests.template(0, step), 0).to_vec();
    assert_eq!([bytes(0), bytes(1), bytes(2)], [[1, 2], [2, 3], [3, 1]]);
    assert_eq!(requests.template(0, 0).inputs[0].shape, [2, 1]);
    let long = Given::new(INT8, THREE).batch(7).requests();
    assert_eq!(inline(&long.template(0, 1), 0), [2, 3, 1, 2, 3, 1, 2]);
}

#[test]
fn without_batching_there_is_no_batch_dimension() {
    let mut given = Given::new(INT8, THREE);
    given.model.max_batch_size = 0;
    assert_eq!(given.requests().template(0, 0).inputs[0].shape, [1]);
}

#[test]
fn expected_outputs_are_joined() {
    let json = r#"{"data":[{"INPUT0":[1]},{"INPUT0":[2]}],
                   "validation_data":[{"OUTPUT0":[5]},{"OUTPUT0":[6]}]}"#;
    let requests = Given::new(INT8, json).batch(3).requests();
    let expected = requests.expected(0, 1).expect("expected outputs");
    assert_eq!(expected.len(), 1);
    assert_eq!(expected[0].name, "OUTPUT0");
    assert_eq!(expected[0].data[..], [6, 5, 6]);
    assert!(Given::new(INT8, THREE).requests().expected(0, 0).is_none());
}

#[test]
fn only_given_outputs_are_expected() {
    let two = &[(Int8, &[1][..]), (Int8, &[1][..])];
    let json = r#"{"data":[{"INPUT0":[1],"INPUT1":[1]},{"INPUT0":[2],"INPUT1":[2]}],
                   "validation_data":[{"OUTPUT1":[5]},{"OUTPUT0":[7],"OUTPUT1":[6]}]}"#;
    let requests = Given::new(two, json).batch(2).requests();
    let expected = requests.expected(0, 0).expect("expected outputs");
    let found: Vec<_> =
        expected.iter().map(|output| (&output.name[..], &output.data[..])).collect();
    assert_eq!(found, [("OUTPUT1", &[5, 6][..])]);
}

#[test]
fn a_batch_needs_one_shape() {
    let json = r#"{"data":[{"INPUT0":{"content":[1,2],"shape":[2]}},
                           {"INPUT0":{"content":[1,2,3],"shape":[3]}}]}"#;
    let given = Given::new(&[(Int8, &[-1])], json);
    assert_eq!(given.requests().template(0, 1).inputs[0].shape, [1, 3]);
    assert_eq!(
        given.batch(2).refused(),
        "error: Unable to init infer data manager: can not batch tensors with different shapes \
         together (input 'INPUT0' expected shape [2] and received [3]"
    );
}

#[test]
fn a_batch_needs_the_same_inputs() {
    let json = r#"{"data":[{"INPUT0":[1]},{"INPUT0":[2],"INPUT1":[3]}]}"#;
    let mut given = Given::new(&[(Int8, &[1]), (Int8, &[1])], json);
    given.model.inputs[1].optional = true;
    let requests = given.requests();
    assert_eq!(requests.template(0, 0).inputs.len(), 1);
    assert_eq!(requests.template(0, 1).inputs.len(), 2);
    assert_eq!(
        given.batch(2).refused(),
        "error: Unable to init infer data manager: For batch sizes larger than 1, the same set of \
         inputs must be specified for each batch. You cannot use different set of optional inputs \
         for each individual batch."
    );
}

#[test]
fn a_shape_tensor_is_shared_by_the_batch() {
    let shape_tensor = |second: &str| {
        let json = format!(r#"{{"data":[{{"INPUT0":[1]}},{{"INPUT0":{second}}}]}}"#);
        let mut given = Given::new(INT8, &json).batch(2);
        given.model.inputs[0].is_shape_tensor = true;
        given
    };
    let template = shape_tensor("[1]").requests().template(0, 0);
    assert_eq!(template.inputs[0].shape, [1]);
    assert_eq!(inline(&template, 0), [1]);
    assert_eq!(
        shape_tensor("[2]").refused(),
        "error: Unable to init infer data manager: The shape tensors should be identical in a \
         batch (mismatch in content)"
    );
}

#[test]
fn a_directory_is_one_step() {
    let mut given = Given::new(INT8, "");
    std::fs::remove_file(given.directory.path().join("data.json")).unwrap();
    std::fs::write(given.directory.path().join("INPUT0"), [7]).unwrap();
    given.settings.data.source = DataSource::Files(vec![given.directory.path().to_owned()]);
    let requests = given.requests();
    assert!(!requests.is_user_data());
    assert_eq!(inline(&requests.template(0, 0), 0), [7]);
}

#[test]
fn open_shapes_need_data_or_a_shape() {
    let settings = settings(DataSource::Random);
    let model = model(&[(Int64, &[-1])]);
    let failure = Requests::new(&settings, &model, &mut Recorder::default()).err().unwrap();
    assert_eq!(
        failure.message,
        "error: Failed to init manager inputs: input INPUT0 contains dynamic shape, provide \
         shapes to send along with the request"
    );
}

#[test]
fn streams_do_not_share_steps() {
    let json = r#"{"data":[[{"INPUT0":[1]}],[{"INPUT0":[2]},{"INPUT0":[3]}]]}"#;
    let requests = Given::new(INT8, json).requests();
    assert_eq!(inline(&requests.template(1, 1), 0), [3]);
    assert_eq!((requests.step_count(0), requests.step_count(1)), (1, 2));
}
