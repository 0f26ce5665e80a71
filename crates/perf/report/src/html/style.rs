//! How runs and percentiles are distinguished: a colour, and for those who do not see it a marker and a dash.

use super::markup::{Markup, Px};

const RUN_COLOURS: usize = 6;
const PERCENTILE_COLOURS: usize = 6;

#[derive(Clone, Debug)]
pub struct Look {
    /// Gives the colour, see the style sheet.
    pub class: String,
    pub marker: Marker,
    /// `stroke-dasharray`
    pub dash: &'static str,
    /// The marker is an outline.
    pub hollow: bool,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Marker {
    Circle,
    Square,
    Triangle,
    Diamond,
    TriangleDown,
    Plus,
}

const MARKERS: [Marker; 6] = [
    Marker::Circle,
    Marker::Square,
    Marker::Triangle,
    Marker::Diamond,
    Marker::TriangleDown,
    Marker::Plus,
];

const DASHES: [&str; 6] = ["none", "8 4", "2 3", "10 3 2 3", "14 4", "5 2 1 2"];

/// Colours come again after six runs, then with other markers and dashes.
pub fn run(index: usize) -> Look {
    let shifted = index + index / RUN_COLOURS;
    Look {
        class: format!("run{}", index % RUN_COLOURS),
        marker: marker(shifted),
        dash: DASHES.into_iter().cycle().nth(shifted % DASHES.len()).unwrap_or("none"),
        hollow: (index / RUN_COLOURS) % 2 == 1,
    }
}

/// Low percentiles are pale, high ones strong.
pub fn percentile(rank: usize, of: usize) -> Look {
    let colour = match of {
        0 | 1 => PERCENTILE_COLOURS / 2,
        _ => rank * (PERCENTILE_COLOURS - 1) / (of - 1),
    };
    Look { class: format!("pct{colour}"), marker: marker(rank), dash: "none", hollow: false }
}

fn marker(index: usize) -> Marker {
    MARKERS.into_iter().cycle().nth(index % MARKERS.len()).unwrap_or(Marker::Circle)
}

impl Look {
    pub fn dashed(mut self) -> Self {
        self.dash = "5 4";
        self.hollow = true;
        self
    }

    pub fn draw_marker(&self, svg: &mut Markup, x: f64, y: f64) {
        let class = if self.hollow { "marker hollow" } else { "marker" };
        if self.marker == Marker::Circle {
            let r = Px(4.0);
            svg.empty("circle", &[("class", &class), ("cx", &Px(x)), ("cy", &Px(y)), ("r", &r)]);
        } else {
            svg.empty("path", &[("class", &class), ("d", &self.marker.path(x, y))]);
        }
    }

    /// A piece of line with its marker, for a legend.
    pub fn draw_sample(&self, html: &mut Markup) {
        let class = format!("sample {}", self.class);
        html.element(
            "svg",
            &[("class", &class), ("width", &"36"), ("height", &"14"), ("aria-hidden", &"true")],
            |svg| {
                let line = "M1 7H35";
                svg.empty(
                    "path",
                    &[("class", &"line"), ("d", &line), ("stroke-dasharray", &self.dash)],
                );
                self.draw_marker(svg, 18.0, 7.0);
            },
        );
    }
}

impl Marker {
    fn path(self, x: f64, y: f64) -> String {
        let corners: &[(f64, f64)] = match self {
            Self::Circle => &[],
            Self::Square => &[(-3.6, -3.6), (3.6, -3.6), (3.6, 3.6), (-3.6, 3.6)],
            Self::Triangle => &[(0.0, -4.8), (4.6, 3.4), (-4.6, 3.4)],
            Self::Diamond => &[(0.0, -5.2), (5.2, 0.0), (0.0, 5.2), (-5.2, 0.0)],
            Self::TriangleDown => &[(0.0, 4.8), (4.6, -3.4), (-4.6, -3.4)],
            Self::Plus => &[
                (-1.6, -4.8),
                (1.6, -4.8),
                (1.6, -1.6),
                (4.8, -1.6),
                (4.8, 1.6),
                (1.6, 1.6),
                (1.6, 4.8),
                (-1.6, 4.8),
                (-1.6, 1.6),
                (-4.8, 1.6),
                (-4.8, -1.6),
                (-1.6, -1.6),
            ],
        };
        polygon(corners.iter().map(|(dx, dy)| (x + dx, y + dy)))
    }
}

fn polygon(corners: impl Iterator<Item = (f64, f64)>) -> String {
    let path = open_path(corners);
    if path.is_empty() { path } else { path + "Z" }
}

/// Straight lines from corner to corner.
pub fn open_path(corners: impl Iterator<Item = (f64, f64)>) -> String {
    corners.enumerate().fold(String::new(), |path, (i, (x, y))| {
        format!("{path}{}{} {}", if i == 0 { 'M' } else { 'L' }, Px(x), Px(y))
    })
}

/// A legend that wraps like text does.
pub fn legend(html: &mut Markup, entries: &[(Look, &str)]) {
    html.element("ul", &[("class", &"legend")], |html| {
        for (look, name) in entries {
            html.element("li", &[], |html| {
                look.draw_sample(html);
                html.leaf("span", &[], name);
            });
        }
    });
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn twelve_runs_look_different_even_without_colours() {
        let looks: BTreeSet<_> = (0..12)
            .map(run)
            .map(|look| format!("{:?} {} {}", look.marker, look.dash, look.hollow))
            .collect();
        assert_eq!(looks.len(), 12);
    }

    #[test]
    fn percentiles_use_the_whole_range_of_colours() {
        let classes: Vec<_> = (0..5).map(|rank| percentile(rank, 5).class).collect();
        assert_eq!(classes, ["pct0", "pct1", "pct2", "pct3", "pct5"]);
    }
}
