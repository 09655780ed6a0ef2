//! Display of the progress of a fetch: bars on a terminal, plain lines elsewhere.

use std::io::IsTerminal;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Receiver of the progress of a fetch. Called on the thread that fetches.
pub trait Progress {
    /// Reports one line.
    fn note(&mut self, line: &str);
    /// Reports that a step of `bytes_total` bytes begins; the one before has ended.
    fn begin(&mut self, step: &str, bytes_total: u64);
    /// Reports that the step has reached `bytes`, which may be less than the last time.
    fn reached(&mut self, bytes: u64);
    /// Reports that the step is done. Not called for a step that failed.
    fn end(&mut self);
}

/// Returns a display on standard error: bars if it is a terminal, else one line per step.
#[must_use]
pub fn for_stderr() -> Box<dyn Progress> {
    if std::io::stderr().is_terminal() { Box::new(Bars::default()) } else { Box::new(Lines) }
}

/// No display.
#[derive(Debug, Default)]
pub struct Quiet;

impl Progress for Quiet {
    fn note(&mut self, _line: &str) {}
    fn begin(&mut self, _step: &str, _bytes_total: u64) {}
    fn reached(&mut self, _bytes: u64) {}
    fn end(&mut self) {}
}

/// One bar at a time on standard error.
#[derive(Debug, Default)]
struct Bars {
    bar: Option<ProgressBar>,
}

impl Progress for Bars {
    fn note(&mut self, line: &str) {
        match &self.bar {
            Some(bar) => bar.suspend(|| eprintln!("{line}")),
            None => eprintln!("{line}"),
        }
    }

    fn begin(&mut self, step: &str, bytes_total: u64) {
        let style = ProgressStyle::with_template(
            "{msg:44!} {bar:24} {decimal_bytes:>10} / {decimal_total_bytes:<10} {eta:>4}",
        )
        .expect("the template is constant and well formed");
        let bar =
            ProgressBar::with_draw_target(Some(bytes_total), ProgressDrawTarget::stderr()).with_style(style);
        bar.set_message(step.to_owned());
        self.bar = Some(bar);
    }

    fn reached(&mut self, bytes: u64) {
        if let Some(bar) = &self.bar {
            bar.set_position(bytes);
        }
    }

    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.set_position(bar.length().unwrap_or(0));
            bar.abandon();
        }
    }
}

/// One line at the beginning of each step.
#[derive(Debug, Default)]
struct Lines;

impl Progress for Lines {
    fn note(&mut self, line: &str) {
        eprintln!("{line}");
    }

    fn begin(&mut self, step: &str, bytes_total: u64) {
        eprintln!("{step}: {}", megabytes(bytes_total));
    }

    fn reached(&mut self, _bytes: u64) {}

    fn end(&mut self) {}
}

/// Formats bytes for people: `58.4 MB`.
#[must_use]
pub(super) fn megabytes(bytes: u64) -> String {
    let tenths = bytes.div_ceil(100_000);
    format!("{}.{} MB", tenths / 10, tenths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn megabytes_round_up_to_a_tenth() {
        assert_eq!(megabytes(58_368_729), "58.4 MB");
        assert_eq!(megabytes(4_794), "0.1 MB");
        assert_eq!(megabytes(0), "0.0 MB");
    }
}
