//! Bars of what a time is made of: to scale at the left, as shares at the right.

use super::{
    axis::{self, Axis, Caption, Frame, Screen, TICK_SIZE},
    format,
    markup::{Markup, Px},
    scale::Scale,
};

const SHARE_WIDTH: f64 = 230.0;
const TOTAL_WIDTH: f64 = 74.0;
const INDENT: f64 = 14.0;
const TOP: f64 = 10.0;

pub struct Bar {
    pub label: String,
    /// Name of the whole bar in tips.
    pub name: String,
    /// Zero for a point, one and more for what is inside it.
    pub depth: usize,
    pub segments: Vec<Segment>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Segment {
    pub part: Part,
    pub us: f64,
}

/// What a part of the time is called, and the class that colours it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Part {
    Send,
    /// All that the client waited for the response, where the server gives no times.
    Wait,
    Network,
    Queue,
    ComputeInput,
    ComputeInfer,
    ComputeOutput,
    CacheHit,
    CacheMiss,
    /// Steps of an ensemble that ran at the same time: their times do not add up.
    Overlapping,
    Receive,
}

impl Part {
    pub fn name(self) -> &'static str {
        match self {
            Self::Send => "client send",
            Self::Wait => "wait for the response",
            Self::Network => "network + overhead",
            Self::Queue => "queue",
            Self::ComputeInput => "compute input",
            Self::ComputeInfer => "compute infer",
            Self::ComputeOutput => "compute output",
            Self::CacheHit => "cache hit",
            Self::CacheMiss => "cache miss",
            Self::Overlapping => "steps, overlapping",
            Self::Receive => "client receive",
        }
    }

    pub fn class(self) -> &'static str {
        match self {
            Self::Send => "part-send",
            Self::Wait => "part-wait",
            Self::Network => "part-network",
            Self::Queue => "part-queue",
            Self::ComputeInput => "part-input",
            Self::ComputeInfer => "part-infer",
            Self::ComputeOutput => "part-output",
            Self::CacheHit => "part-hit",
            Self::CacheMiss => "part-miss",
            Self::Overlapping => "part-overlapping",
            Self::Receive => "part-receive",
        }
    }
}

impl Bar {
    pub fn total(&self) -> f64 {
        self.segments.iter().map(|segment| segment.us).sum()
    }
}

/// The scale reaches to `longest`, so that several charts can be compared.
pub fn draw(html: &mut Markup, caption: &Caption<'_>, bars: &[Bar], longest: f64) {
    let layout = Layout::of(bars, longest, caption.screen);
    axis::chart(html, caption, [layout.width, layout.frame.bottom + 48.0], |svg| {
        layout.draw_axes(svg);
        for (bar, top) in bars.iter().zip(&layout.tops) {
            layout.draw_bar(svg, bar, *top);
        }
    });
}

struct Layout {
    width: f64,
    frame: Frame,
    axis: Axis,
    /// The shares at the right, where there is room.
    share: Option<(Frame, Axis)>,
    /// From one bar to the next.
    pitch: f64,
    /// Where each bar begins.
    tops: Vec<f64>,
    /// Before the bar of each point.
    space: f64,
}

impl Layout {
    fn of(bars: &[Bar], longest: f64, screen: Screen) -> Self {
        let has_steps = bars.iter().any(|bar| bar.depth > 0);
        let pitch = if has_steps {
            21.0
        } else if bars.len() > 24 {
            19.0
        } else {
            26.0
        };
        let space = if has_steps { 10.0 } else { 0.0 };
        let mut end = TOP - space;
        let mut tops = Vec::new();
        for bar in bars {
            end += if bar.depth == 0 { space } else { 0.0 };
            tops.push(end);
            end += pitch;
        }
        let labels = bars
            .iter()
            .map(|bar| format::text_width(&bar.label, TICK_SIZE) + INDENT * bar.depth as f64);
        let widest = screen.pick(230.0, 118.0);
        let left = labels.fold(0.0, f64::max).clamp(40.0, widest) + 14.0;
        let (top, bottom, width) = (TOP, end + 3.0, screen.pick(960.0, 340.0));
        let share_left = width - SHARE_WIDTH - 24.0;
        let right = screen.pick(share_left, width) - TOTAL_WIDTH;
        let frame = Frame { left, top, right, bottom };
        let ticks = screen.pick(6, 2);
        let axis = Axis::new(
            "time of a request",
            Scale::from_zero(&[longest]),
            ticks,
            format::tick_duration,
        );
        let share = (screen == Screen::Wide).then(|| shares(frame, share_left));
        Self { width, axis: axis.over(frame.left, frame.right), frame, share, pitch, tops, space }
    }

    fn draw_axes(&self, svg: &mut Markup) {
        svg.element("g", &[("class", &"axes")], |svg| {
            let share = self.share.iter().map(|(frame, axis)| (frame, axis));
            for (frame, axis) in [(&self.frame, &self.axis)].into_iter().chain(share) {
                for (value, _) in &axis.ticks {
                    let x = axis.scale.position(*value);
                    axis::line(svg, "grid", [x, frame.top - 4.0, x, frame.bottom]);
                }
                frame.draw_x(svg, axis);
            }
        });
    }

    fn draw_bar(&self, svg: &mut Markup, bar: &Bar, top: f64) {
        let height = if bar.depth == 0 { self.pitch - 5.0 } else { self.pitch - 9.0 };
        let y = top + (self.pitch - height) / 2.0;
        let middle = top + self.pitch / 2.0 + 4.0;
        if bar.depth == 0 && top > self.frame.top && self.tops.len() > 1 {
            let y = top - self.space / 2.0;
            axis::line(svg, "separator", [4.0, y, self.width - 24.0, y]);
        }
        self.draw_label(svg, bar, middle);
        let total = bar.total();
        let (mut from, mut share_from) = (0.0, 0.0);
        for segment in bar.segments.iter().filter(|segment| segment.us > 0.0) {
            let share = segment.us / total;
            let tip = format!(
                "{}\n{}: {}, {:.1} %",
                bar.name,
                segment.part.name(),
                format::duration(segment.us),
                share * 100.0
            );
            let x = self.axis.scale.position(from);
            let width = self.axis.scale.position(from + segment.us) - x;
            draw_segment(svg, segment.part, [x, y, width, height], &tip);
            if let Some((_, axis)) = &self.share {
                let x = axis.scale.position(share_from);
                let width = axis.scale.position(share_from + share) - x;
                draw_segment(svg, segment.part, [x, y, width, height], &tip);
                draw_share(svg, segment.part, [x + width / 2.0, middle], [width, height], share);
            }
            from += segment.us;
            share_from += share;
        }
        let end = self.axis.scale.position(total) + 6.0;
        axis::text(svg, "total", [end, middle], &format::duration(total));
    }

    fn draw_label(&self, svg: &mut Markup, bar: &Bar, middle: f64) {
        let x = 4.0 + INDENT * bar.depth as f64;
        let room = self.frame.left - x - 8.0;
        let class = if bar.depth == 0 { "bar-label" } else { "bar-label step" };
        svg.element("text", &[("class", &class), ("x", &Px(x)), ("y", &Px(middle))], |svg| {
            svg.leaf("title", &[], &bar.name);
            svg.text(format::shortened(&bar.label, TICK_SIZE, room));
        });
    }
}

/// From 0 to 100 %, beside the frame.
fn shares(beside: Frame, left: f64) -> (Frame, Axis) {
    let frame = Frame { left, right: left + SHARE_WIDTH, ..beside };
    let percent = |share: f64| format!("{} %", format::short(share * 100.0));
    (frame, Axis::new("share", Scale::share(), 4, percent).over(frame.left, frame.right))
}

/// Written where it fits into the segment.
fn draw_share(svg: &mut Markup, part: Part, at: [f64; 2], [width, height]: [f64; 2], share: f64) {
    if width > 31.0 && height > 10.0 {
        let class = format!("inside middle on-{}", part.class());
        axis::text(svg, &class, at, &format!("{:.0} %", share * 100.0));
    }
}

/// A gap before the next one, unless nothing would be left of it.
fn draw_segment(svg: &mut Markup, part: Part, [x, y, width, height]: [f64; 4], tip: &str) {
    let gap = if width > 3.0 { 1.0 } else { 0.0 };
    axis::rectangle(svg, part.class(), [x, y, width - gap, height], tip);
}

/// The parts that occur, in the order of the bars.
pub fn legend(html: &mut Markup, bars: &[&Bar]) {
    let mut parts: Vec<Part> = bars
        .iter()
        .flat_map(|bar| &bar.segments)
        .filter(|segment| segment.us > 0.0)
        .map(|segment| segment.part)
        .collect();
    parts.sort();
    parts.dedup();
    html.element("ul", &[("class", &"legend")], |html| {
        for part in parts {
            html.element("li", &[], |html| {
                html.element(
                    "svg",
                    &[("width", &"14"), ("height", &"14"), ("aria-hidden", &"true")],
                    |svg| axis::rectangle(svg, part.class(), [0.0, 0.0, 14.0, 14.0], ""),
                );
                html.leaf("span", &[], part.name());
            });
        }
    });
}
