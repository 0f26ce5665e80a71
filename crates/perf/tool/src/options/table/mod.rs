//! The option table, in perf_analyzer's groups and one for other options.

mod extensions;
mod general;
mod input;
mod measurement;
mod other;
mod row;
mod server;

use galatea_command_line::Group;

use self::row::Row;
use super::given_options::GivenOptions;

pub const GROUPS: &[Group<GivenOptions>] = &[
    group("General", general::ROWS),
    group("Measurement", measurement::ROWS),
    group("Input data", input::ROWS),
    group("Server", server::ROWS),
    group("Other", other::ROWS),
    Group { title: "Beyond perf_analyzer", rows: extensions::ROWS, is_own: true },
];

const fn group(title: &'static str, rows: &'static [Row]) -> Group<GivenOptions> {
    Group { title, rows, is_own: false }
}
