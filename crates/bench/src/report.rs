//! Results of a bench: a table for people, JSON for programs that compare runs.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::Serialize;

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    name: &'static str,
    rows: Vec<Row>,
    /// Notes for the interpretation of the figures: the machine, and what else ran.
    notes: Vec<String>,
}

/// A measurement.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Row {
    what: String,
    goal: String,
    measured: String,
    /// Result of another implementation in the same run.
    reference: String,
    /// True if the goal is met; `None` if there is no goal.
    ok: Option<bool>,
}

impl Row {
    pub(crate) fn new(what: impl Into<String>, measured: impl Into<String>) -> Self {
        Self {
            what: what.into(),
            measured: measured.into(),
            ..Self::default()
        }
    }

    pub(crate) fn goal(mut self, goal: impl Into<String>, met: bool) -> Self {
        self.goal = goal.into();
        self.ok = Some(met);
        self
    }

    pub(crate) fn reference(mut self, reference: impl Into<String>) -> Self {
        self.reference = reference.into();
        self
    }

    fn cells(&self) -> [&str; 5] {
        let ok = match self.ok {
            Some(true) => "yes",
            Some(false) => "NO",
            None => "",
        };
        [&self.what, &self.goal, &self.measured, &self.reference, ok]
    }
}

impl Report {
    /// Creates the report of the bench `name`, which is also its file name.
    pub(crate) fn new(name: &'static str) -> Self {
        let cores = std::thread::available_parallelism().map_or(0, usize::from);
        Self {
            name,
            rows: Vec::new(),
            notes: vec![format!(
                "{cores} cores, shared by the load, its target and all servers"
            )],
        }
    }

    /// Adds a row and prints it at once, because the table comes at the end.
    pub(crate) fn row(&mut self, row: Row) {
        eprintln!("{}: {}", row.what, row.measured);
        self.rows.push(row);
    }

    pub(crate) fn note(&mut self, note: impl Into<String>) {
        self.notes.push(note.into());
    }

    /// Returns true if all goals are met.
    pub(crate) fn is_met(&self) -> bool {
        self.rows.iter().all(|row| row.ok != Some(false))
    }

    /// Writes `<directory>/<name>.json`.
    pub(crate) fn write(&self, directory: &Path) -> Result<PathBuf> {
        fs::create_dir_all(directory).with_context(|| format!("make {}", directory.display()))?;
        let path = directory.join(format!("{}.json", self.name));
        let mut text = serde_json::to_string_pretty(self)?;
        text.push('\n');
        fs::write(&path, text).with_context(|| format!("write {}", path.display()))?;
        Ok(path)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let head = [
            "what",
            "goal",
            "measured",
            "reference in the same run",
            "ok?",
        ];
        let lines: Vec<[&str; 5]> = std::iter::once(head)
            .chain(self.rows.iter().map(Row::cells))
            .collect();
        let mut widths = [0; 5];
        for line in &lines {
            for (width, cell) in widths.iter_mut().zip(line) {
                *width = (*width).max(cell.chars().count());
            }
        }
        for (at, line) in lines.iter().enumerate() {
            for (cell, width) in line.iter().zip(widths) {
                write!(f, "| {cell:width$} ")?;
            }
            writeln!(f, "|")?;
            if at == 0 {
                for width in widths {
                    write!(f, "|{}", "-".repeat(width + 2))?;
                }
                writeln!(f, "|")?;
            }
        }
        for note in &self.notes {
            writeln!(f, "{note}")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{Report, Row};

    #[test]
    fn columns_are_aligned_and_missed_goals_are_marked() {
        let mut report = Report::new("sample");
        report.row(Row::new("fast", "9 µs").goal("< 10 µs", true));
        assert!(report.is_met());
        report.row(
            Row::new("a longer name", "1 s")
                .goal("< 1 ms", false)
                .reference("2 s"),
        );
        assert!(!report.is_met());
        let text = report.to_string();
        let widths: Vec<usize> = text
            .lines()
            .take(4)
            .map(|line| line.chars().count())
            .collect();
        assert!(widths.iter().all(|width| *width == widths[0]), "{text}");
        assert!(text.contains("| NO  |"), "{text}");
    }
}
