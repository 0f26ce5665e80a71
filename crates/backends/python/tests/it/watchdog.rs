//! Workers that do not respond: stopped, or in a loop without end.

use std::{process::Command, time::Duration};

use galatea_backend::{ModelInstance, testing};
use galatea_types::{Code, Result};

use crate::common::{IDENTITY, TIMEOUT, Written, bytes, error_text, output, request, run};

/// Sleeps for as many tenths of a second as the first byte of the input says; 255: for ever.
const SLEEPS: &str = r#"
        tenths = int(requests[0].inputs()[0].as_numpy()[0])
        while tenths == 255:
            pass
        time.sleep(tenths / 10)
"#;

/// The process of the worker.
const PID: &str = r#"
        number = str(os.getpid()).encode()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.frombuffer(number, dtype=np.uint8))])]
"#;

fn sleeping() -> Written {
    Written::execute(&format!("{SLEEPS}{IDENTITY}"))
}

fn signal(name: &str, pid: &str) {
    let status = Command::new("kill").args([name, pid]).status().expect("kill runs");
    assert!(status.success());
}

fn pid_of(instance: &mut dyn ModelInstance) -> String {
    String::from_utf8(output(run(instance, bytes(&[0])))).expect("text")
}

fn is_there(pid: &str) -> bool {
    std::path::Path::new("/proc").join(pid).exists()
}

#[test]
fn a_model_in_an_endless_loop_fails_its_request_and_is_replaced() {
    let loaded = sleeping().setting("execution-timeout-secs", "2").load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    assert_eq!(output(run(&mut *instance, bytes(&[0]))), [0]);
    let error = run(&mut *instance, bytes(&[255])).expect_err("an error");
    assert_eq!(error.code(), Code::Unavailable);
    for part in ["model 'm'", "m_0_0", "within 2 s (execution-timeout-secs)", "restarted"] {
        assert!(error.message().contains(part), "{error}");
    }
    let raised = alarms.recv_timeout(TIMEOUT).expect("the alarm");
    assert_eq!(raised.message(), error.message());
    drop(instance);
    let (mut instance, _) = loaded.instance_with_alarm();
    assert_eq!(output(run(&mut *instance, bytes(&[0]))), [0]);
}

#[test]
fn a_models_own_parameter_overrides_the_setting() {
    let written = sleeping().setting("execution-timeout-secs", "600").changed(|raw| {
        let value = galatea_proto::inference::ModelParameter { string_value: "1".to_owned() };
        raw.parameters.insert("EXECUTION_TIMEOUT_SECS".to_owned(), value);
    });
    let (mut instance, _loaded) = written.instance();
    let text = error_text(run(&mut *instance, bytes(&[255])));
    assert!(text.contains("within 1 s (EXECUTION_TIMEOUT_SECS)"), "{text}");
}

/// The watchdog acts long before the timeout, with and without a request in progress.
#[test]
fn a_stopped_worker_is_replaced() {
    let loaded = Written::execute(PID).load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let pid = pid_of(&mut *instance);
    signal("-STOP", &pid);
    let text = error_text(run(&mut *instance, bytes(&[0])));
    assert!(text.contains("its process is stopped"), "{text}");
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
    drop(instance);
    assert!(!is_there(&pid));

    let (mut instance, alarms) = loaded.instance_with_alarm();
    signal("-STOP", &pid_of(&mut *instance));
    let raised = alarms.recv_timeout(TIMEOUT).expect("the alarm, without a request");
    assert!(raised.message().contains("its process is stopped"), "{raised}");
}

#[test]
fn a_briefly_stopped_worker_is_kept() {
    let loaded = Written::execute(PID).setting("execution-timeout-secs", "600").load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let pid = pid_of(&mut *instance);
    signal("-STOP", &pid);
    // As long as it stays stopped the request is not answered: nothing else is waited for here.
    assert!(alarms.recv_timeout(Duration::from_millis(1200)).is_err());
    signal("-CONT", &pid);
    assert_eq!(pid_of(&mut *instance), pid);
}

#[test]
fn an_active_stream_is_not_ended() {
    let body = r#"
    def execute(self, requests):
        threading.Thread(target=self.send, args=(requests[0].get_response_sender(),)).start()
        return None

    def send(self, sender):
        for n in range(14):
            time.sleep(0.3)
            out = pb_utils.Tensor("OUT", np.array([n], dtype=np.uint8))
            sender.send(pb_utils.InferenceResponse([out]))
        sender.send(flags=pb_utils.TRITONSERVER_RESPONSE_COMPLETE_FINAL)
"#;
    let written = Written::class(body).decoupled().setting("execution-timeout-secs", "3");
    let (mut instance, _loaded) = written.instance();
    let cancellation = galatea_types::Cancellation::default();
    let stream = testing::run_stream(&mut *instance, request(bytes(&[0])), cancellation);
    let responses: Vec<_> = stream.iter().filter_map(|response| response.result).collect();
    assert_eq!(responses.len(), 14);
    assert!(responses.iter().all(Result::is_ok), "longer than its time-out in all");
}

#[test]
fn a_stalled_stream_is_ended() {
    let body = r#"
    def execute(self, requests):
        self.sender = requests[0].get_response_sender()
        return None
"#;
    let written = Written::class(body).decoupled().setting("execution-timeout-secs", "1");
    let (mut instance, _loaded) = written.instance();
    let cancellation = galatea_types::Cancellation::default();
    let stream = testing::run_stream(&mut *instance, request(bytes(&[0])), cancellation);
    let response = stream.recv_timeout(TIMEOUT).expect("an end");
    let error = response.result.expect("an error").expect_err("an error");
    assert!(error.message().contains("execution-timeout-secs"), "{error}");
}

#[test]
fn a_model_that_hangs_in_initialize_is_killed() {
    let code = format!(
        "    def initialize(self, args):\n        print('loading', file=sys.stderr)\n        time.sleep(600)\n\n    def execute(self, requests):{IDENTITY}"
    );
    let error = Written::class(&code).setting("initialization-timeout-secs", "2").start_error();
    for part in ["model 'm'", "m_0_0", "within 2 s (initialization-timeout-secs)", "loading"] {
        assert!(error.message().contains(part), "{error}");
    }
}
