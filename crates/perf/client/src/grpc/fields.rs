//! The fields of an encoded protobuf message, without building it.

/// One field: its number, and its value if that has a length or is a varint.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Field<'a> {
    Varint(u32, u64),
    Bytes(u32, &'a [u8]),
    /// A value of fixed size; none is needed here.
    Fixed(u32),
}

/// Yields the fields in order; `Err` once, where the bytes are not a message.
pub(super) struct Fields<'a>(pub(super) &'a [u8]);

/// The bytes are not a protobuf message.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct NoMessage;

impl<'a> Iterator for Fields<'a> {
    type Item = Result<Field<'a>, NoMessage>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let field = self.field().ok_or(NoMessage);
        if field.is_err() {
            self.0 = &[];
        }
        Some(field)
    }
}

impl<'a> Fields<'a> {
    fn field(&mut self) -> Option<Field<'a>> {
        let key = self.varint()?;
        let number = u32::try_from(key >> 3).ok()?;
        Some(match key & 7 {
            0 => Field::Varint(number, self.varint()?),
            1 => self.fixed(number, 8)?,
            2 => {
                let length = usize::try_from(self.varint()?).ok()?;
                Field::Bytes(number, self.take(length)?)
            }
            5 => self.fixed(number, 4)?,
            _ => return None,
        })
    }

    fn fixed(&mut self, number: u32, length: usize) -> Option<Field<'a>> {
        self.take(length).map(|_| Field::Fixed(number))
    }

    fn varint(&mut self) -> Option<u64> {
        let mut value = 0;
        for shift in (0..64).step_by(7) {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            value |= u64::from(byte & 127) << shift;
            if byte < 128 {
                return Some(value);
            }
        }
        None
    }

    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_wire_type_is_skipped() {
        let message = [
            0x08, 0x96, 0x01, // 1: 150
            0x11, 0, 0, 0, 0, 0, 0, 0, 0, // 2: fixed64
            0x1a, 2, b'h', b'i', // 3: "hi"
            0x25, 0, 0, 0, 0, // 4: fixed32
        ];
        let fields: Vec<_> = Fields(&message).collect::<Result<_, _>>().unwrap();
        let expected =
            [Field::Varint(1, 150), Field::Fixed(2), Field::Bytes(3, b"hi"), Field::Fixed(4)];
        assert_eq!(fields, expected);
    }

    #[test]
    fn truncated_fields_are_an_error() {
        for message in [&[0x08][..], &[0x1a, 3, 1], &[0x0b], &[0xff; 12], &[0x11, 0]] {
            let last = Fields(message).last();
            assert_eq!(last, Some(Err(NoMessage)), "{message:?}");
        }
    }
}
