//! Exceptions of C++ that leave a hook are errors.

use galatea_backend::{
    ServerAccess,
    testing::{adjusted, request, run_batch},
};
use galatea_types::{Code, Error, InferResponse, Result};

use crate::support::{BYTES_IN_AND_OUT, Backends, Loaded, bytes, load, load_as};

/// Executes requests with these identifiers, the last of which says what is thrown.
fn execute(loaded: &mut Loaded, ids: &[&str]) -> Vec<Result<InferResponse>> {
    let asked = ids.iter().map(|id| {
        adjusted(request("m", 1, vec![bytes(b"data")]), |request| request.id = (*id).to_owned())
    });
    run_batch(&mut *loaded.instance, asked.collect())
}

fn error_of(loaded: &mut Loaded, id: &str) -> Error {
    execute(loaded, &[id]).pop().expect("an answer").expect_err("an error")
}

#[test]
fn an_exception_of_the_execution_is_the_error_of_its_requests() {
    let backends = Backends::compile_cxx("throws");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    for (id, said) in [
        ("standard", "std::out_of_range out of {}: the answer is 42"),
        ("beside", "(anonymous namespace)::Beside out of {}: one of two bases"),
        ("virtually", "(anonymous namespace)::Virtually out of {}: a virtual base"),
        ("other", "(anonymous namespace)::Other out of {}"),
        ("number", "int out of {}"),
        ("again", "std::runtime_error out of {}: from elsewhere"),
        ("handled", "std::invalid_argument out of {}: while another is handled"),
    ] {
        let said = said.replace("{}", "TRITONBACKEND_ModelInstanceExecute");
        let error = error_of(&mut loaded, id);
        assert_eq!(error.code(), Code::Internal);
        assert_eq!(error.message(), format!("'libtriton_throws.so' has thrown {said}"));
    }
    // The one object that lives is that of this call: the others were destroyed on the way.
    let error = error_of(&mut loaded, "nothing");
    assert_eq!((error.code(), error.message()), (Code::InvalidArg, "1"));
}

#[test]
fn requests_that_were_answered_before_an_exception_keep_their_answer() {
    let backends = Backends::compile_cxx("throws");
    let mut loaded = load(&backends, BYTES_IN_AND_OUT, ServerAccess::default()).expect("loads");
    let [first, second, third] =
        <[_; 3]>::try_from(execute(&mut loaded, &["a", "b", "number"])).expect("three");
    assert!(first.is_ok() && second.is_ok());
    let error = third.expect_err("an error");
    assert!(error.message().starts_with("'libtriton_throws.so' has thrown int"), "{error}");
}

#[test]
fn an_exception_of_a_load_or_an_unload_is_an_error() {
    let backends = Backends::compile_cxx("throws");
    let load = |name| load_as(name, &backends, BYTES_IN_AND_OUT, ServerAccess::default());
    for hook in ["ModelInitialize", "ModelInstanceInitialize"] {
        let error = load(hook).err().expect("refused");
        let expected = format!(
            "'libtriton_throws.so' has thrown std::runtime_error out of TRITONBACKEND_{hook}: not in {hook}"
        );
        assert_eq!(error.message(), expected);
    }
    for hook in ["ModelInstanceFinalize", "ModelFinalize"] {
        drop(load(hook).expect("loads"));
    }
    load("m").expect("the library still works");
}
