//! Bluesky: Jetstream as a real WebSocket server, and two read endpoints of the network's API.
//!
//! Events come in the order of creation, with times a few milliseconds out of order; identities and accounts
//! come between posts. A cursor resumes an earlier reading, and silently starts later if the memory does not
//! reach back so far. The author `unindexed` hides from logged-out users.

use std::sync::atomic::Ordering;

use actix_web::{HttpRequest, HttpResponse, web};
use serde_json::{Value, json};

use super::{
    ask::{Ask, Reply},
    ids::did,
    names::BLUESKY,
    post::Stored,
    stream::{handle, record},
    world::World,
};

/// One connection while it is open.
struct Open(web::Data<World>);

impl Open {
    fn count(world: &web::Data<World>) -> Self {
        let log = &world.jetstream;
        let open = log.open.fetch_add(1, Ordering::SeqCst) + 1;
        log.most_open.fetch_max(open, Ordering::SeqCst);
        Self(world.clone())
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.jetstream.open.fetch_sub(1, Ordering::SeqCst);
    }
}

pub(super) async fn subscribe(
    world: web::Data<World>,
    query: web::Query<std::collections::HashMap<String, String>>,
    request: HttpRequest,
    body: web::Payload,
) -> Result<HttpResponse, actix_web::Error> {
    let cursor = query.get("cursor").and_then(|cursor| cursor.parse().ok());
    let (response, mut session, mut incoming) = actix_ws::handle(&request, body)?;
    let (mut next, generation) = world.jetstream.join(cursor, world.now());
    let mut changed = world.jetstream.changed.subscribe();
    let open = Open::count(&world);
    actix_web::rt::spawn(async move {
        let _open = open;
        let mut sent = 0;
        loop {
            changed.mark_unchanged();
            let Some(events) = world.jetstream.events(next, generation, sent) else {
                let _ = session.close(None).await;
                return;
            };
            if events.is_empty() {
                tokio::select! {
                    changed = changed.changed() => if changed.is_err() { return },
                    message = incoming.recv() => match message {
                        Some(Ok(actix_ws::Message::Ping(bytes))) => {
                            if session.pong(&bytes).await.is_err() { return; }
                        }
                        Some(Ok(actix_ws::Message::Close(_)) | Err(_)) | None => return,
                        Some(Ok(_)) => {}
                    },
                }
                continue;
            }
            for (number, text) in events {
                next = number + 1;
                sent += 1;
                if session.text(text.as_ref()).await.is_err() {
                    return;
                }
            }
        }
    });
    Ok(response)
}

/// The read endpoints of the network's API.
pub(super) fn answer(world: &World, ask: &Ask) -> Reply {
    let named = |name: &str| -> Vec<&str> {
        let pairs = ask.all.iter().filter(|pair| pair.0 == name);
        pairs.map(|pair| pair.1.as_str()).collect()
    };
    match ask.path.as_str() {
        "xrpc/app.bsky.feed.getPosts" => {
            let uris = named("uris");
            let posts = world.select(BLUESKY, |post| uris.contains(&post.post_id.as_str()));
            let view = |post: &Stored| json!({"uri": post.post_id, "record": record(post), "author": profile(&post.new.author)});
            Reply::ok(json!({"posts": posts.iter().map(view).collect::<Vec<_>>()}))
        }
        "xrpc/app.bsky.actor.getProfiles" => {
            let dids = named("actors");
            if dids.len() > 25 {
                return Reply::status(400, json!({"error": "InvalidRequest"}));
            }
            let posts = world.select(BLUESKY, |_| true);
            let known = |wanted: &str| posts.iter().find(|post| did(&post.new.author) == wanted);
            let profiles = dids
                .into_iter()
                .filter_map(known)
                .map(|post| profile(&post.new.author));
            Reply::ok(json!({"profiles": profiles.collect::<Vec<_>>()}))
        }
        _ => Reply::status(404, json!({"error": "XRPCNotSupported"})),
    }
}

fn profile(author: &str) -> Value {
    let labels = if author == "unindexed" {
        json!([{"val": "!no-unauthenticated"}])
    } else {
        json!([])
    };
    json!({"did": did(author), "handle": handle(author), "displayName": author, "labels": labels})
}
