//! Manuals, made from the tables: a page for `man`, and a page of the documentation.

mod markdown;
mod page;

pub use self::{markdown::markdown, page::man_page};
