//! What hostile gRPC requests take in memory, against their own size: an allocator counts.

use bytes::Bytes;
use galatea_config::{ModelConfig, testing};
use galatea_engine::RegionTable;
use galatea_protocol::grpc::{Pieces, RequestMessage, decode};
use galatea_types::Code;
use peak_alloc::PeakAlloc;

#[global_allocator]
static ALLOCATOR: PeakAlloc = PeakAlloc;

/// So long that four times as much is more than any request may take.
const MESSAGE_SIZE: usize = 5 << 20;
const MAX_GROWTH: usize = 4;
/// A length in five bytes, whatever it is.
const LENGTH_SIZE: usize = 5;

fn config() -> ModelConfig {
    testing::model_config(
        "backend: 'identity'
         input { name: 'A' data_type: TYPE_INT64 dims: -1 }
         output { name: 'B' data_type: TYPE_INT64 dims: -1 }",
    )
}

fn length(n: usize) -> [u8; LENGTH_SIZE] {
    let part = |shift: usize| (n >> shift) as u8 | 0x80;
    [part(0), part(7), part(14), part(21), (n >> 28) as u8]
}

/// A field with a length.
fn field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2][..], &length(content.len()), content].concat()
}

fn repeated(unit: &[u8]) -> Vec<u8> {
    unit.repeat(MESSAGE_SIZE / unit.len())
}

/// An input named A of `data_type` whose field `number` of the contents holds `content`.
fn typed(data_type: &[u8], number: u8, content: &[u8]) -> Vec<u8> {
    let contents = match number {
        0 => content.to_vec(),
        packed => field(packed, content),
    };
    field(5, &[field(1, b"A"), field(2, data_type), field(5, &contents)].concat())
}

/// Contents in as many messages, all empty.
fn typed_parts() -> Vec<u8> {
    field(5, &[field(1, b"A"), field(2, b"INT64"), repeated(&[0x2a, 0])].concat())
}

/// Parameters whose keys differ, in as few bytes as that takes.
fn distinct_parameters(wrap: impl Fn(&[u8]) -> Vec<u8>) -> Vec<u8> {
    let entry = |n: usize| wrap(&[&[0x0a, 4][..], format!("{n:04x}").as_bytes()].concat());
    let size = entry(0).len();
    (0..0x10000.min(MESSAGE_SIZE / size)).flat_map(entry).collect()
}

fn short_field(number: u8, content: &[u8]) -> Vec<u8> {
    [&[number << 3 | 2, content.len() as u8][..], content].concat()
}

/// Each attack, and whether it is refused.
fn attacks() -> Vec<(&'static str, Vec<u8>, bool)> {
    let many_parameters = distinct_parameters(|entry| short_field(4, entry));
    let of_an_input = field(5, &distinct_parameters(|entry| short_field(4, entry)));
    vec![
        ("empty inputs", repeated(&[0x2a, 0]), true),
        ("empty outputs", repeated(&[0x32, 0]), true),
        ("empty raw tensors", repeated(&[0x3a, 0]), true),
        ("the same parameter", repeated(&[0x22, 0]), true),
        ("parameters", many_parameters.repeat(6), true),
        ("parameters of an input", of_an_input.repeat(6), true),
        ("dimensions", field(5, &field(3, &repeated(&[1]))), true),
        ("dimensions that are not packed", field(5, &repeated(&[0x18, 1])), true),
        ("small INT64 elements", typed(b"INT64", 3, &repeated(&[1])), true),
        ("INT64 elements that are not packed", typed(b"INT64", 0, &repeated(&[0x18, 1])), true),
        ("small INT32 elements", typed(b"INT32", 2, &repeated(&[1])), true),
        ("larger INT32 elements", typed(b"INT32", 2, &repeated(&[0x80, 1])), false),
        ("INT8 elements", typed(b"INT8", 2, &repeated(&[1])), false),
        ("booleans", typed(b"BOOL", 1, &repeated(&[1])), false),
        ("numbers", typed(b"FP32", 6, &repeated(&[0, 0, 128, 63])), false),
        ("empty strings", typed(b"BYTES", 0, &repeated(&[0x42, 0])), false),
        ("parts of contents", typed_parts(), false),
        ("a long name", field(1, &repeated(b"a")), true),
        ("a long id", field(3, &repeated(b"a")), true),
        ("a long key", field(4, &field(1, &repeated(b"a"))), true),
        ("unknown fields", repeated(&[0xf8, 1, 1]), false),
        ("groups", [vec![0xfb, 1], repeated(&[0x08, 1]), vec![0xfc, 1]].concat(), false),
    ]
}

/// Its own data, where it has none.
fn with_raw(message: Vec<u8>) -> Vec<u8> {
    match message.first() {
        Some(0x2a) => message,
        _ => [message, field(5, &[field(1, b"A"), field(2, b"INT64")].concat()), field(7, b"")]
            .concat(),
    }
}

/// In frames of `size`, as the network brings them.
fn pieces(message: &[u8], size: usize) -> Pieces {
    let mut pieces = Pieces::default();
    message.chunks(size).for_each(|chunk| pieces.push(Bytes::copy_from_slice(chunk)));
    pieces
}

#[test]
fn decoding_takes_at_most_four_times_the_bytes_of_a_request() {
    let config = config();
    for (what, message, is_refused) in attacks() {
        let message = with_raw(message);
        let frame_sizes: &[usize] =
            if what == "numbers" { &[1 << 20, 16 << 10, 10] } else { &[1 << 20] };
        for &frame_size in frame_sizes {
            let before = ALLOCATOR.current_usage();
            ALLOCATOR.reset_peak_usage();
            let read = RequestMessage::read(pieces(&message, frame_size));
            let outcome = read.and_then(|message| {
                let size = message.decoded_size();
                Ok((decode(message, &config, &RegionTable::default())?, size))
            });
            let peak = ALLOCATOR.peak_usage() - before;
            let growth = peak as f64 / message.len() as f64;
            println!("{what}, {frame_size}: {growth:.2}");
            assert!(growth <= MAX_GROWTH as f64, "{what}: {growth:.2}");
            match outcome {
                Ok((request, size)) => {
                    assert!(!is_refused, "{what} was taken");
                    drop(request);
                    assert!(peak <= 2 * message.len() + size, "{what}: {peak} for {size}");
                }
                Err(error) => {
                    assert!(is_refused, "{what}: {:.1000}", error.message());
                    assert_eq!(error.code(), Code::InvalidArg, "{what}");
                    assert!(error.message().len() < 1000, "{what}");
                }
            }
            assert!(ALLOCATOR.current_usage() < before + (64 << 10), "{what}: something stayed");
        }
    }
}

/// Requests of honest clients grow too when decoded, but stay small.
#[test]
fn a_large_mask_of_small_numbers_is_accepted() {
    let mask = typed(b"INT64", 3, &[1; 1 << 20]);
    let message = RequestMessage::read(pieces(&mask, 16 << 10)).expect("is read");
    assert!(message.decoded_size() >= 8 << 20);
    let (request, _) = decode(message, &config(), &RegionTable::default()).expect("is taken");
    assert_eq!(request.inputs[0].data.len(), 8 << 20);
}
