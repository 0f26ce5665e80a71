//! The times of clients, models and steps in numbers.

use galatea_perf_types::summary::{Point, ServerTimes, Summary};

use super::{
    figures::{self, DEEPEST, amount},
    format::{self, Unit},
    table::{Row, Table},
};

/// A row for each point, then one for each step of it.
pub fn of(run: &Summary, name: &str) -> Table {
    let points = figures::points(run);
    let times = points.iter().flat_map(|p| [p.latency.avg_us, p.client.response_wait_us]);
    let unit = Unit::of_table(times);
    let mut rows = Vec::new();
    for point in &points {
        let load = figures::load_cell(&points, point);
        rows.push(point_row(point, load, unit));
        if let Some(server) = &point.server {
            step_rows(&mut rows, server, 1, unit);
        }
    }
    let head = [
        figures::load_name(&points),
        "Model",
        "Send",
        "Wait",
        "Receive",
        "Request",
        "Queue",
        "Input",
        "Infer",
        "Output",
        "Cache hit",
        "Cache miss",
        "Requests",
        "Inferences",
        "Executions",
        "Batch",
    ];
    let head = head.iter().map(ToString::to_string).collect();
    let any = |of: fn(&ServerTimes) -> f64| {
        points.iter().any(|point| point.server.as_ref().is_some_and(|s| is_anywhere(s, of, 0)))
    };
    let (hits, misses) = (any(|server| server.cache_hit_us), any(|server| server.cache_miss_us));
    let caption = format!("{name}: average times in {}", unit.name);
    Table { caption, head, rows }.without("Cache hit", !hits).without("Cache miss", !misses)
}

/// Whether a model has this time, or one inside it.
fn is_anywhere(server: &ServerTimes, of: fn(&ServerTimes) -> f64, depth: usize) -> bool {
    let mut inside = server.composing.iter().take_while(|_| depth < DEEPEST);
    amount(of(server)) > 0.0 || inside.any(|step| is_anywhere(step, of, depth + 1))
}

fn point_row(point: &Point, load: String, unit: Unit) -> Row {
    let client = &point.client;
    let times = [client.send_us, client.response_wait_us, client.receive_us];
    let model = point
        .server
        .as_ref()
        .map_or("–".into(), |server| format::shortened(&server.model, 1.0, 30.0));
    let mut cells = vec![load.into(), model.into()];
    cells.extend(times.map(|us| unit.write(us).into()));
    match &point.server {
        Some(server) => cells.extend(server_cells(server, unit).map(Into::into)),
        None => cells.extend((0..11).map(|_| "–".into())),
    }
    Row { class: "point", cells }
}

fn step_rows(rows: &mut Vec<Row>, parent: &ServerTimes, depth: usize, unit: Unit) {
    if depth > DEEPEST {
        return;
    }
    for step in &parent.composing {
        let name =
            format!("{}{}", "\u{2003}".repeat(depth), format::shortened(&step.model, 1.0, 30.0));
        let mut cells = vec!["".into(), name.into(), "".into(), "".into(), "".into()];
        cells.extend(server_cells(step, unit).map(Into::into));
        rows.push(Row { class: "step", cells });
        step_rows(rows, step, depth + 1, unit);
    }
}

fn server_cells(server: &ServerTimes, unit: Unit) -> [String; 11] {
    let batch = match server.execution_count {
        0 => "–".into(),
        executions => format::number(server.inference_count as f64 / executions as f64),
    };
    [
        unit.write(server.request_us),
        unit.write(server.queue_us),
        unit.write(server.compute_input_us),
        unit.write(server.compute_infer_us),
        unit.write(server.compute_output_us),
        unit.write(server.cache_hit_us),
        unit.write(server.cache_miss_us),
        format::count(server.success_count),
        format::count(server.inference_count),
        format::count(server.execution_count),
        batch,
    ]
}
