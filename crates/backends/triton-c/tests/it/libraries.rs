//! How libraries are opened, and what an error says.

use std::fs;

use galatea_triton_c::{
    Library, LibraryFile, Requirements, abi,
    objects::{OBJECTS, errors},
};

use crate::build::{compile, compile_with_core};

const KIND: Requirements<'_> =
    Requirements { kind: "test library", must_define: &["TRITON_Answer"] };

/// A library that makes an error by the server's functions.
const SOURCE: &str = r#"
void *TRITONSERVER_ErrorNew(unsigned code, const char *text);
const char *TRITONSERVER_DataTypeString(unsigned type);
void *TRITON_Answer(void) { return TRITONSERVER_ErrorNew(3, TRITONSERVER_DataTypeString(11)); }
"#;

type Answer = unsafe extern "C" fn() -> *mut abi::Error;

fn answer(library: &Library) -> String {
    // SAFETY: the function has this type in all sources here.
    let error = unsafe {
        let function: Answer = library.function("TRITON_Answer").expect("defined");
        errors::take(function())
    };
    error.expect("an error").message().to_owned()
}

fn message(path: &std::path::Path, requirements: &Requirements<'_>) -> String {
    Library::open(path, requirements, &[&OBJECTS]).expect_err("refused").message().to_owned()
}

#[test]
fn a_library_finds_the_functions_of_this_program() {
    let folder = tempfile::tempdir().unwrap();
    // One that does not name the core, one that names it as Triton does, one as a tool for wheels does.
    let plain = compile(folder.path(), "libplain.so", SOURCE, &[]);
    let built = compile_with_core(folder.path(), "libbuilt.so", SOURCE, "libtritonserver.so");
    let mangled =
        compile_with_core(folder.path(), "libmangled.so", SOURCE, "libtritonserver-0a1b2c.so");
    for path in [plain, built, mangled.clone()] {
        let library = Library::open(&path, &KIND, &[&OBJECTS]).expect("opened");
        assert_eq!(answer(&library), "FP32", "{}", path.display());
    }
    let file = LibraryFile::read(&mangled).expect("a library");
    assert!(file.needed.contains(&"libtritonserver-0a1b2c.so".to_owned()), "{file:?}");
    assert_eq!(file.defined, ["TRITON_Answer"]);
    assert_eq!(file.called.len(), 2);
}

#[test]
fn an_unfit_file_is_refused_by_name_and_reason() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let missing = message(&path("none.so"), &KIND);
    assert!(missing.contains("none.so") && missing.contains("No such file"), "{missing}");

    fs::write(path("text.so"), "no library").unwrap();
    let text = message(&path("text.so"), &KIND);
    assert!(text.contains("text.so") && text.contains("no shared library of Linux"), "{text}");

    let good = compile(folder.path(), "libgood.so", SOURCE, &[]);
    let mut bytes = fs::read(&good).unwrap();
    bytes[18] = 21;
    bytes[19] = 0;
    fs::write(path("power.so"), &bytes).unwrap();
    let machine = message(&path("power.so"), &KIND);
    assert!(machine.contains("built for another machine, and this machine is"), "{machine}");

    let none = Requirements { must_define: &["TRITON_Other"], ..KIND };
    let undefined = message(&good, &none);
    assert!(
        undefined.contains("is no test library: it does not define TRITON_Other"),
        "{undefined}"
    );

    let newer = SOURCE.replace("TRITONSERVER_DataTypeString", "TRITONSERVER_OfTomorrow");
    let newer = compile(folder.path(), "libnewer.so", &newer, &[]);
    let call = message(&newer, &KIND);
    assert!(
        call.contains("libnewer.so' cannot be opened: it calls TRITONSERVER_OfTomorrow"),
        "{call}"
    );
}

#[test]
fn damaged_files_give_errors() {
    let folder = tempfile::tempdir().unwrap();
    let good = compile(folder.path(), "libgood.so", SOURCE, &[]);
    let bytes = fs::read(&good).unwrap();
    for length in (0..bytes.len()).step_by(97) {
        let _ = LibraryFile::parse(&bytes[..length]);
    }
    for place in (0..bytes.len()).step_by(13) {
        let mut changed = bytes.clone();
        changed[place] ^= 0xff;
        let _ = LibraryFile::parse(&*changed);
    }
}

#[test]
fn an_unsupported_function_answers_with_its_name() {
    galatea_triton_c::functions_offered! {
        static FUNCTIONS;
        done {}
        unsupported { "TRITONSERVER_NotBuilt" }
    }
    static MORE: galatea_triton_c::Offer =
        galatea_triton_c::Offer { name: "libgalatea-test-more.so", functions: FUNCTIONS };
    let folder = tempfile::tempdir().unwrap();
    let source = "void *TRITONSERVER_NotBuilt(const char *a, int b);
                  void *TRITON_Answer(void) { return TRITONSERVER_NotBuilt(\"a\", 2); }";
    let path = compile(folder.path(), "libmore.so", source, &[]);
    let library = Library::open(&path, &KIND, &[&OBJECTS, &MORE]).expect("opened");
    assert_eq!(answer(&library), "TRITONSERVER_NotBuilt is not supported by this server");
}

#[test]
fn every_function_has_an_address_and_a_name_of_its_own() {
    let mut names: Vec<_> = OBJECTS.functions.iter().map(|function| function.name).collect();
    assert!(OBJECTS.functions.iter().all(|function| !function.address.0.is_null()));
    let count = names.len();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), count);
}
