use std::time::Duration;

use domain::{
    Focus, Id, Manager, ManagerName, Sensitivity, Timestamp,
    manager::{
        ApplyError, ApplyErrorCode, CreateManager, Input, InputFocus, InputType, ManagerState,
        Mode, Origin, SourceType,
    },
};
use store::{AsyncPgConnection, managers};
use test_support::instructions;
use uuid::Uuid;

use crate::support::{Look, run, start};

async fn get(conn: &mut AsyncPgConnection, name: ManagerName) -> Manager {
    managers::get(conn, name).await.unwrap().unwrap()
}

/// Waiting Managers in the order of their claims, which end at once.
async fn waiting(conn: &mut AsyncPgConnection) -> Vec<ManagerName> {
    let mut look = Look::of(Uuid::new_v4());
    let claimed = managers::claim(conn, Mode::Automatic, &mut look.claim()).await;
    run(conn, "UPDATE managers SET compiled_by = NULL").await;
    let items = claimed.unwrap().items.into_iter();
    items.map(|leased| leased.item.manager).collect()
}

fn automatic() -> CreateManager {
    CreateManager {
        nickname: "watch".to_owned(),
        enable: true,
        source: SourceType::Microblog,
        origin: Origin::Input(Input {
            input_type: InputType::Structured,
            urls: vec!["https://example.com/".to_owned()],
            focus: InputFocus {
                focus_type: Focus::Sales,
                names: vec!["Acme".to_owned()],
            },
            sensitivity: Sensitivity::Balanced,
            sells: None,
        }),
        notices: Vec::new(),
        screen: domain::screen::Screen::default(),
    }
}

#[tokio::test]
async fn a_manager_reads_as_it_was_written() {
    let mut at = start().await;
    let first = at
        .fixture
        .connection(&mut at.conn, "https://a.example/")
        .await;
    let second = at
        .fixture
        .connection(&mut at.conn, "https://b.example/")
        .await;
    let draft = CreateManager {
        notices: vec![second.into(), first.into()],
        ..automatic()
    };
    let made = managers::insert(
        &mut at.conn,
        at.fixture.namespace,
        &draft,
        &test_support::QUOTAS,
    )
    .await
    .unwrap();
    assert_eq!(get(&mut at.conn, made.name).await, made);
    assert_eq!(
        (made.mode, made.state),
        (Mode::Automatic, ManagerState::PendingApply)
    );
    let notices: Vec<_> = made
        .notices
        .iter()
        .map(|notice| notice.connection)
        .collect();
    assert_eq!(notices, [second, first]);
    assert!(managers::exists(&mut at.conn, made.name).await.unwrap());

    let elsewhere = ManagerName {
        namespace: Id::generate(),
        ..made.name
    };
    assert_eq!(managers::get(&mut at.conn, elsewhere).await.unwrap(), None);
    assert!(!managers::exists(&mut at.conn, elsewhere).await.unwrap());
}

#[tokio::test]
async fn sensitivity_is_stored_and_balanced_in_rows_without_it() {
    let mut at = start().await;
    let mut draft = automatic();
    if let Origin::Input(input) = &mut draft.origin {
        input.sensitivity = Sensitivity::Broad;
    }
    let name = managers::insert(
        &mut at.conn,
        at.fixture.namespace,
        &draft,
        &test_support::QUOTAS,
    )
    .await
    .unwrap()
    .name;
    let read = get(&mut at.conn, name).await.input.unwrap();
    assert_eq!(read.sensitivity, Sensitivity::Broad);
    let submission = managers::submission(&mut at.conn, name).await.unwrap();
    assert_eq!(submission.unwrap().origin, draft.origin);

    run(
        &mut at.conn,
        "UPDATE managers SET input = input - 'sensitivity'",
    )
    .await;
    let read = get(&mut at.conn, name).await.input.unwrap();
    assert_eq!(read.sensitivity, Sensitivity::Balanced);
}

#[tokio::test]
async fn the_compiler_gets_the_present_submission_until_it_is_done() {
    let mut at = start().await;
    let draft = automatic();
    let name = managers::insert(
        &mut at.conn,
        at.fixture.namespace,
        &draft,
        &test_support::QUOTAS,
    )
    .await
    .unwrap()
    .name;
    let later = Timestamp::now().plus(Duration::from_secs(1));
    assert_eq!(waiting(&mut at.conn).await, [name]);
    let submission = managers::submission(&mut at.conn, name)
        .await
        .unwrap()
        .unwrap();
    assert_eq!(
        (submission.generation, submission.source),
        (1, SourceType::Microblog)
    );
    assert_eq!(submission.origin, draft.origin);

    let stale = managers::apply(
        &mut at.conn,
        name,
        2,
        &instructions("rust"),
        &test_support::QUOTAS,
        later,
    )
    .await;
    assert_eq!(stale.unwrap(), None);
    let applied = managers::apply(
        &mut at.conn,
        name,
        1,
        &instructions("rust"),
        &test_support::QUOTAS,
        later,
    )
    .await;
    assert!(applied.unwrap().is_some());
    let manager = get(&mut at.conn, name).await;
    assert_eq!(manager.state, ManagerState::Applied);
    assert_eq!(manager.instructions, Some(instructions("rust")));
    assert_eq!(
        (manager.apply_time, manager.update_time),
        (Some(later), later)
    );

    assert_eq!(
        managers::submission(&mut at.conn, name).await.unwrap(),
        None
    );
    assert!(waiting(&mut at.conn).await.is_empty());
    let twice = managers::apply(
        &mut at.conn,
        name,
        1,
        &instructions("go"),
        &test_support::QUOTAS,
        later,
    )
    .await;
    assert_eq!(twice.unwrap(), None);
}

#[tokio::test]
async fn waiting_managers_are_claimed_longest_waiting_first() {
    let mut at = start().await;
    let mut names = Vec::new();
    for _ in 0..4 {
        let manager = managers::insert(
            &mut at.conn,
            at.fixture.namespace,
            &automatic(),
            &test_support::QUOTAS,
        )
        .await;
        names.push(manager.unwrap().name);
    }
    // Two of them at the same time.
    for (name, age) in names.iter().zip([10, 30, 30, 40]) {
        let id = name.manager.to_uuid();
        let sql = format!(
            "UPDATE managers SET submit_time = date_trunc('day', now()) - interval '{age} s' WHERE id = '{id}'"
        );
        run(&mut at.conn, sql).await;
    }
    let found = waiting(&mut at.conn).await;
    assert_eq!(found, [names[3], names[1], names[2], names[0]]);
}

#[tokio::test]
async fn a_failed_apply_keeps_its_reason() {
    let mut at = start().await;
    let name = at
        .fixture
        .manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let submitted = get(&mut at.conn, name).await;
    assert_eq!(
        submitted.instructions,
        Some(instructions("rust")),
        "shown while it waits"
    );
    let error = ApplyError {
        code: ApplyErrorCode::NoReachableUrl,
        // Text from a foreign server.
        message: "no\0pe".to_owned(),
    };
    let now = Timestamp::now();
    assert!(
        !managers::fail(&mut at.conn, name, 7, &error, now)
            .await
            .unwrap()
    );
    assert!(
        managers::fail(&mut at.conn, name, 1, &error, now)
            .await
            .unwrap()
    );
    let manager = get(&mut at.conn, name).await;
    assert_eq!(manager.state, ManagerState::ApplyFailed);
    assert_eq!(manager.apply_error.unwrap().message, "nope");
    assert_eq!(manager.instructions, None, "none ever came to work");
}

#[tokio::test]
async fn instructions_taken_from_pages_may_have_nul_characters() {
    let mut at = start().await;
    let name = at
        .fixture
        .manager(&mut at.conn, &instructions("rust"), &[])
        .await;
    let odd = instructions("ru\0st");
    let version = managers::apply(
        &mut at.conn,
        name,
        1,
        &odd,
        &test_support::QUOTAS,
        Timestamp::now(),
    )
    .await;
    assert!(version.unwrap().is_some());
    assert_eq!(
        get(&mut at.conn, name).await.instructions,
        Some(instructions("rust"))
    );
}
