//! The tests that passed only at a later try, as nextest reports them in its JUnit file.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};
use quick_xml::escape::resolve_predefined_entity;
use quick_xml::events::{BytesStart, Event};
use quick_xml::{Reader, XmlVersion};

/// A test that failed at first and then passed.
#[derive(Debug, PartialEq)]
pub(super) struct Flaky {
    pub(super) name: String,
    /// What it printed at each failed try.
    pub(super) outputs: Vec<String>,
}

/// Begins the message of a test that found what no slow machine explains: `LOSS` in `tests-e2e/src/harness/wait.rs`.
const LOSS: &str = "LOSS: ";

impl Flaky {
    /// Returns the lines about what no slow machine explains, of any try. A retry does not excuse that.
    pub(super) fn losses(&self) -> impl Iterator<Item = &str> {
        let lines = self.outputs.iter().flat_map(|output| output.lines());
        lines.filter(|line| line.contains(LOSS))
    }
}

/// Returns the flaky tests of a run.
pub(super) fn read(report: &Path) -> Result<Vec<Flaky>> {
    let text = fs::read_to_string(report).with_context(|| format!("read {}", report.display()))?;
    parse(&text).with_context(|| format!("parse {}", report.display()))
}

fn parse(report: &str) -> Result<Vec<Flaky>> {
    let mut reader = Reader::from_str(report);
    let mut flaky: Vec<Flaky> = Vec::new();
    let (mut test, mut in_failure, mut in_output) = (String::new(), false, false);
    loop {
        match reader.read_event()? {
            Event::Start(tag) => match tag.name().as_ref() {
                "testcase" => {
                    let (program, name) = (attribute(&tag, "classname")?, attribute(&tag, "name")?);
                    test = format!("{program} {name}");
                }
                "flakyFailure" => {
                    in_failure = true;
                    if flaky.last().is_none_or(|last| last.name != test) {
                        let (name, outputs) = (test.clone(), Vec::new());
                        flaky.push(Flaky { name, outputs });
                    }
                    if let Some(last) = flaky.last_mut() {
                        last.outputs.push(String::new());
                    }
                }
                "system-out" | "system-err" => in_output = true,
                _ => {}
            },
            Event::End(tag) => match tag.name().as_ref() {
                "flakyFailure" => in_failure = false,
                "system-out" | "system-err" => in_output = false,
                _ => {}
            },
            Event::Eof => return Ok(flaky),
            other if in_failure && in_output => {
                if let Some(output) = flaky.last_mut().and_then(|last| last.outputs.last_mut()) {
                    output.push_str(&text(&other)?);
                }
            }
            _ => {}
        }
    }
}

fn text(event: &Event<'_>) -> Result<String> {
    Ok(match event {
        Event::Text(text) => text.xml10_content().into_owned(),
        Event::CData(text) => text.xml10_content().into_owned(),
        Event::GeneralRef(entity) => match entity.resolve_char_ref()? {
            Some(sign) => sign.to_string(),
            None => resolve_predefined_entity(&entity.xml10_content())
                .unwrap_or_default()
                .to_owned(),
        },
        _ => String::new(),
    })
}

fn attribute(tag: &BytesStart<'_>, name: &str) -> Result<String> {
    let attribute = tag
        .try_get_attribute(name)?
        .with_context(|| format!("no attribute {name}"))?;
    Ok(attribute
        .normalized_value(XmlVersion::Implicit1_0)?
        .into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn outputs_of_a_flaky_test_are_read() {
        let report = r#"<?xml version="1.0" encoding="UTF-8"?>
            <testsuites name="nextest-run"><testsuite name="bus::bus">
            <testcase name="always" classname="bus::bus"/>
            <testcase name="publisher::late" classname="bus::bus">
                <flakyFailure timestamp="t" time="1.0" type="test failure with exit code 101">
                    <system-out>a &lt; b</system-out><system-err>panicked</system-err>
                </flakyFailure>
                <flakyFailure timestamp="t" time="1.0"><system-out>second</system-out></flakyFailure>
            </testcase>
            <testcase name="broken" classname="bus::bus">
                <failure type="test failure"><system-out>no</system-out></failure>
            </testcase>
            </testsuite></testsuites>"#;
        let expected = Flaky {
            name: "bus::bus publisher::late".to_owned(),
            outputs: ["a < bpanicked", "second"].map(str::to_owned).to_vec(),
        };
        assert_eq!(parse(report).unwrap(), [expected]);
    }

    #[test]
    fn losses_of_each_try_are_found() {
        let late = "not within 120s: 3 posts are Scans";
        let lost = "panicked at books.rs:1:2:\nLOSS: two Scans of one post\nassertion failed: LOSS: a\nLOSSES";
        let test = Flaky {
            name: "tests-e2e::faults seed_1".to_owned(),
            outputs: [late, lost].map(str::to_owned).to_vec(),
        };
        let found: Vec<&str> = test.losses().collect();
        assert_eq!(
            found,
            ["LOSS: two Scans of one post", "assertion failed: LOSS: a"]
        );
    }
}
