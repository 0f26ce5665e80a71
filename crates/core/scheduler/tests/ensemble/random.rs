//! Any graph gives exactly one answer, and the same as one step after the other would.

use std::{collections::BTreeMap, sync::mpsc, thread};

use galatea_test_support::eventually;
use proptest::prelude::*;

use crate::rig::{StepSetup, ensemble, joined, step, tensor, text};

/// What each step reads (numbers of earlier tensors), and how it answers.
#[derive(Clone, Debug)]
struct RandomStep {
    reads: Vec<usize>,
    outputs: usize,
    answers_at_once: bool,
    fails: bool,
}

fn random_step() -> impl Strategy<Value = RandomStep> {
    let reads = prop::collection::vec(any::<prop::sample::Index>(), 1..4);
    (reads, 1..3usize, any::<bool>(), prop::bool::weighted(0.03)).prop_map(
        |(reads, outputs, answers_at_once, fails)| RandomStep {
            reads: reads.iter().map(|r| r.index(1 << 20)).collect(),
            outputs,
            answers_at_once,
            fails,
        },
    )
}

/// Steps with the tensors they read and write; the last list holds those that nothing reads.
type Wired = (Vec<(Vec<usize>, Vec<usize>)>, Vec<usize>);

fn wire(steps: &[RandomStep]) -> Wired {
    let mut tensors = 2;
    let mut is_read = vec![false; 2];
    let mut wired = Vec::new();
    for step in steps {
        let mut reads: Vec<usize> = step.reads.iter().map(|r| r % tensors).collect();
        reads.dedup();
        for &read in &reads {
            is_read[read] = true;
        }
        wired.push((reads, (tensors..tensors + step.outputs).collect()));
        tensors += step.outputs;
        is_read.resize(tensors, false);
    }
    let ends = (2..tensors).filter(|&t| !is_read[t]).collect();
    (wired, ends)
}

fn one_after_the_other(wired: &Wired) -> BTreeMap<usize, String> {
    let mut values = BTreeMap::from([(0, "a".to_owned()), (1, "b".to_owned())]);
    for (reads, writes) in &wired.0 {
        let joined: String = reads.iter().map(|t| values[t].clone()).collect();
        values.extend(writes.iter().map(|&t| (t, joined.clone())));
    }
    values
}

type Later = mpsc::Sender<Box<dyn FnOnce() + Send>>;

fn setup(
    random: &RandomStep,
    (reads, writes): &(Vec<usize>, Vec<usize>),
    later: &Later,
) -> StepSetup {
    let list = |kind: &str, tensors: &[usize]| {
        let pairs = tensors.iter().enumerate().map(|(i, t)| format!("{kind}{i:02}=t{t}"));
        pairs.collect::<Vec<_>>().join(" ")
    };
    let outputs: Vec<std::sync::Arc<str>> =
        (0..writes.len()).map(|i| format!("O{i:02}").into()).collect();
    let (random, later) = (random.clone(), later.clone());
    step("any", &list("I", reads), &list("O", writes)).doing(move |request, responder| {
        let answer = match random.fails {
            true => Err(galatea_types::Error::internal("unlucky")),
            false => Ok(joined(&request, &outputs)),
        };
        if random.answers_at_once {
            responder.finish(answer);
        } else {
            later.send(Box::new(move || responder.finish(answer))).expect("somebody answers");
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 150, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn ensembles_equal_a_sequential_evaluation(steps in prop::collection::vec(random_step(), 1..14)) {
        let wired = wire(&steps);
        // Values double at most with each step: keep them short.
        let expected = one_after_the_other(&wired);
        prop_assume!(expected.values().all(|v| v.len() < 4096));
        let (later, answers_due) = mpsc::channel::<Box<dyn FnOnce() + Send>>();
        let setups = steps.iter().zip(&wired.0).map(|(s, w)| setup(s, w, &later)).collect();
        let outputs: Vec<String> = wired.1.iter().map(|t| format!("t{t}")).collect();
        let is_read = |tensor: &usize| wired.0.iter().any(|(reads, _)| reads.contains(tensor));
        let read: Vec<usize> = (0..2).filter(is_read).collect();
        let inputs: Vec<String> = read.iter().map(|t| format!("t{t}")).collect();
        let rig = ensemble(&inputs.join(" "), &outputs.join(" "), setups);
        drop(later);
        let answers = thread::scope(|scope| {
            let answerer = scope.spawn(move || {
                for answer in answers_due {
                    answer();
                }
            });
            let sent = read.iter().map(|&t| tensor(["t0", "t1"][t], [b"a", b"b"][t]));
            let answers = rig.ask(sent.collect());
            eventually("an answer", || answers.count() > 0);
            let statistics = rig.statistics();
            // Without the ensemble nobody can send any more, and the answerer ends.
            drop(rig);
            answerer.join().expect("no panic");
            (answers, statistics)
        });
        let (answers, statistics) = answers;
        prop_assert_eq!(statistics.success.count + statistics.fail.count, 1);
        match answers.only() {
            Ok(answer) => {
                prop_assert_eq!(answer.outputs.len(), wired.1.len());
                for (output, tensor) in answer.outputs.iter().zip(&wired.1) {
                    prop_assert_eq!(text(output), &expected[tensor][..]);
                }
            }
            Err(error) => {
                prop_assert!(steps.iter().any(|s| s.fails));
                prop_assert_eq!(error.message(), "in ensemble 'ens', unlucky");
            }
        }
    }
}
