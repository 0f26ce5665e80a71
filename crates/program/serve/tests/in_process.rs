//! A server inside this process, without a front end.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

use std::{fs, path::Path};

use galatea_serve::{ServeOptions, Server, Start};
use galatea_types::{DataType, InferRequest, RequestContext, Responder, Tensor};
use tempfile::TempDir;

fn repository() -> TempDir {
    let folder = tempfile::tempdir().expect("a folder");
    fs::create_dir_all(folder.path().join("same/1")).expect("a version");
    let config = r#"backend: "identity"
        input { name: "INPUT0" data_type: TYPE_FP32 dims: [ 4 ] }
        output { name: "OUTPUT0" data_type: TYPE_FP32 dims: [ 4 ] }"#;
    fs::write(folder.path().join("same/config.pbtxt"), config).expect("a configuration");
    folder
}

fn server(models: &Path) -> Server {
    let repositories = vec![models.to_owned()];
    let options = ServeOptions { repositories, exits_on_error: true, ..ServeOptions::default() };
    Server::build(options).expect("built")
}

#[test]
fn an_in_process_request_is_answered() {
    let models = repository();
    let mut server = server(models.path());
    assert_eq!(server.serve().expect("started"), Start::Complete);
    assert!(server.engine().is_ready() && server.front_ends().http_address().is_none());
    let input = Tensor::new("INPUT0", DataType::Fp32, [4], (0..16).collect::<Vec<u8>>());
    let request = InferRequest { inputs: vec![input], ..InferRequest::new("same") };
    let (responder, response) = Responder::unary();
    let model = server.engine().model("same", None).expect("ready");
    model.infer(request, RequestContext::new(), responder).expect("accepted");
    let response = response.blocking_recv().expect("an answer").expect("a success");
    let output = response.output("OUTPUT0").expect("an output");
    assert_eq!(output.host().expect("in memory"), (0..16).collect::<Vec<u8>>());
    drop(model);
    assert!(server.shut_down(), "nothing was cut off");
}

#[test]
fn a_handle_stops_its_server_once() {
    let models = repository();
    let mut server = server(models.path());
    let stop = server.stop_handle();
    assert_eq!(server.serve().expect("started"), Start::Complete);
    assert!(stop.request(), "asked");
    assert!(!stop.request(), "it stops already");
    server.wait_until_stopped();
    assert!(server.shut_down(), "nothing was cut off");
}

#[test]
fn a_failed_model_ends_the_start_if_configured() {
    let models = repository();
    fs::write(models.path().join("same/config.pbtxt"), "backend: \"none\"").expect("written");
    let error = server(models.path()).serve().expect_err("not started").to_string();
    assert!(error.starts_with("creating server: Internal - failed to load all models"), "{error}");
}
