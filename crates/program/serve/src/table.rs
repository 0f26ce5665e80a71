//! Text tables for the log: the models, backends and settings at start.

use std::iter;

/// The table fits without narrowing a column below this width.
const NARROW: usize = 16;

/// A table of text, drawn with `+`, `-` and `|`, as wide as its contents.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Makes a table without rows.
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(str::to_owned).to_vec()] }
    }

    /// Adds a row with one cell per column of the head. A cell of several lines makes the row as high. The frame stays whole and
    /// the other cells of these lines are empty, so that a message cannot look like a row. Control characters are shown by their
    /// numbers: they could move a terminal's cursor.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| visible(cell.trim_end())).to_vec());
    }

    /// Returns a log message with the target [`TABLE`](galatea_telemetry::logger::TABLE), which begins with a line break. If it
    /// is wider than `limit`, its widest columns are narrowed, and their cells get more lines.
    pub fn text(&self, limit: usize) -> String {
        let widths = self.widths(limit);
        let rule: String = widths.iter().map(|&w| format!("+{}", "-".repeat(w + 2))).collect();
        let mut out = format!("\n{rule}+\n");
        for (index, row) in self.rows.iter().enumerate() {
            let cells: Vec<Vec<String>> =
                row.iter().zip(&widths).map(|(cell, &width)| wrapped(cell, width)).collect();
            let height = cells.iter().map(Vec::len).max().unwrap_or_default();
            for line in 0..height.max(1) {
                for (cell, &width) in cells.iter().zip(&widths) {
                    let text = cell.get(line).map_or("", String::as_str);
                    out.push_str(&format!("| {text:<width$} "));
                }
                out.push_str("|\n");
            }
            if index == 0 {
                out.push_str(&format!("{rule}+\n"));
            }
        }
        out.push_str(&format!("{rule}+\n"));
        out
    }

    fn widths(&self, limit: usize) -> Vec<usize> {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max()
        };
        let mut widths: Vec<usize> =
            (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        loop {
            let all = widths.iter().map(|width| width + 3).sum::<usize>() + 1;
            let Some(widest) = widths.iter_mut().max() else { return widths };
            if all <= limit || *widest <= NARROW {
                return widths;
            }
            *widest -= 1;
        }
    }
}

/// Divides a cell into lines of at most `width`, between words where possible.
fn wrapped(cell: &str, width: usize) -> Vec<String> {
    cell.lines().flat_map(|line| pieces(line, width)).map(str::to_owned).collect()
}

fn pieces(line: &str, width: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(line);
    iter::from_fn(move || {
        let line = rest?;
        let Some((end, _)) = line.char_indices().nth(width) else { return rest.take() };
        // A space right after the piece is allowed; it then begins no line.
        let space = line[..=end].rfind(' ').filter(|&space| space > end / 2);
        let (piece, more) = line.split_at(space.unwrap_or(end));
        rest = Some(more.trim_start());
        Some(piece)
    })
}

fn visible(text: &str) -> String {
    let shown = |c: char| match c {
        '\n' => "\n".to_owned(),
        c if c.is_control() => c.escape_unicode().to_string(),
        c => c.to_string(),
    };
    text.chars().map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_rows_is_drawn() {
        let table = Table::new(["Repository Agent", "Path"]);
        assert_eq!(
            table.text(usize::MAX),
            "\n+------------------+------+\n| Repository Agent | Path |\n+------------------+------+\n\
             +------------------+------+\n"
        );
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["Model", "Status"]);
        table.row(["é".to_owned(), "READY".to_owned()]);
        assert_eq!(
            table.text(usize::MAX),
            "\n+-------+--------+\n| Model | Status |\n+-------+--------+\n| é     | READY  |\n\
             +-------+--------+\n"
        );
    }

    #[test]
    fn multi_line_cells_are_shown_within_the_frame() {
        let mut table = Table::new(["Model", "Status"]);
        table.row(["bad".to_owned(), "line 3:\n  | forged | READY\n".to_owned()]);
        table.row([String::new(), String::new()]);
        assert_eq!(
            table.text(usize::MAX),
            concat!(
                "\n",
                "+-------+--------------------+\n",
                "| Model | Status             |\n",
                "+-------+--------------------+\n",
                "| bad   | line 3:            |\n",
                "|       |   | forged | READY |\n",
                "|       |                    |\n",
                "+-------+--------------------+\n",
            )
        );
    }

    #[test]
    fn a_table_fits_its_width_limit() {
        let mut table = Table::new(["Model", "Status"]);
        table.row([
            "a".to_owned(),
            "UNAVAILABLE: é words that go on\tand-on-without-any-space".to_owned(),
        ]);
        assert_eq!(
            table.text(30),
            concat!(
                "\n",
                "+-------+--------------------+\n",
                "| Model | Status             |\n",
                "+-------+--------------------+\n",
                "| a     | UNAVAILABLE: é     |\n",
                "|       | words that go      |\n",
                "|       | on\\u{9}and-on-with |\n",
                "|       | out-any-space      |\n",
                "+-------+--------------------+\n",
            )
        );
        let widest = table.text(0).lines().map(|line| line.chars().count()).max();
        assert_eq!(widest, Some("| Model | ".len() + NARROW + 2), "no narrower than that");
    }
}
