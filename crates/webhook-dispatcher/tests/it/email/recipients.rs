//! Recipients who have not confirmed, and those that their server refuses.

use std::collections::BTreeSet;

use store::mail;
use test_support::eventually;

use super::{MailServer, confirmed, connect, header, unwrapped, world};
use crate::support::World;

async fn states(world: &World) -> BTreeSet<String> {
    let states = world.database.texts("state", "mail_recipients").await;
    states.into_iter().collect()
}

#[tokio::test]
async fn recipient_without_confirmation_gets_one_request_and_no_scan() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = connect(&world, "mailto:ada@example.com").await;
    // Another customer's Connection asks the same address.
    connect(&world, "mailto:Ada@example.com").await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    assert_eq!(world.attempts().await, ["1 - no_confirmed_recipient"]);
    let asked = "mail_recipients WHERE ask_time IS NOT NULL";
    eventually("one was asked", async || {
        world.database.count(asked).await == 1
    })
    .await;
    world.beats(4).await;
    replica.stop().await;
    assert_eq!(world.database.count(asked).await, 1);
    server.until(1).await;
    let mails = [server.to("ada@example.com"), server.to("Ada@example.com")].concat();
    let mail = unwrapped(&mails[0]);
    assert!(
        mail.contains("https://earshot.example/mail/confirm/"),
        "{mail}"
    );
    assert!(
        !mail.contains("kettle") && !mail.contains("nickname"),
        "{mail}"
    );
}

#[tokio::test]
async fn permanent_reply_ends_the_delivery_and_keeps_the_connection() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["spam@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 554 -"]);
    let active = "connections WHERE state = 'ACTIVE'";
    assert_eq!(world.database.count(active).await, 1);
}

#[tokio::test]
async fn recipient_that_does_not_exist_is_refused_and_the_last_one_disables() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com", "gone@example.com"]).await;
    let lonely = confirmed(&world, &["gone2@example.com"]).await;
    let manager = world.manager(&[connection, lonely]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    server.until(1).await;
    assert_eq!(server.to("ada@example.com").len(), 1);
    let expected = ["CONFIRMED", "REFUSED"].map(str::to_owned);
    assert_eq!(states(&world).await, BTreeSet::from(expected));
    let disabled = world
        .database
        .texts("state_reason", "connections WHERE state = 'DISABLED'")
        .await;
    assert_eq!(disabled, [mail::NO_RECIPIENT]);
}

#[tokio::test]
async fn log_does_not_show_the_addresses_in_replies() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connections = [
        confirmed(&world, &["ada@example.com"]).await,
        confirmed(&world, &["gone@example.com"]).await,
    ];
    let manager = world.manager(&connections).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    let replies = "delivery_attempts ORDER BY status_code";
    let replies = world.database.texts("response_body", replies).await;
    assert_eq!(replies[0], "OK, a mail for ***@example.com");
    assert_eq!(replies[1], "5.1.1 <***@example.com>: no such user");
}

#[tokio::test]
async fn recipients_are_told_that_the_last_one_of_another_connection_is_gone() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let receiving = confirmed(&world, &["ada@example.com"]).await;
    let id = receiving.connection.to_uuid();
    // An event is not gathered for a digest.
    let sql = format!(
        "UPDATE connections SET events = '{{CONNECTION_DISABLED}}', digest = 'DAILY' WHERE id = '{id}'"
    );
    world.database.run(&sql).await;
    let lonely = confirmed(&world, &["gone@example.com"]).await;
    let manager = world.manager(&[lonely]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(1).await;
    let mails = server.to("ada@example.com");
    assert_eq!(mails.len(), 1);
    assert!(
        unwrapped(&mails[0]).contains(mail::NO_RECIPIENT),
        "{}",
        mails[0]
    );
    assert!(header(&mails[0], "List-Unsubscribe").contains("/mail/unsubscribe/"));
}
