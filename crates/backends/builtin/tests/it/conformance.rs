//! The conformance kit on the built-in backends, which offer every data type.

use std::sync::Arc;

use galatea_backend::{
    Backend,
    testing::{Clause, Fixture, LateAnswers, Subject, changed, model_config, run, tensors},
};
use galatea_backend_builtin::find;
use galatea_types::{DataType, InferRequest};

fn fixture(backend: &str, data_type: DataType, tensor_count: usize) -> Fixture {
    let names =
        |prefix: &str| (0..tensor_count).map(|i| format!("{prefix}{i}")).collect::<Vec<_>>();
    let config = model_config(&format!(
        "name: '{backend}_{data_type}' backend: '{backend}' max_batch_size: 8 {} {}",
        tensors("input", names("INPUT"), data_type, &[-1]),
        tensors("output", names("OUTPUT"), data_type, &[-1]),
    ));
    Fixture::new(config, "unused")
}

struct Identity(Arc<dyn Backend>);

impl Subject for Identity {
    fn backend(&self) -> Arc<dyn Backend> {
        self.0.clone()
    }

    fn identity(&self, data_type: DataType) -> Option<Fixture> {
        Some(fixture(self.0.name(), data_type, 2))
    }

    fn add_sub(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let mut broken = fixture(self.0.name(), DataType::Fp32, 1);
        broken.config = changed(&broken.config, |raw| raw.input.clear());
        Some((broken, "OUTPUT0".to_owned()))
    }
}

#[test]
fn identity_conforms() {
    run(&Identity(find("identity").expect("built in")));
}

#[test]
fn failing_conforms_while_no_parameter_makes_it_fail() {
    run(&Identity(find("failing").expect("built in")));
}

struct AddSub;

impl Subject for AddSub {
    fn backend(&self) -> Arc<dyn Backend> {
        find("add_sub").expect("built in")
    }

    fn identity(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        (data_type != DataType::Bool).then(|| fixture("add_sub", data_type, 2))
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        Some((fixture("add_sub", DataType::Bool, 2), "add_sub_BOOL".to_owned()))
    }
}

#[test]
fn add_sub_conforms() {
    run(&AddSub);
}

#[test]
fn backends_that_answer_from_other_threads_conform() {
    run(&LateAnswers(Identity(find("identity").expect("built in"))));
    run(&LateAnswers(AddSub));
}

struct Repeat;

impl Subject for Repeat {
    fn backend(&self) -> Arc<dyn Backend> {
        find("repeat").expect("built in")
    }

    fn identity(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn add_sub(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        (data_type == DataType::Int32).then(|| {
            let data_type = data_type.config_name();
            let config = model_config(&format!(
                "name: 'repeat' backend: 'repeat' model_transaction_policy {{ decoupled: true }}
                 input [ {{ name: 'IN' data_type: {data_type} dims: -1 }},
                         {{ name: 'DELAY' data_type: TYPE_UINT32 dims: -1 }},
                         {{ name: 'WAIT' data_type: TYPE_UINT32 dims: 1 }} ]
                 output [ {{ name: 'OUT' data_type: {data_type} dims: 1 }},
                          {{ name: 'IDX' data_type: TYPE_UINT32 dims: 1 }} ]"
            ));
            Fixture::new(config, "unused")
        })
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        let mut broken = self.repeat(DataType::Int32)?;
        broken.config = changed(&broken.config, |raw| raw.input.swap(0, 1));
        Some((broken, "IN".to_owned()))
    }
}

#[test]
fn repeat_conforms() {
    run(&Repeat);
}

/// A kit that cannot fail would prove nothing: here identity poses as add_sub, and bad requests are good.
struct Impostor {
    ignored: Vec<Clause>,
}

impl Subject for Impostor {
    fn backend(&self) -> Arc<dyn Backend> {
        find("identity").expect("built in")
    }

    fn identity(&self, _: DataType) -> Option<Fixture> {
        None
    }

    fn add_sub(&self, data_type: DataType) -> Option<Fixture> {
        Some(fixture("identity", data_type, 2))
    }

    fn repeat(&self, data_type: DataType) -> Option<Fixture> {
        Some(fixture("identity", data_type, 1))
    }

    fn kill(&self, _: &str) -> bool {
        true
    }

    fn broken(&self) -> Option<(Fixture, String)> {
        Some((fixture("identity", DataType::Fp32, 1), "never named".to_owned()))
    }

    fn ignores(&self) -> &[Clause] {
        &self.ignored
    }

    fn spoil(&self, _: &mut InferRequest) {}
}

#[test]
fn the_conformance_kit_detects_violations_of_every_clause() {
    for clause in Clause::ALL {
        let ignored = Clause::ALL.into_iter().filter(|&c| c != clause).collect();
        let outcome = std::panic::catch_unwind(|| run(&Impostor { ignored }));
        let message = *outcome.expect_err("a violation").downcast::<String>().expect("a text");
        assert!(message.contains(&format!("{clause:?}")), "{message}");
    }
}
