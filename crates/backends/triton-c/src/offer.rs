//! The functions that libraries are offered.

/// The address of a function, for the table of a library.
#[derive(Clone, Copy, Debug)]
pub struct Address(pub *const ());

// SAFETY: the address of code, which never changes.
unsafe impl Send for Address {}
// SAFETY: as above.
unsafe impl Sync for Address {}

/// One function of the C interface.
#[derive(Clone, Copy, Debug)]
pub struct Function {
    /// The name, for example `TRITONSERVER_ErrorNew`.
    pub name: &'static str,
    /// The code that libraries call.
    pub address: Address,
    /// False if it only answers that it is not supported.
    pub is_supported: bool,
}

/// Functions that libraries find by their names, once the offer was made to the loader.
#[derive(Debug)]
pub struct Offer {
    /// The name of the stand-in library that has them. Each offer has another name.
    pub name: &'static str,
    /// The functions.
    pub functions: &'static [Function],
}

impl Offer {
    /// Returns true if it has a function of this name.
    pub fn has(&self, name: &str) -> bool {
        self.functions.iter().any(|function| function.name == name)
    }
}

/// Declares the functions of an [`Offer`]: the names of the C interface with the code for each, and the names of those that
/// only answer that they are not supported.
#[macro_export]
macro_rules! functions_offered {
    (
        $(#[$doc:meta])* $vis:vis static $functions:ident;
        done { $($name:literal = $code:expr;)* }
        unsupported { $($missing:literal)* }
    ) => {
        $(#[$doc])*
        $vis static $functions: &[$crate::Function] = &[
            $($crate::Function {
                name: $name,
                address: $crate::Address($code as *const ()),
                is_supported: true,
            },)*
            $($crate::Function {
                name: $missing,
                address: $crate::Address({
                    extern "C" fn refuse() -> *mut $crate::abi::Error {
                        $crate::objects::errors::refuse($missing)
                    }
                    refuse as *const ()
                }),
                is_supported: false,
            },)*
        ];
    };
}
