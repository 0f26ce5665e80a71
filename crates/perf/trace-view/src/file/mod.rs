//! Trace files: an array of small objects, which may be cut off or have broken objects in it.

pub(crate) mod names;
pub(crate) mod object;
pub(crate) mod problem;
mod window;

use std::io::{self, Read};

use self::{
    object::TraceObject,
    problem::{Problem, Problems},
    window::{ObjectFault, Window},
};

/// Bytes that are read at once.
const CHUNK: usize = 1 << 20;
const CUT: &str = "the file ends within it";
const NOT_CLOSED: &str =
    "the file has no ']' at its end: it was cut off, or its server still writes it";

/// Reads the objects of a file one after another. Broken ones are added to `problems`.
///
/// A server that does not escape the bytes of tensors writes objects that are no JSON. The reader notices that at the latest in the
/// first key of the next object, and continues there.
pub(crate) fn read_objects(
    file: &str,
    reader: impl Read,
    problems: &mut Problems,
    take: impl FnMut(TraceObject<'_>),
) -> io::Result<()> {
    read_window(file, Window::new(reader, CHUNK), problems, take)
}

fn read_window(
    file: &str,
    mut window: Window<impl Read>,
    problems: &mut Problems,
    mut take: impl FnMut(TraceObject<'_>),
) -> io::Result<()> {
    let mut number = 0;
    while let Some(byte) = window.next_byte()? {
        number += 1;
        let offset = window.offset();
        let mut report = |text: &str| {
            let (file, text) = (file.to_owned(), text.to_owned());
            problems.push(Problem { file, object: Some(number), byte: offset, text });
        };
        if byte != b'{' {
            report("it is no object");
            window.skip_to_object(window.after_next_byte())?;
            continue;
        }
        match window.object(&mut take)? {
            Ok(()) => {}
            Err(ObjectFault::Broken { text, next }) => {
                report(&text);
                window.skip_to_object(next)?;
            }
            Err(ObjectFault::Cut) => {
                report(CUT);
                window.skip_all();
                return Ok(());
            }
        }
    }
    if !window.is_closed() && number > 0 {
        let (file, text) = (file.to_owned(), NOT_CLOSED.to_owned());
        problems.push(Problem { file, object: None, byte: window.offset(), text });
    }
    Ok(())
}

#[cfg(test)]
mod tests;
