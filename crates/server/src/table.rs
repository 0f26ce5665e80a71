//! Tables as they stand in the log.

/// A table of text, drawn with `+`, `-` and `|`, as wide as its contents.
pub struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(head: [&str; N]) -> Self {
        Self { rows: vec![head.map(str::to_owned).to_vec()] }
    }

    /// One cell per column of the head.
    pub fn row<const N: usize>(&mut self, cells: [String; N]) {
        // A line break would tear the frame, and let a message forge rows.
        self.rows.push(cells.map(|cell| cell.trim_end().replace('\n', " ")).to_vec());
    }

    /// A log message of its own: it begins with a line break, which keeps the log from quoting it.
    pub fn message(&self) -> String {
        let columns = self.rows.first().map_or(0, Vec::len);
        let width = |column: usize| {
            self.rows.iter().filter_map(|row| row.get(column)).map(|c| c.chars().count()).max()
        };
        let widths: Vec<usize> =
            (0..columns).map(|column| width(column).unwrap_or_default()).collect();
        let rule: String = widths.iter().map(|&w| format!("+{}", "-".repeat(w + 2))).collect();
        let mut out = format!("\n{rule}+\n");
        for (index, row) in self.rows.iter().enumerate() {
            for (cell, &width) in row.iter().zip(&widths) {
                out.push_str(&format!("| {cell:<width$} "));
            }
            out.push_str("|\n");
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
        table.row(["é".to_owned(), "two\nlines\n".to_owned()]);
        assert_eq!(
            table.message(),
            "\n+-------+-----------+\n| Model | Status    |\n+-------+-----------+\n| é     | two lines |\n\
             +-------+-----------+\n"
        );
    }
}
