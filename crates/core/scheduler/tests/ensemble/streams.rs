//! Decoupled models: each of their responses starts a round of what follows.

use galatea_types::{Error, Responder};

use crate::rig::{Queue, decoupled, ensemble, response, step, tensor, text};

fn send(responder: &mut Responder, name: &str, bytes: &[u8]) {
    responder.send(Ok(response(vec![tensor(name, bytes)])));
}

#[test]
fn every_response_of_a_step_becomes_a_response() {
    let d = Queue::default();
    let steps =
        vec![step("d", "X=IN", "Y=mid").with(decoupled).queued(&d), step("b", "X=mid", "Y=OUT")];
    let rig = ensemble("IN", "OUT", steps);
    let answers = rig.ask(vec![tensor("IN", b"1")]);
    let (_, mut responder) = d.take();
    send(&mut responder, "Y", b"a");
    send(&mut responder, "Y", b"b");
    assert_eq!(answers.outcomes(), ["a", "b"]);
    responder.close();
    assert_eq!(answers.outcomes(), ["a", "b", "-!"]);
    let s = rig.statistics();
    assert_eq!((s.success.count, s.inference_count, s.execution_count), (1, 1, 1));

    let answers = rig.ask(vec![tensor("IN", b"1")]);
    let (_, responder) = d.take();
    responder.finish(Ok(response(vec![tensor("Y", b"only")])));
    assert_eq!(
        answers.outcomes(),
        ["only!"],
        "the last response is marked final where that is known"
    );

    let answers = rig.ask(vec![tensor("IN", b"1")]);
    d.take().1.close();
    assert_eq!(answers.outcomes(), ["-!"], "no answer at all is no deadlock");
}

#[test]
fn responses_of_different_rounds_are_not_mixed() {
    let (d, b, c) = (Queue::default(), Queue::default(), Queue::default());
    let steps = vec![
        step("d", "X=IN", "Y=one Z=two").with(decoupled).queued(&d),
        step("b", "X=one", "Y=three").queued(&b),
        step("c", "X=three Y=two", "Z=OUT").queued(&c),
    ];
    let rig = ensemble("IN", "OUT", steps);
    let answers = rig.ask(vec![tensor("IN", b"1")]);
    let (_, mut responder) = d.take();
    for n in [b"1", b"2"] {
        responder.send(Ok(response(vec![tensor("Y", n), tensor("Z", n)])));
    }
    responder.close();
    let (first, second) = (b.take(), b.take());
    // The second round overtakes the first.
    for (request, responder) in [second, first] {
        responder.finish(Ok(response(vec![tensor(
            "Y",
            request.inputs[0].host().expect("host memory"),
        )])));
    }
    for expected in ["22", "11"] {
        let (request, responder) = c.take();
        let got: String = request.inputs.iter().map(text).collect();
        assert_eq!(got, expected);
        responder.finish(Ok(response(vec![tensor("Z", got.as_bytes())])));
    }
    assert_eq!(answers.outcomes(), ["22", "11!"]);
}

#[test]
fn response_counts_of_chained_decoupled_steps_multiply() {
    let twice = |name: &str, inputs: &str, outputs: &str| {
        step(name, inputs, outputs).with(decoupled).doing(|request, mut responder| {
            for n in [b"a", b"b"] {
                let bytes = [request.inputs[0].host().expect("host memory"), n].concat();
                send(&mut responder, "Y", &bytes);
            }
            responder.close();
        })
    };
    let steps = vec![twice("d", "X=IN", "Y=mid"), twice("e", "X=mid", "Y=OUT")];
    let rig = ensemble("IN", "OUT", steps);
    let answers = rig.ask(vec![tensor("IN", b"")]);
    assert_eq!(answers.outcomes(), ["aa", "ab", "ba", "bb", "-!"]);
}

#[test]
fn an_error_in_the_middle_ends_the_stream() {
    let d = Queue::default();
    let fails_on_b = step("b", "X=mid", "Y=OUT").doing(|request, responder| {
        responder.finish(match request.inputs[0].host().expect("host memory") {
            b"b" => Err(Error::internal("no b")),
            bytes => Ok(response(vec![tensor("Y", bytes)])),
        });
    });
    let steps = vec![step("d", "X=IN", "Y=mid").with(decoupled).queued(&d), fails_on_b];
    let rig = ensemble("IN", "OUT", steps);
    let answers = rig.ask(vec![tensor("IN", b"1")]);
    let (request, mut responder) = d.take();
    for n in [b"a", b"b", b"c"] {
        send(&mut responder, "Y", n);
    }
    assert!(request.context.cancellation.is_cancelled() && responder.is_closed());
    responder.close();
    assert_eq!(answers.outcomes(), ["a", "in ensemble 'ens', no b!"]);
    assert_eq!(rig.statistics().fail.count, 1);
}
