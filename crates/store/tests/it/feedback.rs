//! Recompilation of applied Managers, and the replica that does it.

use std::time::Duration;

use domain::{
    Focus, Sensitivity, Timestamp,
    manager::{CreateManager, Input, InputFocus, InputType, Origin, SourceType},
};
use store::{
    AsyncPgConnection, feedback,
    feedback::Due,
    managers::{self, Submission},
    work::Room,
};
use test_support::instructions;

use crate::support::{run, start};

const DUE: Due = Due {
    interval: Duration::from_secs(24 * 3600),
    verdicts: 2,
    pause: Duration::from_secs(3600),
};

/// Begins all recompilations that are due.
async fn claim_due(conn: &mut AsyncPgConnection) -> Vec<Submission> {
    let room = Room::new(9, 0, 9);
    let mut begun = Vec::new();
    for due in feedback::due(conn, DUE, &room).await.unwrap() {
        begun.extend(feedback::begin(conn, due.item, DUE).await.unwrap());
    }
    begun
}

#[tokio::test]
async fn an_applied_manager_is_claimed_once_when_due_and_stored_only_while_unchanged() {
    let mut at = start().await;
    let draft = CreateManager {
        nickname: "watch".to_owned(),
        enable: true,
        source: SourceType::Forum,
        origin: Origin::Input(Input {
            input_type: InputType::Structured,
            urls: vec!["https://example.com/".to_owned()],
            focus: InputFocus {
                focus_type: Focus::Sales,
                names: Vec::new(),
            },
            sensitivity: Sensitivity::Balanced,
            sells: None,
        }),
        notices: Vec::new(),
        screen: domain::screen::Screen::default(),
    };
    let made = managers::insert(
        &mut at.conn,
        at.fixture.namespace,
        &draft,
        &test_support::QUOTAS,
    )
    .await;
    let name = made.unwrap().name;
    // A waiting Manager is compiled for its submission.
    assert!(claim_due(&mut at.conn).await.is_empty());
    let (kettle, now) = (instructions("kettle"), Timestamp::now());
    managers::apply(&mut at.conn, name, 1, &kettle, &test_support::QUOTAS, now)
        .await
        .unwrap()
        .unwrap();
    assert!(claim_due(&mut at.conn).await.is_empty());

    run(
        &mut at.conn,
        "UPDATE managers SET apply_time = now() - interval '3 days'",
    )
    .await;
    let claimed = claim_due(&mut at.conn).await;
    assert_eq!(
        (claimed.len(), claimed[0].manager, claimed[0].generation),
        (1, name, 1)
    );
    // The claimer has an hour; then any replica may claim it.
    assert!(claim_due(&mut at.conn).await.is_empty());
    run(
        &mut at.conn,
        "UPDATE managers SET recompile_after = now() - interval '1 second'",
    )
    .await;
    assert_eq!(claim_due(&mut at.conn).await.len(), 1);

    let teapot = instructions("teapot");
    let stale = feedback::reapply(&mut at.conn, name, 2, &teapot, &test_support::QUOTAS, now)
        .await
        .unwrap();
    assert_eq!(stale, None);
    let stored = feedback::reapply(&mut at.conn, name, 1, &teapot, &test_support::QUOTAS, now)
        .await
        .unwrap();
    assert!(stored.is_some());
    let found = managers::get(&mut at.conn, name).await.unwrap().unwrap();
    assert_eq!(found.instructions.unwrap().include, teapot.include);
    assert!(claim_due(&mut at.conn).await.is_empty());
    assert!(
        feedback::verdicts(&mut at.conn, name, 9)
            .await
            .unwrap()
            .is_empty()
    );
}
