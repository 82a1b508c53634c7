//! Responses that a connection is sending, and whether their client reads them.
//!
//! A client that makes no room for a response can still answer pings, and h2 keeps the last pieces of a body until
//! there is room, even if the body has ended. So each piece says when h2 has sent it, and its response counts as in
//! flight until then.

use std::sync::{Arc, Mutex, PoisonError, Weak};

use actix_web::web::Bytes;
use tokio::time::{Duration, Instant};

use crate::in_flight::Counted;

/// Responses that were sent are forgotten when so many are known.
const SWEEP_AT: usize = 256;

/// Responses of one connection.
#[derive(Default)]
pub(super) struct Responses(Vec<Weak<Sending>>);

/// A response whose pieces are not all sent.
pub(super) struct Sending {
    /// Last time that a piece was taken from the body, or was sent.
    moved: Mutex<Instant>,
    _counted: Option<Arc<Counted>>,
}

/// Bytes that tell when h2 has sent them.
struct Piece {
    bytes: Bytes,
    sending: Arc<Sending>,
}

impl Responses {
    /// Adds a response, which is `counted` until it is sent.
    pub(super) fn add(&mut self, counted: Option<Arc<Counted>>) -> Arc<Sending> {
        if self.0.len() >= SWEEP_AT {
            self.forget_sent();
        }
        let sending = Arc::new(Sending {
            moved: Mutex::new(Instant::now()),
            _counted: counted,
        });
        self.0.push(Arc::downgrade(&sending));
        sending
    }

    /// Returns true if a client has not read the next piece of a response for this time.
    pub(super) fn are_stuck_for(&mut self, time: Duration) -> bool {
        self.forget_sent();
        let mut sending = self.0.iter().filter_map(Weak::upgrade);
        sending.any(|one| one.has_rested_for(time))
    }

    fn forget_sent(&mut self) {
        self.0.retain(|one| one.strong_count() > 0);
    }
}

impl Sending {
    /// Returns the next piece of the body.
    pub(super) fn piece(self: &Arc<Self>, bytes: Bytes) -> Bytes {
        self.moves();
        Bytes::from_owner(Piece {
            bytes,
            sending: Arc::clone(self),
        })
    }

    fn moves(&self) {
        *self.moved.lock().unwrap_or_else(PoisonError::into_inner) = Instant::now();
    }

    fn has_rested_for(&self, time: Duration) -> bool {
        let moved = self.moved.lock().unwrap_or_else(PoisonError::into_inner);
        moved.elapsed() >= time
    }
}

impl AsRef<[u8]> for Piece {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Piece {
    fn drop(&mut self) {
        self.sending.moves();
    }
}

#[cfg(test)]
mod tests {
    use actix_web::web::Bytes;
    use domain::Id;
    use tokio::time::{Duration, advance};

    use super::{Responses, SWEEP_AT};
    use crate::in_flight::InFlight;

    const TIME: Duration = Duration::from_secs(10);

    #[tokio::test(start_paused = true)]
    async fn response_is_stuck_when_none_of_its_pieces_moves() {
        let mut responses = Responses::default();
        let first = responses.add(None);
        advance(TIME / 2).await;
        assert!(!responses.are_stuck_for(TIME));
        let pieces = [(); 2].map(|()| first.piece(Bytes::from_static(b"piece")));
        assert_eq!(pieces[0], "piece");
        // The body has ended.
        drop(first);
        advance(TIME / 2).await;
        assert!(!responses.are_stuck_for(TIME));
        let [sent, unsent] = pieces;
        drop(sent);
        advance(TIME / 2).await;
        assert!(!responses.are_stuck_for(TIME));
        // Another response does not make up for it.
        drop(responses.add(None).piece(Bytes::new()));
        advance(TIME / 2).await;
        assert!(responses.are_stuck_for(TIME));
        drop(unsent);
        assert!(!responses.are_stuck_for(TIME));
    }

    #[tokio::test(start_paused = true)]
    async fn response_counts_until_its_last_piece_is_sent() {
        let (in_flight, account) = (InFlight::of_responses(), Id::generate());
        let counted = in_flight.count(account, None, 1 << 30);
        let sending = Responses::default().add(Some(counted));
        let piece = sending.piece(Bytes::from_static(b"piece"));
        drop(sending);
        assert!(in_flight.check_unread(account).is_err());
        drop(piece);
        assert!(in_flight.check_unread(account).is_ok());
    }

    #[test]
    fn responses_that_were_sent_are_forgotten() {
        let mut responses = Responses::default();
        let unsent = responses.add(None);
        for _ in 0..2 * SWEEP_AT {
            responses.add(None);
        }
        assert!(responses.0.len() <= SWEEP_AT);
        responses.forget_sent();
        assert_eq!(responses.0.len(), 1);
        drop(unsent);
    }
}
