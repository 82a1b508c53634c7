//! E-mail of Connections with the format `EMAIL`, through the operator's server.
//!
//! Each recipient gets a separate mail, with a separate link to unsubscribe, and only if the recipient has confirmed the
//! address ([`confirm`]). If the server takes the mails of some recipients, these are remembered, and the next attempt is
//! for the others. If a process dies after the server took a mail, or the reply is lost, the mail is sent again with the
//! same `Message-ID`.

mod confirm;
mod message;
mod pace;
mod smtp;

use std::time::{Duration, Instant};

use anyhow::Context as _;
use backbone::shares::Shares;
use domain::{
    ConnectionName, Id, Match, Post, ScanName, Timestamp,
    connection::{MailAddress, RecipientState, Recipients},
    trial_delivery::TestResult,
};
use lettre::{Address, message::Mailbox};
use runtime::config::Smtp;
use store::{
    deliveries::{Subject, Task},
    digests,
    mail::{
        self as recipients, Changed, Digest,
        token::{self, Purpose},
    },
    namespaces, scans,
};
use tokio::{
    sync::OwnedSemaphorePermit,
    time::{Instant as Deadline, sleep, timeout, timeout_at},
};
use tokio_util::sync::CancellationToken;

use crate::{
    Dispatcher,
    format::email::{self, Entry, Letter},
    metrics,
};

pub(crate) use confirm::Confirmations;
use pace::Pace;
use smtp::{Failure, Kind, Reply, Server};

/// Maximum number of Scans that a digest lists.
const MAX_LISTED: i64 = 20;
/// Error of a mail that has to wait for the next minute.
const TOO_MANY: &str = "too_many_mails";
/// Time for the reply to QUIT.
const CLOSE: Duration = Duration::from_secs(2);
/// Rest of the grace period after the last mail, for storing results.
const STORE: Duration = Duration::from_secs(3);

/// Sends mails. `None` in a [`Dispatcher`] whose operator has configured no server.
pub(crate) struct Mailer {
    server: Server,
    from: Mailbox,
    pace: Pace,
    /// Connections to the database: unlike requests, mails need some while they are sent.
    connections: Shares,
    /// Time limit for one mail.
    timeout: Duration,
    /// Cancelled when this process stops sending, so that it still stores who got a mail.
    end: CancellationToken,
    /// Beginning of all links, without a final slash.
    base: String,
    /// Host of the links.
    site: String,
}

/// Result of an attempt.
pub(crate) struct Sent {
    pub(crate) end: End,
    /// The reply that decided.
    pub(crate) status: Option<u16>,
    pub(crate) error: Option<&'static str>,
    pub(crate) reply: Option<String>,
    pub(crate) latency: Duration,
    /// Time without further mails of this Connection, because this minute has had enough.
    pub(crate) pause: Option<Duration>,
    /// True if no recipient is left, and the Connection was disabled.
    pub(crate) has_disabled: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// The server has taken the mails of all recipients, except those that it refuses.
    Accepted,
    /// Another attempt may succeed.
    Failed,
    /// The server takes none of them.
    Refused,
    /// No recipient has confirmed an address, so no mail was sent.
    NoRecipient,
}

impl Sent {
    fn without_mail(end: End, error: &'static str) -> Self {
        Self {
            end,
            status: None,
            error: Some(error),
            reply: None,
            latency: Duration::ZERO,
            pause: None,
            has_disabled: false,
        }
    }
}

/// Outcome of mails to several recipients.
#[derive(Default)]
struct Tally {
    accepted: Vec<Digest>,
    /// Recipients that do not exist.
    refused: Vec<Digest>,
    reply: Option<Reply>,
    /// The first failure after which another attempt may succeed.
    passing: Option<Failure>,
    /// The first failure that no further attempt changes.
    permanent: Option<Failure>,
    pause: Option<Duration>,
}

impl Mailer {
    /// # Errors
    /// If a setting cannot be used.
    pub(crate) fn new(
        settings: &Smtp,
        shutdown: &CancellationToken,
        grace_period: Duration,
        max_connections: u32,
    ) -> anyhow::Result<Self> {
        let from: Mailbox = settings.from.parse().context("dispatcher.smtp.from")?;
        let url = &settings.public_url;
        let end = CancellationToken::new();
        let (shutdown, ended) = (shutdown.clone(), end.clone());
        tokio::spawn(async move {
            shutdown.cancelled().await;
            sleep(grace_period - STORE.min(grace_period / 2)).await;
            ended.cancel();
        });
        Ok(Self {
            server: Server::new(settings, from.email.domain())?,
            from,
            pace: Pace::new(settings.max_per_minute),
            connections: Shares::of(usize::try_from(max_connections)?),
            timeout: settings.timeout,
            end,
            base: url.as_str().trim_end_matches('/').to_owned(),
            site: url.host_str().unwrap_or_default().to_owned(),
        })
    }

    /// Returns a connection to the database out of the share of `account`, for as long as the permit is held.
    async fn connect(
        &self,
        dispatcher: &Dispatcher,
        account: Id,
    ) -> Result<(Option<OwnedSemaphorePermit>, store::Connection), store::Error> {
        let permit = self.connections.take(account, 1).await;
        Ok((permit, dispatcher.backbone.pool.get().await?))
    }

    fn link(
        &self,
        dispatcher: &Dispatcher,
        purpose: Purpose,
        connection: ConnectionName,
        digest: Digest,
    ) -> String {
        let token = token::seal(&dispatcher.sealer, purpose, connection, digest);
        format!("{}/{}/{token}", self.base, purpose.path())
    }

    /// Page of a Scan in the console.
    fn page(&self, scan: ScanName) -> String {
        format!(
            "{}/console/#/n/{}/inbox?scan={}.{}",
            self.base, scan.namespace, scan.manager, scan.scan
        )
    }

    /// A Scan as a mail shows it.
    fn entry<'a>(&self, name: ScanName, post: &'a Post, matched: Option<&'a Match>) -> Entry<'a> {
        let page = self.page(name);
        Entry {
            post,
            matched,
            mute: format!("{page}&mute=1"),
            page,
        }
    }

    /// Sends a mail to each of `to`, over one connection. `letter` makes it, given the link to unsubscribe.
    async fn send(
        &self,
        dispatcher: &Dispatcher,
        mail: &Mail<'_>,
        to: &[&MailAddress],
        letter: impl Fn(&str) -> Letter,
    ) -> Tally {
        let mut tally = Tally::default();
        let mut session = None;
        for address in to {
            if let Err(wait) = self.pace.take(mail.account, Instant::now()) {
                tally.pause = Some(wait);
                tally.fail(Failure::without_reply(TOO_MANY));
                break;
            }
            let digest = address.digest();
            let unsubscribe = self.link(dispatcher, Purpose::Unsubscribe, mail.connection, digest);
            let id = format!("{}.{}", mail.id, short(digest));
            let Ok(to) = address.as_str().parse::<Address>() else {
                tally.fail(Failure::permanent("invalid_recipient"));
                continue;
            };
            let letter = letter(&unsubscribe);
            let made = message::message(&self.from, &to, &id, &unsubscribe, letter);
            let Ok(message) = made else {
                tally.fail(Failure::permanent("invalid_message"));
                continue;
            };
            let sending = async {
                if session.is_none() {
                    session = Some(self.server.open().await?);
                }
                match &mut session {
                    Some(session) => session.send(&self.from.email, &to, &message).await,
                    None => Err(Failure::without_reply("smtp_unavailable")),
                }
            };
            let limit = Deadline::now() + self.timeout;
            let until = mail.until.map_or(limit, |until| until.min(limit));
            let sent = self.within(until, Box::pin(sending)).await;
            let mut sent = sent.unwrap_or_else(|| Err(self.timed_out()));
            let reply = match &mut sent {
                Ok(reply) => Some(reply),
                Err(failure) => failure.reply.as_mut(),
            };
            if let Some(reply) = reply {
                reply.text = masked(&reply.text, address);
            }
            match sent {
                Ok(reply) => {
                    tally.accepted.push(digest);
                    tally.reply = Some(reply);
                }
                Err(failure) => {
                    if failure.kind == Kind::NoSuchRecipient {
                        tally.refused.push(digest);
                    }
                    // Without a reply, the next mail needs another connection, and the server may be away.
                    let is_lost = failure.reply.is_none();
                    tally.fail(failure);
                    if is_lost {
                        return tally;
                    }
                    let reset = async {
                        match &mut session {
                            Some(session) => session.reset().await,
                            None => true,
                        }
                    };
                    if !self.within(until, reset).await.unwrap_or(false) {
                        return tally;
                    }
                }
            }
        }
        if let Some(session) = session {
            let _ = timeout(CLOSE, session.close()).await;
        }
        tally
    }

    /// Returns `None` at `until`, or when this process stops sending.
    async fn within<T>(&self, until: Deadline, work: impl Future<Output = T>) -> Option<T> {
        let done = self
            .end
            .run_until_cancelled(timeout_at(until, work))
            .await?;
        done.ok()
    }

    fn timed_out(&self) -> Failure {
        // At a shutdown, the server may be quick enough.
        if !self.end.is_cancelled() {
            tracing::warn!("the mail server cannot be used: it does not answer in time");
            metrics::MAIL_FAILURES.with_label_values(&["timeout"]).inc();
        }
        Failure::without_reply("timeout")
    }
}

/// Parts that the mails to all recipients of a Connection share.
struct Mail<'a> {
    account: Id,
    connection: ConnectionName,
    /// Part of the `Message-ID`, the same at each attempt.
    id: &'a str,
    /// For all of them together, if someone waits for the result.
    until: Option<Deadline>,
}

impl Tally {
    fn fail(&mut self, failure: Failure) {
        let first = match failure.kind {
            Kind::Passing => &mut self.passing,
            Kind::Permanent | Kind::NoSuchRecipient => &mut self.permanent,
        };
        first.get_or_insert(failure);
    }

    /// Returns false if the reply to the last byte may have been lost.
    fn is_surely_unsent(&self) -> bool {
        let word = self.passing.as_ref().map(|failure| failure.word);
        let is_open = matches!(word, Some(Some("reset" | "timeout" | "protocol_error")));
        self.accepted.is_empty() && !is_open
    }
}

impl Failure {
    fn without_reply(word: &'static str) -> Self {
        Self {
            kind: Kind::Passing,
            word: Some(word),
            reply: None,
        }
    }

    fn permanent(word: &'static str) -> Self {
        Self {
            kind: Kind::Permanent,
            ..Self::without_reply(word)
        }
    }
}

/// Enough of a digest to distinguish the recipients of a Connection.
fn short(digest: Digest) -> String {
    digest[..4]
        .iter()
        .map(|byte| format!("{byte:02x}"))
        .collect()
}

/// Hides the address in a reply: keys without write permission may read the log.
fn masked(reply: &str, address: &MailAddress) -> String {
    // The same length as the reply.
    let lower = reply.to_ascii_lowercase();
    let searched = address.as_str().to_ascii_lowercase();
    let (mut masked, mut end) = (String::new(), 0);
    for (start, found) in lower.match_indices(&searched) {
        masked.push_str(&reply[end..start]);
        masked.push_str(&address.masked());
        end = start + found.len();
    }
    masked.push_str(&reply[end..]);
    masked
}

/// Makes one attempt of a delivery.
pub(crate) async fn send(dispatcher: &Dispatcher, task: &Task) -> Sent {
    let Some(mailer) = &dispatcher.mailer else {
        return Sent::without_mail(End::Failed, "smtp_not_configured");
    };
    let begun = Instant::now();
    let sent = attempt(dispatcher, mailer, task).await;
    let sent = sent.unwrap_or_else(|error| {
        let error = anyhow::Error::from(error);
        tracing::warn!(delivery.name = %task.delivery, "a mail cannot be prepared: {error:#}");
        Sent::without_mail(End::Failed, "internal_error")
    });
    Sent {
        latency: begun.elapsed(),
        ..sent
    }
}

async fn attempt(
    dispatcher: &Dispatcher,
    mailer: &Mailer,
    task: &Task,
) -> Result<Sent, store::Error> {
    let connection = task.delivery.connection_name();
    let delivery = task.delivery.delivery;
    let Ok(all) = task.url.parse::<Recipients>() else {
        return Ok(Sent::without_mail(End::Refused, "invalid_request"));
    };
    let (confirmed, receipts) = {
        let (_permit, mut conn) = mailer.connect(dispatcher, task.account).await?;
        let confirmed = confirmed(&mut conn, connection, &all).await?;
        // Also before the first attempt is recorded: a process may have died in it.
        let receipts = recipients::receipts(&mut conn, delivery, task.reopen_time).await?;
        (confirmed, receipts)
    };
    if confirmed.is_empty() {
        return Ok(Sent::without_mail(
            End::NoRecipient,
            "no_confirmed_recipient",
        ));
    }
    let has_receipt = |address: &&MailAddress| receipts.iter().any(|one| *one == address.digest());
    let to: Vec<&MailAddress> = { confirmed.iter().copied() }
        .filter(|address| !has_receipt(address))
        .collect();
    // Scans are read for a mail that may be sent now: at the end of an hour, many digests are due.
    if !to.is_empty()
        && let Err(wait) = mailer.pace.check(task.account, Instant::now())
    {
        return Ok(Sent {
            pause: Some(wait),
            ..Sent::without_mail(End::Failed, TOO_MANY)
        });
    }
    let (scans, total) = {
        let (_permit, mut conn) = mailer.connect(dispatcher, task.account).await?;
        let (names, total) = digests::scans(&mut conn, delivery, MAX_LISTED).await?;
        let (names, max_chars) = match total {
            0 => (task.scan().into_iter().collect(), email::READ),
            _ => (names, email::READ_IN_DIGEST),
        };
        (scans::excerpts(&mut conn, &names, max_chars).await?, total)
    };
    let entries: Vec<Entry<'_>> = { scans.iter() }
        .map(|scan| mailer.entry(scan.name, &scan.post, Some(&scan.matched)))
        .collect();
    let inbox = format!("{}/console/#/n/{}/inbox", mailer.base, connection.namespace);
    let mail = Mail {
        account: task.account,
        connection,
        id: &delivery.to_string(),
        until: None,
    };
    let letter = |unsubscribe: &str| match (&entries[..], &task.subject) {
        _ if total > 0 => email::of_digest(&entries, total, &inbox, unsubscribe),
        (_, Subject::Event(event)) => email::of_event(event, unsubscribe),
        ([entry], _) => email::of_scan(entry, unsubscribe),
        // The Scan was deleted just now.
        (_, Subject::Scan { name, post }) => {
            email::of_scan(&mailer.entry(*name, post, None), unsubscribe)
        }
    };
    let tally = mailer.send(dispatcher, &mail, &to, letter).await;
    let has_disabled = record(dispatcher, mailer, task, &tally, !receipts.is_empty()).await;
    let end = match (&tally.passing, &tally.permanent) {
        (Some(_), _) => End::Failed,
        (None, Some(_)) if tally.accepted.is_empty() && receipts.is_empty() => End::Refused,
        (None, _) => End::Accepted,
    };
    let failure = match end {
        End::Failed => tally.passing,
        End::Refused => tally.permanent,
        End::Accepted | End::NoRecipient => None,
    };
    let error = failure.as_ref().and_then(|failure| failure.word);
    let reply = match failure {
        Some(failure) => failure.reply,
        None => tally.reply,
    };
    Ok(Sent {
        end,
        status: reply.as_ref().map(|reply| reply.status),
        error,
        reply: reply.map(|reply| reply.text),
        latency: Duration::ZERO,
        pause: tally.pause,
        has_disabled,
    })
}

/// Returns those of the recipients who have confirmed their addresses.
async fn confirmed<'a>(
    conn: &mut store::AsyncPgConnection,
    connection: ConnectionName,
    all: &'a Recipients,
) -> Result<Vec<&'a MailAddress>, store::Error> {
    let id = connection.connection;
    let states = recipients::states(conn, connection.namespace, &[id]).await?;
    let is_confirmed = |address: &&MailAddress| {
        states.get(&(id, address.digest())) == Some(&RecipientState::Confirmed)
    };
    Ok(all.as_slice().iter().filter(is_confirmed).collect())
}

/// Stores what later attempts must know. If the database is away, a mail may be sent again. Returns true if this disabled
/// the Connection.
async fn record(
    dispatcher: &Dispatcher,
    mailer: &Mailer,
    task: &Task,
    tally: &Tally,
    has_receipts: bool,
) -> bool {
    // The first attempt needs none if it reaches all. The last of several does: its result is not committed yet.
    let is_one_of_several = tally.passing.is_some() || has_receipts;
    let receipts: &[Digest] = if is_one_of_several {
        &tally.accepted
    } else {
        &[]
    };
    if receipts.is_empty() && tally.refused.is_empty() {
        return false;
    }
    let (connection, delivery) = (task.delivery.connection_name(), task.delivery.delivery);
    let now = Timestamp::now();
    let stored = async {
        let (_permit, mut conn) = mailer.connect(dispatcher, task.account).await?;
        if !receipts.is_empty() {
            recipients::record_receipts(&mut conn, delivery, receipts).await?;
        }
        let mut has_disabled = false;
        for digest in &tally.refused {
            let state = RecipientState::Refused;
            let changed = recipients::set_state(&mut conn, connection, *digest, state, now).await?;
            has_disabled |= changed == Changed::Disabled;
        }
        Ok::<_, store::Error>(has_disabled)
    };
    stored.await.unwrap_or_else(|error| {
        let error = anyhow::Error::from(error);
        tracing::warn!(delivery.name = %task.delivery, "cannot record who got a mail: {error:#}");
        false
    })
}

/// Sends a sample to the recipients who have confirmed their addresses.
pub(crate) async fn test(
    dispatcher: &Dispatcher,
    connection: ConnectionName,
    url: &str,
    scan: ScanName,
    post: &Post,
) -> Result<TestResult, store::Error> {
    let Some(mailer) = &dispatcher.mailer else {
        return Ok(TestResult::unsent("e-mail is not configured", 0));
    };
    let Ok(all) = url.parse::<Recipients>() else {
        return Ok(TestResult::unsent("its url has no recipients", 0));
    };
    let begun = Instant::now();
    let (account, to) = {
        let mut conn = dispatcher.backbone.pool.get().await?;
        let account = namespaces::account(&mut conn, connection.namespace).await?;
        (account, confirmed(&mut conn, connection, &all).await?)
    };
    if to.is_empty() {
        let reason = "no recipient has confirmed the address yet";
        return Ok(TestResult::unsent(reason, 0));
    }
    let entry = mailer.entry(scan, post, None);
    let mail = Mail {
        // `None` only if it was deleted just now.
        account: account.unwrap_or(Id::NIL),
        connection,
        id: &scan.scan.to_string(),
        until: Some(Deadline::now() + dispatcher.config.dispatcher.timeout),
    };
    let letter = |unsubscribe: &str| email::of_scan(&entry, unsubscribe);
    let tally = mailer.send(dispatcher, &mail, &to, letter).await;
    let failure = tally.passing.or(tally.permanent);
    let reply = match &failure {
        Some(failure) => failure.reply.as_ref(),
        None => tally.reply.as_ref(),
    };
    let error = failure
        .as_ref()
        .map(|failure| match (failure.word, &failure.reply) {
            (Some(word), _) => word.to_owned(),
            (None, Some(reply)) => format!("answered {} {}", reply.status, reply.text),
            (None, None) => "not sent".to_owned(),
        });
    Ok(TestResult {
        ok: failure.is_none(),
        sent: reply.is_some(),
        status_code: reply.map(|reply| reply.status),
        latency_ms: begun.elapsed().as_millis().try_into().unwrap_or(u32::MAX),
        error,
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn reply_does_not_show_the_address() {
        let address = "ada@example.com".parse().unwrap();
        for (reply, expected) in [
            ("2.0.0 OK", "2.0.0 OK"),
            (
                "é <Ada@EXAMPLE.com> ada@example.com",
                "é <***@example.com> ***@example.com",
            ),
        ] {
            assert_eq!(super::masked(reply, &address), expected);
        }
    }
}
