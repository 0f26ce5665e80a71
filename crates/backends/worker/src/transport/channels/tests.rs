//! What is sent to a worker, taken back, and received.

use super::*;
use crate::{
    memory::{ArenaLimits, MemoryRules},
    wire::Header,
};

const LIMITS: ArenaLimits = ArenaLimits { initial: 1 << 20, growth: 1 << 20, max: None };

fn channels() -> (Channels, WorkerEnds) {
    let waker = Arc::new(EventThreadWaker::new().expect("an eventfd"));
    let memory =
        Arc::new(SharedMemory::new(MemoryRules::of(LIMITS), waker.clone()).expect("memory"));
    Channels::new(memory, waker).expect("sockets")
}

/// The id of the next event that the worker gets.
fn received_id(ends: &WorkerEnds, buffer: &mut [u8]) -> u64 {
    let flags = rustix::net::RecvFlags::DONTWAIT;
    let (length, _) = rustix::net::recv(&ends.events, &mut *buffer, flags).expect("a packet");
    let mut reader = crate::wire::Reader::new(&buffer[..length]);
    Header::read(&mut reader).expect("a header").id
}

#[test]
fn events_without_room_are_queued_in_order() {
    let (channels, ends) = channels();
    let mut sent = 0;
    while !channels.has_queued() {
        let mut event = OutgoingMessage::new(kind::INFERRED, sent);
        event.meta = vec![0; 100_000];
        channels.send_event(&event).expect("sent or queued");
        sent += 1;
    }
    channels.send_event(&OutgoingMessage::new(kind::INFERRED, sent)).expect("queued behind");
    let mut buffer = vec![0; crate::wire::PACKET_LIMIT];
    for id in 0..=sent {
        assert_eq!(received_id(&ends, &mut buffer), id);
        channels.flush();
    }
    assert!(!channels.has_queued());
}

/// Further messages fail instead of filling the server's memory.
#[test]
fn the_queue_to_a_worker_that_never_reads_is_bounded() {
    let (channels, _ends) = channels();
    let mut event = OutgoingMessage::new(kind::INFERRED, 1);
    event.meta = vec![0; 100_000];
    let sent = (0..10_000).take_while(|_| channels.send_event(&event).is_ok()).count();
    assert!((MAX_QUEUED_BYTES / 101_000..MAX_QUEUED_BYTES / 90_000).contains(&sent), "{sent}");
    let error = channels.send_event(&event).expect_err("full");
    assert!(error.message().contains("64 MiB"), "{error}");
    channels.clear_queue();
    channels.send_event(&event).expect("queued");
}

#[test]
fn messages_sent_before_the_exit_are_received() {
    let (channels, ends) = channels();
    rustix::io::write(&ends.events, b"event").expect("written");
    channels.close();
    let mut buffer = [0; 64];
    assert_eq!(channels.try_receive_event(&mut buffer).expect("open"), SocketRead::Packet(5));
    assert_eq!(channels.try_receive_event(&mut buffer).expect("open"), SocketRead::End);
    let flags = rustix::net::SendFlags::NOSIGNAL;
    rustix::net::send(&ends.events, b"more", flags).expect_err("nobody receives it");
}

#[test]
fn a_command_is_sent_refused_or_undeliverable() {
    let (channels, ends) = channels();
    let mut command = OutgoingMessage::new(kind::EXECUTE, 1);
    assert_eq!(channels.send_command(&command).expect("encoded"), Delivery::Sent);
    command.meta = vec![0; 100_000];
    while channels.send_command(&command).expect("encoded") == Delivery::Sent {}
    assert_eq!(channels.send_command(&command).expect("encoded"), Delivery::NoRoom);
    drop(ends);
    channels.close();
    assert_eq!(channels.send_command(&command).expect("encoded"), Delivery::Disconnected);
}

fn ids_read(ends: &WorkerEnds) -> Vec<u64> {
    let socket = Socket::from(ends.commands.try_clone().expect("descriptors"));
    let mut buffer = vec![0; PACKET_LIMIT];
    let read = std::iter::from_fn(|| match socket.try_receive(&mut buffer).expect("open") {
        SocketRead::Packet(length) => {
            let header = Header::read(&mut Reader::new(&buffer[..length]));
            Some(header.expect("a header").id)
        }
        _ => None,
    });
    read.collect()
}

#[test]
fn commands_can_be_taken_back_in_order_until_the_worker_reads_them() {
    let (channels, ends) = channels();
    let mut buffer = Vec::new();
    let send = |id| {
        let sent = channels.send_command(&OutgoingMessage::new(kind::EXECUTE, id));
        assert_eq!(sent.expect("encoded"), Delivery::Sent);
    };
    assert_eq!((channels.first_unread(), channels.take_unread(&mut buffer)), (None, None));
    [1, 2, 3].into_iter().for_each(send);
    assert_eq!(channels.first_unread(), Some(1));
    assert_eq!(channels.first_unread(), Some(1), "it stays there");
    assert_eq!(channels.take_unread(&mut buffer), Some(1));
    assert_eq!(ids_read(&ends), [2, 3]);
    assert_eq!((channels.first_unread(), channels.take_unread(&mut buffer)), (None, None));
    // What the worker has not read when it ends was not begun.
    send(4);
    drop(ends);
    channels.close();
    assert_eq!(channels.first_unread(), Some(4));
    assert_eq!(channels.take_unread(&mut buffer), Some(4));
    assert_eq!(channels.first_unread(), None);
}

/// Server and worker read at the same time: each command reaches exactly one of them.
#[test]
fn the_worker_reads_the_remaining_commands_in_order() {
    const COMMANDS: u64 = 4000;
    let (channels, ends) = channels();
    let worker = Socket::from(ends.commands.try_clone().expect("descriptors"));
    let reader = thread::spawn(move || {
        let mut buffer = [0; HEADER_LENGTH];
        let mut read = Vec::new();
        while let Ok(SocketRead::Packet(_)) = worker.receive(&mut buffer) {
            read.extend(id_of(&buffer));
        }
        read
    });
    let (mut taken, mut buffer) = (Vec::new(), Vec::new());
    for id in 1..=COMMANDS {
        while channels.send_command(&OutgoingMessage::new(kind::EXECUTE, id)).expect("encoded")
            != Delivery::Sent
        {
            thread::yield_now();
        }
        if id % 3 == 0
            && let Some(first) = channels.first_unread()
            && let Some(id) = channels.take_unread(&mut buffer)
        {
            assert!(id >= first, "{id} was before {first}");
            taken.push(id);
        }
    }
    while channels.first_unread().is_some() {
        thread::yield_now();
    }
    channels.close();
    let read = reader.join().expect("no panic");
    assert!(read.is_sorted() && taken.is_sorted());
    let mut all = [read, taken].concat();
    all.sort_unstable();
    assert_eq!(all, (1..=COMMANDS).collect::<Vec<_>>());
}

#[test]
fn commands_taken_back_or_refused_leave_no_shared_memory() {
    let (channels, _ends) = channels();
    let (memory, mut buffer) = (&channels.memory, Vec::new());
    memory.releases.add(640, 64);
    let mut command = OutgoingMessage::new(kind::EXECUTE, 1);
    channels.send_command(&command).expect("encoded");
    assert!(memory.releases.is_empty(), "they went with it");
    assert_eq!(channels.take_unread(&mut buffer), Some(1));
    assert_eq!(memory.releases.take(), [640]);
    command.meta = vec![0; PACKET_LIMIT];
    channels.send_command(&command).expect("encoded");
    assert!(!memory.trim(), "a block is in use");
    assert_eq!(channels.take_unread(&mut buffer), Some(1));
    assert!(memory.trim());
    while channels.send_command(&OutgoingMessage::new(kind::EXECUTE, 2)).expect("encoded")
        == Delivery::Sent
    {}
    assert_eq!(channels.send_command(&command).expect("encoded"), Delivery::NoRoom);
    assert!(memory.trim());
}

#[test]
fn a_reply_times_out_or_fails_with_the_connection() {
    let (channels, ends) = channels();
    let own = rustix::process::getpid();
    let process = rustix::process::pidfd_open(own, rustix::process::PidfdFlags::empty());
    let process = process.expect("a pidfd");
    let mut buffer = [0; 64];
    let deadline = Instant::now() + Duration::from_millis(10);
    let error = channels.receive_reply_until(&mut buffer, deadline, process.as_fd());
    assert_eq!(error, Err(ReceiveError::TimedOut));
    rustix::io::write(&ends.commands, b"reply").expect("written");
    assert_eq!(channels.receive_reply(&mut buffer, Duration::ZERO), Ok(5));
    drop(ends);
    channels.close();
    let error = channels.receive_reply(&mut buffer, Duration::ZERO);
    assert_eq!(error, Err(ReceiveError::Disconnected));
}
