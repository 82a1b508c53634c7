//! `earshot diff --days`: which recent posts a change of Managers would gain and lose.

use serde_json::{Value, json};

use super::{command_line::cli_at, support::PATIENCE};
use crate::harness::{Stack, eventually, programs};

const WORD: &str = "quernbill";

/// Returns a Manager of the posts with [`WORD`], as YAML.
fn document(nickname: &str, exclude: &str) -> String {
    format!(
        "---\nkind: Manager\nnickname: {nickname}\ntype: FEED_MANAGER\nsource: {{type: FORUM}}\n\
         instructions: {{feeds: ['hackernews:newest'], require: [[{WORD}]], exclude: [{exclude}]}}\n"
    )
}

fn titles(posts: &Value) -> Vec<&str> {
    let posts = posts.as_array().unwrap().iter();
    posts.map(|post| post["title"].as_str().unwrap()).collect()
}

pub(crate) async fn run(stack: &Stack) {
    let namespace = stack.api.create_namespace(WORD).await;
    let manager = json!({
        "nickname": "ours", "type": "FEED_MANAGER", "source": {"type": "FORUM"},
        "instructions": {"feeds": ["hackernews:newest"], "require": [[WORD]], "exclude": ["jobs"]},
    });
    let manager = stack.api.create_manager(&namespace, &manager).await;
    stack.api.applied(&manager, PATIENCE).await;
    let posts = ["for jobs", "for sale", "at home"].map(|about| {
        json!({
            "platform": "hackernews", "title": format!("{WORD} {about}"), "author": "someone",
            "text": "There is nothing else to say about it.",
        })
    });
    stack.simulator.publish(&posts).await;
    // The excluded post is the oldest, so it is stored before the others match.
    eventually("the posts are read", PATIENCE, async || {
        (stack.api.scans(&manager, 100).await.len() == 2).then_some(())
    })
    .await;

    let viewer = stack.key("dev", "VIEWER");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("f.yaml");
    let diff = |key: &str, text: &str, options: &[&str], code: i32| -> programs::Ended {
        std::fs::write(&path, text).unwrap();
        let file = path.to_str().unwrap();
        let all = ["diff", "-f", file, "--namespace", &namespace, "--days", "1"];
        let ended = cli_at(&stack.api_url, key, &[&all[..], options].concat());
        assert_eq!(ended.code, Some(code), "{options:?}: {ended:#?}");
        ended
    };
    let changes = |text: &str, options: &[&str]| -> Value {
        let options = [options, &["--output", "json"]].concat();
        let mut plan: Value =
            serde_json::from_str(&diff(&viewer, text, &options, 4).stdout).unwrap();
        plan["changes"].take()
    };

    let same = diff(&viewer, &document("ours", "jobs"), &[], 0);
    assert!(same.stdout.starts_with("= 1 unchanged"), "{same:#?}");

    let changed = document("ours", "sale");
    let found = changes(&changed, &[]);
    let posts = &found[0]["posts"];
    assert_eq!(titles(&posts["gained"]), [format!("{WORD} for jobs")]);
    assert_eq!(titles(&posts["lost"]), [format!("{WORD} for sale")]);
    let gained = &posts["gained"][0];
    assert_eq!(gained["old"]["reason"], "EXCLUDE", "{gained}");
    assert_eq!(gained["new"]["reason"], "MATCHED", "{gained}");
    assert!(gained["new"]["score"].is_number(), "{gained}");
    let shown = diff(&viewer, &changed, &[], 4).stdout;
    for part in [": 1 gained, 1 lost", "+ quernbill for jobs  http"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }

    // A new Manager gains all that it matches, and one that is disabled or deleted loses all that it matched.
    let both = document("ours", "jobs") + &document("new", "sale");
    let found = changes(&both, &[]);
    assert_eq!(found[0]["action"], "CREATE");
    assert_eq!(titles(&found[0]["posts"]["gained"]).len(), 2, "{found}");
    for (text, options) in [
        (document("ours", "jobs") + "enable: false\n", &[][..]),
        (document("new", "sale"), &["--prune"][..]),
    ] {
        let found = changes(&text, options);
        let lost = &found.as_array().unwrap().last().unwrap()["posts"]["lost"];
        assert_eq!(titles(lost).len(), 2, "{found}");
    }
    let muted = document("ours", "jobs") + "mutes: [{type: TERM, value: home}]\n";
    let found = changes(&muted, &[]);
    assert_eq!(
        found[0]["posts"]["lost"][0]["new"]["reason"], "MUTED",
        "{found}"
    );

    // Unknown until a page is read.
    let with_input = "kind: Manager\nnickname: ours\ntype: FEED_MANAGER\nsource: {type: FORUM}\n\
                      input: {type: STRUCTURED, urls: ['https://example.com/'], focus: {type: SALES}}\n";
    let found = changes(with_input, &[]);
    assert!(found[0]["posts"]["unknown"].is_string(), "{found}");

    // What the service refuses is refused with file and field.
    let closed = document("ours", "jobs").replace("hackernews:", "nowhere:");
    let refused = diff(&viewer, &closed, &[], 1);
    for part in ["f.yaml:2: its posts", "instructions.feeds[0]: not_found"] {
        assert!(refused.stderr.contains(part), "{part}: {refused:#?}");
    }
    let plan = &refused.stdout;
    assert!(plan.contains("posts: cannot be compared"), "{refused:#?}");
    let other = stack.key("diff", "OWNER");
    let refused = diff(&other, &changed, &[], 1);
    assert!(refused.stderr.contains("refused (403)"), "{refused:#?}");
}
