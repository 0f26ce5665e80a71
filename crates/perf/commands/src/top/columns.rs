//! The columns of the view: their content, their width, and the order in which they are left out.

use std::cmp::Ordering;

use super::row::{Quantiles, Row};
use crate::printing;

/// A column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    Model,
    Version,
    State,
    Requests,
    Failed,
    Inferences,
    Batch,
    Pending,
    Queue,
    Compute,
    Latency,
    P50,
    P99,
    Busy,
}

use Column::*;

/// Smallest width of the model's name, which gets all space that the others leave.
const NAME_WIDTH: usize = 14;

impl Column {
    /// All columns from left to right.
    pub const ALL: &[Self] = &[
        Model, Version, State, Requests, Failed, Inferences, Batch, Pending, Queue, Compute,
        Latency, P50, P99, Busy,
    ];
    /// Names of the columns in `--sort`.
    pub const WORDS: &[&str] = &[
        "model",
        "version",
        "state",
        "requests",
        "failed",
        "inferences",
        "batch",
        "pending",
        "queue",
        "compute",
        "latency",
        "p50",
        "p99",
        "busy",
    ];
    /// The order in which columns are left out of a narrow window.
    const GIVEN_UP: &[Self] = &[
        Version, Busy, Compute, Batch, P50, Queue, Inferences, State, Latency, Pending, Failed, P99,
    ];

    pub fn named(word: &str) -> Option<Self> {
        let at = Self::WORDS.iter().position(|known| known.eq_ignore_ascii_case(word))?;
        Self::ALL.get(at).copied()
    }

    /// Returns its title.
    pub fn head(self) -> &'static str {
        self.facts().0
    }

    /// Returns its explanation in the help.
    pub fn meaning(self) -> &'static str {
        self.facts().2
    }

    fn width(self) -> usize {
        self.facts().1
    }

    /// Returns title, width and meaning.
    fn facts(self) -> (&'static str, usize, &'static str) {
        match self {
            Model => ("MODEL", NAME_WIDTH, "the model"),
            Version => ("VER", 3, "its version"),
            State => ("STATE", 11, "state in the index of the server"),
            Requests => ("REQ/S", 6, "requests per second, failed ones too"),
            Failed => ("FAIL/S", 6, "failed requests per second"),
            Inferences => ("INF/S", 6, "inferences per second: requests times their batch size"),
            Batch => ("BATCH", 5, "average size of the batches executed"),
            Pending => ("PEND", 5, "requests in the queue"),
            Queue => ("QUEUE", 6, "average time in the queue"),
            Compute => ("COMPUTE", 7, "average time of inputs, execution, outputs"),
            Latency => ("AVG", 6, "average time of a request in the server"),
            P50 => ("P50", 6, "half of the requests took no longer"),
            P99 => ("P99", 6, "99 of 100 requests took no longer"),
            Busy => ("BUSY", 7, "busy instances on average, and all instances"),
        }
    }

    /// Returns true for texts, which are aligned left; numbers are aligned right.
    pub fn is_text(self) -> bool {
        matches!(self, Model | Version | State)
    }

    /// Returns its content for a row, without control characters.
    pub fn cell(self, row: &Row) -> String {
        let known = |number: Option<String>| number.unwrap_or_else(|| "-".to_owned());
        match self {
            Model => printing::line(&row.key.name),
            Version => printing::line(&row.key.version),
            State if row.state.is_empty() => "-".to_owned(),
            State => printing::line(&row.state),
            Batch => known(row.batch_size().map(|size| format!("{size:.1}"))),
            Busy => known(row.busy().map(|busy| match row.page.instances {
                Some(instances) => format!("{busy:.1}/{instances:.0}"),
                None => format!("{busy:.1}"),
            })),
            Queue | Compute | Latency | P50 | P99 => known(self.number(row).map(duration)),
            Pending => known(self.number(row).map(|number| amount(number, 0))),
            Requests | Failed | Inferences => {
                known(self.number(row).map(|number| amount(number, 1)))
            }
        }
    }

    /// Returns the number to sort by; `None` for a text.
    pub fn number(self, row: &Row) -> Option<f64> {
        match self {
            Model | Version | State => None,
            Requests => row.requests(),
            Failed => row.failed(),
            Inferences => row.inferences(),
            Batch => row.batch_size(),
            Pending => row.page.pending,
            Queue => row.queue(),
            Compute => row.compute(),
            Latency => row.latency(),
            P50 => row.page.p50_ns.filter(|_| row.quantiles != Quantiles::None),
            P99 => row.page.p99_ns.filter(|_| row.quantiles != Quantiles::None),
            Busy => row.busy(),
        }
    }

    /// Compares rows: names from A to Z, the largest numbers first, unknown ones last.
    fn order(self, a: &Row, b: &Row) -> Ordering {
        let order = match self {
            Model => Ordering::Equal,
            Version => a.key.version.cmp(&b.key.version),
            State => a.state.cmp(&b.state),
            _ => {
                let number = |row| self.number(row).unwrap_or(-1.0);
                number(b).total_cmp(&number(a))
            }
        };
        order.then_with(|| a.key.cmp(&b.key))
    }

    pub fn sort(self, rows: &mut [&Row], is_reversed: bool) {
        rows.sort_by(|a, b| self.order(a, b));
        if is_reversed {
            rows.reverse();
        }
    }

    /// Returns the columns that fit, with their widths; a blank is between two. Columns without figures are left out first. The
    /// sort column is always kept, with room for its mark.
    pub fn fitting(width: usize, rows: &[&Row], sort: Self) -> Vec<(Self, usize)> {
        let longest = rows.iter().map(|row| printing::line(&row.key.name).chars().count()).max();
        let longest = longest.unwrap_or_default();
        // Names have priority over columns, up to a third of the window.
        let name = longest.min(width / 3).max(NAME_WIDTH);
        let wide = |column: Self| match column {
            Model => name,
            _ if column == sort => column.width().max(column.head().len() + 1),
            _ => column.width(),
        };
        let needed = |columns: &[Self]| columns.iter().map(|&c| wide(c) + 1).sum::<usize>() - 1;
        let mut columns = Self::ALL.to_vec();
        let is_empty = |column: &Self| {
            matches!(column, P50 | P99 | Pending | Busy)
                && rows.iter().all(|row| column.number(row).is_none())
        };
        let empty = Self::GIVEN_UP.iter().filter(|column| is_empty(column));
        for given_up in empty.chain(Self::GIVEN_UP) {
            if needed(&columns) <= width {
                break;
            }
            columns.retain(|column| column != given_up || *column == sort);
        }
        let left = width.saturating_sub(needed(&columns));
        let more = longest.saturating_sub(name).min(left);
        let more = |column: Self| if column == Model { more } else { 0 };
        columns.into_iter().map(|column| (column, wide(column) + more(column))).collect()
    }
}

/// Formats a number in at most six characters: `0.5`, `1234`, `12.3k`, `4.5M`.
pub(crate) fn amount(number: f64, decimals: usize) -> String {
    match number {
        0.0 => "0".to_owned(),
        n if n < 99.95 => format!("{n:.decimals$}"),
        n if n < 99_999.5 => format!("{n:.0}"),
        n if n < 999_950.0 => format!("{:.0}k", n / 1e3),
        n if n < 999_950_000.0 => format!("{:.1}M", n / 1e6),
        n if n < 9.9995e11 => format!("{:.1}G", n / 1e9),
        n => format!("{n:.0e}"),
    }
}

/// Formats a time in at most six characters: `950ns`, `12us`, `1.2ms`, `3.4s`.
pub(crate) fn duration(ns: f64) -> String {
    match ns {
        0.0 => "0".to_owned(),
        n if n < 999.5 => format!("{n:.0}ns"),
        n if n < 999_500.0 => format!("{:.0}us", n / 1e3),
        n if n < 99_950_000.0 => format!("{:.1}ms", n / 1e6),
        n if n < 999_500_000.0 => format!("{:.0}ms", n / 1e6),
        n if n < 99.95e9 => format!("{:.1}s", n / 1e9),
        n if n < 99_999.5e9 => format!("{:.0}s", n / 1e9),
        n => format!("{:.0}h", n / 3.6e12),
    }
}

/// Formats a number of bytes: `3.1 GiB`.
pub(crate) fn bytes(number: f64) -> String {
    match number {
        n if n < 1024.0 * 1024.0 => format!("{:.0} KiB", n / 1024.0),
        n if n < 1024.0 * 1024.0 * 1024.0 => format!("{:.0} MiB", n / 1024.0 / 1024.0),
        n => format!("{:.1} GiB", n / 1024.0 / 1024.0 / 1024.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shortened() {
        for (number, expected) in [
            (0.0, "0"),
            (0.04, "0.0"),
            (12.34, "12.3"),
            (99.96, "100"),
            (99_999.4, "99999"),
            (123_456.0, "123k"),
            (1.25e6, "1.2M"),
            (5e9, "5.0G"),
            (1e300, "1e300"),
        ] {
            assert_eq!(amount(number, 1), expected);
        }
        for (ns, expected) in [
            (0.0, "0"),
            (950.0, "950ns"),
            (999.9, "1us"),
            (12_300.0, "12us"),
            (999_900.0, "1.0ms"),
            (123e6, "123ms"),
            (3.4e9, "3.4s"),
            (120e9, "120s"),
            (7.2e15, "2000h"),
        ] {
            assert_eq!(duration(ns), expected);
        }
    }

    #[test]
    fn columns_are_dropped_when_the_window_is_narrow() {
        let row = Row::default();
        let heads = |width| {
            Column::fitting(width, &[&row], Requests).iter().map(|(c, _)| *c).collect::<Vec<_>>()
        };
        assert_eq!(heads(120), Column::ALL);
        assert_eq!(heads(40), [Model, Requests, Failed, Latency]);
        assert_eq!(heads(1), [Model, Requests]);
        for width in 22..200 {
            let wide: usize =
                Column::fitting(width, &[&row], Requests).iter().map(|(_, w)| w + 1).sum();
            assert!(wide - 1 <= width, "{width}");
        }
    }

    #[test]
    fn every_column_has_a_word() {
        assert_eq!(Column::WORDS.len(), Column::ALL.len());
        assert_eq!(Column::named("P99"), Some(P99));
        assert_eq!(Column::named("x"), None);
    }
}
