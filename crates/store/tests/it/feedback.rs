//! Recompilation of applied Managers, and the replica that does it.

use std::time::Duration;

use domain::{
    Focus, Sensitivity, Timestamp,
    manager::{CreateManager, Input, InputFocus, InputType, Origin, SourceType},
};
use store::{feedback, feedback::Due, managers};
use test_support::instructions;

use crate::support::{run, start};

const DUE: Due = Due {
    interval: Duration::from_secs(24 * 3600),
    verdicts: 2,
    memory: Duration::from_secs(7 * 24 * 3600),
    pause: Duration::from_secs(3600),
};

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
    assert!(
        feedback::claim_due(&mut at.conn, DUE, 9)
            .await
            .unwrap()
            .is_empty()
    );
    let (kettle, now) = (instructions("kettle"), Timestamp::now());
    managers::apply(&mut at.conn, name, 1, &kettle, &test_support::QUOTAS, now)
        .await
        .unwrap()
        .unwrap();
    assert!(
        feedback::claim_due(&mut at.conn, DUE, 9)
            .await
            .unwrap()
            .is_empty()
    );

    run(
        &mut at.conn,
        "UPDATE managers SET apply_time = now() - interval '3 days'",
    )
    .await;
    let claimed = feedback::claim_due(&mut at.conn, DUE, 9).await.unwrap();
    assert_eq!(
        (claimed.len(), claimed[0].manager, claimed[0].generation),
        (1, name, 1)
    );
    // The claimer has an hour; then any replica may claim it.
    assert!(
        feedback::claim_due(&mut at.conn, DUE, 9)
            .await
            .unwrap()
            .is_empty()
    );
    run(
        &mut at.conn,
        "UPDATE managers SET recompile_after = now() - interval '1 second'",
    )
    .await;
    assert_eq!(
        feedback::claim_due(&mut at.conn, DUE, 9)
            .await
            .unwrap()
            .len(),
        1
    );

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
    assert!(
        feedback::claim_due(&mut at.conn, DUE, 9)
            .await
            .unwrap()
            .is_empty()
    );
    assert!(
        feedback::verdicts(&mut at.conn, name, 9)
            .await
            .unwrap()
            .is_empty()
    );
}
