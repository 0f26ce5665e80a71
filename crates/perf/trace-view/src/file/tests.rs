//! Files that are whole, cut off, or broken in the middle.

use proptest::{collection::vec, prelude::*, sample::Index};

use super::*;

/// The numbers of the objects in a file, and its faults.
struct Outline {
    ids: Vec<u64>,
    problems: Problems,
}

fn outline(bytes: &[u8]) -> Outline {
    outline_in_chunks(bytes, CHUNK)
}

fn outline_in_chunks(bytes: &[u8], chunk: usize) -> Outline {
    let mut outline = Outline { ids: Vec::new(), problems: Problems::default() };
    let window = Window::new(bytes, chunk);
    read_window("t.json", window, &mut outline.problems, |object| outline.ids.push(object.id))
        .expect("the bytes are in memory");
    outline
}

fn faults(bytes: &[u8]) -> Vec<String> {
    let outline = outline(bytes);
    outline.problems.first.iter().map(ToString::to_string).collect()
}

#[test]
fn a_whole_file_has_no_faults() {
    let bytes = include_bytes!("../../testdata/kinds.json");
    let outline = outline(bytes);
    assert_eq!(outline.problems.first, []);
    assert_eq!(outline.ids.len(), bytes.windows(6).filter(|text| text == b"{\"id\":").count());
    assert!(faults(b"[]").is_empty() && faults(b"").is_empty());
    assert!(faults(b" [ { \"id\" : 1 } , {\"id\":2} ]\n[{\"id\":3}]\n").is_empty());
}

#[test]
fn unescaped_tensors_are_named_and_passed() {
    let bytes = include_bytes!("../../testdata/unescaped.json");
    let outline = outline(bytes);
    // Each of three requests has 13 objects. Bytes that are no UTF-8 alone break nothing.
    let count = |id| outline.ids.iter().filter(|&&known| known == id).count();
    assert_eq!([1, 2, 3].map(count), [13, 14, 13]);
    let objects: Vec<_> = outline.problems.first.iter().map(|problem| problem.object).collect();
    assert_eq!(objects, [Some(14), Some(28), Some(29), Some(30)]);
    let first = outline.problems.first[0].to_string();
    assert_eq!(
        first,
        "t.json: object 14 (at byte 885): it is not valid JSON: control character \
         (\\u0000-\\u001F) found while parsing a string"
    );
}

#[test]
fn a_cut_file_shows_what_it_has() {
    let bytes = include_bytes!("../../testdata/cut.json");
    let outline = outline(bytes);
    assert_eq!(outline.ids.len(), 25);
    let text = outline.problems.first[0].to_string();
    assert!(text.ends_with("object 26 (at byte 1701): the file ends within it"), "{text}");
    let open = faults(b"[{\"id\":1},{\"id\":2}");
    assert_eq!(open, [format!("t.json: {NOT_CLOSED}")]);
}

#[test]
fn other_json_is_told_from_traces() {
    assert!(faults(b"{\"a\":1}")[0].contains("it is no object of a trace: missing field `id`"));
    assert!(faults(b"hello")[0].contains("object 1 (at byte 0): it is no object"));
    assert!(faults(b"[1,2,{\"id\":3}]")[0].contains("it is no object"));
    assert!(faults(b"[{\"id\":\"x\"},{\"id\":3}]")[0].contains("invalid type"));
}

#[test]
fn an_object_that_lost_its_end_hides_no_other() {
    for cut in [
        "{\"id\":1,\"timestamps\":[",
        "{\"id\":1,\"timestamps\":[{\"name\":\"REQUEST_START\",\"n",
        "{\"id\":1,\"model_name\":\"mo",
        "{\"id\":1",
        "{\"i",
        "{",
        "{\"id\":1,\"tensor\":{\"data\":\"\\",
    ] {
        let text = format!("[{cut},{{\"id\":2}},{{\"id\":3,\"timestamps\":[]}}]");
        let outline = outline(text.as_bytes());
        assert_eq!((&outline.ids[..], outline.problems.count), (&[2, 3][..], 1), "{cut}");
    }
}

#[test]
fn faults_are_counted_beyond_those_that_are_kept() {
    let outline = outline("[{\"id\":-1},{\"id\":2}".repeat(500).as_bytes());
    assert_eq!((outline.ids.len(), outline.problems.first.len()), (500, 100));
    assert_eq!(outline.problems.count, 501);
}

#[test]
fn large_objects_and_long_files_are_read_in_pieces() {
    let data = "x".repeat(3 << 20);
    let large = format!("{{\"id\":7,\"tensor\":{{\"data\":\"{data}\"}}}}");
    let small = "{\"id\":8,\"timestamps\":[{\"name\":\"QUEUE_START\",\"ns\":5}]},".repeat(40_000);
    let broken = "{\"id\":9,\"tensor\":{\"data\":\"a\"b\"}},";
    let text = format!("[{small}{large},{broken}{small}{large}]");
    let outline = outline(text.as_bytes());
    assert_eq!((outline.ids.len(), outline.problems.count), (80_002, 1));
}

/// Bytes that break an object in every way that unescaped tensors do.
fn hostile_bytes() -> impl Strategy<Value = Vec<u8>> {
    vec(
        prop_oneof![Just(b'"'), Just(b'\\'), Just(b'{'), Just(b'}'), Just(b','), any::<u8>()],
        0..24,
    )
}

proptest! {
    #[test]
    fn unescaped_data_costs_only_its_own_object(data in vec(hostile_bytes(), 1..6)) {
        let mut bytes = b"[".to_vec();
        for (number, data) in data.iter().enumerate() {
            bytes.extend(format!("{{\"id\":{number}}},{{\"id\":77,\"tensor\":{{\"data\":\"").bytes());
            bytes.extend(data);
            bytes.extend(b"\",\"shape\":\"1\"}},");
        }
        bytes.extend(b"{\"id\":99}]");
        let outline = outline(&bytes);
        let others: Vec<u64> = outline.ids.iter().copied().filter(|&id| id != 77).collect();
        let wanted: Vec<u64> = (0..data.len() as u64).chain([99]).collect();
        prop_assert_eq!(others, wanted);
        let tensors = outline.ids.len() - data.len() - 1;
        prop_assert!(tensors + outline.problems.count as usize >= data.len());
    }

    #[test]
    fn any_bytes_are_read_alike_in_any_pieces(
        changes in vec((any::<Index>(), any::<u8>()), 0..8),
        length in any::<Index>(),
        chunk in 1..200_usize,
    ) {
        let mut bytes = include_bytes!("../../testdata/unescaped.json").to_vec();
        for (place, byte) in changes {
            let place = place.index(bytes.len());
            bytes[place] = byte;
        }
        bytes.truncate(length.index(bytes.len()));
        let (whole, pieces) = (outline(&bytes), outline_in_chunks(&bytes, chunk));
        prop_assert_eq!(whole.ids, pieces.ids);
        prop_assert_eq!(whole.problems.first, pieces.problems.first);
    }
}
