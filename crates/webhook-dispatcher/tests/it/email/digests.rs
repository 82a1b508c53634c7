//! Scans of a day in one mail: what it has, once to each recipient, and what is not read for it.

use std::{collections::BTreeSet, time::Duration};

use domain::{ConnectionName, ManagerName};
use store::connections;
use test_support::eventually;

use super::{LOCK_LOG, MailServer, confirmed, header, unwrapped, world};
use crate::{
    erased::{erase, retry_now},
    support::World,
};

/// A Manager whose Scans are gathered for a day.
async fn gathering(world: &World) -> ManagerName {
    let connection = confirmed(world, &["ada@example.com"]).await;
    world
        .database
        .run("UPDATE connections SET digest = 'DAILY'")
        .await;
    world.manager(&[connection]).await
}

/// Publishes Scans, and waits until all Connections have gathered them.
async fn gather(world: &World, manager: ManagerName, count: i64) {
    for number in 0..count {
        world
            .publish_scan(manager, &format!("kettle {number}"))
            .await;
    }
    let connections = world.database.count("connections").await;
    eventually("all are gathered", async || {
        world.database.count("digest_scans").await == count * connections
    })
    .await;
    assert_eq!(world.database.count("deliveries").await, 0);
}

/// Ends the day of Scans that were gathered.
async fn end_day(world: &World) {
    let yesterday = "UPDATE digest_scans SET create_time = create_time - interval '1 day'";
    world.database.run(yesterday).await;
}

#[tokio::test]
async fn digest_has_the_scans_of_a_day_in_one_mail() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let manager = gathering(&world).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 3).await;
    end_day(&world).await;
    world.until("SUCCEEDED", 1).await;
    eventually("nothing is left to do", async || {
        world.database.count("digests").await == 0
    })
    .await;
    replica.stop().await;
    server.until(1).await;
    let mails = server.to("ada@example.com");
    assert_eq!(mails.len(), 1);
    assert_eq!(header(&mails[0], "Subject"), "3 new posts");
    let mail = unwrapped(&mails[0]);
    for number in 0..3 {
        assert!(mail.contains(&format!("kettle {number}")), "{mail}");
    }
}

/// What a mail shows of all Scans becomes unreadable.
async fn damage_scans(world: &World) {
    let damage = "UPDATE scans SET matched = '\"unreadable\"'";
    assert!(world.database.run(damage).await > 0);
}

#[tokio::test]
async fn digest_without_a_confirmed_recipient_reads_no_scans() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let manager = gathering(&world).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 3).await;
    world.database.run("DELETE FROM mail_recipients").await;
    damage_scans(&world).await;
    end_day(&world).await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 - no_confirmed_recipient"]);
}

#[tokio::test]
async fn digest_beyond_our_limit_reads_no_scans() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    // One for each account.
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.max_per_minute = 2;
    let manager = gathering(&world).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 3).await;
    let other = confirmed(&world, &["grace@example.com"]).await;
    let other = world.manager(&[other]).await;
    world.publish_scan(other, "Which teapot?").await;
    world.until("SUCCEEDED", 1).await;
    damage_scans(&world).await;
    end_day(&world).await;
    world.until("RETRYING", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 250 -", "1 - too_many_mails"]);
}

#[tokio::test]
async fn digest_leaves_out_posts_that_were_deleted_at_their_source() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let manager = gathering(&world).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 3).await;
    erase(&world, "kettle 1").await;
    end_day(&world).await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(1).await;
    let mail = server.to("ada@example.com").remove(0);
    assert_eq!(header(&mail, "Subject"), "2 new posts");
    let mail = unwrapped(&mail);
    for number in [0, 2] {
        assert!(mail.contains(&format!("kettle {number}")), "{mail}");
    }
    assert_eq!(mail.matches("&mute=1").count(), 2, "{mail}");
}

#[tokio::test]
async fn two_dispatchers_make_one_digest_although_one_is_killed() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let manager = gathering(&world).await;
    let first = world.ready_dispatcher().await;
    let second = world.ready_dispatcher().await;
    gather(&world, manager, 2).await;
    end_day(&world).await;
    eventually("the digest is made", async || {
        world.database.count("deliveries").await > 0
    })
    .await;
    first.kill();
    world.until("SUCCEEDED", 1).await;
    second.stop().await;
    assert_eq!(world.database.count("deliveries").await, 1);
    let scans = "count(DISTINCT delivery_id) || ' for ' || count(delivery_id)";
    let scans = world.database.texts(scans, "digest_scans").await;
    assert_eq!(scans, ["1 for 2"]);
    // Two if the first died before it stored that its mail was taken.
    eventually("one or two mails", async || {
        [1, 2].contains(&server.count())
    })
    .await;
    let mails = server.to("ada@example.com");
    let ids: BTreeSet<String> = { mails.iter() }
        .map(|mail| header(mail, "Message-ID"))
        .collect();
    assert_eq!(ids.len(), 1);
    for mail in &mails {
        assert_eq!(header(mail, "Subject"), "2 new posts");
    }
}

/// The reason that the Connection's owner sees.
async fn digest_error(world: &World, connection: ConnectionName) -> Option<String> {
    let mut conn = world.database.connect().await;
    let health = connections::health(&mut conn, &[connection]).await;
    health.unwrap().remove(&connection).unwrap().digest_error
}

#[tokio::test]
async fn digest_that_ends_three_dispatchers_is_set_aside_and_its_owner_sees_why() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let deadly = confirmed(&world, &["ada@example.com"]).await;
    let other = confirmed(&world, &["grace@example.com"]).await;
    world
        .database
        .run("UPDATE connections SET digest = 'DAILY'")
        .await;
    let manager = world.manager(&[deadly, other]).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 1).await;
    replica.stop().await;

    let id = deadly.connection.to_uuid();
    for statement in [
        "CREATE FUNCTION hang() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN PERFORM pg_sleep(3600); RETURN NEW; END $$",
        "CREATE TRIGGER hang BEFORE INSERT ON digests FOR EACH ROW EXECUTE FUNCTION hang()",
        &format!(
            "UPDATE digest_scans SET create_time = create_time - interval '1 day' WHERE connection_id = '{id}'"
        ),
    ] {
        world.database.run(statement).await;
    }
    let lease = format!("leases WHERE kind = 'digest' AND key = '{id}'");
    let hangs = "pg_stat_activity WHERE datname = current_database() AND wait_event = 'PgSleep'";
    for _ in 0..3 {
        let replica = world.dispatcher();
        let leased = format!("{lease} AND leased_by = '{}'", replica.backbone.replica);
        eventually("it is being made", async || {
            world.database.count(&leased).await == 1 && world.database.count(hangs).await == 1
        })
        .await;
        assert_eq!(digest_error(&world, deadly).await, None);
        replica.kill();
        // The server notices the death of a client only when it answers.
        world.database.disconnect_all().await;
    }
    let replica = world.dispatcher();
    let set_aside =
        format!("{lease} AND leased_by IS NULL AND next_time > now() AND crash_count = 4");
    eventually("it is set aside", async || {
        world.database.count(&set_aside).await == 1
    })
    .await;
    // It must not be tried while a slow machine makes the other digest.
    let rest = async |until: &str| {
        let rest = format!("UPDATE leases SET next_time = {until} WHERE crash_count = 4");
        world.database.run(&rest).await
    };
    assert_eq!(rest("now() + interval '1 day'").await, 1);
    let reason = "the service stopped 3 times in a row while it worked on this";
    assert_eq!(digest_error(&world, deadly).await.as_deref(), Some(reason));
    assert_eq!(digest_error(&world, other).await, None);
    eventually("it is counted", async || {
        let text = prometheus::TextEncoder::new().encode_to_string(&prometheus::gather());
        let counted = "earshot_work_items_total{kind=\"digest\",outcome=\"set_aside\"} 1\n";
        text.unwrap().contains(counted)
    })
    .await;
    world.database.run("DROP TRIGGER hang ON digests").await;
    end_day(&world).await;
    world.until("SUCCEEDED", 1).await;
    server.until(1).await;
    assert_eq!(server.to("grace@example.com").len(), 1);

    assert_eq!(rest("now()").await, 1);
    world.until("SUCCEEDED", 2).await;
    server.until(2).await;
    assert_eq!(server.to("ada@example.com").len(), 1);
    assert_eq!(digest_error(&world, deadly).await, None);
    replica.stop().await;
}

/// Neither can store that a mail was taken, so what both sent comes again.
#[tokio::test]
async fn each_digest_comes_although_two_dispatchers_are_killed_while_they_send() {
    // More than one process makes at once.
    const COUNT: i64 = 9;
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let addresses: Vec<String> = (0..COUNT)
        .map(|number| format!("slow{number}@example.com"))
        .collect();
    let mut connections = Vec::new();
    for address in &addresses {
        connections.push(confirmed(&world, &[address]).await);
    }
    world
        .database
        .run("UPDATE connections SET digest = 'DAILY'")
        .await;
    let manager = world.manager(&connections).await;
    let mut replica = world.ready_dispatcher().await;
    gather(&world, manager, 2).await;
    let mut lock = world.database.begin(&[LOCK_LOG]).await;
    end_day(&world).await;
    for _ in 0..2 {
        let before = server.count();
        eventually("it sends", async || server.count() > before).await;
        replica.kill();
        // The killed one's sessions wait for the lock, and end with it.
        drop(lock);
        lock = world.database.begin(&[LOCK_LOG]).await;
        replica = world.ready_dispatcher().await;
    }
    drop(lock);
    world.until("SUCCEEDED", COUNT).await;
    replica.stop().await;
    assert_eq!(world.database.count("deliveries").await, COUNT);
    eventually("each digest came", async || {
        addresses
            .iter()
            .all(|address| !server.to(address).is_empty())
    })
    .await;
    eventually("some came again", async || server.count() > addresses.len()).await;
    for address in &addresses {
        let mails = server.to(address);
        let ids: BTreeSet<String> = { mails.iter() }
            .map(|mail| header(mail, "Message-ID"))
            .collect();
        assert_eq!(ids.len(), 1, "{address}: {ids:?}");
        for mail in &mails {
            assert_eq!(header(mail, "Subject"), "2 new posts");
        }
    }
}

/// A delivery names one Scan, the newest. When its post is deleted, the others come, once to each recipient.
#[tokio::test]
async fn cancelled_digest_continues_with_its_other_scans() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let connection = confirmed(&world, &["ada@example.com", "later@example.com"]).await;
    world
        .database
        .run("UPDATE connections SET digest = 'DAILY'")
        .await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    gather(&world, manager, 2).await;
    end_day(&world).await;
    world.until("RETRYING", 1).await;
    erase(&world, "kettle 1").await;
    retry_now(&world).await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    server.until(2).await;
    assert_eq!(server.to("ada@example.com").len(), 1);
    let mail = unwrapped(&server.to("later@example.com")[0]);
    assert!(
        mail.contains("kettle 0") && !mail.contains("kettle 1"),
        "{mail}"
    );
}
