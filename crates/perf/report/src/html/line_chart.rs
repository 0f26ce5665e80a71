//! Lines with markers, error bars, and labels that do not overlap.

use super::{
    axis::{self, Axis, Caption, Frame, TICK_SIZE},
    format,
    markup::Markup,
    style::{self, Look},
};

pub struct LineChart {
    /// Width and height in pixels.
    pub size: [f64; 2],
    pub x: Axis,
    pub y: Axis,
    pub series: Vec<Series>,
}

#[derive(Clone)]
pub struct Series {
    pub look: Look,
    pub marks: Vec<Mark>,
    /// Written at the end of the line.
    pub name: String,
}

#[derive(Clone, Default)]
pub struct Mark {
    pub at: [f64; 2],
    pub x_interval: Option<[f64; 2]>,
    pub y_interval: Option<[f64; 2]>,
    /// Written beside the marker where there is room.
    pub label: String,
    pub tip: String,
}

const LABEL_SIZE: f64 = 11.0;

impl LineChart {
    pub fn draw(self, html: &mut Markup, caption: &Caption<'_>) {
        let [width, height] = self.size;
        let names = self.series.iter().map(|s| format::text_width(&s.name, TICK_SIZE));
        let frame = Frame {
            left: self.y.label_width().max(34.0),
            top: 34.0,
            right: width - names.fold(0.0, f64::max) - 28.0,
            bottom: height - 46.0,
        };
        let x = self.x.over(frame.left, frame.right);
        let y = self.y.over(frame.bottom, frame.top);
        let plot = Plot { frame, x, y };
        axis::chart(html, caption, self.size, |svg| {
            plot.frame.draw_axes(svg, &plot.x, &plot.y);
            plot.draw_lines(svg, &self.series);
            plot.draw_marks(svg, &self.series);
            plot.draw_names(svg, &self.series);
            plot.draw_labels(svg, &self.series);
        });
    }
}

struct Plot {
    frame: Frame,
    x: Axis,
    y: Axis,
}

impl Plot {
    fn place(&self, [x, y]: [f64; 2]) -> [f64; 2] {
        [self.x.scale.position(x), self.y.scale.position(y)]
    }

    fn draw_lines(&self, svg: &mut Markup, series: &[Series]) {
        for series in series.iter().filter(|series| series.marks.len() > 1) {
            let path = style::open_path(series.marks.iter().map(|mark| {
                let [x, y] = self.place(mark.at);
                (x, y)
            }));
            let class = format!("line {}", series.look.class);
            let dash = series.look.dash;
            svg.empty("path", &[("class", &class), ("d", &path), ("stroke-dasharray", &dash)]);
        }
    }

    fn draw_marks(&self, svg: &mut Markup, series: &[Series]) {
        for series in series {
            svg.element("g", &[("class", &series.look.class)], |svg| {
                for mark in &series.marks {
                    self.draw_mark(svg, &series.look, mark);
                }
            });
        }
    }

    fn draw_mark(&self, svg: &mut Markup, look: &Look, mark: &Mark) {
        let [x, y] = self.place(mark.at);
        svg.element("g", &[("class", &"mark")], |svg| {
            svg.leaf("title", &[], &mark.tip);
            if let Some([low, high]) = mark.x_interval {
                let (low, high) = (self.x.scale.position(low), self.x.scale.position(high));
                axis::line(svg, "error", [low, y, high, y]);
                axis::line(svg, "error", [low, y - 3.0, low, y + 3.0]);
                axis::line(svg, "error", [high, y - 3.0, high, y + 3.0]);
            }
            if let Some([low, high]) = mark.y_interval {
                let (low, high) = (self.y.scale.position(low), self.y.scale.position(high));
                axis::line(svg, "error", [x, low, x, high]);
                axis::line(svg, "error", [x - 3.0, low, x + 3.0, low]);
                axis::line(svg, "error", [x - 3.0, high, x + 3.0, high]);
            }
            look.draw_marker(svg, x, y);
        });
    }

    /// Names at the ends of lines, pushed apart where lines end close to each other.
    fn draw_names(&self, svg: &mut Markup, series: &[Series]) {
        let mut ends: Vec<(f64, f64, &Series)> = series
            .iter()
            .filter(|series| !series.name.is_empty())
            .filter_map(|series| {
                let [x, y] = self.place(series.marks.last()?.at);
                Some((x, y, series))
            })
            .collect();
        ends.sort_by(|a, b| a.1.total_cmp(&b.1));
        let wanted: Vec<f64> = ends.iter().map(|(_, y, _)| *y).collect();
        let placed = apart(&wanted, 13.0, self.frame.bottom);
        for ((x, _, series), y) in ends.into_iter().zip(placed) {
            let class = format!("end-label {}", series.look.class);
            axis::text(svg, &class, [x + 10.0, y + 4.0], &series.name);
        }
    }

    /// Those for which there is no room are left out: the tip and the table have them.
    fn draw_labels(&self, svg: &mut Markup, series: &[Series]) {
        let mut taken: Vec<Rectangle> = series
            .iter()
            .flat_map(|series| &series.marks)
            .flat_map(|mark| self.outlines(mark))
            .collect();
        let lines = self.along_lines(series);
        for (series, mark) in ends_first(series) {
            if let Some((at, rectangle)) = self.room_for(mark, &taken, &lines) {
                taken.push(rectangle.wider(3.0));
                axis::text(svg, &format!("label middle {}", series.look.class), at, &mark.label);
            }
        }
    }

    /// The marker and its error bars.
    fn outlines(&self, mark: &Mark) -> [Rectangle; 3] {
        let [x, y] = self.place(mark.at);
        let marker = Rectangle::around([x, y], 4.5, 4.5);
        let [left, right] =
            mark.x_interval.map_or([x, x], |ends| ends.map(|v| self.x.scale.position(v)));
        let [bottom, top] =
            mark.y_interval.map_or([y, y], |ends| ends.map(|v| self.y.scale.position(v)));
        let across = Rectangle { left, right, top: y - 3.0, bottom: y + 3.0 };
        let along = Rectangle { left: x - 3.0, right: x + 3.0, top, bottom };
        [marker, across, along]
    }

    fn outline(&self, mark: &Mark) -> Rectangle {
        let [marker, across, along] = self.outlines(mark);
        Rectangle {
            left: marker.left.min(across.left),
            right: marker.right.max(across.right),
            top: marker.top.min(along.top),
            bottom: marker.bottom.max(along.bottom),
        }
    }

    /// Places every few pixels along the lines.
    fn along_lines(&self, series: &[Series]) -> Vec<[f64; 2]> {
        let mut places = Vec::new();
        for series in series {
            let corners: Vec<[f64; 2]> = series.marks.iter().map(|m| self.place(m.at)).collect();
            for (a, b) in corners.iter().zip(corners.iter().skip(1)) {
                let (dx, dy) = (b[0] - a[0], b[1] - a[1]);
                let steps = (dx.hypot(dy) / 4.0).ceil().max(1.0);
                let at = |i: u32| f64::from(i) / steps;
                places.extend((0..steps as u32).map(at).map(|t| [a[0] + dx * t, a[1] + dy * t]));
            }
        }
        places
    }

    /// The first place where the label covers nothing; one where it only covers a line if there is no better.
    fn room_for(
        &self,
        mark: &Mark,
        taken: &[Rectangle],
        lines: &[[f64; 2]],
    ) -> Option<([f64; 2], Rectangle)> {
        let [x, y] = self.place(mark.at);
        let own = self.outline(mark);
        let half = format::text_width(&mark.label, LABEL_SIZE) / 2.0;
        let (left, right) = (own.left - half - 4.0, own.right + half + 4.0);
        let (above, below) = (own.top - 8.0, own.bottom + 8.0);
        let centres =
            [[x, above], [left, y - 7.0], [right, y], [x, below], [left, y], [right, y + 10.0]];
        let free: Vec<_> = centres
            .into_iter()
            .map(|centre| (centre, Rectangle::around(centre, half, 5.5)))
            .filter(|(_, place)| place.is_in(&self.frame) && !taken.iter().any(|t| t.meets(place)))
            .collect();
        let clear = free.iter().find(|(_, place)| !lines.iter().any(|at| place.holds(*at)));
        clear.or(free.first()).map(|([x, y], place)| ([*x, y + 4.0], *place))
    }
}

/// All marks with a label. The ends of a line show where it goes, so they choose their place first.
fn ends_first(series: &[Series]) -> Vec<(&Series, &Mark)> {
    let mut marks: Vec<(bool, &Series, &Mark)> = Vec::new();
    for series in series {
        let last = series.marks.len().saturating_sub(1);
        let labelled = series.marks.iter().enumerate().filter(|(_, mark)| !mark.label.is_empty());
        marks.extend(labelled.map(|(i, mark)| (i > 0 && i < last, series, mark)));
    }
    marks.sort_by_key(|(is_between, ..)| *is_between);
    marks.into_iter().map(|(_, series, mark)| (series, mark)).collect()
}

#[derive(Clone, Copy)]
struct Rectangle {
    left: f64,
    top: f64,
    right: f64,
    bottom: f64,
}

impl Rectangle {
    fn around([x, y]: [f64; 2], half_width: f64, half_height: f64) -> Self {
        Self {
            left: x - half_width,
            top: y - half_height,
            right: x + half_width,
            bottom: y + half_height,
        }
    }

    fn wider(self, by: f64) -> Self {
        Self { left: self.left - by, right: self.right + by, ..self }
    }

    fn meets(&self, other: &Self) -> bool {
        self.left < other.right
            && other.left < self.right
            && self.top < other.bottom
            && other.top < self.bottom
    }

    fn holds(&self, [x, y]: [f64; 2]) -> bool {
        self.left < x && x < self.right && self.top < y && y < self.bottom
    }

    fn is_in(&self, frame: &Frame) -> bool {
        self.left >= frame.left
            && self.right <= frame.right + 12.0
            && self.top >= frame.top - 14.0
            && self.bottom <= frame.bottom
    }
}

/// Ascending positions moved so that neighbours are `distance` apart and none is beyond `end`.
fn apart(wanted: &[f64], distance: f64, end: f64) -> Vec<f64> {
    let mut placed: Vec<f64> = Vec::with_capacity(wanted.len());
    for y in wanted {
        let free = placed.last().map_or(*y, |last| y.max(last + distance));
        placed.push(free);
    }
    let mut limit = end;
    for y in placed.iter_mut().rev() {
        *y = y.min(limit);
        limit = *y - distance;
    }
    placed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_pushed_apart() {
        assert_eq!(apart(&[10.0, 12.0, 50.0], 13.0, 100.0), [10.0, 23.0, 50.0]);
        assert_eq!(apart(&[90.0, 95.0, 99.0], 13.0, 100.0), [74.0, 87.0, 100.0]);
        assert!(apart(&[], 13.0, 100.0).is_empty());
    }
}
