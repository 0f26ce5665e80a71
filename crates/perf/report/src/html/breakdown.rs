//! Where the time goes: client, network, queue and compute, for each step of an ensemble too.

use galatea_perf_types::summary::{Point, ServerTimes, Summary};

use super::{
    axis::{Caption, Screen},
    figures::{self, DEEPEST, amount},
    format,
    markup::Markup,
    stacked_bars::{self, Bar, Part, Segment},
    table::{self, Table},
    times_table,
};

/// More than this cannot be read.
const MOST_BARS: usize = 60;

pub fn draw(html: &mut Markup, runs: &[Summary], names: &[String]) {
    html.element("section", &[("id", &"time")], |html| {
        html.leaf("h2", &[], "Where the time goes");
        html.leaf(
            "p",
            &[("class", &"about")],
            "An average request from the client\u{2019}s call to its return, to scale; where there is room, in shares at the right.",
        );
        let groups: Vec<Vec<Vec<Bar>>> = runs.iter().map(groups_of).collect();
        let bars: Vec<&Bar> = groups.iter().flatten().flatten().collect();
        stacked_bars::legend(html, &bars);
        let longest = bars.iter().map(|bar| bar.total()).fold(0.0, f64::max);
        for (i, (groups, name)) in groups.into_iter().zip(names).enumerate() {
            if runs.len() > 1 {
                html.leaf("h3", &[("class", &format!("run{}", i % 6))], name);
            }
            draw_run(html, i, groups, name, longest);
        }
        let tables: Vec<Table> = runs.iter().zip(names).map(|(r, n)| times_table::of(r, n)).collect();
        table::numbers(html, &tables);
    });
}

/// The bars of each point.
fn groups_of(run: &Summary) -> Vec<Vec<Bar>> {
    figures::points(run).iter().map(|point| bars_of(run, point)).collect()
}

fn draw_run(html: &mut Markup, index: usize, groups: Vec<Vec<Bar>>, name: &str, longest: f64) {
    let drawn = thinned(&groups);
    let all = groups.len();
    let bars: Vec<Bar> = groups
        .into_iter()
        .enumerate()
        .filter(|(i, _)| drawn.contains(i))
        .flat_map(|(_, g)| g)
        .collect();
    if bars.is_empty() {
        html.leaf("p", &[("class", &"nothing")], "Nothing was measured.");
        return;
    }
    let title = format!("Where the time goes, {name}");
    let description = bars.iter().filter(|bar| bar.depth == 0).map(sentence).collect::<String>();
    let id = format!("time-{index}");
    for screen in Screen::BOTH {
        let caption = Caption { id: &id, title: &title, description: &description, screen };
        stacked_bars::draw(html, &caption, &bars, longest);
    }
    if drawn.len() < all {
        let text = format!("{} of {all} points are drawn; the table has all.", drawn.len());
        html.leaf("p", &[("class", &"about")], text);
    }
}

/// Points to draw: all, or the first, the last, and some evenly between.
fn thinned(groups: &[Vec<Bar>]) -> Vec<usize> {
    let bars: usize = groups.iter().map(Vec::len).sum();
    let largest = groups.iter().map(Vec::len).max().unwrap_or(1).max(1);
    let most = (MOST_BARS / largest).max(2);
    if bars <= MOST_BARS || groups.len() <= most {
        return (0..groups.len()).collect();
    }
    (0..most).map(|i| i * (groups.len() - 1) / (most - 1)).collect()
}

fn sentence(bar: &Bar) -> String {
    let longest = bar.segments.iter().max_by(|a, b| a.us.total_cmp(&b.us));
    let most = longest.map(|s| format!(", most of it {}", s.part.name())).unwrap_or_default();
    format!("{}: {}{most}. ", bar.name, format::duration(bar.total()))
}

/// The bar of a point, then those of the steps.
fn bars_of(run: &Summary, point: &Point) -> Vec<Bar> {
    let load = figures::load(point);
    let segments = segments_of(point);
    if segments.iter().all(|segment| segment.us <= 0.0) {
        return Vec::new();
    }
    let mut bars = vec![Bar {
        label: load.clone(),
        name: format!("{}, {load}", run.model),
        depth: 0,
        segments,
    }];
    if let Some(server) = &point.server {
        add_steps(&mut bars, server, 1, &load);
    }
    bars
}

fn add_steps(bars: &mut Vec<Bar>, parent: &ServerTimes, depth: usize, load: &str) {
    if depth > DEEPEST {
        return;
    }
    for step in &parent.composing {
        let name = match step.version.as_str() {
            "" => format!("{}, {load}", step.model),
            version => format!("{}, version {version}, {load}", step.model),
        };
        let mut segments = inside(step);
        let known: f64 = segments.iter().map(|segment| segment.us).sum();
        let rest = (amount(step.request_us) - known).max(0.0);
        segments.insert(0, Segment { part: Part::Network, us: rest });
        bars.push(Bar { label: step.model.clone(), name, depth, segments });
        add_steps(bars, step, depth + 1, load);
    }
}

/// The client's view: send, what is neither client nor known to the server, the server's parts, receive.
fn segments_of(point: &Point) -> Vec<Segment> {
    let send = amount(point.client.send_us);
    let receive = amount(point.client.receive_us);
    let waited = amount(point.client.response_wait_us);
    // Streams have no times of the client: there the latency is all that is known.
    let wait = if send + receive + waited > 0.0 { waited } else { amount(point.latency.avg_us) };
    let middle = match &point.server {
        Some(server) => server_segments(server, wait),
        None => vec![Segment { part: Part::Wait, us: wait }],
    };
    let mut segments = vec![Segment { part: Part::Send, us: send }];
    segments.extend(middle);
    segments.push(Segment { part: Part::Receive, us: receive });
    segments
}

fn server_segments(server: &ServerTimes, wait: f64) -> Vec<Segment> {
    let mut parts = inside(server);
    let mut known: f64 = parts.iter().map(|segment| segment.us).sum();
    let request = amount(server.request_us);
    if known > request.max(wait) && !server.composing.is_empty() {
        parts = vec![Segment { part: Part::Overlapping, us: request }];
        known = request;
    }
    parts.insert(0, Segment { part: Part::Network, us: (wait - known).max(0.0) });
    parts
}

/// Parts of a model's request; those of an ensemble are the sums over its steps.
fn inside(server: &ServerTimes) -> Vec<Segment> {
    let mut parts = vec![
        Segment { part: Part::Queue, us: amount(server.queue_us) },
        Segment { part: Part::ComputeInput, us: amount(server.compute_input_us) },
        Segment { part: Part::ComputeInfer, us: amount(server.compute_infer_us) },
        Segment { part: Part::ComputeOutput, us: amount(server.compute_output_us) },
        Segment { part: Part::CacheHit, us: amount(server.cache_hit_us) },
        Segment { part: Part::CacheMiss, us: amount(server.cache_miss_us) },
    ];
    let is_unknown = parts.iter().all(|segment| segment.us == 0.0);
    if is_unknown {
        for step in &server.composing {
            let runs = runs_of(step, server);
            for (part, of_step) in parts.iter_mut().zip(inside(step)) {
                part.us += of_step.us * runs;
            }
        }
    }
    parts
}

/// How often a step runs in a request of the ensemble.
fn runs_of(step: &ServerTimes, parent: &ServerTimes) -> f64 {
    match (step.success_count, parent.success_count) {
        (0, _) | (_, 0) => 1.0,
        (step, parent) => step as f64 / parent as f64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn step(infer: f64, count: u64) -> ServerTimes {
        ServerTimes {
            request_us: infer,
            compute_infer_us: infer,
            success_count: count,
            ..ServerTimes::default()
        }
    }

    fn us(segments: &[Segment], part: Part) -> f64 {
        segments.iter().filter(|s| s.part == part).map(|s| s.us).sum()
    }

    #[test]
    fn what_the_server_does_not_account_for_is_network_and_overhead() {
        let server = ServerTimes { queue_us: 20.0, compute_infer_us: 50.0, ..step(50.0, 1) };
        let segments = server_segments(&server, 100.0);
        assert_eq!(us(&segments, Part::Network), 30.0);
        assert_eq!(segments.iter().map(|s| s.us).sum::<f64>(), 100.0);
    }

    #[test]
    fn an_ensemble_is_the_sum_of_its_steps_by_how_often_they_run() {
        let ensemble = ServerTimes {
            request_us: 100.0,
            success_count: 10,
            composing: vec![step(30.0, 10), step(20.0, 20)],
            ..ServerTimes::default()
        };
        let segments = server_segments(&ensemble, 120.0);
        assert_eq!(us(&segments, Part::ComputeInfer), 70.0);
        assert_eq!(us(&segments, Part::Network), 50.0);
    }

    #[test]
    fn parallel_steps_do_not_make_a_request_longer_than_it_was() {
        let ensemble = ServerTimes {
            request_us: 100.0,
            success_count: 1,
            composing: vec![step(90.0, 1), step(80.0, 1)],
            ..ServerTimes::default()
        };
        let segments = server_segments(&ensemble, 120.0);
        assert_eq!(us(&segments, Part::Overlapping), 100.0);
        assert_eq!(segments.iter().map(|s| s.us).sum::<f64>(), 120.0);
    }

    #[test]
    fn of_many_points_the_first_and_the_last_are_drawn() {
        let groups: Vec<Vec<Bar>> = (0..50)
            .map(|_| {
                let bar = || Bar {
                    label: String::new(),
                    name: String::new(),
                    depth: 0,
                    segments: Vec::new(),
                };
                vec![bar(), bar(), bar()]
            })
            .collect();
        let drawn = thinned(&groups);
        assert_eq!((drawn.len(), drawn.first(), drawn.last()), (20, Some(&0), Some(&49)));
    }
}
