//! A simulated platform, one feed on it that is polled repeatedly, and servers with written answers.

use std::{sync::Arc, time::Duration};

use async_trait::async_trait;
use domain::{Post, Timestamp};
use platform_simulator::{NewPost, Simulator};
use platforms::{
    Cursor, Direct, Fetch, FetchError, FetchLimits, Fetched, Platforms, PollError, PollLimits,
    Polled,
};
use url::Url;

/// The answer of a server to a request for `url`.
pub(crate) fn answer(status: u16, url: &Url, body: impl Into<Vec<u8>>) -> Fetched {
    Fetched {
        status,
        headers: Vec::new(),
        body: body.into(),
        final_url: url.clone(),
    }
}

/// A server that answers each request by its address.
pub(crate) fn answering(
    answer: impl Fn(&Url) -> Fetched + Send + Sync + 'static,
) -> Arc<dyn Fetch> {
    Arc::new(Answering(answer))
}

/// A server that gives the same answer to every request.
pub(crate) fn always(status: u16, body: impl Into<Vec<u8>>) -> Arc<dyn Fetch> {
    let body = body.into();
    answering(move |url| answer(status, url, body.clone()))
}

struct Answering<F>(F);

#[async_trait]
impl<F: Fn(&Url) -> Fetched + Send + Sync> Fetch for Answering<F> {
    async fn get(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        Ok((self.0)(url))
    }

    /// Grants every token.
    async fn post_form(
        &self,
        url: &Url,
        _: &[(&str, &str)],
        _: &[(&str, &str)],
        _: &FetchLimits,
    ) -> Result<Fetched, FetchError> {
        let token =
            r#"{"access_token": "a", "token_type": "bearer", "expires_in": 86400, "scope": "*"}"#;
        Ok(answer(200, url, token))
    }
}

pub(crate) struct Feed {
    pub(crate) simulator: Simulator,
    platforms: Platforms,
    name: String,
    pub(crate) limits: PollLimits,
    pub(crate) cursor: Option<Cursor>,
}

impl Feed {
    /// `name` is a feed's name: `hackernews:newest`.
    pub(crate) fn new(name: &str) -> Self {
        let simulator = Simulator::start("127.0.0.1:0".parse().unwrap()).unwrap();
        let guarded: Arc<dyn Fetch> = Arc::new(Direct::new(None).unwrap());
        let mut settings = simulator.settings();
        settings.push(platforms::Settings {
            name: "blogs".into(),
            kind: "feed".into(),
            source: Some(platforms::Source::Forum),
            ..platforms::Settings::default()
        });
        settings.extend(
            [
                "bluesky",
                "discourse",
                "lobsters",
                "mastodon",
                "reddit",
                "x",
            ]
            .map(|kind| simulator.settings_of(kind)),
        );
        settings.extend(["linkedin", "facebook"].map(|kind| own(&simulator, kind, kind, "good")));
        settings.extend(
            ["expired", "forbidden", "busy"]
                .into_iter()
                .flat_map(|token| {
                    ["linkedin", "facebook"]
                        .map(|kind| own(&simulator, &format!("{kind}-{token}"), kind, token))
                }),
        );
        let mut wrong = simulator.settings_of("reddit");
        wrong.name = "reddit-wrong".into();
        wrong.access.client_secret = Some("hunter2".into());
        settings.push(wrong);
        let platforms = Platforms::from_settings(&settings, &guarded).unwrap();
        Self {
            simulator,
            platforms,
            name: name.to_owned(),
            limits: PollLimits {
                since: Some(Timestamp::now().minus(Duration::from_hours(24))),
                ..PollLimits::default()
            },
            cursor: None,
        }
    }

    pub(crate) fn publish(&self, posts: impl IntoIterator<Item = NewPost>) -> Vec<u64> {
        let posts = posts.into_iter().collect();
        let published = self.simulator.publish(posts);
        published.into_iter().map(|one| one.id).collect()
    }

    /// The adapter of the feed's platform.
    pub(crate) fn adapter(&self) -> Arc<dyn platforms::Adapter> {
        let (platform, _) = self.name.split_once(':').unwrap();
        Arc::clone(&self.platforms.get(platform).unwrap().adapter)
    }

    /// Switches to another feed, which was never polled.
    pub(crate) fn watch(&mut self, name: &str) {
        self.name = name.to_owned();
        self.cursor = None;
    }

    pub(crate) async fn try_poll(&mut self) -> Result<Polled, PollError> {
        let (platform, what) = self.name.split_once(':').unwrap();
        let what = what.replace("{base}", &self.simulator.base_url());
        let platform = self.platforms.get(platform).unwrap();
        assert!(platform.accepts(&what), "{what}");
        let polled = platform
            .adapter
            .poll(&what, self.cursor.as_ref(), &self.limits)
            .await?;
        // Every cursor goes through its JSON, as it does in the database.
        let cursor = Cursor::from_json(&polled.cursor.to_json());
        assert_eq!(cursor.as_ref(), Some(&polled.cursor));
        self.cursor = cursor;
        assert!(polled.posts.is_sorted_by_key(|post| post.time));
        Ok(polled)
    }

    pub(crate) async fn poll(&mut self) -> Polled {
        self.try_poll().await.unwrap()
    }

    /// The titles that a poll returns, oldest first.
    pub(crate) async fn titles(&mut self) -> Vec<String> {
        let posts = self.poll().await.posts;
        posts.into_iter().map(|post| title(&post)).collect()
    }
}

/// A platform that is read with the operator's token.
fn own(simulator: &Simulator, name: &str, kind: &str, token: &str) -> platforms::Settings {
    let version = if kind == "linkedin" {
        "202610"
    } else {
        "v25.0"
    };
    platforms::Settings {
        name: name.into(),
        kind: kind.into(),
        base_url: format!("{}/{kind}", simulator.base_url()).parse().ok(),
        access: runtime::config::Access {
            token: Some(token.into()),
            api_version: Some(version.into()),
            ..Default::default()
        },
        ..platforms::Settings::default()
    }
}

pub(crate) fn title(post: &Post) -> String {
    post.title.clone().unwrap_or_default()
}

pub(crate) fn post(platform: &str, title: impl Into<String>) -> NewPost {
    NewPost {
        platform: platform.into(),
        title: title.into(),
        author: "ana".into(),
        ..NewPost::default()
    }
}

/// `count` posts, the first one `count` seconds old.
pub(crate) fn posts(platform: &str, count: u64) -> Vec<NewPost> {
    let now = Timestamp::now();
    (0..count)
        .map(|n| NewPost {
            time: Some(now.minus(Duration::from_secs(count - n))),
            ..post(platform, format!("post {n}"))
        })
        .collect()
}

pub(crate) fn minutes_ago(minutes: u64) -> Option<Timestamp> {
    Some(Timestamp::now().minus(Duration::from_mins(minutes)))
}
