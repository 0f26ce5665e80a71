//! The handler of SIGFPE: gives a failed division a result, and continues after it.

use std::{
    mem, ptr,
    sync::{Once, OnceLock},
};

use libc::{c_int, c_void, greg_t, siginfo_t, ucontext_t};

use crate::{
    instruction::{Address, Base, Division, Operand, decode},
    owner::note_fault,
};

/// The previous handler of the signal.
static BEFORE: OnceLock<libc::sigaction> = OnceLock::new();

/// `si_code` of an integer division; floating-point exceptions have others.
const FPE_INTDIV: c_int = 1;
const FPE_INTOVF: c_int = 2;

pub(crate) fn install() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        // SAFETY: all zeroes are a valid `sigaction`, and all pointers are valid for the calls. The handler does
        // only what a handler may.
        unsafe {
            let mut before: libc::sigaction = mem::zeroed();
            libc::sigaction(libc::SIGFPE, ptr::null(), &mut before);
            // Before the handler can be called.
            let _ = BEFORE.set(before);
            let mut action: libc::sigaction = mem::zeroed();
            action.sa_sigaction = handle as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK | libc::SA_RESTART;
            libc::sigaction(libc::SIGFPE, &action, ptr::null_mut());
        }
    });
}

extern "C" fn handle(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    // SAFETY: the system passes both to a handler with SA_SIGINFO, for as long as it runs.
    let is_repaired = unsafe {
        let is_division = matches!((*info).si_code, FPE_INTDIV | FPE_INTOVF);
        let registers = &mut (*context.cast::<ucontext_t>()).uc_mcontext.gregs;
        is_division && repair(registers)
    };
    if !is_repaired {
        hand_on(signal, info, context);
    }
}

/// Numbers of the saved registers, in the order of the encoding.
const REGISTERS: [c_int; 16] = [
    libc::REG_RAX,
    libc::REG_RCX,
    libc::REG_RDX,
    libc::REG_RBX,
    libc::REG_RSP,
    libc::REG_RBP,
    libc::REG_RSI,
    libc::REG_RDI,
    libc::REG_R8,
    libc::REG_R9,
    libc::REG_R10,
    libc::REG_R11,
    libc::REG_R12,
    libc::REG_R13,
    libc::REG_R14,
    libc::REG_R15,
];
const RAX: u8 = 0;
const RDX: u8 = 2;

type SavedHandler = [greg_t; 23];

/// Repairs a division. Returns false if the instruction is not a division, or its fault belongs to no run.
///
/// # Safety
/// The registers must be those of a thread that a division has just interrupted.
unsafe fn repair(registers: &mut SavedHandler) -> bool {
    let at = registers[libc::REG_RIP as usize] as *const u8;
    // SAFETY: the processor has read these bytes; no more of them are asked for than the instruction has.
    let Some(division) = decode(|offset| unsafe { at.add(offset).read() }) else { return false };
    if !note_fault() {
        return false;
    }
    // SAFETY: the processor has read the divisor from there.
    let divisor = unsafe { divisor(registers, &division) };
    let low = value(registers, RAX) & mask(division.width);
    // The results of AArch64: by zero, the result is zero and the remainder the dividend; the smallest number by -1 is
    // itself.
    let (quotient, remainder) = if divisor == 0 { (0, low) } else { (low, 0) };
    store(registers, division.width, quotient, remainder);
    registers[libc::REG_RIP as usize] += greg_t::from(division.length);
    true
}

fn value(registers: &SavedHandler, number: u8) -> u64 {
    registers[REGISTERS[usize::from(number)] as usize].cast_unsigned()
}

fn mask(width: u8) -> u64 {
    u64::MAX >> (64 - 8 * u32::from(width))
}

/// # Safety
/// An operand in memory must be readable.
unsafe fn divisor(registers: &SavedHandler, division: &Division) -> u64 {
    let Division { width, divisor, length } = *division;
    match divisor {
        Operand::Register(number) => value(registers, number) & mask(width),
        Operand::HighByte(number) => value(registers, number) >> 8 & 0xFF,
        Operand::Memory(address) => {
            let at = place(registers, address, length);
            // SAFETY: as the caller says; divisors need not be aligned.
            unsafe {
                match width {
                    1 => u64::from((at as *const u8).read()),
                    2 => u64::from((at as *const u16).read_unaligned()),
                    4 => u64::from((at as *const u32).read_unaligned()),
                    _ => (at as *const u64).read_unaligned(),
                }
            }
        }
    }
}

fn place(registers: &SavedHandler, address: Address, length: u8) -> u64 {
    let base = match address.base {
        Base::None => 0,
        Base::Register(number) => value(registers, number),
        Base::Next => registers[libc::REG_RIP as usize].cast_unsigned() + u64::from(length),
    };
    let index = address.index.map_or(0, |(number, shift)| value(registers, number) << shift);
    base.wrapping_add(index).wrapping_add_signed(i64::from(address.displacement))
}

/// Stores the results as the instruction does: both in RAX if they are bytes. A result of 32 bits clears the upper half of
/// its register.
fn store(registers: &mut SavedHandler, width: u8, quotient: u64, remainder: u64) {
    let mut set = |number: u8, bits: u64, kept: u64| {
        let register = &mut registers[REGISTERS[usize::from(number)] as usize];
        *register = (register.cast_unsigned() & kept | bits).cast_signed();
    };
    match width {
        1 => set(RAX, quotient | remainder << 8, !0xFFFF),
        2 => {
            set(RAX, quotient, !0xFFFF);
            set(RDX, remainder, !0xFFFF);
        }
        _ => {
            set(RAX, quotient, 0);
            set(RDX, remainder, 0);
        }
    }
}

/// Passes the signal to its previous handler. Without one the process ends as before: the instruction is executed again,
/// without a handler.
fn hand_on(signal: c_int, info: *mut siginfo_t, context: *mut c_void) {
    let before = BEFORE.get();
    let handler = before.map_or(libc::SIG_DFL, |before| before.sa_sigaction);
    // SAFETY: the address is one that the system was given as a handler of this kind.
    unsafe {
        match handler {
            libc::SIG_DFL | libc::SIG_IGN => {
                libc::signal(signal, libc::SIG_DFL);
                // If a process sent the signal, no instruction is executed again.
                if (*info).si_code <= 0 {
                    libc::raise(signal);
                }
            }
            address if before.is_some_and(|b| b.sa_flags & libc::SA_SIGINFO != 0) => {
                type Handler = extern "C" fn(c_int, *mut siginfo_t, *mut c_void);
                mem::transmute::<usize, Handler>(address)(signal, info, context);
            }
            address => mem::transmute::<usize, extern "C" fn(c_int)>(address)(signal),
        }
    }
}
