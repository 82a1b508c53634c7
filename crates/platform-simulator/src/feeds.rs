//! Feeds in three formats, with conditional requests.

use std::fmt::Write;

use actix_web::{HttpRequest, HttpResponse, Responder, http::header, web};
use serde_json::json;

use super::{post::Stored, world::World};

/// Number of entries in a feed.
const WINDOW: usize = 50;

pub(super) fn routes(config: &mut web::ServiceConfig) {
    config.route("/{file}", web::get().to(feed));
}

async fn feed(
    world: web::Data<World>,
    file: web::Path<String>,
    request: HttpRequest,
) -> impl Responder {
    let Some((name, format)) = file.rsplit_once('.') else {
        return HttpResponse::NotFound().finish();
    };
    let mut posts = world.posts(&format!("feed:{name}"));
    posts.truncate(WINDOW);
    let write = match format {
        "rss" | "xml" => rss,
        "atom" => atom,
        "json" => json_feed,
        _ => return HttpResponse::NotFound().finish(),
    };
    let latest = posts.iter().map(|post| post.id).max().unwrap_or(0);
    let etag = format!("\"{latest}-{}\"", posts.len());
    let given = request.headers().get(header::IF_NONE_MATCH);
    if given.is_some_and(|given| given.as_bytes() == etag.as_bytes()) {
        return HttpResponse::NotModified()
            .insert_header((header::ETAG, etag))
            .finish();
    }
    world.serve(&posts);
    let kind = match format {
        "json" => "application/feed+json",
        "atom" => "application/atom+xml",
        _ => "application/rss+xml",
    };
    HttpResponse::Ok()
        .insert_header((header::ETAG, etag))
        .content_type(kind)
        .body(write(&world, name, &posts))
}

fn rss(world: &World, name: &str, posts: &[Stored]) -> String {
    let base = escape(world.base_url());
    let name_text = escape(name);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<rss version=\"2.0\" \
         xmlns:dc=\"http://purl.org/dc/elements/1.1/\"><channel><title>{name_text}</title>\
         <link>{base}/feeds/{name_text}/</link><description>Posts of {name_text}</description>\n"
    );
    for post in posts {
        let url = escape(&world.entry_url(name, post.id));
        // Writing to a String does not fail.
        let _ = writeln!(
            out,
            "<item><title>{}</title><link>{url}</link><guid isPermaLink=\"true\">{url}</guid>\
             <pubDate>{}</pubDate><dc:creator>{}</dc:creator><description>{}</description></item>",
            escape(&post.new.title),
            post.time.to_chrono().to_rfc2822(),
            escape(&post.new.author),
            escape(post.new.text.as_deref().unwrap_or_default()),
        );
    }
    out + "</channel></rss>\n"
}

fn atom(world: &World, name: &str, posts: &[Stored]) -> String {
    let base = escape(world.base_url());
    let name_text = escape(name);
    let mut out = format!(
        "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<feed xmlns=\"http://www.w3.org/2005/Atom\">\
         <title>{name_text}</title><id>{base}/feeds/{name_text}/</id><link href=\"{base}/feeds/{name_text}/\"/>\n"
    );
    for post in posts {
        let url = escape(&world.entry_url(name, post.id));
        let _ = writeln!(
            out,
            "<entry><title>{}</title><id>{url}</id><link href=\"{url}\"/><published>{}</published>\
             <updated>{}</updated><author><name>{}</name></author><content type=\"html\">{}</content></entry>",
            escape(&post.new.title),
            post.time,
            post.time,
            escape(&post.new.author),
            escape(post.new.text.as_deref().unwrap_or_default()),
        );
    }
    out + "</feed>\n"
}

fn json_feed(world: &World, name: &str, posts: &[Stored]) -> String {
    let items = posts.iter().map(|post| {
        let url = world.entry_url(name, post.id);
        json!({
            "id": url, "url": url, "title": post.new.title,
            "content_html": post.new.text.as_deref().unwrap_or_default(),
            "date_published": post.time.to_string(), "authors": [{"name": post.new.author}],
        })
    });
    json!({
        "version": "https://jsonfeed.org/version/1.1",
        "title": name,
        "home_page_url": format!("{}/feeds/{name}/", world.base_url()),
        "items": items.collect::<Vec<_>>(),
    })
    .to_string()
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // XML 1.0 allows no other control characters.
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push(' '),
            c => out.push(c),
        }
    }
    out
}
