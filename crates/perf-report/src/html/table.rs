//! Tables: names at the left, numbers at the right of their column.

use super::markup::Markup;

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
    /// Said, not shown.
    pub note: &'static str,
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
    if rows == 0 {
        return;
    }
    let draw = |html: &mut Markup| {
        html.leaf("summary", &[], "Numbers");
        tables.iter().filter(|table| !table.rows.is_empty()).for_each(|table| table.draw(html));
    };
    if rows <= SMALL {
        html.element("details", &[("open", &"open")], draw);
    } else {
        html.element("details", &[], draw);
    }
    html.line();
}
