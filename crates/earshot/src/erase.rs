//! `earshot erase`: erases the stored posts of one author, who asks for that.

use anyhow::bail;
use clap::Args;
use store::{
    AsyncPgConnection,
    erasure::author::{self, Counts},
};

use crate::{database, keys};

/// Erase the stored posts of one author, as after a deletion at their source: title, text and author are blanked, also
/// in Scans, deliveries that wait are cancelled, and recent posts are removed. Posts that arrive later are stored:
/// mute the author to keep them out. A second run changes nothing.
#[derive(Debug, Args)]
pub(crate) struct Arguments {
    /// The platform's name in the configuration, such as `hackernews`.
    #[arg(long, value_name = "NAME")]
    platform: String,
    /// The author's id, name or profile address on the platform, in any case.
    #[arg(long, value_name = "AUTHOR")]
    author: String,
    /// Erase the posts of all authors that match, if there are several.
    #[arg(long)]
    all: bool,
    /// Only print what would be erased.
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    database: database::Arguments,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let summary = keys::with(&arguments.database, async |conn| {
        erase(conn, arguments).await
    })?;
    eprintln!("{summary}");
    Ok(())
}

async fn erase(conn: &mut AsyncPgConnection, arguments: &Arguments) -> anyhow::Result<String> {
    let (platform, name) = (&arguments.platform, &arguments.author);
    let authors = author::find(conn, platform, name).await?;
    if authors.is_empty() {
        return Ok(format!("no post of `{name}` on `{platform}` is stored"));
    }
    println!("ID\tNAME\tADDRESS\tPOSTS\tRECENT POSTS");
    let mut found = Counts::default();
    for author in &authors {
        let (user, counts) = (&author.user, author.counts());
        println!(
            "{}\t{}\t{}\t{}\t{}",
            user.id, user.name, user.url, counts.posts, counts.recent_posts
        );
        found.posts += counts.posts;
        found.recent_posts += counts.recent_posts;
    }
    let scans = author::count_scans(conn, &authors).await?;
    if arguments.dry_run {
        return Ok(format!(
            "would erase: posts {}, Scans of them {scans}, recent posts {}",
            found.posts, found.recent_posts
        ));
    }
    if authors.len() > 1 && !arguments.all {
        bail!(
            "{} authors match `{name}`, so nothing was erased: give the id or address of one of them, or --all",
            authors.len()
        );
    }
    let erased = author::erase(conn, &authors).await?;
    Ok(format!(
        "erased: posts {}, Scans of them {scans}, recent posts {}",
        erased.posts, erased.recent_posts
    ))
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;
    use domain::{FeedName, Match, Post, Timestamp};
    use store::{
        recent_posts,
        scans::{self, NewScan},
    };
    use test_support::{Fixture, TestDatabase, instructions, post};

    use super::*;

    #[derive(Debug, clap::Parser)]
    struct Line {
        #[command(flatten)]
        arguments: Arguments,
    }

    async fn run(
        conn: &mut AsyncPgConnection,
        platform: &str,
        author: &str,
        flags: &[&str],
    ) -> Result<String, String> {
        let line = ["erase", "--platform", platform, "--author", author];
        let line = Line::try_parse_from(line.iter().chain(flags)).unwrap();
        let outcome = erase(conn, &line.arguments).await;
        outcome.map_err(|error| error.to_string())
    }

    fn by(author: &str, user_id: &str, post_id: &str) -> Post {
        let mut post = post(post_id, &format!("{author} wrote {post_id}"));
        post.user.id = user_id.to_owned();
        post.user.name = author.to_owned();
        post.user.url = format!("https://forum.example/u/{user_id}");
        post
    }

    /// Stores these posts of a feed: as recent ones, and with a Scan of each for two Managers.
    async fn stored(conn: &mut AsyncPgConnection, feed: &str, posts: &[Post]) {
        let (feed, now): (FeedName, _) = (feed.parse().unwrap(), Timestamp::now());
        recent_posts::insert(conn, &feed, posts, now, u32::MAX)
            .await
            .unwrap();
        let fixture = Fixture::create(conn).await;
        for _ in 0..2 {
            let manager = fixture.manager(conn, &instructions("a"), &[]).await;
            let scan = |post| NewScan {
                manager,
                post,
                matched: Match {
                    score: 1.0,
                    terms: vec!["a".to_owned()],
                    ..Match::default()
                },
            };
            let matches: Vec<_> = posts.iter().map(scan).collect();
            let made = scans::record(conn, &feed, &matches, now).await.unwrap();
            assert_eq!(made.len(), posts.len());
        }
    }

    #[tokio::test]
    async fn posts_of_the_author_are_erased_and_others_stay() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        let posts = [
            by("Pat", "u1", "1"),
            by("Pat", "u1", "2"),
            by("Kim", "u2", "3"),
        ];
        stored(conn, "forum:newest", &posts).await;
        // The same name on another platform is another person.
        stored(conn, "elsewhere:newest", &[by("Pat", "u1", "4")]).await;
        // An entry of a feed that a customer named.
        let feed = "forum:https://blog.example/feed.xml";
        stored(conn, feed, &[by("Pat", "u1", "5")]).await;

        let found = "posts 3, Scans of them 6, recent posts 3";
        let tried = run(conn, "forum", "@pat", &["--dry-run"]).await;
        assert_eq!(tried.unwrap(), format!("would erase: {found}"));
        assert_eq!(
            database.count("posts WHERE erase_time IS NOT NULL").await,
            0
        );
        assert_eq!(database.count("recent_posts").await, 5);

        let done = run(conn, "forum", "@pat", &[]).await.unwrap();
        assert_eq!(done, format!("erased: {found}"));
        // As after a deletion at the source: the Scans stay, with the post's id and address.
        let blank = "posts WHERE title = '' AND text = '' AND user_id = '' AND user_name = '' AND user_url = '' \
                     AND erase_time IS NOT NULL";
        let mut erased = database.texts("post_id", blank).await;
        erased.sort_unstable();
        assert_eq!(erased, ["1", "2", "5"]);
        let mut kept = database
            .texts("title || ' ' || user_id", "posts WHERE erase_time IS NULL")
            .await;
        kept.sort_unstable();
        assert_eq!(kept, ["Kim wrote 3 u2", "Pat wrote 4 u1"]);
        let mut recent = database.texts("post ->> 'id'", "recent_posts").await;
        recent.sort_unstable();
        assert_eq!(recent, ["3", "4"]);
        assert_eq!(database.count("scans").await, 10);

        let again = run(conn, "forum", "@pat", &[]).await.unwrap();
        assert_eq!(again, "no post of `@pat` on `forum` is stored");
    }

    #[tokio::test]
    async fn several_authors_of_one_name_are_refused_unless_all_are_meant() {
        let database = TestDatabase::create().await;
        let conn = &mut database.connect().await;
        let blank = "posts WHERE erase_time IS NOT NULL";
        let ids = ["u1", "u2", "u3"];
        let posts = ids.map(|id| by("Pat", id, id));
        stored(conn, "forum:newest", &posts).await;

        let refused = run(conn, "forum", "Pat", &[]).await.unwrap_err();
        assert!(refused.starts_with("3 authors match `Pat`"), "{refused}");
        assert_eq!(database.count(blank).await, 0);
        assert_eq!(database.count("recent_posts").await, 3);

        for one in ["U1", "https://forum.example/u/u2"] {
            run(conn, "forum", one, &[]).await.unwrap();
        }
        assert_eq!(database.count(blank).await, 2);
        stored(conn, "forum:newest", &[by("Pat", "u4", "u4")]).await;
        let all = run(conn, "forum", "Pat", &["--all"]).await.unwrap();
        assert_eq!(all, "erased: posts 2, Scans of them 4, recent posts 2");
    }
}
