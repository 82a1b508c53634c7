//! Output: tables for people, JSON and CSV for programs.

use std::io::{IsTerminal, Write, stdout};

use clap::ValueEnum;
use serde_json::Value;
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use super::{
    Failure,
    foreign::{escaped, one_line},
    place::variable,
    resources::{self, Columns, cell},
};

/// Maximum width of a column, except the last one, because people copy it.
const MAX_WIDTH: usize = 60;

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum Form {
    /// A table with columns.
    Table,
    /// One JSON document.
    Json,
    /// One JSON document per line.
    Jsonl,
    /// CSV for spreadsheets, which must not interpret text as formulas.
    Csv,
}

impl Form {
    /// Returns the requested format, or the default for a terminal or a pipe.
    pub(crate) fn or_default(given: Option<Self>) -> Self {
        given.unwrap_or_else(|| match stdout().is_terminal() {
            true => Self::Table,
            false => Self::Jsonl,
        })
    }
}

/// Prints the items of one list, page after page.
pub(crate) struct Printer {
    form: Form,
    columns: Vec<String>,
    /// Widths of the columns, from the first page.
    widths: Vec<usize>,
    kept: Vec<Value>,
    bold: bool,
}

impl Printer {
    pub(crate) fn new(form: Form, columns: Columns, given: &[String]) -> Self {
        let usual = match form {
            Form::Csv => columns.csv,
            _ => columns.table,
        };
        let columns = match given {
            [] => usual.iter().map(|&column| column.to_owned()).collect(),
            given => given.to_vec(),
        };
        Self {
            form,
            columns,
            widths: Vec::new(),
            kept: Vec::new(),
            bold: stdout().is_terminal() && variable("NO_COLOR").is_none(),
        }
    }

    pub(crate) fn page(&mut self, items: Vec<Value>) -> Result<(), Failure> {
        let mut text = String::new();
        match self.form {
            Form::Json => self.kept.extend(items),
            Form::Jsonl => {
                for item in items {
                    text.push_str(&escaped(&item.to_string()));
                    text.push('\n');
                }
            }
            Form::Csv => {
                if self.widths.is_empty() {
                    text.push_str(&csv_line(self.columns.iter().map(String::as_str)));
                    self.widths.push(0);
                }
                for item in &items {
                    let cells: Vec<String> = self
                        .columns
                        .iter()
                        .map(|column| cell(item, column))
                        .collect();
                    text.push_str(&csv_line(cells.iter().map(String::as_str)));
                }
            }
            Form::Table => self.table(&items, &mut text),
        }
        print(&text)
    }

    fn table(&mut self, items: &[Value], text: &mut String) {
        let rows: Vec<Vec<String>> = items
            .iter()
            .map(|item| {
                let cells = self
                    .columns
                    .iter()
                    .map(|column| one_line(&cell(item, column)));
                cells.collect()
            })
            .collect();
        if self.widths.is_empty() && !rows.is_empty() {
            let heads: Vec<String> = self.columns.iter().map(|column| head(column)).collect();
            self.widths = (0..heads.len())
                .map(|at| {
                    let widest = rows.iter().map(|row| row[at].width()).max();
                    widest.unwrap_or(0).max(heads[at].width()).min(MAX_WIDTH)
                })
                .collect();
            let line = self.line(&heads);
            if self.bold {
                *text += &format!("\u{1b}[1m{line}\u{1b}[0m\n");
            } else {
                *text += &format!("{line}\n");
            }
        }
        for row in &rows {
            *text += &self.line(row);
            text.push('\n');
        }
    }

    fn line(&self, cells: &[String]) -> String {
        let last = cells.len().saturating_sub(1);
        let mut line = String::new();
        for (at, cell) in cells.iter().enumerate() {
            if at == last {
                line.push_str(cell);
                break;
            }
            let width = self.widths.get(at).copied().unwrap_or(MAX_WIDTH);
            let shown = cut(cell, width);
            line.push_str(&shown);
            line.push_str(&" ".repeat(width.saturating_sub(shown.width()) + 2));
        }
        line.trim_end().to_owned()
    }

    pub(crate) fn finish(self) -> Result<(), Failure> {
        if self.form == Form::Json {
            let json = format!("{:#}\n", Value::Array(self.kept));
            print(&escaped(&json))?;
        } else if self.form == Form::Table && self.widths.is_empty() {
            eprintln!("none");
        }
        Ok(())
    }
}

/// Prints one resource: for people, one field per line.
pub(crate) fn one(form: Form, columns: Columns, item: Value) -> Result<(), Failure> {
    match form {
        Form::Table => {
            let mut lines = String::new();
            fields("", &item, &mut lines);
            print(&lines)
        }
        Form::Json => print(&escaped(&format!("{item:#}\n"))),
        Form::Jsonl | Form::Csv => {
            let mut printer = Printer::new(form, columns, &[]);
            printer.page(vec![item])?;
            printer.finish()
        }
    }
}

fn fields(path: &str, value: &Value, lines: &mut String) {
    match value {
        Value::Object(object) => {
            for (name, value) in object {
                let path = match path {
                    "" => name.clone(),
                    path => format!("{path}.{name}"),
                };
                fields(&path, value, lines);
            }
        }
        Value::Array(items) if items.iter().any(Value::is_object) => {
            for (at, item) in items.iter().enumerate() {
                fields(&format!("{path}[{at}]"), item, lines);
            }
        }
        value => {
            *lines += &format!(
                "{}: {}\n",
                one_line(path),
                one_line(&resources::text(value))
            );
        }
    }
}

/// Returns the header of a column: `title` for `post.title|post.text`.
fn head(column: &str) -> String {
    let first = column.split('|').next().unwrap_or_default();
    let last = first.rsplit('.').next().unwrap_or_default();
    one_line(last).to_uppercase()
}

fn cut(text: &str, width: usize) -> String {
    if text.width() <= width {
        return text.to_owned();
    }
    let mut taken = 0;
    let mut shown: String = text
        .chars()
        .take_while(|c| {
            taken += c.width().unwrap_or(0);
            taken < width
        })
        .collect();
    shown.push('…');
    shown
}

/// Returns a line according to RFC 4180. Text that a spreadsheet would interpret as a formula starts with an
/// apostrophe.
fn csv_line<'a>(cells: impl Iterator<Item = &'a str>) -> String {
    let mut line = String::new();
    for (at, cell) in cells.enumerate() {
        if at > 0 {
            line.push(',');
        }
        let guard = if cell.starts_with(['=', '+', '-', '@', '\t', '\r']) {
            "'"
        } else {
            ""
        };
        if cell.contains(['"', ',', '\n', '\r']) {
            line.push_str(&format!("\"{guard}{}\"", cell.replace('"', "\"\"")));
        } else {
            line.push_str(guard);
            line.push_str(cell);
        }
    }
    line.push_str("\r\n");
    line
}

/// Prints to stdout and flushes.
pub(crate) fn print(text: &str) -> Result<(), Failure> {
    let mut out = stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::{csv_line, cut};

    #[test]
    fn csv_cells_are_never_formulas() {
        for (cell, expected) in [
            ("plain", "plain"),
            ("=1+1", "'=1+1"),
            ("+1", "'+1"),
            ("-1", "'-1"),
            ("@x", "'@x"),
            ("\tx", "'\tx"),
            ("\rx", "\"'\rx\""),
            ("a \"b\", c", "\"a \"\"b\"\", c\""),
            ("=a,b", "\"'=a,b\""),
            ("a\nb", "\"a\nb\""),
        ] {
            assert_eq!(csv_line([cell].into_iter()), format!("{expected}\r\n"));
        }
    }

    #[test]
    fn wide_characters_count_twice() {
        assert_eq!(cut("abcdef", 4), "abc…");
        assert_eq!(cut("備份軟體", 5), "備份…");
        assert_eq!(cut("abcd", 4), "abcd");
    }
}
