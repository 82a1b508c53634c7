//! E-mail, received by `aiosmtpd`: who gets mail, and what the replies of the server lead to.
//!
//! Needs `pip install aiosmtpd`, which CI has; elsewhere the tests print that they were skipped.

mod digests;
mod recipients;
mod repeats;
mod servers;

use std::{
    io::{BufRead, BufReader},
    path::Path,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    time::Duration,
};

use domain::{
    ConnectionName, Timestamp,
    connection::{CreateConnection, Format, Headers, MailAddress, Method, RecipientState},
};
use runtime::config::{Smtp, SmtpEncryption};
use serde_json::Value;
use store::{connections, mail};
use test_support::{Answer, TIMEOUT, eventually};

use crate::support::{World, always};

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
