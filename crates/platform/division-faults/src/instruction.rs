//! The division instructions of x86-64. Of a faulting one the handler needs the length, the width, and the place of its
//! divisor.
//!
//! Intel's manual, volume 2: `F6` and `F7` with 6 (`div`) or 7 (`idiv`) in the middle of the byte behind them. No other
//! instruction of 64-bit code raises this exception.

/// A `div` or `idiv` instruction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Division {
    /// Bytes of the instruction.
    pub length: u8,
    /// Bytes of divisor, quotient and remainder: 1, 2, 4 or 8.
    pub width: u8,
    pub divisor: Operand,
}

/// The place of the divisor. Registers have the numbers of the encoding.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operand {
    Register(u8),
    /// Bits 8 to 15 of a register.
    HighByte(u8),
    Memory(Address),
}

/// An address as the sum of its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Address {
    pub base: Base,
    /// A register, and the number of bits by which it is shifted.
    pub index: Option<(u8, u8)>,
    pub displacement: i32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Base {
    None,
    Register(u8),
    /// The address behind the instruction.
    Next,
}

/// The prefixes of an instruction.
#[derive(Clone, Copy, Default)]
struct Prefixes {
    is_16_bit: bool,
    rex: Option<u8>,
}

const REX_WIDE: u8 = 8;
const REX_INDEX: u8 = 2;
const REX_BASE: u8 = 1;

impl Prefixes {
    /// Returns the fourth bit of a register's number, which is set by `bit` of the REX prefix.
    fn extension(self, bit: u8) -> u8 {
        if self.rex.is_some_and(|rex| rex & bit != 0) { 8 } else { 0 }
    }

    fn width(self, opcode: u8) -> u8 {
        match opcode {
            0xF6 => 1,
            _ if self.extension(REX_WIDE) != 0 => 8,
            _ if self.is_16_bit => 2,
            _ => 4,
        }
    }
}

/// Reads bytes one by one: memory behind the instruction may not be readable.
struct Reader<F> {
    byte: F,
    at: u8,
}

impl<F: FnMut(usize) -> u8> Reader<F> {
    fn next(&mut self) -> u8 {
        let byte = (self.byte)(usize::from(self.at));
        self.at += 1;
        byte
    }

    fn displacement(&mut self, size: u8) -> i32 {
        match size {
            0 => 0,
            1 => i32::from(self.next().cast_signed()),
            _ => i32::from_le_bytes([self.next(), self.next(), self.next(), self.next()]),
        }
    }
}

/// Decodes the instruction whose bytes `byte` gives. Returns `None` for other instructions, and for forms that compilers do
/// not write (other segments, 32-bit addresses).
pub(crate) fn decode(byte: impl FnMut(usize) -> u8) -> Option<Division> {
    let mut reader = Reader { byte, at: 0 };
    let mut prefixes = Prefixes::default();
    let opcode = loop {
        match reader.next() {
            0x66 if !prefixes.is_16_bit => prefixes.is_16_bit = true,
            rex @ 0x40..=0x4F => {
                prefixes.rex = Some(rex);
                break reader.next();
            }
            other => break other,
        }
    };
    let modrm = reader.next();
    if !matches!(opcode, 0xF6 | 0xF7) || !matches!(modrm >> 3 & 7, 6 | 7) {
        return None;
    }
    let width = prefixes.width(opcode);
    let divisor = match modrm >> 6 {
        3 => register(modrm & 7, width, prefixes),
        mode => Operand::Memory(address(&mut reader, mode, modrm & 7, prefixes)),
    };
    Some(Division { length: reader.at, width, divisor })
}

/// Returns a register. Without a REX prefix the numbers 4 to 7 are the second bytes of the first four registers.
fn register(number: u8, width: u8, prefixes: Prefixes) -> Operand {
    if width == 1 && prefixes.rex.is_none() && number >= 4 {
        return Operand::HighByte(number - 4);
    }
    Operand::Register(number | prefixes.extension(REX_BASE))
}

/// Decodes an address. `mode`: length of the displacement. With number 5 and no displacement the base is a different one.
fn address(
    reader: &mut Reader<impl FnMut(usize) -> u8>,
    mode: u8,
    number: u8,
    prefixes: Prefixes,
) -> Address {
    let (base, index) = match number {
        4 => scaled(reader.next(), mode, prefixes),
        5 if mode == 0 => (Base::Next, None),
        _ => (Base::Register(number | prefixes.extension(REX_BASE)), None),
    };
    let has_long = mode == 2 || (mode == 0 && !matches!(base, Base::Register(_)));
    let displacement = reader.displacement(if has_long { 4 } else { mode });
    Address { base, index, displacement }
}

/// Decodes the byte with scale, index and base.
fn scaled(sib: u8, mode: u8, prefixes: Prefixes) -> (Base, Option<(u8, u8)>) {
    let index = sib >> 3 & 7 | prefixes.extension(REX_INDEX);
    // The stack pointer cannot be an index.
    let index = (index != 4).then_some((index, sib >> 6));
    let base = match sib & 7 {
        5 if mode == 0 => Base::None,
        number => Base::Register(number | prefixes.extension(REX_BASE)),
    };
    (base, index)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decoded(bytes: &[u8]) -> Option<Division> {
        // Reading past the instruction panics.
        decode(|at| bytes[at])
    }

    fn memory(base: Base, index: Option<(u8, u8)>, displacement: i32) -> Operand {
        Operand::Memory(Address { base, index, displacement })
    }

    #[test]
    fn divisions_of_every_form_are_decoded() {
        use Base::{Next, None as NoBase, Register as Reg};
        for (text, bytes, width, divisor) in [
            ("idiv ecx", &[0xF7, 0xF9][..], 4, Operand::Register(1)),
            ("div rsi", &[0x48, 0xF7, 0xF6], 8, Operand::Register(6)),
            ("idiv r9d", &[0x41, 0xF7, 0xF9], 4, Operand::Register(9)),
            ("idiv r15", &[0x49, 0xF7, 0xFF], 8, Operand::Register(15)),
            ("idiv cx", &[0x66, 0xF7, 0xF9], 2, Operand::Register(1)),
            ("idiv r8w", &[0x66, 0x41, 0xF7, 0xF8], 2, Operand::Register(8)),
            ("idiv cl", &[0xF6, 0xF9], 1, Operand::Register(1)),
            ("idiv ch", &[0xF6, 0xFD], 1, Operand::HighByte(1)),
            ("idiv sil", &[0x40, 0xF6, 0xFE], 1, Operand::Register(6)),
            ("idiv dword ptr [rbx]", &[0xF7, 0x3B], 4, memory(Reg(3), None, 0)),
            ("idiv qword ptr [rbp-8]", &[0x48, 0xF7, 0x7D, 0xF8], 8, memory(Reg(5), None, -8)),
            ("div dword ptr [r12]", &[0x41, 0xF7, 0x34, 0x24], 4, memory(Reg(12), None, 0)),
            (
                "idiv dword ptr [rsi+rcx*4+16]",
                &[0xF7, 0x7C, 0x8E, 0x10],
                4,
                memory(Reg(6), Some((1, 2)), 16),
            ),
            (
                "idiv qword ptr [r10+r13*8+0x1000]",
                &[0x4B, 0xF7, 0xBC, 0xEA, 0, 0x10, 0, 0],
                8,
                memory(Reg(10), Some((13, 3)), 0x1000),
            ),
            (
                "idiv dword ptr [rax*4+0x1000]",
                &[0xF7, 0x3C, 0x85, 0, 0x10, 0, 0],
                4,
                memory(NoBase, Some((0, 2)), 0x1000),
            ),
            (
                "idiv dword ptr [rip-4]",
                &[0xF7, 0x3D, 0xFC, 255, 255, 255],
                4,
                memory(Next, None, -4),
            ),
        ] {
            let length = bytes.len() as u8;
            assert_eq!(decoded(bytes), Some(Division { length, width, divisor }), "{text}");
        }
    }

    #[test]
    fn other_instructions_are_ignored() {
        for (text, bytes) in [
            ("imul ecx", &[0xF7, 0xE9][..]),
            ("not ecx", &[0xF7, 0xD1]),
            ("add ecx, ecx", &[0x01, 0xC9]),
            ("int3", &[0xCC, 0x90]),
            ("idiv dword ptr fs:[rbx]", &[0x64, 0xF7, 0x3B]),
            ("two prefixes of the same kind", &[0x66, 0x66, 0xF7, 0xF9]),
        ] {
            assert_eq!(decoded(bytes), None, "{text}");
        }
    }
}
