//! Tables: names at the left, numbers at the right of their column.

use super::markup::{Attribute, Markup};

pub struct Table {
    pub caption: String,
    pub head: Vec<String>,
    pub rows: Vec<Row>,
}

#[derive(Default)]
pub struct Row {
    /// Gives the row's look, see the style sheet.
    pub class: &'static str,
    pub cells: Vec<Cell>,
}

#[derive(Default)]
pub struct Cell {
    pub text: String,
    pub class: &'static str,
    /// For screen readers only.
    pub note: &'static str,
    /// In small print under the text.
    pub below: String,
}

impl From<String> for Cell {
    fn from(text: String) -> Self {
        Self { text, ..Self::default() }
    }
}

impl From<&str> for Cell {
    fn from(text: &str) -> Self {
        text.to_string().into()
    }
}

impl Table {
    /// Leaves out a column that is empty.
    pub fn without(mut self, head: &str, is_empty: bool) -> Self {
        if let Some(i) = self.head.iter().position(|name| is_empty && name == head) {
            self.head.remove(i);
            for row in self.rows.iter_mut().filter(|row| i < row.cells.len()) {
                row.cells.remove(i);
            }
        }
        self
    }

    /// In a box that scrolls by itself.
    pub fn draw(&self, html: &mut Markup) {
        html.element(
            "div",
            &[
                ("class", &"scroll"),
                ("tabindex", &"0"),
                ("role", &"group"),
                ("aria-label", &self.caption),
            ],
            |html| {
                html.element("table", &[], |html| {
                    html.leaf("caption", &[], &self.caption);
                    self.draw_head(html);
                    html.element("tbody", &[], |html| {
                        self.rows.iter().for_each(|row| row.draw(html));
                    });
                });
            },
        );
        html.line();
    }

    fn draw_head(&self, html: &mut Markup) {
        html.element("thead", &[], |html| {
            html.element("tr", &[], |html| {
                for head in &self.head {
                    html.leaf("th", &[("scope", &"col")], head);
                }
            });
        });
    }
}

impl Row {
    fn draw(&self, html: &mut Markup) {
        html.element("tr", &[("class", &self.class)], |html| {
            let mut cells = self.cells.iter();
            if let Some(name) = cells.next() {
                html.leaf("th", &[("scope", &"row"), ("class", &name.class)], &name.text);
            }
            for cell in cells {
                html.element("td", &[("class", &cell.class)], |html| {
                    html.text(&cell.text);
                    if !cell.below.is_empty() {
                        html.leaf("small", &[], &cell.below);
                    }
                    if !cell.note.is_empty() {
                        html.leaf("span", &[("class", &"said")], format_args!(" {}", cell.note));
                    }
                });
            }
        });
    }
}

/// Tables under their chart; shown at once where they are small.
pub fn numbers(html: &mut Markup, tables: &[Table]) {
    const SMALL: usize = 8;
    let rows: usize = tables.iter().map(|table| table.rows.len()).sum();
    fold(html, "Numbers", tables, rows <= SMALL);
}

/// Tables that are shown when requested.
pub fn folded(html: &mut Markup, name: &str, tables: &[Table]) {
    fold(html, name, tables, false);
}

fn fold(html: &mut Markup, name: &str, tables: &[Table], is_open: bool) {
    let tables: Vec<&Table> = tables.iter().filter(|table| !table.rows.is_empty()).collect();
    if tables.is_empty() {
        return;
    }
    let open: &[Attribute<'_>] = if is_open { &[("open", &"open")] } else { &[] };
    html.element("details", open, |html| {
        html.leaf("summary", &[], name);
        tables.iter().for_each(|table| table.draw(html));
    });
    html.line();
}
