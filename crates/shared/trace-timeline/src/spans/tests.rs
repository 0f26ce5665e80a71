//! Requests divided into spans.

use proptest::{collection::vec, prelude::*};

use super::*;

fn request(events: &[(Event, u64)]) -> Request {
    let mut request = Request::default();
    for &(event, ns) in events {
        request.record(event, ns);
    }
    request
}

fn shown(request: &Request, steps: &[Extent]) -> Vec<(&'static str, u64)> {
    let pieces = pieces(request, steps.iter().copied());
    pieces.iter().map(|piece| (piece.span.name(), piece.extent.length())).collect()
}

#[test]
fn a_request_of_one_model() {
    let request = request(&[
        (Event::SendStart, 165),
        (Event::SendEnd, 180),
        (Event::ReceiveStart, 1),
        (Event::ReceiveEnd, 11),
        (Event::RequestStart, 20),
        (Event::QueueStart, 21),
        (Event::ComputeStart, 121),
        (Event::ComputeInputEnd, 131),
        (Event::ComputeOutputStart, 151),
        (Event::ComputeEnd, 161),
        (Event::RequestEnd, 170),
    ]);
    let wanted = [
        ("receive", 10),
        ("other", 10),
        ("queue", 100),
        ("input", 10),
        ("compute", 20),
        ("output", 10),
        ("other", 4),
        ("send", 15),
    ];
    assert_eq!(shown(&request, &[]), wanted);
}

#[test]
fn an_ensemble_spends_its_time_in_steps() {
    let request =
        request(&[(Event::RequestStart, 10), (Event::QueueStart, 12), (Event::RequestEnd, 100)]);
    let steps = [(20, 50), (30, 40), (45, 60), (70, 90)].map(|(from, to)| Extent { from, to });
    assert_eq!(
        shown(&request, &steps),
        [("other", 10), ("steps", 40), ("other", 10), ("steps", 20), ("other", 10)]
    );
}

#[test]
fn a_call_within_a_model_is_compute() {
    let request = request(&[
        (Event::RequestStart, 10),
        (Event::ComputeStart, 10),
        (Event::ComputeInputEnd, 10),
        (Event::ComputeOutputStart, 50),
        (Event::ComputeEnd, 50),
    ]);
    assert_eq!(shown(&request, &[Extent { from: 20, to: 40 }]), [("compute", 40)]);
}

#[test]
fn a_stream_sends_from_its_first_response_to_its_last() {
    let events = [
        (Event::SendStart, 10),
        (Event::SendEnd, 12),
        (Event::SendStart, 30),
        (Event::SendEnd, 33),
    ];
    assert_eq!(shown(&request(&events), &[]), [("send", 23)]);
    // Servers write 0 for what they did not note.
    assert_eq!(shown(&request(&[(Event::SendStart, 0), (Event::SendEnd, 0)]), &[]), []);
    assert_eq!(
        shown(&request(&[(Event::SendStart, 0), (Event::SendStart, 7), (Event::SendEnd, 9)]), &[]),
        [("send", 2)]
    );
}

proptest! {
    #[test]
    fn pieces_have_no_gaps_and_add_up(
        events in vec((0..Event::ALL.len(), any::<u64>()), 0..20),
        steps in vec((any::<u64>(), any::<u64>()), 0..6),
    ) {
        let events: Vec<_> = events.into_iter().map(|(event, ns)| (Event::ALL[event], ns)).collect();
        let request = request(&events);
        let mut steps: Vec<_> =
            steps.into_iter().map(|(a, b)| Extent { from: a.min(b), to: a.max(b) }).collect();
        steps.sort_by_key(|step| step.from);
        let pieces = pieces(&request, steps.into_iter());
        prop_assert!(pieces.windows(2).all(|two| two[0].extent.to == two[1].extent.from));
        prop_assert!(pieces.windows(2).all(|two| two[0].span != two[1].span));
        prop_assert_eq!(amounts(&pieces).iter().sum::<u64>(), request.total());
    }
}
