//! Missing, wrong or expired credentials: they appear in the log, the metrics, readiness and the feed's health, and
//! the other platforms are scanned.

use platform_simulator::REDDIT;
use platforms::Settings;
use runtime::config::Access;
use store::feeds::{self, FeedState};
use test_support::eventually;

use crate::{
    logs,
    support::{HACKER_NEWS, World, configured, metric},
};

#[tokio::test(flavor = "multi_thread")]
async fn unusable_credentials_are_reported_everywhere_and_affect_no_other_platform() {
    logs::keep();
    let mut world = World::new().await;
    let settings = |kind: &str, name: &str, access: Access| Settings {
        name: name.to_owned(),
        access,
        ..world.platforms.settings_of(kind)
    };
    let mut wrong = world.platforms.settings_of(REDDIT).access;
    wrong.client_secret = Some("hunter2".into());
    let expired = Access {
        token: Some("expired".into()),
        api_version: Some("202610".to_owned()),
        ..Access::default()
    };
    // The feed, and the expected reports.
    let cases = [
        (
            settings("facebook", "unlicensed", Access::default()),
            "unlicensed:page/12",
            "token is needed",
        ),
        (
            settings(REDDIT, "mistaken", wrong),
            "mistaken:r/rust",
            "401",
        ),
        (
            settings("linkedin", "outlived", expired),
            "outlived:organization/12",
            "401",
        ),
    ];
    let own = cases
        .iter()
        .map(|(settings, ..)| configured(settings.clone()));
    let own: Vec<_> = own.collect();
    world.config.platforms.extend(own);
    let mut watched = vec![HACKER_NEWS];
    watched.extend(cases.iter().map(|(_, feed, _)| *feed));
    let manager = world.manager("kettle", &watched).await;
    let replica = world.ready_scanner().await;
    world.publish("hackernews", "A kettle that listens");
    world.until_scanned(manager, 1).await;

    for (settings, feed, reason) in &cases {
        let name = settings.name.as_str();
        let blocked = format!(r#"earshot_feeds{{platform="{name}",state="BLOCKED"}} 1"#);
        eventually(&format!("the metric reports {name}"), async || {
            metric(&blocked)
        })
        .await;
        let mut detail = None;
        eventually(&format!("readiness reports {name}"), async || {
            let report = replica.health.report();
            let check = format!("platform.{name}");
            let check = report.checks.iter().find(|one| one.name == check);
            detail = check.and_then(|check| check.detail.clone());
            report.is_ready() && detail.is_some()
        })
        .await;
        assert!(detail.as_ref().unwrap().contains(reason), "{detail:?}");
        let lines = logs::about(name);
        assert!(
            lines.iter().any(|line| line.contains(reason)),
            "{name}: {lines:?}"
        );
        let mut conn = world.database.connect().await;
        let health = feeds::health_of(&mut conn, manager).await.unwrap();
        let health = health
            .iter()
            .find(|one| one.feed.as_str() == *feed)
            .unwrap();
        assert_eq!(health.state, FeedState::Blocked);
        let error = health.error.as_deref().unwrap_or_default();
        assert!(error.contains(reason), "{name}: {error}");
        for told in lines.iter().map(String::as_str).chain([error]) {
            assert!(!told.contains("hunter2"), "{told}");
        }
    }
    // A refusal by the platform is counted; a platform without an adapter gets no requests.
    for (name, counted) in [
        ("mistaken", true),
        ("outlived", true),
        ("unlicensed", false),
    ] {
        let refused =
            format!(r#"earshot_poll_failures_total{{platform="{name}",reason="unauthorized"}}"#);
        assert_eq!(metric(&refused), counted, "{name}");
    }
    world.publish("hackernews", "Another kettle");
    world.until_scanned(manager, 2).await;
    replica.stop().await;
}
