//! The figures of this process. The processes of workers are not counted.

use galatea_system::ProcessFigures;

use super::text::{Number, Text};
use crate::families::{CPU_SECONDS, MOST_FILES, OPEN_FILES, RESIDENT, START_TIME, VIRTUAL};

/// Writes the figures that the operating system reports.
pub(super) fn write(text: &mut Text) {
    let figures = ProcessFigures::read();
    for (family, seconds) in
        [(&CPU_SECONDS, figures.cpu_seconds), (&START_TIME, figures.start_seconds)]
    {
        if let Some(seconds) = seconds {
            text.single(family, Number(seconds));
        }
    }
    for (family, count) in [
        (&RESIDENT, figures.resident_bytes),
        (&VIRTUAL, figures.virtual_bytes),
        (&OPEN_FILES, figures.open_files),
        (&MOST_FILES, figures.most_open_files),
    ] {
        if let Some(count) = count {
            text.single(family, count);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::families::{BUILD_INFO, PROGRAM};

    #[test]
    fn every_program_metric_has_a_value() {
        let mut text = Text::default();
        write(&mut text);
        let text = text.finish();
        for family in PROGRAM.iter().filter(|family| family.name != BUILD_INFO.name) {
            let line = text.lines().find(|line| line.starts_with(&format!("{} ", family.name)));
            let value: f64 =
                line.expect(family.name)[family.name.len()..].trim().parse().expect("a number");
            assert!(value >= 0.0, "{line:?}");
        }
    }
}
