//! The slowest requests as bars: each bar is the whole time of its request.

use galatea_terminal_text as printing;
use galatea_trace_timeline::{RowReport, Span, TreeReport};

use super::{Colors, folded, models::name, padded};
use crate::{duration::duration, report::Report};

/// Columns of a time.
const TIME: usize = 9;
/// Most steps and calls of one request.
const MOST_ROWS: usize = 50;
/// Deeper ones are not indented further.
const MOST_DEPTH: u32 = 8;
/// Least columns of a bar.
const LEAST_BAR: usize = 10;

/// The columns of a tree.
#[derive(Clone, Copy)]
struct Layout {
    label: usize,
    bar: usize,
    /// Time of the whole bar, in nanoseconds.
    length_ns: u64,
}

pub(super) fn write(text: &mut String, report: &Report, width: usize, colors: Colors) {
    text.push_str(&format!("\n{}\n", colors.bold(&heading(report))));
    text.push_str(&legend(report, width, colors));
    for tree in &report.requests {
        text.push('\n');
        write_tree(text, tree, width, colors);
        if report.selection.id.is_some() {
            write_events(text, tree, width);
        }
    }
}

fn heading(report: &Report) -> String {
    let count = report.requests.len();
    let of = match &report.selection {
        selection if selection.id.is_some() => return "Requests with this id".to_owned(),
        selection => match &selection.model {
            Some(model) => format!(" to {}", printing::line(model)),
            None => String::new(),
        },
    };
    match count {
        1 => format!("The slowest request{of}"),
        count => format!("The {count} slowest requests{of}"),
    }
}

/// Returns the meaning of the characters in the bars.
fn legend(report: &Report, width: usize, colors: Colors) -> String {
    let rows = || report.requests.iter().flat_map(|tree| &tree.rows).flat_map(|row| &row.pieces);
    let spans = Span::ALL.into_iter().filter(|span| rows().any(|piece| piece.span == *span));
    let mut lines = String::new();
    let mut used = 0;
    for span in spans {
        let entry = format!("{} {}", painted(span, 1, colors), span.name());
        let columns = 2 + span.name().len();
        if used > 0 && used + 2 + columns > width {
            lines.push('\n');
            used = 0;
        }
        if used > 0 {
            lines.push_str("  ");
            used += 2;
        }
        lines.push_str(&entry);
        used += columns;
    }
    lines + "\n"
}

fn write_tree(text: &mut String, tree: &TreeReport, width: usize, colors: Colors) {
    let Some(root) = tree.rows.first() else { return };
    text.push_str(&folded(&title(root), width));
    let shown = &tree.rows[..tree.rows.len().min(MOST_ROWS)];
    let labels = shown.iter().map(|row| printing::columns(&label(row)));
    let label_width = labels.max().unwrap_or_default().min(width / 3);
    let layout = Layout {
        label: label_width,
        bar: width.saturating_sub(2 + label_width + 1 + TIME + 1).max(LEAST_BAR),
        length_ns: tree.length_ns,
    };
    for row in shown {
        let shown = padded(&printing::fitted(&label(row), layout.label), layout.label, false);
        let time = padded(&duration(row.total_ns as f64), TIME, true);
        text.push_str(&format!("  {shown} {} {time}\n", bar(row, layout, colors)));
    }
    let omitted = tree.rows.len() - shown.len() + tree.omitted_count;
    if omitted > 0 {
        text.push_str(&format!("  … and {} below it\n", super::counted(omitted, "step or call")));
    }
}

fn title(root: &RowReport) -> String {
    let mut title = duration(root.total_ns as f64);
    let version = root.version.as_deref().unwrap_or_default();
    title.push_str(&format!("  {}, trace {}", name(root.model.as_deref(), version), root.id));
    if let Some(request_id) = &root.request_id {
        title.push_str(&format!(", request id '{}'", printing::line(request_id)));
    }
    if let Some(protocol) = root.protocol {
        title.push_str(&format!(", {protocol}"));
    }
    if root.responses > 1 {
        title.push_str(&format!(", {} responses", root.responses));
    }
    if !root.is_answered {
        title.push_str(&format!(", {}", root.outcome));
    }
    if let (0, Some(parent)) = (root.depth, root.parent_id) {
        title.push_str(&format!(", part of trace {parent}"));
    }
    title
}

fn label(row: &RowReport) -> String {
    let indent = "  ".repeat(row.depth.min(MOST_DEPTH) as usize);
    format!("{indent}{}", name(row.model.as_deref(), ""))
}

/// Draws the request between blanks for the time before and after it.
fn bar(row: &RowReport, layout: Layout, colors: Colors) -> String {
    let end = row.from_ns + row.total_ns;
    // The column that holds a time. A request has at least one column.
    let column = |ns: u64| {
        (u128::from(ns) * layout.bar as u128 / u128::from(layout.length_ns.max(1))) as usize
    };
    let first = column(row.from_ns).min(layout.bar - 1);
    let last = column(end).clamp(first + 1, layout.bar);
    let mut bar = " ".repeat(first);
    let mut at = first;
    while at < last {
        let span = span_at(row, at, layout);
        let same = (at..last).take_while(|&next| span_at(row, next, layout) == span).count();
        bar.push_str(&painted(span, same, colors));
        at += same;
    }
    bar + &" ".repeat(layout.bar - last)
}

/// Returns the span that takes most of a column.
fn span_at(row: &RowReport, column: usize, layout: Layout) -> Span {
    let border =
        |column: usize| (u128::from(layout.length_ns) * column as u128 / layout.bar as u128) as u64;
    let (from, to) = (border(column), border(column + 1));
    let mut amounts = [0; Span::COUNT];
    for piece in &row.pieces {
        let inside = piece.to_ns.min(to).saturating_sub(piece.from_ns.max(from));
        amounts[piece.span as usize] += inside;
    }
    let most = Span::ALL.into_iter().rev().max_by_key(|&span| amounts[span as usize]);
    most.filter(|&span| amounts[span as usize] > 0).unwrap_or(Span::Other)
}

fn painted(span: Span, columns: usize, colors: Colors) -> String {
    let color = match span {
        Span::Receive | Span::Send => 35,
        Span::Queue => 33,
        Span::Input => 36,
        Span::Compute => 34,
        Span::Output => 32,
        Span::Steps | Span::Other => 90,
    };
    colors.paint(&span.glyph().to_string().repeat(columns), color)
}

fn write_events(text: &mut String, tree: &TreeReport, width: usize) {
    for row in tree.rows.iter().take(MOST_ROWS) {
        let version = row.version.as_deref().unwrap_or_default();
        let heading = format!("{}, trace {}:", name(row.model.as_deref(), version), row.id);
        text.push('\n');
        for line in printing::folded(&heading, width.saturating_sub(2)) {
            text.push_str(&format!("  {line}\n"));
        }
        for event in &row.events {
            let at = padded(&duration(event.at_ns as f64), TIME, true);
            text.push_str(&format!("  {at}  {}\n", event.name));
        }
    }
}
