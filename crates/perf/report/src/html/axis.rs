//! The frame of a chart: an area with two axes, their ticks and grid lines.

use super::{
    format,
    markup::{Markup, Px},
    scale::Scale,
};

/// Size of text in charts, see the style sheet.
pub const TICK_SIZE: f64 = 11.5;

/// The area inside the axes, in pixels.
#[derive(Clone, Copy, Debug)]
pub struct Frame {
    pub left: f64,
    pub top: f64,
    pub right: f64,
    pub bottom: f64,
}

pub struct Axis {
    pub title: String,
    pub scale: Scale,
    pub ticks: Vec<(f64, String)>,
}

impl Axis {
    pub fn new(title: &str, scale: Scale, about: usize, write: fn(f64) -> String) -> Self {
        let ticks = scale.ticks(about).into_iter().map(|v| (v, write(v))).collect();
        Self { title: title.to_string(), scale, ticks }
    }

    /// With ticks at exactly these values, as many as there is room for.
    pub fn at_values(title: &str, scale: Scale, values: &[f64], write: fn(f64) -> String) -> Self {
        let ticks = values.iter().map(|v| (*v, write(*v))).collect();
        Self { title: title.to_string(), scale, ticks }
    }

    pub fn over(self, from: f64, to: f64) -> Self {
        Self { scale: self.scale.over(from, to), ..self }
    }

    /// Room that the labels of a vertical axis need.
    pub fn label_width(&self) -> f64 {
        let widths = self.ticks.iter().map(|(_, label)| format::text_width(label, TICK_SIZE));
        widths.fold(0.0, f64::max) + 10.0
    }

    /// Leaves out labels of a horizontal axis that would touch the one before; the last is always there.
    fn thinned(&self) -> Vec<(f64, &str)> {
        let mut kept: Vec<(f64, &str, f64)> = Vec::new();
        for (i, (value, label)) in self.ticks.iter().enumerate() {
            let (at, half) =
                (self.scale.position(*value), format::text_width(label, TICK_SIZE) / 2.0);
            let touches = |kept: &[(f64, &str, f64)]| {
                kept.last().is_some_and(|(x, _, other)| at - half < x + other + 8.0)
            };
            if i + 1 == self.ticks.len() {
                while touches(&kept) {
                    kept.pop();
                }
            }
            if !touches(&kept) {
                kept.push((at, label, half));
            }
        }
        kept.into_iter().map(|(at, label, _)| (at, label)).collect()
    }
}

impl Frame {
    pub fn draw_axes(&self, svg: &mut Markup, x: &Axis, y: &Axis) {
        svg.element("g", &[("class", &"axes")], |svg| {
            self.draw_y(svg, y);
            self.draw_x(svg, x);
        });
    }

    fn draw_y(&self, svg: &mut Markup, axis: &Axis) {
        for (value, label) in &axis.ticks {
            let y = axis.scale.position(*value);
            line(svg, "grid", [self.left, y, self.right, y]);
            text(svg, "tick end", [self.left - 8.0, y + 4.0], label);
        }
        // Above the axis, not beside it: sideways text is hard to read.
        text(svg, "axis-title", [4.0, self.top - 14.0], &axis.title);
    }

    pub fn draw_x(&self, svg: &mut Markup, axis: &Axis) {
        line(svg, "base", [self.left, self.bottom, self.right, self.bottom]);
        for (x, label) in axis.thinned() {
            line(svg, "base", [x, self.bottom, x, self.bottom + 5.0]);
            text(svg, "tick middle", [x, self.bottom + 19.0], label);
        }
        text(svg, "axis-title end", [self.right, self.bottom + 38.0], &axis.title);
    }
}

/// From x, y to x, y.
pub fn line(svg: &mut Markup, class: &str, [x1, y1, x2, y2]: [f64; 4]) {
    svg.empty(
        "line",
        &[("class", &class), ("x1", &Px(x1)), ("y1", &Px(y1)), ("x2", &Px(x2)), ("y2", &Px(y2))],
    );
}

pub fn text(svg: &mut Markup, class: &str, [x, y]: [f64; 2], text: &str) {
    svg.leaf("text", &[("class", &class), ("x", &Px(x)), ("y", &Px(y))], text);
}

/// x, y, width, height.
pub fn rectangle(svg: &mut Markup, class: &str, [x, y, width, height]: [f64; 4], tip: &str) {
    let (x, y, width, height) = (Px(x), Px(y), Px(width.max(0.0)), Px(height.max(0.0)));
    svg.element(
        "rect",
        &[("class", &class), ("x", &x), ("y", &y), ("width", &width), ("height", &height)],
        |svg| {
            if !tip.is_empty() {
                svg.leaf("title", &[], tip);
            }
        },
    );
}

/// Every chart is drawn twice, and the style sheet shows one of them: text of a chart that is only scaled down to the
/// width of a phone cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    Wide,
    Narrow,
}

impl Screen {
    pub const BOTH: [Self; 2] = [Self::Wide, Self::Narrow];

    pub fn pick<T>(self, wide: T, narrow: T) -> T {
        if self == Self::Wide { wide } else { narrow }
    }
}

/// What a chart is, for those who do not see it.
pub struct Caption<'a> {
    /// Unique in the page among charts of one kind of screen.
    pub id: &'a str,
    pub title: &'a str,
    pub description: &'a str,
    pub screen: Screen,
}

/// A chart as wide as there is room.
pub fn chart(
    html: &mut Markup,
    caption: &Caption<'_>,
    [width, height]: [f64; 2],
    draw: impl FnOnce(&mut Markup),
) {
    let class = caption.screen.pick("chart for-wide", "chart for-narrow");
    let id = format!("{}{}", caption.id, caption.screen.pick("", "-narrow"));
    let (title, description) = (format!("{id}-title"), format!("{id}-about"));
    let view = format!("0 0 {} {}", Px(width), Px(height));
    html.element(
        "svg",
        &[
            ("class", &class),
            ("viewBox", &view),
            ("role", &"img"),
            ("aria-labelledby", &format!("{title} {description}")),
            ("xmlns", &super::SVG),
        ],
        |svg| {
            svg.leaf("title", &[("id", &title)], caption.title);
            svg.leaf("desc", &[("id", &description)], caption.description);
            draw(svg);
        },
    );
    html.line();
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_do_not_touch() {
        let values: Vec<f64> = (1..=50).map(f64::from).collect();
        let scale = Scale::from_zero(&values).over(0.0, 400.0);
        let axis = Axis::at_values("", scale, &values, format::short);
        let kept = axis.thinned();
        assert!(kept.len() > 8 && kept.len() < 40);
        assert_eq!(kept.last().map(|(_, label)| *label), Some("50"));
        assert!(kept.windows(2).all(|pair| pair[1].0 - pair[0].0 > 10.0));
    }
}
