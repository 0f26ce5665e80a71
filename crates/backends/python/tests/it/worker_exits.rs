//! Workers that exit or are killed.

use std::{
    sync::{Arc, Barrier},
    thread,
};

use galatea_backend::testing;
use galatea_types::{Code, DataType};

use crate::common::{IDENTITY, TIMEOUT, Written, bytes, error_text, output, request, run};

/// Ends in the way that the input selects.
const EXITS: &str = r#"
        how = pb_utils.get_input_tensor_by_name(requests[0], "IN").as_numpy()[0]
        if how == 1:
            os.kill(os.getpid(), 9)
        if how == 2:
            os._exit(3)
        if how == 3:
            sys.exit(4)
        if how == 4:
            import ctypes
            ctypes.string_at(0)
"#;

fn exiting() -> Written {
    Written::execute(&format!("{EXITS}{IDENTITY}"))
}

#[test]
fn an_exit_fails_requests_in_flight_and_raises_the_alarm() {
    let loaded = exiting().load();
    for (how, exit) in [(1, "SIGKILL"), (2, "code 3"), (4, "SIGSEGV")] {
        let (mut instance, alarms) = loaded.instance_with_alarm();
        let error = run(&mut *instance, bytes(&[how])).expect_err("an error");
        assert_eq!(error.code(), Code::Unavailable);
        let text = error.message();
        for part in ["model 'm'", "m_0_0", exit, "restarted"] {
            assert!(text.contains(part), "{text}");
        }
        let raised = alarms.recv_timeout(TIMEOUT).expect("the alarm");
        assert_eq!(raised.message(), text);
        assert_eq!(error_text(run(&mut *instance, bytes(&[0]))), text, "fails at once now");
        drop(instance);
        let (mut instance, _) = loaded.instance_with_alarm();
        assert_eq!(output(run(&mut *instance, bytes(&[7]))), [7]);
    }
}

#[test]
fn sys_exit_fails_the_request() {
    let (mut instance, _loaded) = exiting().instance();
    run(&mut *instance, bytes(&[3])).expect_err("an error");
}

#[test]
fn an_exit_between_executions_raises_the_alarm() {
    let body = r#"
        number = str(os.getpid()).encode()
        return [pb_utils.InferenceResponse([pb_utils.Tensor("OUT", np.frombuffer(number, dtype=np.uint8))])]
"#;
    let loaded = Written::execute(body).load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    let number = String::from_utf8(output(run(&mut *instance, bytes(&[0])))).expect("text");
    let status = std::process::Command::new("kill").args(["-9", &number]).status();
    assert!(status.expect("kill runs").success());
    let raised = alarms.recv_timeout(TIMEOUT).expect("the alarm");
    assert!(raised.message().contains("SIGKILL"), "{raised}");
    run(&mut *instance, bytes(&[0])).expect_err("dead");
}

#[test]
fn a_child_process_with_open_sockets_does_not_hide_the_exit() {
    let body = r#"
        if os.fork() == 0:
            time.sleep(86400)
            os._exit(0)
        os.kill(os.getpid(), 9)
"#;
    let (mut instance, _loaded) = Written::execute(body).instance();
    // Whoever waits for the child waits a day.
    run(&mut *instance, bytes(&[0])).expect_err("dead");
}

#[test]
fn a_worker_that_closes_its_sockets_is_killed() {
    let body = format!(
        "        if requests[0].inputs()[0].as_numpy()[0] == 1:\n            os.closerange(3, 1000)\n            time.sleep(600){IDENTITY}"
    );
    let loaded = Written::execute(&body).load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    run(&mut *instance, bytes(&[1])).expect_err("closed");
    alarms.recv_timeout(TIMEOUT).expect("the alarm");
}

#[test]
fn an_orderly_exit_raises_no_alarm() {
    let loaded = exiting().load();
    let (mut instance, alarms) = loaded.instance_with_alarm();
    assert_eq!(output(run(&mut *instance, bytes(&[9]))), [9]);
    drop(instance);
    assert!(alarms.recv_timeout(TIMEOUT).is_err(), "an alarm was raised");
}

#[test]
fn every_request_is_answered_when_workers_exit_under_load() {
    let loaded = exiting().load();
    let barrier = Arc::new(Barrier::new(3));
    thread::scope(|scope| {
        for index in 0..3 {
            let (loaded, barrier) = (&loaded, barrier.clone());
            scope.spawn(move || {
                let mut instance = loaded.instance(index).expect("an instance");
                barrier.wait();
                for n in 0..60_u8 {
                    let how = if n % 20 == 19 { 1 } else { 0 };
                    let large = vec![how; 100_000];
                    let requests = (0..4).map(|_| request(bytes(&large))).collect();
                    let answers = testing::run_batch(&mut *instance, requests);
                    let failed = answers.iter().filter(|a| a.is_err()).count();
                    assert_eq!(failed, if how == 1 { 4 } else { 0 }, "execution {n}");
                    if how == 1 {
                        instance = loaded.instance(index).expect("another instance");
                    }
                }
            });
        }
    });
}

#[test]
fn the_model_is_finalized_and_a_slow_finalize_is_killed() {
    let class = |finish: &str| {
        format!(
            "    def execute(self, requests):{IDENTITY}\n    def finalize(self):\n        {finish}\n"
        )
    };
    let folder = tempfile::tempdir().expect("folder");
    let mark = folder.path().join("finished");
    let finish = format!("open({:?}, 'w').close()", mark.to_str().expect("text"));
    let (instance, _loaded) = Written::class(&class(&finish)).instance();
    drop(instance);
    assert!(mark.exists(), "finalize did not run");
    let slow = Written::class(&class("time.sleep(86400)")).setting("stub-timeout-seconds", "5");
    let (instance, _loaded) = slow.data_type(DataType::Int8).instance();
    // It takes a day unless it is killed.
    drop(instance);
}

/// A child left the process group and keeps sending events: they do not delay the exit.
#[test]
fn a_child_process_that_floods_events_does_not_hide_the_exit() {
    let body = r#"
        import galatea_worker.wire as wire
        events = int(open("/proc/self/cmdline").read().split("\0")[3])
        if os.fork() == 0:
            os.setsid()
            released = wire.HEADER.pack(26, 0, 0, 0, 0, 0, 0)
            try:
                while True:
                    os.write(events, released)
            finally:
                os._exit(0)
        time.sleep(0.5)
        os.kill(os.getpid(), 9)
"#;
    let (mut instance, _loaded) = Written::execute(body).instance();
    // Whoever waits for the child waits for ever: it ends when nobody has the other end of the socket any more.
    let error = run(&mut *instance, bytes(&[0])).expect_err("dead");
    assert!(error.message().contains("SIGKILL"), "{error}");
    drop(instance);
}
