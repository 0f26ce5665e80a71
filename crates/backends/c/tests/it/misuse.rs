//! Libraries that break the rules of the interface get errors, and requests that they lose are answered.

use galatea_backend::{
    ServerAccess,
    testing::{adjusted, request, run_batch},
};
use galatea_types::{Code, ParameterValue};

use crate::support::{BYTES_IN_AND_OUT, Backends, bytes, load};

#[test]
fn broken_rules_are_errors_that_name_the_function() {
    let backends = Backends::compile("misuse");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    let asked = vec![request("m", 1, vec![bytes(b"data")])];
    let response = run_batch(&mut *loaded.instance, asked).pop().unwrap().expect("answered");
    assert_eq!(response.outputs[0].host().unwrap(), b"good");
    let text = |name: &str| {
        let found = response.parameters.iter().find(|(key, _)| key == name);
        match found.unwrap_or_else(|| panic!("{name}")) {
            (_, ParameterValue::String(text)) => text.clone(),
            other => panic!("{other:?}"),
        }
    };
    for (name, expected) in [
        ("negative", "a tensor cannot have the shape [-1]"),
        ("no type", "99 is the number of no data type"),
        (
            "wrong size",
            "output 'OUTPUT0' of type UINT8 and shape [4] needs 4 bytes, not 1152921504606846976",
        ),
        ("second buffer", "output 'OUTPUT0' has its buffer already"),
        ("null place", "output 'OUTPUT0' has its buffer already"),
        ("unknown input", "the request has no input 'INPUT9'"),
        ("second piece", "out of bounds index 1: input 'INPUT0' has 1 buffers"),
        ("foreign", "TRITONBACKEND_RequestOutputCount: the pointer is no TRITONBACKEND_Request"),
        ("null", "TRITONBACKEND_RequestOutputCount: the TRITONBACKEND_Request is null"),
        ("other kind", "TRITONBACKEND_RequestOutputCount: the pointer is no TRITONBACKEND_Request"),
        (
            "deleted response",
            "TRITONBACKEND_ResponseSend: the TRITONBACKEND_Response was released before",
        ),
        ("no flags", "the flags 0 release nothing"),
        (
            "second release",
            "TRITONBACKEND_RequestRelease: the TRITONBACKEND_Request was released before",
        ),
        (
            "input of released",
            "TRITONBACKEND_InputBuffer: the TRITONBACKEND_Input was released before",
        ),
    ] {
        assert_eq!(text(name), expected, "{name}");
    }
}

#[test]
fn an_error_of_the_execution_is_that_of_its_requests() {
    let backends = Backends::compile("misuse");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    let with_parameters = |count: usize| {
        adjusted(request("m", 1, vec![bytes(b"data")]), |request| {
            let parameter = |index| (format!("p{index}"), ParameterValue::Int(0));
            request.parameters = (0..count).map(parameter).collect();
        })
    };
    let failed = run_batch(&mut *loaded.instance, vec![with_parameters(1)]);
    let error = failed[0].as_ref().expect_err("refused");
    assert_eq!((error.code(), error.message()), (Code::Unavailable, "not today"));
    let lost = run_batch(&mut *loaded.instance, vec![with_parameters(2)]);
    let error = lost[0].as_ref().expect_err("lost");
    assert!(error.message().contains("gave up a request without a final response"), "{error}");
}
