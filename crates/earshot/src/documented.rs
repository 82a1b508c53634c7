//! Checks that the parser accepts the command lines in README and docs. Decisions (`docs/adr`) keep those of their time.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::{Path, PathBuf},
};

use clap::{Command, CommandFactory, builder::ValueParser, error::ErrorKind};

/// The line that `earshot dev` prints, which is no command.
const READY: &str = "ready";

fn pages(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() && !path.ends_with("adr") {
            pages(&path, found);
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
}

/// A command line of a document.
struct Line {
    words: Vec<String>,
    /// True inside a sentence, where it may be shortened.
    is_span: bool,
}

/// Command lines in code blocks and code spans.
fn lines(text: &str) -> Vec<Line> {
    let (mut paragraphs, mut block, mut fenced) = (vec![String::new()], String::new(), false);
    let mut found = Vec::new();
    let mut add = |code: &str, is_span| {
        let calls = calls(code).into_iter();
        found.extend(calls.map(|words| Line { words, is_span }));
    };
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            add(&std::mem::take(&mut block), false);
            fenced = !fenced;
        } else if fenced {
            block.extend([line, "\n"]);
        } else if line.is_empty() {
            paragraphs.push(String::new());
        } else {
            // A span may continue on the next line.
            paragraphs.last_mut().unwrap().extend([line, " "]);
        }
    }
    for paragraph in paragraphs {
        for span in paragraph.split('`').skip(1).step_by(2) {
            add(span, true);
        }
    }
    found
}

/// Words of each call of `earshot` in shell code.
fn calls(code: &str) -> Vec<Vec<String>> {
    let code = code.replace("\\\n", " ");
    let mut calls: Vec<Vec<String>> = vec![vec![]];
    let (mut word, mut quote) = (None::<String>, None);
    let mut rest = code.chars().peekable();
    while let Some(c) = rest.next() {
        match (quote, c) {
            (Some(open), _) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '#') if word.is_none() => while rest.next_if(|c| *c != '\n').is_some() {},
            (None, ' ') => calls.last_mut().unwrap().extend(word.take()),
            (None, '\n' | '|' | '&' | ';' | '<' | '>' | '(' | ')') => {
                calls.last_mut().unwrap().extend(word.take());
                calls.push(vec![]);
            }
            _ => word.get_or_insert_default().push(c),
        }
    }
    calls.last_mut().unwrap().extend(word);
    for words in &mut calls {
        // A line of a workflow begins with `- run:`.
        let before = words
            .iter()
            .take_while(|word| ["-", "run:"].contains(&word.as_str()));
        words.drain(..before.count());
    }
    calls.retain(|words| words.len() > 1 && words[0] == "earshot");
    calls
}

/// Returns true for what a reader replaces.
fn is_placeholder(word: &str) -> bool {
    const NAMES: [&str; 8] = [
        "ACCOUNT", "COMMAND", "DELIVERY", "FILE", "ID", "MANAGER", "NAME", "SCAN",
    ];
    word.contains('…') || word.starts_with('$') || NAMES.contains(&word)
}

/// Accepts any values.
fn lax(command: Command) -> Command {
    let command = command.mut_args(|arg| {
        if arg.get_action().takes_values() {
            arg.value_parser(ValueParser::string())
        } else {
            arg
        }
    });
    command.mut_subcommands(lax)
}

/// Returns what the parser says against the line.
fn fault(line: &Line) -> Option<String> {
    if line.words[1] == READY || is_placeholder(&line.words[1]) {
        return None;
    }
    let command = crate::Arguments::command();
    let mut error = command.clone().try_get_matches_from(&line.words).err()?;
    let is_of_a_value = matches!(
        error.kind(),
        ErrorKind::ValueValidation | ErrorKind::InvalidValue
    );
    if is_of_a_value && line.words.iter().any(|word| is_placeholder(word)) {
        error = lax(command).try_get_matches_from(&line.words).err()?;
    }
    let is_fine = match error.kind() {
        ErrorKind::DisplayHelp | ErrorKind::DisplayVersion => true,
        ErrorKind::MissingRequiredArgument
        | ErrorKind::MissingSubcommand
        | ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand => line.is_span,
        _ => false,
    };
    (!is_fine).then(|| error.to_string())
}

#[test]
fn command_lines_in_documents_are_accepted() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let mut documents = vec![root.join("README.md")];
    pages(&root.join("docs"), &mut documents);
    let (mut seen, mut faults) = (0, Vec::new());
    for page in documents {
        for line in lines(&fs::read_to_string(&page).unwrap()) {
            seen += 1;
            if let Some(fault) = fault(&line) {
                faults.push(format!("{}: {:?}: {fault}", page.display(), line.words));
            }
        }
    }
    assert!(seen > 100, "only {seen} command lines were found");
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn command_lines_that_do_not_exist_are_found() {
    let text = "The line `earshot ready`, `earshot keys\ncreate`, `earshot keys make`, `earshot … --config x`.\n\n\
                ```sh\ncd earshot && earshot managers get NAME # a comment\nearshot managers list --colour | head\n\
                earshot keys create --account acme --role KING; earshot keys create\n\
                earshot managers update NAME \\\n  --sensitivity precise > 'a b'\n- run: earshot man --nope\n```\n";
    let lines = lines(text);
    assert_eq!(lines.len(), 10);
    let faults: Vec<_> = lines.iter().filter(|line| fault(line).is_some()).collect();
    let faults: Vec<_> = faults.iter().map(|line| line.words.join(" ")).collect();
    let expected = [
        "earshot managers list --colour",
        "earshot keys create --account acme --role KING",
        "earshot keys create",
        "earshot man --nope",
        "earshot keys make",
    ];
    assert_eq!(faults, expected);
}
