//! E-mail, received by `aiosmtpd`: who gets mail, and what the replies of the server lead to.
//!
//! Needs `pip install aiosmtpd`, which CI has; elsewhere the tests print that they were skipped.

use std::{
    collections::BTreeSet,
    fs,
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::{
    ConnectionName, ManagerName, Timestamp,
    connection::{CreateConnection, Format, Headers, MailAddress, Method, RecipientState},
};
use runtime::config::{Smtp, SmtpEncryption};
use serde_json::Value;
use store::{connections, mail};
use test_support::{Answer, TIMEOUT, certificates::Authority, eventually};

use crate::{
    erased::{erase, retry_now},
    support::{World, always},
};

/// Prints its port, and then a line for each mail. The local part of a recipient decides the replies. With a file that has a
/// certificate and its key, it takes mail only after STARTTLS and a login.
const SERVER: &str = r#"
import asyncio, json, ssl, sys
from aiosmtpd.smtp import SMTP

class Handler:
    counts = {}

    def count(self, kind, address):
        key = kind + address
        self.counts[key] = self.counts.get(key, 0) + 1
        return self.counts[key]

    async def handle_RCPT(self, server, session, envelope, address, options):
        number = self.count("rcpt", address)
        if address.startswith("gone"):
            return f"550 5.1.1 <{address.upper()}>: no such user"
        if address.startswith("later") and number == 1:
            return "451 4.2.0 try again"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server, session, envelope):
        to = envelope.rcpt_tos[0]
        if to.startswith("spam"):
            return "554 5.7.1 not wanted here"
        if to.startswith("slow"):
            await asyncio.sleep(0.15)
        mail = {"from": envelope.mail_from, "to": to, "content": envelope.content.decode("ascii")}
        print(json.dumps(mail), flush=True)
        if to.startswith("lost") and self.count("data", to) == 1:
            server.transport.abort()
        if to.startswith("hang"):
            await asyncio.sleep(3600)
        return f"250 OK, a mail for {to}"

async def main():
    handler = Handler()
    loop = asyncio.get_running_loop()
    options = {}
    for identity in sys.argv[1:]:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(identity)
        login = lambda mechanism, user, password: (user, password) == (b"earshot", b"open sesame")
        options = dict(tls_context=context, require_starttls=True, auth_required=True, auth_callback=login)
    make = lambda: SMTP(handler, hostname="mail.example.com", **options)
    server = await loop.create_server(make, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()

asyncio.run(main())
"#;

/// Statement that keeps attempts from being stored until its transaction ends.
const LOCK_LOG: &str = "LOCK TABLE delivery_attempts IN SHARE MODE";

/// A mail server, and the mails that it took.
struct MailServer {
    python: Child,
    port: u16,
    mails: Arc<Mutex<Vec<Value>>>,
}

impl MailServer {
    /// `None` if the library is missing.
    fn start() -> Option<Self> {
        Self::start_with(None)
    }

    /// With the file of a certificate and its key, it requires STARTTLS and a login.
    fn start_with(identity: Option<&Path>) -> Option<Self> {
        let import = Command::new("python3")
            .args(["-c", "import aiosmtpd"])
            .stderr(Stdio::null())
            .status();
        if !import.is_ok_and(|status| status.success()) {
            test_support::skip("python3 has no module aiosmtpd (pip install aiosmtpd)");
            return None;
        }
        let mut python = Command::new("python3")
            .args(["-c", SERVER])
            .args(identity)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(python.stdout.take().unwrap()).lines();
        let port = lines.next().unwrap().unwrap().parse().unwrap();
        let mails = Arc::new(Mutex::new(Vec::new()));
        let taken = Arc::clone(&mails);
        std::thread::spawn(move || {
            for line in lines.map_while(Result::ok) {
                taken.lock().unwrap().push(line.parse().unwrap());
            }
        });
        Some(Self {
            python,
            port,
            mails,
        })
    }

    fn settings(&self) -> Smtp {
        Smtp {
            server: "127.0.0.1".to_owned(),
            port: self.port,
            encryption: SmtpEncryption::Plain,
            ca_certificates_file: String::new(),
            user: None,
            password: None,
            from: "Earshot <alerts@example.org>".to_owned(),
            hello_name: None,
            public_url: "https://earshot.example/".parse().unwrap(),
            max_per_minute: 1_000,
            timeout: 10 * TIMEOUT,
        }
    }

    /// Mails to an address, as text.
    fn to(&self, address: &str) -> Vec<String> {
        let mails = self.mails.lock().unwrap();
        let of_address = mails.iter().filter(|mail| mail["to"] == address);
        of_address
            .map(|mail| mail["content"].as_str().unwrap().to_owned())
            .collect()
    }

    fn count(&self) -> usize {
        self.mails.lock().unwrap().len()
    }

    /// Waits until it has taken `count` mails. The thread that reads them may be behind the database.
    async fn until(&self, count: usize) {
        eventually(&format!("{count} mails"), async || self.count() == count).await;
    }
}

impl Drop for MailServer {
    fn drop(&mut self) {
        let _ = self.python.kill();
        let _ = self.python.wait();
    }
}

/// A header of a mail, unfolded.
fn header(mail: &str, name: &str) -> String {
    let head = mail.split("\r\n\r\n").next().unwrap();
    let unfolded = head.replace("\r\n ", " ");
    let prefix = format!("{name}: ");
    let line = unfolded
        .split("\r\n")
        .find_map(|line| line.strip_prefix(&prefix));
    line.unwrap_or_else(|| panic!("no {name} in {head}"))
        .to_owned()
}

/// A mail without the line breaks of quoted-printable.
fn unwrapped(mail: &str) -> String {
    mail.replace("=\r\n", "").replace("=3D", "=")
}

async fn world(server: &MailServer) -> World {
    let mut world = World::new().await;
    world.config.dispatcher.smtp = Some(server.settings());
    world
}

async fn connect(world: &World, url: &str) -> ConnectionName {
    let draft = CreateConnection {
        nickname: "mail".to_owned(),
        url: url.to_owned(),
        method: Method::Post,
        headers: Headers::default(),
        format: Format::Email,
        max_per_second: None,
        signing_secrets: Vec::new(),
        events: Vec::new(),
        digest: None,
    };
    let mut conn = world.database.connect().await;
    let fixture = &world.fixture;
    connections::insert(&mut conn, &fixture.sealer, fixture.namespace, &draft)
        .await
        .unwrap()
        .name
}

async fn confirm(world: &World, connection: ConnectionName, address: &str) {
    let digest = address.parse::<MailAddress>().unwrap().digest();
    let (state, now) = (RecipientState::Confirmed, Timestamp::now());
    let mut conn = world.database.connect().await;
    mail::set_state(&mut conn, connection, digest, state, now)
        .await
        .unwrap();
}

/// A Connection whose recipients have all confirmed.
async fn confirmed(world: &World, addresses: &[&str]) -> ConnectionName {
    let connection = connect(world, &format!("mailto:{}", addresses.join(","))).await;
    for address in addresses {
        confirm(world, connection, address).await;
    }
    connection
}

async fn states(world: &World) -> BTreeSet<String> {
    let states = world.database.texts("state", "mail_recipients").await;
    states.into_iter().collect()
}

#[tokio::test]
async fn confirmed_recipient_gets_a_scan_with_its_reasons_and_links() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let world = world(&server).await;
    let connection = confirmed(&world, &["ada@example.com", "grace@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let scan = world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;

    server.until(2).await;
    let mail = server.to("ada@example.com").remove(0);
    assert_eq!(header(&mail, "Subject"), "Which kettle?");
    assert_eq!(header(&mail, "To"), "ada@example.com");
    assert_eq!(
        header(&mail, "List-Unsubscribe-Post"),
        "List-Unsubscribe=One-Click"
    );
    let unsubscribe = header(&mail, "List-Unsubscribe");
    let link = "<https://earshot.example/mail/unsubscribe/";
    assert!(unsubscribe.starts_with(link), "{unsubscribe}");
    let other = server.to("grace@example.com").remove(0);
    assert_ne!(unsubscribe, header(&other, "List-Unsubscribe"));
    let mail = unwrapped(&mail);
    let page = format!(
        "https://earshot.example/console/#/n/{}/inbox?scan={}.{}",
        scan.namespace, scan.manager, scan.scan
    );
    for part in ["Its score is 1.00.", &page, &format!("{page}&mute=1")] {
        assert!(mail.contains(part), "{part}: {mail}");
    }
    assert_eq!(world.attempts().await, ["1 250 -"]);
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
async fn mail_may_take_longer_than_a_request() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    world.config.dispatcher.timeout = Duration::from_millis(100);
    let connection = confirmed(&world, &["slow@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 250 -"]);
}

/// Number of mails that failed for this reason, which the operator has to solve.
fn failures(reason: &str) -> f64 {
    let text = prometheus::TextEncoder::new().encode_to_string(&prometheus::gather());
    let text = text.unwrap();
    let counted = format!("earshot_mail_failures_total{{reason=\"{reason}\"}} ");
    let number = text.lines().find_map(|line| line.strip_prefix(&counted));
    number.map_or(0.0, |number| number.parse().unwrap())
}

#[tokio::test]
async fn mail_server_that_hangs_is_counted() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.timeout = Duration::from_millis(100);
    let connection = confirmed(&world, &["hang@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    let before = failures("timeout");
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await[0], "1 - timeout");
    assert!(failures("timeout") >= before + 4.0);
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
async fn mail_beyond_our_limit_waits_regardless_of_the_schedule() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    world.config.dispatcher.retry_schedule = Vec::new();
    // One for each account.
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.max_per_minute = 2;
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("SUCCEEDED", 1).await;
    world.publish_scan(manager, "Which teapot?").await;
    world.until("RETRYING", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await, ["1 250 -", "1 - too_many_mails"]);
    let uncounted = "deliveries WHERE state = 'RETRYING' AND schedule_base = attempt_count";
    assert_eq!(world.database.count(uncounted).await, 1);
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

#[tokio::test]
async fn mail_waits_until_the_login_is_right_and_comes_over_starttls() {
    let folder = tempfile::tempdir().unwrap();
    let [trusted, identity] = ["ca.pem", "server.pem"].map(|name| folder.path().join(name));
    let authority = Authority::new();
    let (certificate, key) = authority.certify("127.0.0.1");
    fs::write(&trusted, authority.pem()).unwrap();
    fs::write(&identity, certificate + &key).unwrap();
    let Some(server) = MailServer::start_with(Some(&identity)) else {
        return;
    };
    let mut world = world(&server).await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let refused = "smtp_login_refused";
    for (password, state) in [("sesame", "RETRYING"), ("open sesame", "SUCCEEDED")] {
        let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
        smtp.encryption = SmtpEncryption::StartTls;
        smtp.ca_certificates_file = trusted.display().to_string();
        smtp.user = Some("earshot".to_owned());
        smtp.password = Some(password.into());
        let before = failures(refused);
        let replica = world.ready_dispatcher().await;
        if state == "RETRYING" {
            world.publish_scan(manager, "Which kettle?").await;
        } else {
            retry_now(&world).await;
        }
        world.until(state, 1).await;
        replica.stop().await;
        let is_counted = failures(refused) > before;
        assert_eq!(is_counted, state == "RETRYING", "{password}");
    }
    server.until(1).await;
    let attempts = world.attempts().await;
    assert_eq!(attempts, ["1 - smtp_login_refused", "2 250 -"]);
}

#[tokio::test]
async fn server_with_an_unknown_certificate_gets_no_mail() {
    let folder = tempfile::tempdir().unwrap();
    let identity = folder.path().join("server.pem");
    let (certificate, key) = Authority::new().certify("127.0.0.1");
    fs::write(&identity, certificate + &key).unwrap();
    let Some(server) = MailServer::start_with(Some(&identity)) else {
        return;
    };
    let mut world = world(&server).await;
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.user = Some("earshot".to_owned());
    smtp.password = Some("open sesame".into());
    gets_no_mail_over_starttls(&mut world, &server).await;
}

#[tokio::test]
async fn server_without_starttls_gets_no_mail() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    gets_no_mail_over_starttls(&mut world, &server).await;
}

async fn gets_no_mail_over_starttls(world: &mut World, server: &MailServer) {
    let smtp = world.config.dispatcher.smtp.as_mut().unwrap();
    smtp.encryption = SmtpEncryption::StartTls;
    let connection = confirmed(world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await[0], "1 - tls_failure");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn without_a_mail_server_deliveries_fail() {
    let world = World::new().await;
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("EXHAUSTED", 1).await;
    replica.stop().await;
    assert_eq!(world.attempts().await.len(), 4);
    assert_eq!(world.attempts().await[0], "1 - smtp_not_configured");
}

#[tokio::test]
async fn connection_stays_enabled_while_the_mail_server_is_away_for_days() {
    let mut world = World::new().await;
    world.config.dispatcher.retry_schedule = vec![Duration::from_secs(3_600)];
    let connection = confirmed(&world, &["ada@example.com"]).await;
    let manager = world.manager(&[connection]).await;
    let replica = world.ready_dispatcher().await;
    world.publish_scan(manager, "Which kettle?").await;
    world.until("RETRYING", 1).await;
    for sql in [
        "UPDATE connection_lanes SET failing_since = now() - interval '121 hours'",
        "INSERT INTO deliveries (namespace_id, connection_id, id, create_time, update_time, manager_id, scan_id, state) \
         SELECT namespace_id, connection_id, gen_random_uuid(), create_time, now(), manager_id, scan_id, 'EXHAUSTED' \
         FROM deliveries, generate_series(1, 20)",
    ] {
        assert!(world.database.run(sql).await > 0);
    }
    world.publish_scan(manager, "Which teapot?").await;
    world.until("RETRYING", 2).await;
    replica.stop().await;
    let active = "connections WHERE state = 'ACTIVE'";
    assert_eq!(world.database.count(active).await, 1);
}

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
async fn mails_of_an_account_leave_connections_to_the_database_to_others() {
    let Some(server) = MailServer::start() else {
        return;
    };
    let mut world = world(&server).await;
    world.config.database.max_connections = 10;
    let mut connections = Vec::new();
    for number in 0..12 {
        connections.push(confirmed(&world, &[&format!("{number}@example.com")]).await);
    }
    let mails = world.manager(&connections).await;
    let receiver = always(Answer::Status(200)).await;
    let other = world.manager_for(&receiver).await;
    let replica = world.ready_dispatcher().await;
    let lock = "LOCK TABLE mail_recipients IN ACCESS EXCLUSIVE MODE";
    let lock = world.database.begin(&[lock]).await;
    world.publish_scan(mails, "Which kettle?").await;
    let waiting =
        "pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
    eventually("mails wait for the table", async || {
        world.database.count(waiting).await >= 5
    })
    .await;
    world.publish_scan(other, "Which teapot?").await;
    world.until("SUCCEEDED", 1).await;
    drop(lock);
    world.until("SUCCEEDED", 13).await;
    replica.stop().await;
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
