//! Requests of libraries to other models.

use std::{
    future::Future as _,
    pin::pin,
    sync::Arc,
    task::{Context, Waker},
    thread,
};

use galatea_backend::{
    InferTarget, ServerAccess,
    testing::{request, run_batch},
};
use galatea_types::{
    Error, InferRequest, InferResponse, Refused, RequestContext, Responder, Result, Tensor,
    late_work,
};

use crate::support::{BYTES_IN_AND_OUT, Backends, bytes, load};

/// Answers from a thread of its own: the input twice, as a stream, or an error for an input that begins with an `x`.
struct Other;

impl InferTarget for Other {
    fn infer(
        &self,
        request: InferRequest,
        _: RequestContext,
        mut responder: Responder,
    ) -> Result<(), Refused> {
        assert!(!late_work::is_served(), "a model that the caller waits for is executed elsewhere");
        if request.inputs[0].data.is_empty() {
            return Err(Refused::new(Error::invalid_arg("no data"), responder));
        }
        thread::spawn(move || {
            let input = &request.inputs[0];
            if input.host().is_ok_and(|bytes| bytes.starts_with(b"x")) {
                return responder.finish(Err(Error::internal("the other model failed")));
            }
            let output = Tensor { name: "OUTPUT0".into(), ..input.clone() };
            let response = InferResponse {
                model_name: "other".into(),
                model_version: 1,
                id: String::new(),
                parameters: Vec::new(),
                outputs: vec![output],
            };
            responder.send(Ok(response.clone()));
            responder.send(Ok(response));
            responder.close();
        });
        Ok(())
    }

    fn is_decoupled(&self, model: &str, _: Option<i64>) -> Result<bool> {
        match model {
            "other" => Ok(true),
            _ => Err(Error::not_found("no such model")),
        }
    }
}

#[test]
fn a_library_asks_another_model_and_gets_its_request_back() {
    let backends = Backends::compile("caller");
    let server = ServerAccess { models: Arc::new(Other), ..ServerAccess::default() };
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, server).expect("loads");
    // This thread works like one of connections.
    let mut serving = pin!(late_work::serve());
    assert!(serving.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending());
    for _ in 0..3 {
        let asked = vec![request("m", 1, vec![bytes(b"abc")])];
        let response = run_batch(&mut *loaded.instance, asked).pop().unwrap().expect("answered");
        assert_eq!(response.outputs[0].host().unwrap(), b"abcabc");
    }
    let asked = vec![request("m", 1, vec![bytes(b"xyz")])];
    let error = run_batch(&mut *loaded.instance, asked).pop().unwrap().expect_err("failed");
    assert_eq!(error.message(), "the other model failed");
}

#[test]
fn a_model_that_is_not_there_is_unknown_in_the_words_of_triton() {
    let backends = Backends::compile("caller");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    let asked = vec![request("m", 1, vec![bytes(b"abc")])];
    let error = run_batch(&mut *loaded.instance, asked).pop().unwrap().expect_err("none");
    assert_eq!(error.message(), "Request for unknown model: 'other' is not found");
}
