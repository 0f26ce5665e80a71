//! Scripts by which shells complete command lines, made from the tables.

mod bash;
mod fish;
mod zsh;

use crate::outline::CommandOutline;

/// A shell that a script can be made for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shell {
    /// GNU bash, 4 or later.
    Bash,
    /// The Z shell.
    Zsh,
    /// fish, 3 or later.
    Fish,
}

impl Shell {
    /// The names of all of them.
    pub const NAMES: &'static [&'static str] = &["bash", "zsh", "fish"];

    /// The shell of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "bash" => Some(Self::Bash),
            "zsh" => Some(Self::Zsh),
            "fish" => Some(Self::Fish),
            _ => None,
        }
    }

    /// The script that completes all these commands: programs, what is below them, their options and values.
    pub fn completion(self, commands: &[CommandOutline]) -> String {
        match self {
            Self::Bash => bash::script(commands),
            Self::Zsh => zsh::script(commands),
            Self::Fish => fish::script(commands),
        }
    }
}

/// In single quotes, as every one of these shells reads them when no quote stands within.
fn quoted(text: &str) -> String {
    format!("'{}'", text.replace(['\'', '\\'], ""))
}

#[cfg(test)]
mod tests;
