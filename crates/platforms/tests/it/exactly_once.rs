//! Every post exactly once, under any schedule: one property test for each style of paging of the forums.

use std::sync::Arc;
use std::time::Duration;

use domain::Timestamp;
use platform_simulator::{InMemory, NewPost, reddit};
use platforms::{
    Adapter, Fetch, PollLimits, discourse::Discourse, hackernews::HackerNews, lemmy::Lemmy,
    lobsters::Lobsters, reddit::Reddit,
};
use proptest::prelude::*;
use url::Url;

use crate::schedule::{
    Place, Planned, Played, Schedule, Shape, Stage, Staged, cases, play, schedules,
};

/// One list on the simulated platforms.
#[derive(Clone)]
struct Forum {
    memory: Arc<InMemory>,
    /// The fields that every post has in common.
    like: NewPost,
}

impl Forum {
    fn new(platform: &str) -> Self {
        Self {
            memory: InMemory::new(),
            like: NewPost {
                platform: platform.into(),
                author: "ana".into(),
                text: Some("some text".into()),
                ..NewPost::default()
            },
        }
    }

    /// A list of comments, all on one post that is never deleted.
    fn of_comments(mut self) -> Self {
        let story = self.memory.publish(vec![NewPost {
            title: "what it is about".into(),
            time: Some(Timestamp::now().minus(Duration::from_hours(48))),
            ..self.like.clone()
        }]);
        self.like.parent = Some(story[0].id);
        self
    }

    /// The simulator's number of the post.
    fn number(&self, post_id: &str) -> u64 {
        let end = post_id.rsplit(['/', ':', '_']).next().unwrap();
        let radix = if self.like.platform == "reddit" {
            36
        } else {
            10
        };
        u64::from_str_radix(end, radix).unwrap()
    }
}

impl Place for Forum {
    fn publish(&self, post: &Planned) -> String {
        let published = self.memory.publish(vec![NewPost {
            title: format!("post {}", post.number),
            time: Some(post.time),
            ..self.like.clone()
        }]);
        published.into_iter().next().unwrap().post_id
    }

    fn delete(&self, post_id: &str) {
        assert!(self.memory.delete(self.number(post_id)));
    }

    fn edit(&self, post_id: &str) {
        assert!(self.memory.edit(self.number(post_id), "other text"));
    }

    fn set_now(&self, now: Timestamp) {
        self.memory.set_now(now);
    }
}

fn url(path: &str) -> Url {
    format!("http://simulated.example/{path}").parse().unwrap()
}

fn given_once(
    schedule: &Schedule,
    forum: Forum,
    what: &str,
    adapter: impl FnOnce(Arc<dyn Fetch>) -> Box<dyn Adapter>,
) -> Result<Played, TestCaseError> {
    let memory: Arc<dyn Fetch> = Arc::clone(&forum.memory) as _;
    let stage = Stage::new(forum);
    let adapter = adapter(Staged::new(&stage, memory));
    let played = play(schedule, &stage, &*adapter, what, &PollLimits::default())?;
    prop_assert_eq!(played.gaps, 0);
    Ok(played)
}

fn shifting() -> Shape {
    Shape {
        during_polls: Duration::from_millis(700),
        ..Shape::default()
    }
}

fn algolia(schedule: &Schedule, what: &str) -> Result<Played, TestCaseError> {
    let forum = Forum::new("hackernews");
    let forum = if what == "comments" {
        forum.of_comments()
    } else {
        forum
    };
    given_once(schedule, forum, what, |fetch| {
        let search = url("hackernews/api/v1");
        Box::new(HackerNews::new("hackernews".into(), search, None, fetch))
    })
}

fn firebase(schedule: &Schedule) -> Result<Played, TestCaseError> {
    given_once(schedule, Forum::new("hackernews"), "newest", |fetch| {
        let (search, items) = (url("hackernews/api/v1"), url("hackernews/v0"));
        Box::new(HackerNews::new(
            "hackernews".into(),
            search,
            Some(items),
            fetch,
        ))
    })
}

fn lemmy(schedule: &Schedule, what: &str) -> Result<Played, TestCaseError> {
    let forum = Forum::new("lemmy");
    let forum = if what == "comments" {
        forum.of_comments()
    } else {
        forum
    };
    given_once(schedule, forum, what, |fetch| {
        Box::new(Lemmy::new(url("lemmy"), fetch))
    })
}

fn lobsters(schedule: &Schedule) -> Result<Played, TestCaseError> {
    given_once(schedule, Forum::new("lobsters"), "newest", |fetch| {
        Box::new(Lobsters::new("lobsters".into(), url("lobsters"), fetch))
    })
}

fn discourse(schedule: &Schedule, what: &str) -> Result<Played, TestCaseError> {
    let forum = Forum::new("discourse");
    let forum = if what == "posts" {
        forum.of_comments()
    } else {
        forum
    };
    given_once(schedule, forum, what, |fetch| {
        Box::new(Discourse::new(
            "discourse".into(),
            url("discourse"),
            None,
            fetch,
        ))
    })
}

fn reddit(schedule: &Schedule, what: &str) -> Result<Played, TestCaseError> {
    let mut forum = Forum::new("reddit");
    forum.like.community = Some("saas".into());
    let forum = if what.ends_with("comments") {
        forum.of_comments()
    } else {
        forum
    };
    given_once(schedule, forum, what, |fetch| {
        let (id, secret) = (reddit::CLIENT_ID, reddit::CLIENT_SECRET);
        let (id, secret) = (id.to_owned(), secret.to_owned().into());
        Box::new(Reddit::new(
            "reddit".into(),
            url("reddit"),
            id,
            secret,
            fetch,
        ))
    })
}

/// Algolia returns at most a thousand posts of one second.
fn of_algolia(shape: Shape) -> Shape {
    Shape {
        least_spread: 3,
        ..shape
    }
}

/// At most one window of ids has comments of one second. Replies are never late, because their numbers grow
/// with time.
fn of_replies() -> Shape {
    Shape {
        most_late: 1,
        ..Shape::default()
    }
}

/// A listing of Reddit reaches back over 1,000 posts.
fn of_reddit(shape: Shape) -> Shape {
    Shape {
        most_burst: 500,
        ..shape
    }
}

proptest! {
    #![proptest_config(cases(24))]

    #[test]
    fn by_windows_of_time(schedule in schedules(&of_algolia(Shape::default()))) {
        algolia(&schedule, "newest")?;
    }

    #[test]
    fn by_windows_of_time_for_comments(schedule in schedules(&of_algolia(shifting()))) {
        algolia(&schedule, "comments")?;
    }

    #[test]
    fn by_a_search_and_a_list_of_items(schedule in schedules(&of_algolia(Shape::default()))) {
        firebase(&schedule)?;
    }

    #[test]
    fn by_cursors_behind_pins(schedule in schedules(&Shape::default())) {
        lemmy(&schedule, "newest")?;
    }

    #[test]
    fn by_cursors_while_posts_come_and_go(schedule in schedules(&shifting())) {
        lemmy(&schedule, "newest")?;
    }

    #[test]
    fn by_numbered_pages(schedule in schedules(&Shape::default())) {
        lemmy(&schedule, "comments")?;
    }

    #[test]
    fn by_numbered_pages_that_shift(schedule in schedules(&shifting())) {
        lemmy(&schedule, "comments")?;
    }

    #[test]
    fn by_small_numbered_pages(schedule in schedules(&Shape::default())) {
        lobsters(&schedule)?;
    }

    #[test]
    fn by_small_numbered_pages_that_shift(schedule in schedules(&shifting())) {
        lobsters(&schedule)?;
    }

    #[test]
    fn by_named_pages_and_single_topics(schedule in schedules(&Shape::default())) {
        discourse(&schedule, "latest")?;
    }

    #[test]
    fn by_named_pages_that_shift(schedule in schedules(&shifting())) {
        discourse(&schedule, "latest")?;
    }

    #[test]
    fn by_numbers_of_posts(schedule in schedules(&of_replies())) {
        discourse(&schedule, "posts")?;
    }

    #[test]
    fn by_anchors(schedule in schedules(&of_reddit(Shape::default()))) {
        reddit(&schedule, "r/rust+saas")?;
    }

    #[test]
    fn by_anchors_that_are_deleted(schedule in schedules(&of_reddit(shifting()))) {
        reddit(&schedule, "r/saas/comments")?;
    }
}
