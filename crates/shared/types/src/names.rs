//! Names of the variants of an enum.

/// Gives an enum without data the list `ALL` of its variants, and a function that returns the name of each.
///
/// ```
/// #[derive(Clone, Copy, Debug, PartialEq, Eq)]
/// enum Side {
///     Left,
///     Right,
/// }
///
/// galatea_types::names! { pub Side::name { Left = "left", Right = "right" } }
///
/// assert_eq!(Side::ALL.map(Side::name), ["left", "right"]);
/// ```
#[macro_export]
macro_rules! names {
    ($(#[$doc:meta])* $vis:vis $type:ident::$name:ident { $($variant:ident = $text:literal),* $(,)? }) => {
        impl $type {
            /// All variants, in the order of their declaration.
            $vis const ALL: [Self; [$($text),*].len()] = [$(Self::$variant),*];

            /// Returns its name.
            ///
            $(#[$doc])*
            $vis fn $name(self) -> &'static str {
                match self {
                    $(Self::$variant => $text,)*
                }
            }
        }
    };
}
