//! What a client is overdue with, and whose connection is missed least, on a clock that is set by hand.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};

use galatea_types::MemoryBudget;

use super::{
    activity::{Activity, CloseReason, Framing},
    limits::ConnectionLimits,
    settings::ConnectionSettings,
};

const SECOND: Duration = Duration::from_secs(1);

fn settings() -> ConnectionSettings {
    ConnectionSettings {
        head_timeout: 20 * SECOND,
        progress_timeout: 30 * SECOND,
        min_bytes_per_second: 100,
        idle_timeout: 600 * SECOND,
        ..ConnectionSettings::default()
    }
}

struct Client {
    clock: Arc<AtomicU64>,
    activity: Arc<Activity>,
}

impl Client {
    fn with(framing: Framing) -> Self {
        let clock = Arc::<AtomicU64>::default();
        Self { activity: Arc::new(Activity::new(clock.clone(), framing)), clock }
    }

    fn after(&self, seconds: u64) -> Option<CloseReason> {
        self.clock.fetch_add(seconds * 1000, Relaxed);
        self.activity.overdue(&settings())
    }
}

#[test]
fn a_head_must_be_complete_in_time_even_if_it_trickles() {
    let client = Client::with(Framing::Sequential);
    assert_eq!(client.after(19), None);
    client.activity.record_read(1);
    assert_eq!(client.after(1), Some(CloseReason::Head), "the time runs from the beginning");
    let _call = client.activity.begin_call();
    assert_eq!(client.after(1000), None, "the server takes its time");
}

#[test]
fn a_connection_is_idle_between_requests_until_the_next_byte() {
    let client = Client::with(Framing::Sequential);
    drop(client.activity.begin_call());
    assert_eq!(client.after(599), None);
    client.activity.record_read(1);
    assert_eq!(client.after(19), None);
    assert_eq!(client.after(1), Some(CloseReason::Head));
    drop(client.activity.begin_call());
    assert_eq!(client.after(600), Some(CloseReason::Idle));
}

#[test]
fn a_body_must_keep_a_minimum_pace_at_all_times() {
    let client = Client::with(Framing::Sequential);
    let call = client.activity.begin_call();
    let receiving = call.activity().receive();
    client.activity.record_read(1 << 20);
    assert_eq!(client.after(30), None);
    client.activity.record_read(2999);
    assert_eq!(client.after(29), None);
    assert_eq!(client.after(1), Some(CloseReason::Body), "what came before does not count");
    drop(receiving);
    assert_eq!(client.after(1000), None, "the server takes its time");
}

#[test]
fn a_slow_body_gets_less_time_when_memory_is_short() {
    let client = Client::with(Framing::Sequential);
    let call = client.activity.begin_call();
    let _receiving = call.activity().receive();
    client.activity.record_read(320_000);
    assert_eq!(client.after(5), None);
    assert_eq!(client.activity.overdue(&settings().impatient()), Some(CloseReason::Body));
}

#[test]
fn an_unread_response_closes_the_connection() {
    let client = Client::with(Framing::Sequential);
    drop(client.activity.begin_call());
    client.activity.record_written(1 << 20, 1 << 16);
    assert_eq!(client.after(29), None);
    client.activity.record_written(1 << 20, 3000);
    assert_eq!(client.after(1), None);
    client.activity.record_written(1 << 20, 0);
    client.activity.record_written(1 << 20, 2999);
    assert_eq!(client.after(30), Some(CloseReason::Response));
    client.activity.record_written(1 << 20, 1 << 20);
    assert_eq!(client.after(30), None, "it has all");
}

#[test]
fn multiplexed_connections_need_their_opening_once() {
    let client = Client::with(Framing::Multiplexed { opening: 33 });
    client.activity.record_read(32);
    assert_eq!(client.after(20), Some(CloseReason::Head));
    client.activity.record_read(1);
    assert_eq!(client.after(20), None);
    client.activity.record_read(17);
    assert_eq!(client.after(599), None, "a ping begins no request");
    assert_eq!(client.after(1), Some(CloseReason::Idle));
}

#[tokio::test(flavor = "current_thread", start_paused = true)]
async fn unused_connections_are_closed_first_then_the_longest_idle() {
    let settings = ConnectionSettings { max_connections: 4, reserved_connections: 1, ..settings() };
    let limits = ConnectionLimits::new(settings, MemoryBudget::unlimited());
    let admit = async || limits.admit(Framing::Sequential, false).await;
    let is_open = |slot: &super::Slot| slot.activity.worth().is_some();
    let (busy, idle, silent) = (admit().await, admit().await, admit().await);
    let (Some(busy), Some(idle), Some(silent)) = (busy, idle, silent) else { panic!("no room") };
    let _call = busy.activity.begin_call();
    drop(idle.activity.begin_call());
    assert!(admit().await.is_none(), "the silent one is closed, and does not go in time");
    assert!(is_open(&idle) && !is_open(&silent));
    let (late, ()) = tokio::join!(admit(), async { drop(silent) });
    let late = late.expect("the silent one has gone");
    let metrics = limits.admit(Framing::Sequential, true).await.expect("has its reserve");
    let _calls = [&idle, &late, &metrics].map(|slot| slot.activity.begin_call());
    assert!(limits.admit(Framing::Sequential, true).await.is_none(), "all are busy");
    assert_eq!(limits.open(), 4);
}

#[test]
fn some_descriptors_are_reserved() {
    let most = |descriptors| ConnectionSettings::for_descriptors(descriptors).max_connections;
    assert_eq!([64, 256, 1024, 4096, 1 << 20].map(most), [1, 192, 768, 3072, 8192]);
}
