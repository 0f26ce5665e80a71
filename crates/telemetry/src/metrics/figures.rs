//! Figures that other parts of the server give when the page is made.

use std::fmt::{Debug, Formatter, Result};

use super::{families::FIGURES, family::Family, text::Text};

/// Gives the figures of one part of the server. It is asked at every scrape, so it must be quick and must not block.
pub type FigureSource = Box<dyn Fn(&mut Figures) + Send + Sync>;

/// What the sources gave. Families are shown in the order of the table, those without a figure not at all.
#[derive(Default)]
pub struct Figures(Vec<Figure>);

struct Figure {
    family: &'static str,
    /// Value of the family's label, if it has one.
    label: Option<&'static str>,
    value: u64,
}

impl Figures {
    /// The value of a family without labels.
    pub fn set(&mut self, family: &Family, value: impl TryInto<u64>) {
        self.push(family, None, value);
    }

    /// A value of a family with one label. The values of labels are the program's own: what a client sends is none.
    pub fn set_labelled(&mut self, family: &Family, label: &'static str, value: impl TryInto<u64>) {
        self.push(family, Some(label), value);
    }

    fn push(&mut self, family: &Family, label: Option<&'static str>, value: impl TryInto<u64>) {
        debug_assert!(FIGURES.contains(family), "{} is not in the table", family.name);
        let value = value.try_into().unwrap_or(u64::MAX);
        self.0.push(Figure { family: family.name, label, value });
    }

    pub(super) fn write(&self, text: &mut Text) {
        for family in FIGURES {
            let mut own = self.0.iter().filter(|figure| figure.family == family.name).peekable();
            if own.peek().is_some() {
                text.family(family);
            }
            for Figure { label, value, .. } in own {
                let labels = label_text(family, *label);
                text.sample(family.name, &labels, value);
            }
        }
    }
}

fn label_text(family: &Family, value: Option<&str>) -> String {
    match (family.labels, value) {
        ([name, ..], Some(value)) => format!("{{{name}=\"{value}\"}}"),
        _ => String::new(),
    }
}

impl Debug for Figures {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let pairs = self.0.iter().map(|figure| (figure.family, figure.value));
        f.debug_map().entries(pairs).finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::metrics::Kind;
    use crate::metrics::families::{CONNECTIONS, CONNECTIONS_CLOSED, ENVIRONMENTS};

    #[test]
    fn figures_come_in_the_order_of_the_table_each_family_once() {
        let mut figures = Figures::default();
        figures.set(&ENVIRONMENTS, 3_usize);
        figures.set_labelled(&CONNECTIONS_CLOSED, "idle", 2_u64);
        figures.set(&CONNECTIONS, 7_u32);
        figures.set_labelled(&CONNECTIONS_CLOSED, "head", 1_u64);
        let mut text = Text::default();
        figures.write(&mut text);
        let text = text.finish();
        let samples: Vec<_> = text.lines().filter(|line| !line.starts_with('#')).collect();
        assert_eq!(
            samples,
            [
                "galatea_connections_open 7",
                "galatea_connections_closed_total{reason=\"idle\"} 2",
                "galatea_connections_closed_total{reason=\"head\"} 1",
                "galatea_python_environments 3",
            ]
        );
        assert_eq!(text.matches("# TYPE").count(), 3);
        assert!(FIGURES.iter().all(|f| matches!(f.kind, Kind::Counter | Kind::Gauge)));
    }
}
