//! Models of the backends as the program has them.

#![allow(clippy::expect_used, reason = "a test fails by panicking, helpers included")]

use galatea_backend::{
    Model, ModelInstance,
    testing::{Fixture, instance_spec, load_context},
};
use galatea_backend_builtin::find;
use galatea_types::Result;

pub fn load(fixture: &Fixture) -> Result<Box<dyn Model>> {
    let backend = find(fixture.config.backend()).expect("it is registered");
    backend.load(load_context(fixture))
}

pub fn instance(fixture: &Fixture) -> Box<dyn ModelInstance> {
    load(fixture).expect("it loads").new_instance(&instance_spec("m", 0)).expect("an instance")
}
