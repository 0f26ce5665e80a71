//! A model that loads and executes when the test lets it.

use std::sync::{Arc, Condvar, Mutex};

use galatea_backend::{Backend, Batch, InstanceSpec, LoadContext, Model, ModelInstance};
use galatea_test_support::PATIENCE;
use galatea_types::Result;

pub const CONFIG: &str = "backend: \"gate\" input { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 } \
                      output { name: \"INPUT0\" data_type: TYPE_FP32 dims: -1 }";

/// Holds back whoever comes while it is shut.
#[derive(Clone, Default)]
pub struct Gate(Arc<(Mutex<State>, Condvar)>);

#[derive(Default)]
struct State {
    is_shut: bool,
    waiting: usize,
}

impl Gate {
    pub fn shut(&self) {
        self.0.0.lock().expect("no panic").is_shut = true;
    }

    pub fn open(&self) {
        self.0.0.lock().expect("no panic").is_shut = false;
        self.0.1.notify_all();
    }

    /// Waits until somebody is held back.
    #[track_caller]
    pub fn wait_for_one(&self) {
        let state = self.0.0.lock().expect("no panic");
        let nobody = |state: &mut State| state.waiting == 0;
        let waited = self.0.1.wait_timeout_while(state, PATIENCE, nobody).expect("no panic");
        assert!(!waited.1.timed_out(), "nobody came to the gate");
    }

    fn pass(&self) {
        let mut state = self.0.0.lock().expect("no panic");
        state.waiting += 1;
        self.0.1.notify_all();
        let mut state = self.0.1.wait_while(state, |state| state.is_shut).expect("no panic");
        state.waiting -= 1;
    }
}

/// Its loads and its executions pass a gate each.
#[derive(Clone, Default)]
pub struct Gates {
    pub loads: Gate,
    pub executions: Gate,
}

impl Backend for Gates {
    fn name(&self) -> &str {
        "gate"
    }

    fn load(&self, _: LoadContext) -> Result<Box<dyn Model>> {
        self.loads.pass();
        Ok(Box::new(self.clone()))
    }
}

impl Model for Gates {
    fn new_instance(&self, _: &InstanceSpec) -> Result<Box<dyn ModelInstance>> {
        Ok(Box::new(self.clone()))
    }
}

impl ModelInstance for Gates {
    fn execute(&mut self, batch: &mut Batch) {
        self.executions.pass();
        for index in 0..batch.len() {
            let outputs = batch.request(index).map(|request| request.inputs.clone());
            batch.respond(index, Ok(outputs.unwrap_or_default()));
        }
    }
}
