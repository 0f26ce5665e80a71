//! The rotation and mirroring of a picture, from its Exif data.

/// The source of a pixel: mirrored columns and rows are counted from the other end, and then columns and rows may swap.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Orientation {
    pub mirrors_x: bool,
    pub mirrors_y: bool,
    pub swaps_sides: bool,
}

/// The Exif entry of the orientation, one whole number of 16 bits.
const TAG: u16 = 0x112;
const SHORT: u16 = 3;
const ENTRY: usize = 12;

impl Orientation {
    /// Returns the orientation of a number in Exif data; unknown numbers change nothing.
    pub fn numbered(number: u16) -> Self {
        let (mirrors_x, mirrors_y, swaps_sides) = match number {
            2 => (true, false, false),
            3 => (true, true, false),
            4 => (false, true, false),
            5 => (false, false, true),
            6 => (true, false, true),
            7 => (true, true, true),
            8 => (false, true, true),
            _ => (false, false, false),
        };
        Self { mirrors_x, mirrors_y, swaps_sides }
    }

    /// Reads the orientation in Exif data.
    pub fn of_exif(data: &[u8]) -> Self {
        Self::numbered(number(data).unwrap_or_default())
    }
}

fn number(data: &[u8]) -> Option<u16> {
    let is_big = match data.get(..4)? {
        [0x4d, 0x4d, 0, 42] => true,
        [0x49, 0x49, 42, 0] => false,
        _ => return None,
    };
    let bytes = |at: usize| data.get(at..)?.first_chunk().copied();
    let short = |at| bytes(at).map(if is_big { u16::from_be_bytes } else { u16::from_le_bytes });
    let long = |at: usize| {
        let bytes = data.get(at..)?.first_chunk().copied()?;
        Some(if is_big { u32::from_be_bytes(bytes) } else { u32::from_le_bytes(bytes) })
    };
    let start = long(4)? as usize;
    let count = usize::from(short(start)?);
    let mut entries = (0..count).map(|index| start + 2 + index * ENTRY);
    let is_it =
        |&at: &usize| (short(at), short(at + 2), long(at + 4)) == (Some(TAG), Some(SHORT), Some(1));
    short(entries.find(is_it)? + 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orientation_is_read_in_both_byte_orders() {
        let little = [
            &b"II\x2a\0\x08\0\0\0\x02\0"[..],
            b"\x0f\x01\x02\0\x04\0\0\0abc\0",
            b"\x12\x01\x03\0\x01\0\0\0\x06\0\0\0",
        ];
        let big = [&b"MM\0\x2a\0\0\0\x08\0\x01"[..], b"\x01\x12\0\x03\0\0\0\x01\0\x08\0\0"];
        assert_eq!(Orientation::of_exif(&little.concat()), Orientation::numbered(6));
        assert_eq!(Orientation::of_exif(&big.concat()), Orientation::numbered(8));
        for data in [&little.concat()[..], &big.concat()] {
            for length in 0..data.len() - 4 {
                assert_eq!(Orientation::of_exif(&data[..length]), Orientation::default());
            }
        }
        assert_eq!(Orientation::of_exif(b"II\x2a\0\xff\xff\xff\xff"), Orientation::default());
    }
}
