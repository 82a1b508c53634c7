//! Runs the scripts of the example workflow in the guide to Managers as code, with stand-ins for `earshot` and `gh`.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

use std::{
    fs,
    path::Path,
    process::{Command, Output},
};

/// `earshot` prints a file and ends with `$CODE`. `gh` records its arguments, and lists `$IDS` as its comments.
const STAND_INS: &str = r#"
earshot() { cat source.txt; echo 'earshot: an error' >&2; return "$CODE"; }
gh() {
    echo "$*" >> gh.txt
    case "$*" in *--jq*) test "$IDS" != fail || return 1; printf '%s' "$IDS" ;; esac
}
"#;
const TITLE: &str = "      + ::error::a title  https://a.example/\n";

/// Returns the scripts that have several lines.
fn scripts() -> Vec<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let guide = fs::read_to_string(root.join("docs/guides/managers-as-code.md")).unwrap();
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut scripts = Vec::new();
    let mut lines = guide.lines().peekable();
    while let Some(line) = lines.next() {
        if line.trim() != "run: |" {
            continue;
        }
        let outer = indent(line);
        let mut script = String::new();
        while let Some(line) = lines.next_if(|line| line.is_empty() || indent(line) > outer) {
            script += line.get(outer + 2..).unwrap_or_default();
            script.push('\n');
        }
        scripts.push(script);
    }
    scripts
}

/// Runs a script as GitHub does.
fn run(folder: &Path, script: &str, code: &str, ids: &str) -> Output {
    let script = format!("{STAND_INS}{script}");
    let mut command = Command::new("bash");
    command.args(["-e", "-c", &script]).current_dir(folder);
    command.envs([("CODE", code), ("IDS", ids)]);
    command.envs([("GH_REPO", "acme/watch"), ("NUMBER", "5")]);
    command.output().unwrap()
}

#[test]
fn workflow_comments_each_plan_and_fails_for_errors() {
    let scripts = scripts();
    let [plan, comment] = scripts.as_slice() else {
        panic!("{scripts:?}");
    };
    for (code, is_planned, ids, sent) in [
        ("0", true, "", "pr comment 5 "),
        (
            "4",
            true,
            "71\n72\n",
            "api repos/acme/watch/issues/comments/71 ",
        ),
        (
            "1",
            false,
            "71\n",
            "api repos/acme/watch/issues/comments/71 ",
        ),
        ("1", false, "", "pr comment 5 "),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let at = |file: &str| folder.path().join(file);
        fs::write(at("source.txt"), TITLE).unwrap();
        let planned = run(folder.path(), plan, code, ids);
        assert_eq!(planned.status.success(), is_planned, "{code}: {planned:?}");

        // The runner reads no commands in the titles.
        let log = String::from_utf8(planned.stdout).unwrap();
        let (first, rest) = log.split_once('\n').unwrap();
        let mark = first.strip_prefix("::stop-commands::").unwrap();
        assert!(mark.len() == 32, "{log}");
        let end = format!("\n::{mark}::\n");
        assert!(rest.starts_with(TITLE) && rest.ends_with(&end), "{log}");

        let commented = run(folder.path(), comment, code, ids);
        assert!(commented.status.success(), "{code}: {commented:?}");
        let text = fs::read_to_string(at("comment.md")).unwrap();
        let start = format!("<!-- earshot -->\n````text\n{TITLE}earshot: an error\n");
        assert!(
            text.starts_with(&start) && text.ends_with("\n````\n"),
            "{text}"
        );
        let asked = fs::read_to_string(at("gh.txt")).unwrap();
        let last = asked.lines().last().unwrap();
        assert!(last.starts_with(sent), "{asked}");
        assert!(last.contains("comment.md"), "{asked}");
    }
}

#[test]
fn workflow_cuts_long_plans_and_comments_once() {
    let scripts = scripts();
    let folder = tempfile::tempdir().unwrap();
    let at = |file: &str| folder.path().join(file);
    fs::write(at("source.txt"), TITLE.repeat(2_000)).unwrap();
    run(folder.path(), &scripts[0], "4", "");
    // Without the list of comments, it is unknown whether there is one.
    let commented = run(folder.path(), &scripts[1], "4", "fail");
    assert!(!commented.status.success(), "{commented:?}");
    let asked = fs::read_to_string(at("gh.txt")).unwrap();
    assert_eq!(asked.lines().count(), 1, "{asked}");
    let text = fs::read_to_string(at("comment.md")).unwrap();
    // GitHub refuses comments of more than 65,536 characters.
    assert!(text.len() < 65_536, "{}", text.len());
    assert!(text.ends_with("````\nThe log of the job has the rest.\n"));
}
