//! Deliveries with several attempts: who has the mail gets no other, unless its reply was lost or it is replayed.

use std::time::Duration;

use test_support::eventually;

use super::{LOCK_LOG, MailServer, confirmed, header, world};

#[tokio::test]
async fn retry_is_for_recipients_whose_mail_was_not_taken() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com", "later@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(2).await;
    assert_eq!(server.to("ada@example.com").len(), 1);
    assert_eq!(world.attempts().await, ["1 451 -", "2 250 -"]);
    assert_eq!(world.database.count("mail_receipts").await, 2);
}

/// Twice a process dies after it stored who got the mail, and before it stored the attempt: once in an attempt that fails
/// for one recipient, and once in the attempt for the others.
#[tokio::test]
async fn recipients_get_one_mail_although_their_attempts_are_lost() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com", "later@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let scan = world.scan(manager, "Which kettle?").await;
    for receipts in [1, 2] {
        let lock = world.database.begin(&[LOCK_LOG]).await;
        let replica = world.ready_dispatcher().await;
        world.publish_created(scan).await;
        eventually("it is stored who got the mail", async || {
            world.database.count("mail_receipts").await == receipts
        })
        .await;
        replica.kill();
        drop(lock);
    }
    let replica = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(2).await;
    assert_eq!(server.to("ada@example.com").len(), 1);
    assert_eq!(world.attempts().await, ["1 - -"]);
}

#[tokio::test]
async fn replay_is_for_all_recipients() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com", "later@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    world.replay(connection).await;
    server.until(4).await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    assert_eq!(server.to("ada@example.com").len(), 2);
}

#[tokio::test]
async fn shutdown_stores_who_got_a_mail_although_the_server_hangs() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    world.config.ops.grace_period = Duration::from_millis(100);
    let connection = confirmed(&world, &["ada@example.com", "hang@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    // The server shows the second before it hangs.
    server.until(2).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 - timeout"]);
    assert_eq!(world.database.count("mail_receipts").await, 1);
}

#[tokio::test]
async fn mail_whose_reply_is_lost_comes_again_with_the_same_id() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["lost@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(2).await;
    let mails = server.to("lost@example.com");
    assert_eq!(
        header(&mails[0], "Message-ID"),
        header(&mails[1], "Message-ID")
    );
}

/// The dispatcher dies after its mail was taken, and before it stored that.
#[tokio::test]
async fn delivery_of_a_killed_dispatcher_is_taken_over() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let lock = world.database.begin(&[LOCK_LOG]).await;
    let first = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    server.until(1).await;
    first.kill();
    drop(lock);
    let second = world.ready_dispatcher().await;
    world.until("SUCCEEDED", 1).await;
    second.stop().await;
    server.until(2).await;
    let mails = server.to("ada@example.com");
    assert_eq!(
        header(&mails[0], "Message-ID"),
        header(&mails[1], "Message-ID")
    );
}
