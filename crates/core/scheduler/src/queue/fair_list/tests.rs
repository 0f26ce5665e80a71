//! Turns of clients: the bound of what one waits for another, against a list as plain as it can be.

use std::{collections::VecDeque, time::Instant};

use proptest::prelude::*;

use super::{Entry, FairList};
use crate::queue::{
    QueueEntry,
    tests::fake::{Fake, fake},
};

fn of(client: u64, id: usize, items: u64) -> Entry<Fake> {
    let value = Fake { client: Some(client), ..fake(id, items, Instant::now()) };
    Entry { value, expires_at: None }
}

fn take(list: &mut FairList<Fake>, count: usize) -> Vec<Fake> {
    let mut taken = Vec::new();
    list.take(count, &mut taken);
    taken
}

/// The ids of what is taken when all is.
fn ids(list: &mut FairList<Fake>) -> Vec<usize> {
    take(list, usize::MAX).iter().map(|f| f.id).collect()
}

/// A list with a thousand requests of client 1, of which some were looked at or taken already.
fn flooded(turn_items: u64, settled: usize, taken: usize) -> FairList<Fake> {
    let mut list = FairList::new(turn_items);
    (0..1000).for_each(|id| list.push_back(of(1, id, 1)));
    (0..settled).for_each(|index| list.settle(index));
    take(&mut list, taken);
    list
}

#[test]
fn a_flood_of_one_client_does_not_delay_another() {
    let mut list = flooded(1, 3, 10);
    list.push_back(of(2, 2000, 1));
    list.push_back(of(2, 2001, 1));
    let order = ids(&mut list);
    assert_eq!(order[..6], [10, 2000, 11, 2001, 12, 13]);
    assert_eq!((order.len(), list.len()), (992, 0));
}

#[test]
fn settled_positions_stay_before_later_arrivals() {
    let mut list = flooded(1, 0, 0);
    (2000..2010).for_each(|id| list.push_back(of(2, id, 1)));
    for index in 0..4 {
        assert!(list.get(index).is_some());
        list.settle(index);
    }
    list.push_back(of(3, 3000, 1));
    let order = ids(&mut list);
    assert_eq!(order[..4], [0, 2000, 1, 2001]);
    assert!(order[4..7].contains(&3000), "{:?}", &order[..8]);
}

#[test]
fn a_turn_has_one_batch_of_items_if_requests_may_not_join() {
    let mut list = flooded(4, 0, 0);
    (2000..2006).for_each(|id| list.push_back(of(2, id, 2)));
    let order = ids(&mut list);
    assert_eq!(order[..10], [0, 1, 2, 3, 2000, 2001, 4, 5, 6, 7]);
}

#[test]
fn turns_count_items_and_not_requests() {
    let mut list = FairList::new(1);
    (0..100).for_each(|id| list.push_back(of(1, id, 8)));
    (1000..1100).for_each(|id| list.push_back(of(2, id, 1)));
    let taken = take(&mut list, 45);
    let items = |client| {
        let of_client = taken.iter().filter(move |f| f.client == Some(client));
        of_client.map(|f| f.items).sum::<u64>()
    };
    assert_eq!((items(1), items(2)), (40, 40));
}

#[test]
fn abandoned_requests_use_up_no_turn() {
    let mut list = FairList::new(1);
    for id in 0..100 {
        let mut entry = of(1, id, 1);
        entry.value.is_abandoned = id < 99;
        list.push_back(entry);
    }
    (1000..1100).for_each(|id| list.push_back(of(2, id, 1)));
    // As a decision comes to them, one by one.
    while list.get(0).is_some_and(|e| e.value.is_abandoned) {
        list.remove(0);
    }
    assert_eq!(list.len(), 101);
    assert_eq!(ids(&mut list)[..3], [99, 1000, 1001]);
}

#[test]
fn a_returned_request_is_first_again() {
    let mut list = flooded(1, 0, 0);
    list.push_back(of(2, 2000, 1));
    let mut taken = take(&mut list, 2);
    assert_eq!(taken[1].id, 2000);
    while let Some(value) = taken.pop() {
        list.push_front(Entry { value, expires_at: None });
    }
    list.push_back(of(2, 2001, 1));
    assert_eq!(ids(&mut list)[..4], [0, 2000, 1, 2001]);
}

/// What is done to a list.
#[derive(Clone, Debug)]
enum Step {
    Push {
        client: u64,
        items: u64,
    },
    /// Looks at so many, as a decision does, and takes some of them.
    Take {
        looked_at: usize,
        taken: usize,
    },
    /// Puts the last that was taken back.
    PutBack,
    /// Nobody waits any more for each of these.
    Abandon {
        every: usize,
    },
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0u64..5, 1u64..4).prop_map(|(client, items)| Step::Push { client, items }),
        2 => (0usize..6, 0usize..6).prop_map(|(looked_at, taken)| Step::Take { looked_at, taken }),
        1 => Just(Step::PutBack),
        1 => (1usize..4).prop_map(|every| Step::Abandon { every }),
    ];
    proptest::collection::vec(step, 1..200)
}

proptest! {
    /// Compares with one queue per client: no request is lost, invented or reordered, and the counts match.
    #[test]
    fn each_client_sees_a_first_in_first_out_queue(steps in steps(), turn_items in 1u64..9) {
        let mut list = FairList::new(turn_items);
        let mut expected: Vec<VecDeque<usize>> = vec![VecDeque::new(); 5];
        let (mut last, mut next_id) = (None::<Fake>, 0);
        for step in steps {
            match step {
                Step::Push { client, items } => {
                    let mut entry = of(client, next_id, items);
                    entry.value.is_abandoned = false;
                    list.push_back(entry);
                    expected[client as usize].push_back(next_id);
                    next_id += 1;
                }
                Step::Take { looked_at, taken } => {
                    let mut seen = Vec::new();
                    for index in 0..looked_at {
                        seen.extend(list.get(index).map(|entry| entry.value.id));
                        list.settle(index);
                    }
                    let taken = take(&mut list, taken);
                    let both = seen.len().min(taken.len());
                    let ids: Vec<_> = taken.iter().map(|f| f.id).collect();
                    prop_assert_eq!(&ids[..both], &seen[..both]);
                    for request in &taken {
                        let own = &mut expected[request.client.expect("one") as usize];
                        prop_assert_eq!(own.pop_front(), Some(request.id));
                    }
                    last = taken.last().cloned();
                }
                Step::PutBack => if let Some(value) = last.take() {
                    let client = value.client().expect("one") as usize;
                    expected[client].push_front(value.id);
                    list.push_front(Entry { value, expires_at: None });
                },
                Step::Abandon { every } => {
                    let abandoned = abandon(&mut list, every);
                    for request in abandoned {
                        let own = &mut expected[request.client.expect("one") as usize];
                        let place = own.iter().position(|&id| id == request.id);
                        own.remove(place.expect("it waits"));
                    }
                }
            }
            prop_assert_eq!(list.len(), expected.iter().map(VecDeque::len).sum::<usize>());
            prop_assert!(list.lane_count() <= list.len().max(1));
        }
        for request in take(&mut list, usize::MAX) {
            let own = &mut expected[request.client.expect("one") as usize];
            prop_assert_eq!(own.pop_front(), Some(request.id));
        }
        prop_assert!(expected.iter().all(VecDeque::is_empty));
    }

    /// A new client's first request waits for at most one turn of each other client, in any state.
    #[test]
    fn a_clients_first_request_waits_for_one_turn_of_each_other_client(
        steps in steps(), turn_items in 1u64..9,
    ) {
        let mut list = FairList::new(turn_items);
        for (id, step) in steps.into_iter().enumerate() {
            match step {
                Step::Push { client, items } => list.push_back(of(client, id, items)),
                Step::Take { taken, .. } => drop(take(&mut list, taken)),
                Step::PutBack | Step::Abandon { .. } => {}
            }
        }
        list.push_back(of(99, usize::MAX, 1));
        let order = take(&mut list, usize::MAX);
        let before: Vec<_> = order.iter().take_while(|f| f.id != usize::MAX).collect();
        for client in 0..5 {
            let own: Vec<_> = before.iter().filter(|f| f.client == Some(client)).collect();
            let items: u64 = own.iter().map(|f| f.items).sum();
            prop_assert!(own.len() <= 1 || items <= turn_items, "{:?}", before);
        }
    }
}

/// Takes out some of the requests, as when nobody waits for them any more.
fn abandon(list: &mut FairList<Fake>, every: usize) -> Vec<Fake> {
    list.for_each_mut(|request| request.is_abandoned = request.id % 4 < every);
    let mut abandoned = Vec::new();
    list.remove_where(|entry| entry.value.is_abandoned, &mut abandoned);
    list.for_each_mut(|request| assert!(!request.is_abandoned));
    abandoned
}
