//! A caller in this process that has memory for the outputs of its requests.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
};

use bytes::Bytes;
use galatea_engine::{BackendRegistry, Engine, EngineOptions, LoadOverrides, LocalRoot};
use galatea_types::{
    Buffer, Code, DataType, Error, InferRequest, InferResponse, Memory, OutputAllocator,
    OutputMemory, RequestContext, Responder, Result, Tensor,
};

use crate::fixture::add_model;

/// Gives memory for each output once, and remembers where it lies.
#[derive(Debug, Default)]
struct Caller {
    most: Option<usize>,
    given: Arc<Mutex<BTreeMap<String, usize>>>,
}

/// Memory of the caller: it is known by its address.
struct Given(Vec<u8>);

impl OutputMemory for Given {
    fn as_mut_slice(&mut self) -> &mut [u8] {
        &mut self.0
    }

    fn into_buffer(self: Box<Self>) -> Buffer {
        Bytes::from_owner(self.0).into()
    }
}

impl Caller {
    fn has(&self, output: &str, data: &Buffer) -> bool {
        let given = self.given.lock().expect("no panic");
        given.get(output) == Some(&data.host().expect("host memory").as_ptr().addr())
    }
}

impl OutputAllocator for Caller {
    fn allocate(
        &self,
        output: &str,
        byte_size: usize,
        preferred: Memory,
    ) -> Result<Option<Box<dyn OutputMemory>>> {
        assert_eq!(preferred, Memory::Host);
        if self.most.is_some_and(|most| byte_size > most) {
            return Err(Error::unavailable(format!("no memory for '{output}'")));
        }
        let memory = Given(vec![0; byte_size]);
        let address = memory.0.as_ptr().addr();
        let twin = self.given.lock().expect("no panic").insert(output.to_owned(), address);
        assert_eq!(twin, None, "memory for '{output}' is asked for once");
        Ok(Some(Box::new(memory)))
    }

    fn place(&self, output: &str, data: &Buffer) -> Result<Buffer> {
        if self.has(output, data) {
            return Ok(data.clone());
        }
        let memory = self.allocate(output, data.len(), data.memory())?;
        let mut memory = memory.ok_or_else(|| Error::internal("it always has some"))?;
        memory.as_mut_slice().copy_from_slice(data.host()?);
        Ok(memory.into_buffer())
    }
}

/// Asks a model of `backend`, which is built in, for the memory of `caller`.
fn ask(backend: &'static str, caller: Arc<Caller>) -> Result<InferResponse> {
    let root = tempfile::tempdir().expect("a folder");
    let tensors = |kind, name| {
        let tensor = |i| format!("{kind} {{ name: '{name}{i}' data_type: TYPE_INT32 dims: 2 }}\n");
        tensor(0) + &tensor(1)
    };
    let (inputs, outputs) = (tensors("input", "INPUT"), tensors("output", "OUTPUT"));
    add_model(root.path(), "m", &[1], &format!("backend: '{backend}'\n{inputs}{outputs}"));
    let mut registry = BackendRegistry::default();
    for backend in galatea_backend_builtin::ALL {
        registry.register(backend.name(), move || Ok(backend.open()));
    }
    let options = EngineOptions {
        control_mode: galatea_engine::ControlMode::Explicit,
        repositories: vec![LocalRoot::at(root.path())],
        ..EngineOptions::default()
    };
    let engine = Engine::new(options, registry);
    engine.load_model("m", LoadOverrides::default()).expect("it loads");
    let mut request = InferRequest::new("m");
    let input = |name, values: [i32; 2]| {
        Tensor::new(name, DataType::Int32, [2], values.map(i32::to_le_bytes).concat())
    };
    request.inputs = vec![input("INPUT0", [5, 6]), input("INPUT1", [1, 2])];
    request.output_allocator = Some(caller);
    let (responder, answer) = Responder::unary();
    let model = engine.model("m", None).expect("ready");
    if let Err(refused) = model.infer(request, RequestContext::new(), responder) {
        refused.answer();
    }
    answer.blocking_recv().expect("every request is answered")
}

fn values(response: &InferResponse) -> Vec<Vec<i32>> {
    let values = |tensor: &Tensor| {
        let (chunks, _) = tensor.host().expect("host memory").as_chunks();
        chunks.iter().copied().map(i32::from_le_bytes).collect()
    };
    response.outputs.iter().map(values).collect()
}

#[test]
fn a_model_may_write_outputs_into_the_callers_memory() {
    let caller = Arc::new(Caller::default());
    let mut response = ask("add_sub", caller.clone()).expect("success");
    assert!(response.outputs.iter().all(|output| caller.has(&output.name, &output.data)));
    response.place_outputs(&*caller).expect("it lies there");
    assert!(response.outputs.iter().all(|output| caller.has(&output.name, &output.data)));
    assert_eq!(values(&response), [[6, 8], [4, 4]]);
}

#[test]
fn outputs_of_other_models_are_copied_into_the_callers_memory() {
    let caller = Arc::new(Caller::default());
    let mut response = ask("identity", caller.clone()).expect("success");
    assert!(!response.outputs.iter().any(|output| caller.has(&output.name, &output.data)));
    response.place_outputs(&*caller).expect("there is room");
    assert!(response.outputs.iter().all(|output| caller.has(&output.name, &output.data)));
    assert_eq!(values(&response), [[5, 6], [1, 2]]);
}

#[test]
fn a_failed_allocation_by_the_caller_fails_its_request() {
    for backend in ["add_sub", "identity"] {
        let caller = Arc::new(Caller { most: Some(7), ..Caller::default() });
        let placed = ask(backend, caller.clone()).and_then(|mut response| {
            response.place_outputs(&*caller)?;
            Ok(response)
        });
        let error = placed.expect_err("no memory");
        assert_eq!((error.code(), error.message()), (Code::Unavailable, "no memory for 'OUTPUT0'"));
    }
}
