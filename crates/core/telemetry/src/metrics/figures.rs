//! Figures that other parts of the server provide when the page is made.

use std::fmt::{Debug, Formatter, Result};

use super::text::{Labels, Text};
use crate::families::{FIGURES, Family};

/// Provides the figures of a part of the server. Every scrape calls it, so it must be quick and must not block.
pub type FigureSource = Box<dyn Fn(&mut Figures) + Send + Sync>;

/// The figures of all sources. Families come in the order of the table; those without a figure are left out.
#[derive(Default)]
pub struct Figures(Vec<Figure>);

struct Figure {
    family: &'static str,
    /// Labels in braces; empty when there are none.
    labels: String,
    value: u64,
}

/// The labels of a version of a model.
#[derive(Debug)]
pub struct VersionLabels<'a> {
    /// The model.
    pub name: &'a str,
    /// Label `namespace`; left out when empty.
    pub namespace: &'a str,
    /// `None` when the version is not known.
    pub version: Option<i64>,
}

impl Figures {
    /// Sets the value of a family without labels.
    pub fn set(&mut self, family: &Family, value: impl TryInto<u64>) {
        self.push(family, String::new(), value);
    }

    /// Sets a value of a family with one label. Label values are the program's own, never text from a client.
    pub fn set_labelled(&mut self, family: &Family, label: &'static str, value: impl TryInto<u64>) {
        let labels = family.labels.first().map(|name| format!("{{{name}=\"{label}\"}}"));
        self.push(family, labels.unwrap_or_default(), value);
    }

    /// Sets a value of a version of a model.
    pub fn set_of_model(&mut self, family: &Family, labels: &VersionLabels<'_>, value: u64) {
        let VersionLabels { name, namespace, version } = *labels;
        self.push(family, Labels::of_version(name, namespace, version).text(), value);
    }

    fn push(&mut self, family: &Family, labels: String, value: impl TryInto<u64>) {
        debug_assert!(FIGURES.contains(family), "{} is not in the table", family.name);
        let value = value.try_into().unwrap_or(u64::MAX);
        self.0.push(Figure { family: family.name, labels, value });
    }

    pub(super) fn write(&self, text: &mut Text) {
        for family in FIGURES {
            let mut own = self.0.iter().filter(|figure| figure.family == family.name).peekable();
            if own.peek().is_some() {
                text.family(family);
            }
            for Figure { labels, value, .. } in own {
                text.sample(family.name, labels, value);
            }
        }
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
    use crate::families::Kind;
    use crate::families::{CONNECTIONS, CONNECTIONS_CLOSED, ENVIRONMENTS};

    #[test]
    fn families_are_rendered_once_in_table_order() {
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
