//! The property: nothing of one account appears in anything that belongs to the other.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use base64::{Engine, prelude::BASE64_URL_SAFE_NO_PAD};
use serde_json::Value;

use super::{
    canary::{self, Canary, Side},
    hosts::Visit,
    requests::Request,
};
use crate::harness::{api::Answer, mcp::Session};

/// Bytes before and after a canary that a report shows.
const CONTEXT: usize = 400;

/// Place of a leak.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Channel {
    Answer,
    Webhook,
    /// A request for a page or a feed.
    Fetch,
    Log,
    Trace,
    Metrics,
}

#[derive(Debug)]
pub(super) struct Leak {
    pub(super) channel: Channel,
    pub(super) message: String,
}

#[derive(Default)]
pub(super) struct Watch {
    /// Owner of each resource id: the account that saw it first.
    owners: HashMap<String, Side>,
    /// API keys: account, id and secret part.
    keys: Vec<(Side, String, String)>,
    pub(super) leaks: Vec<Leak>,
    /// Kinds of canaries that each account saw, as their owner.
    pub(super) seen: BTreeMap<Side, BTreeSet<String>>,
    /// How many texts were searched.
    pub(super) searched: BTreeMap<&'static str, u64>,
}

impl Watch {
    pub(super) fn add_key(&mut self, side: Side, key: &str) {
        // The secret may contain an underscore.
        let [_, id, secret]: [&str; 3] = key.splitn(3, '_').collect::<Vec<_>>().try_into().unwrap();
        self.keys.push((side, id.to_owned(), secret.to_owned()));
    }

    /// Searches an answer. What the caller sent itself may come back.
    pub(super) fn answer(&mut self, viewer: Side, request: &Request, answer: &Answer) {
        self.count("answers");
        let body = String::from_utf8_lossy(&answer.body);
        let mut text = format!("{} {:?} {body}", answer.status, answer.headers);
        text.push_str(&decoded_token(&body));
        let sent = request.sent();
        let place = format!(
            "the answer to {viewer:?}'s {} {}",
            request.operation,
            request.target()
        );
        self.belongs_to(Some(viewer), Channel::Answer, &place, &text, &sent);
        let other = viewer.other();
        let foreign = canary::ids(&request.path).find(|id| self.owners.get(*id) == Some(&other));
        if let Some(id) = foreign.filter(|_| answer.status < 400) {
            let message = format!("{place} succeeds, although `{id}` is of {other:?}");
            let channel = Channel::Answer;
            self.leaks.push(Leak { channel, message });
        }
    }

    /// Searches the answers of `earshot mcp`.
    pub(super) fn session(&mut self, viewer: Side, session: &Session) {
        let sent = session.sent.to_ascii_lowercase();
        for answer in &session.answers {
            self.count("tool calls");
            let place = format!("a tool of {viewer:?}");
            let channel = Channel::Answer;
            self.belongs_to(Some(viewer), channel, &place, &answer.to_string(), &sent);
        }
    }

    /// Searches a request that the customers' host received.
    pub(super) fn visit(&mut self, visit: &Visit) {
        let owner = visit.owner();
        let channel = match visit.is_webhook() {
            true => Channel::Webhook,
            false => Channel::Fetch,
        };
        self.count(match channel {
            Channel::Webhook => "webhooks",
            _ => "fetches",
        });
        let place = format!("the request to {}", visit.target);
        let text = format!("{} {} {}", visit.target, visit.headers, visit.body);
        self.belongs_to(owner, channel, &place, &text, "");
    }

    /// Searches a line of the log, or a span.
    pub(super) fn line(&mut self, channel: Channel, line: &str) {
        self.count(if channel == Channel::Log {
            "lines"
        } else {
            "spans"
        });
        for (_, _, key) in &self.keys {
            if line.contains(key.as_str()) {
                let message = format!("{channel:?} shows an API key: {line}");
                self.leaks.push(Leak { channel, message });
            }
        }
        let line = line.to_ascii_lowercase();
        for found in canary::find(&line) {
            if found.is_secret || self.is_about(found.side.other(), &line) {
                self.leaks.push(leak(channel, "a line", &found, &line));
            }
        }
    }

    /// Returns whether a line belongs to an account: to that of the key that made the request, and else to all whose
    /// resources it names. A request can name anything, so its path does not count.
    fn is_about(&self, side: Side, line: &str) -> bool {
        let mut keys = self.keys.iter();
        if let Some((owner, ..)) = keys.find(|(_, id, _)| line.contains(id.as_str())) {
            return *owner == side;
        }
        let mut words = canary::find(line).into_iter();
        words.any(|word| word.side == side)
            || canary::ids(line).any(|id| self.owners.get(id) == Some(&side))
    }

    /// Searches the metrics, which belong to no account.
    pub(super) fn metrics(&mut self, text: &str) {
        self.count("metrics pages");
        self.belongs_to(None, Channel::Metrics, "the metrics", text, "");
    }

    /// Searches a text that belongs to an account; to none, it is public.
    fn belongs_to(
        &mut self,
        owner: Option<Side>,
        channel: Channel,
        place: &str,
        text: &str,
        sent: &str,
    ) {
        let text = text.to_ascii_lowercase();
        for found in canary::find(&text) {
            if Some(found.side) == owner {
                let seen = self.seen.entry(found.side).or_default();
                if !seen.contains(found.kind()) {
                    seen.insert(found.kind().to_owned());
                }
            } else if !sent.contains(found.word) {
                self.leaks.push(leak(channel, place, &found, &text));
            }
        }
        let Some(owner) = owner else { return };
        for id in canary::ids(&text) {
            let known = self.owners.get(id).copied();
            if known.is_none() && !sent.contains(id) {
                self.owners.insert(id.to_owned(), owner);
            } else if known == Some(owner.other()) && !sent.contains(id) {
                let message = format!("{place} shows the id `{id}` of {:?}: {text}", owner.other());
                self.leaks.push(Leak { channel, message });
            }
        }
    }

    fn count(&mut self, what: &'static str) {
        *self.searched.entry(what).or_default() += 1;
    }
}

fn leak(channel: Channel, place: &str, found: &Canary<'_>, text: &str) -> Leak {
    let (side, kind, word) = (found.side, found.kind(), found.word);
    // Only what surrounds it, because answers are long.
    let at = text.find(word).unwrap_or_default();
    let start = text.floor_char_boundary(at.saturating_sub(CONTEXT));
    let end = text.floor_char_boundary(at + word.len() + CONTEXT);
    let context = &text[start..end];
    let message = format!("{place} shows the {kind} of {side:?}, `{word}`: …{context}…");
    Leak { channel, message }
}

/// Returns what is in the page token of a list.
fn decoded_token(body: &str) -> String {
    let body: Value = serde_json::from_str(body).unwrap_or_default();
    let token = body["nextPageToken"].as_str().unwrap_or_default();
    let bytes = BASE64_URL_SAFE_NO_PAD.decode(token).unwrap_or_default();
    String::from_utf8_lossy(&bytes).into_owned()
}
