//! Tables of text for the log: the models, backends and settings at start.

/// A table of text, drawn with `+`, `-` and `|`, as wide as its contents.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(str::to_owned).to_vec()] }
    }

    /// One cell per column of the head. A cell of several lines makes the row as high; its frame stays whole, so that
    /// a message cannot pass for a row of its own: the other cells of the lines that follow are empty.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        self.rows.push(cells.map(|cell| cell.trim_end().to_owned()).to_vec());
    }

    /// A log message of its own: it begins with a line break, which keeps the log from quoting it.
    pub fn message(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.flat_map(|cell| cell.lines()).map(|line| line.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let rule: String = widths.iter().map(|&w| format!("+{}", "-".repeat(w + 2))).collect();
        let mut out = format!("\n{rule}+\n");
        for (index, row) in self.rows.iter().enumerate() {
            let height = row.iter().map(|cell| cell.lines().count()).max().unwrap_or_default();
            for line in 0..height.max(1) {
                for (cell, &width) in row.iter().zip(&widths) {
                    let text = cell.lines().nth(line).unwrap_or_default();
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_rows() {
        let table = Table::new(["Repository Agent", "Path"]);
        assert_eq!(
            table.message(),
            "\n+------------------+------+\n| Repository Agent | Path |\n+------------------+------+\n\
             +------------------+------+\n"
        );
    }

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let mut table = Table::new(["Model", "Status"]);
        table.row(["é".to_owned(), "READY".to_owned()]);
        assert_eq!(
            table.message(),
            "\n+-------+--------+\n| Model | Status |\n+-------+--------+\n| é     | READY  |\n\
             +-------+--------+\n"
        );
    }

    #[test]
    fn a_cell_of_several_lines_is_shown_whole_within_the_frame() {
        let mut table = Table::new(["Model", "Status"]);
        table.row(["bad".to_owned(), "line 3:\n  | forged | READY\n".to_owned()]);
        table.row([String::new(), String::new()]);
        assert_eq!(
            table.message(),
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
}
