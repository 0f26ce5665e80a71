//! Starting workers and initializing models.

use galatea_types::Code;

use crate::common::{IDENTITY, Written, bytes, output, run};

#[test]
fn initialize_receives_its_arguments() {
    let class = format!(
        r#"
    def initialize(self, args):
        import json
        config = json.loads(args["model_config"])
        assert config["name"] == args["model_name"] == "m", args
        assert args["model_instance_name"] == "m_0_0" and args["model_instance_kind"] == "CPU", args
        assert args["model_instance_device_id"] == "0" and args["model_version"] == "1", args
        assert os.path.isdir(args["model_repository"] + "/1"), args

    def execute(self, requests):{IDENTITY}"#
    );
    let written = Written::class(&class);
    let (mut instance, _loaded) = written.instance();
    assert_eq!(output(run(&mut *instance, bytes(&[1]))), [1]);
}

#[test]
fn errors_in_the_code_name_the_line() {
    let cases = [
        ("import nothing_of_this_name\n", ["nothing_of_this_name", "model.py"]),
        ("def broken(:\n", ["SyntaxError", "model.py"]),
        ("x = 1\n", ["TritonPythonModel", "no attribute"]),
        (
            "class TritonPythonModel:\n    def initialize(self, args):\n        raise KeyError('weights')\n    def execute(self, r): pass\n",
            ["weights", "model.py"],
        ),
    ];
    for (code, parts) in cases {
        let text = Written::file(code).start_error().message().to_owned();
        for part in parts {
            assert!(text.contains(part), "`{part}` is not in: {text}");
        }
    }
}

#[test]
fn an_exit_during_initialize_is_an_error_with_its_output() {
    let class = "    def initialize(self, args):\n        print('so far', file=sys.stderr)\n        os._exit(9)\n    def execute(self, r): pass\n";
    let error = Written::class(class).start_error();
    assert_eq!(error.code(), Code::Internal);
    let text = error.message();
    assert!(text.contains("exited with code 9") && text.contains("so far"), "{text}");
}

#[test]
fn a_model_without_model_py_cannot_be_loaded() {
    let written = Written::execute(IDENTITY)
        .changed(|raw| raw.default_model_filename = "other.py".to_owned());
    let error = written.try_load().err().expect("an error");
    assert!(error.message().starts_with("Python model file not found in '"), "{error}");
}

#[test]
fn printing_does_not_block_the_model() {
    let body = format!(
        "\n        for n in range(20000):\n            print('line', n, 'x' * 50)\n            print('line', n, file=sys.stderr){IDENTITY}"
    );
    let (mut instance, _loaded) = Written::execute(&body).instance();
    assert_eq!(output(run(&mut *instance, bytes(&[1]))), [1]);
}

#[test]
fn a_model_decides_its_readiness() {
    let class = format!(
        r#"
    def initialize(self, args):
        self.ready = True

    def is_ready(self):
        return self.ready

    def execute(self, requests):
        self.ready = False{IDENTITY}"#
    );
    let (mut instance, loaded) = Written::class(&class).instance();
    assert!(loaded.model.has_readiness_check() && loaded.model.is_ready());
    run(&mut *instance, bytes(&[1])).expect("an answer");
    assert!(!loaded.model.is_ready());
    let (_instance, loaded) = Written::execute(IDENTITY).instance();
    assert!(!loaded.model.has_readiness_check());
}

/// The check continues, and the next caller gets its result, as in Triton.
#[test]
fn a_slow_readiness_check_answers_the_next_caller() {
    let class = format!(
        r#"
    def initialize(self, args):
        self.checks = 0

    def is_ready(self):
        self.checks += 1
        time.sleep(6.5)
        return self.checks == 1

    def execute(self, requests):{IDENTITY}"#
    );
    let (mut instance, loaded) = Written::class(&class).instance();
    assert!(!loaded.model.is_ready(), "not within five seconds");
    assert_eq!(output(run(&mut *instance, bytes(&[1]))), [1], "it executes meanwhile");
    assert!(loaded.model.is_ready(), "the one check has come to its end");
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a start is given up after a real time-out")]
fn a_model_that_never_answers_its_readiness_check_is_not_ready() {
    let code = "
    def execute(self, requests):
        return []

    def is_ready(self):
        time.sleep(600)
";
    let loaded = Written::class(code).load();
    let instances = [loaded.instance(0), loaded.instance(1)].map(|i| i.expect("an instance"));
    let started = std::time::Instant::now();
    assert!(!loaded.model.is_ready());
    let took = started.elapsed();
    assert!(took < std::time::Duration::from_secs(9), "both have the same five seconds: {took:?}");
    drop(instances);
}
