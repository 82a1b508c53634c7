//! Asks recipients to confirm their addresses.
//!
//! An address is asked once a day at most, over all accounts, and an account has a limit and does not ask again who has
//! refused: no customer can flood strangers. The request is marked in the database before it is sent. If this process dies in between, the address is
//! asked again a day later.

use std::{sync::Arc, time::Duration};

use backbone::work::{Settings, Work};
use domain::{
    ConnectionName, Id, Timestamp,
    connection::{RecipientState, Recipients},
};
use store::{
    AsyncPgConnection, connections,
    mail::{self as recipients, Digest, token::Purpose},
    work::{Claim, Claimed, Leased},
};

use super::{Mail, Mailer, short};
use crate::{Dispatcher, format::email};

/// Maximum number of requests that one replica sends at a time.
const MAX_OPEN: usize = 4;
const LOOK: Duration = Duration::from_secs(2);
/// Maximum number of requests of an account in a day.
const PER_ACCOUNT: i64 = 50;
/// Wait after a request that the server did not take.
const RETRY: Duration = Duration::from_secs(300);

/// Requests to confirm. One that was taken is not taken again for a day, so they need no lease.
pub(crate) struct Confirmations(pub(crate) Arc<Dispatcher>);

/// A recipient of a Connection.
type Recipient = (ConnectionName, Digest);

impl Work for Confirmations {
    type Item = Recipient;

    fn settings(&self) -> Settings {
        // One account gets half of the places, and all count for one.
        Settings::new("mail_confirmation", LOOK, 2 * MAX_OPEN)
    }

    async fn claim(
        &self,
        conn: &mut AsyncPgConnection,
        claim: &mut Claim<'_>,
    ) -> Result<Claimed<Recipient>, store::Error> {
        if self.0.mailer.is_none() {
            return Ok(Claimed::default());
        }
        recipients::purge(conn, self.0.config.retention.deliveries).await?;
        let free = MAX_OPEN.saturating_sub(claim.known.len());
        let limit = i64::try_from(free).unwrap_or(i64::MAX);
        let taken = recipients::take_to_ask(conn, limit, PER_ACCOUNT).await?;
        let items = taken.into_iter().map(|(connection, digest)| {
            let key = format!("{connection} {}", short(digest));
            Leased::unleased(&key, (connection, digest))
        });
        Ok(Claimed {
            items: items.collect(),
            ..Claimed::default()
        })
    }

    async fn run(&self, leased: &Leased<Recipient>) -> Result<(), store::Error> {
        let (connection, digest) = leased.item;
        if let Some(mailer) = &self.0.mailer
            && let Err(error) = ask(&self.0, mailer, connection, digest).await
        {
            let error = anyhow::Error::from(error);
            tracing::warn!(connection.name = %connection, "a recipient cannot be asked to confirm: {error:#}");
        }
        // Not again at once, even if it failed.
        Ok(())
    }

    fn uses_table(&self) -> bool {
        false
    }
}

async fn ask(
    dispatcher: &Dispatcher,
    mailer: &Mailer,
    connection: ConnectionName,
    digest: Digest,
) -> Result<(), store::Error> {
    let endpoint = {
        let mut conn = dispatcher.backbone.pool.get().await?;
        connections::endpoint(&mut conn, &dispatcher.sealer, connection).await?
    };
    let all = endpoint.and_then(|endpoint| endpoint.url.parse::<Recipients>().ok());
    let all = all.as_ref().map(Recipients::as_slice).unwrap_or_default();
    let Some(address) = all.iter().find(|address| address.digest() == digest) else {
        // The owner has removed it.
        return Ok(());
    };
    let confirm = mailer.link(dispatcher, Purpose::Confirm, connection, digest);
    let id = Id::generate().to_string();
    let mail = Mail {
        // Those of all accounts together.
        account: Id::NIL,
        connection,
        id: &id,
        until: None,
    };
    let letter = |unsubscribe: &str| email::of_request(&mailer.site, &confirm, unsubscribe);
    let tally = mailer.send(dispatcher, &mail, &[address], letter).await;
    let mut conn = dispatcher.backbone.pool.get().await?;
    let now = Timestamp::now();
    if !tally.refused.is_empty() {
        let state = RecipientState::Refused;
        recipients::set_state(&mut conn, connection, digest, state, now).await?;
    } else if tally.permanent.is_some() || !tally.accepted.is_empty() {
        recipients::asked(&mut conn, connection, digest, now).await?;
    } else if tally.is_surely_unsent() {
        let wait = tally.pause.unwrap_or(RETRY);
        recipients::ask_again(&mut conn, digest, wait).await?;
    }
    Ok(())
}
