//! Erases posts that were deleted at their source, or whose author asks for it ([`author`]).
//!
//! [`erase`] blanks title, text and author of stored posts, and removes recent posts. Scans stay, with the post's
//! id and address. [`lease`] and [`advance`] walk all posts of a platform, some at a time, so that its scanner can
//! ask which of them are gone: first posts of Scans, then recent ones. The position of a walk is stored, so it
//! survives the death of a process. A post that is not found once is [`missing`]. If it is not found an hour later
//! either, it is erased. [`edits`] of those that are found are reported.

pub mod author;
pub mod edits;
pub mod missing;

use std::{collections::VecDeque, time::Duration};

use chrono::{DateTime, Utc};
use diesel::{
    OptionalExtension as _, QueryableByName, sql_query,
    sql_types::{Array, BigInt, Bool, Double, SmallInt, Text, Timestamptz, Uuid as SqlUuid},
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::Id;
use uuid::Uuid;

use crate::{
    QueryResult,
    prepared::query,
    scans::key_of,
    work::{self, Claim, Claimed, Leased, MAX_OF_RESTING, Remembered},
};

/// Number of rows, of any platform, that a walk reads at a time.
const STRETCH: i64 = 5_000;
/// Maximum number of service events that a Namespace gets of posts that are blanked, or found edited, together.
const MAX_EVENTS: i64 = 100;

/// Blanks the posts with these ids (see `domain::Post`), and returns how many were stored and not blank yet. Posts
/// of feeds that customers named stay, because such feeds only claim the ids of a platform. Unknown ids cost next
/// to nothing, because many deleted posts were never stored. By primary keys; two statements for any number of
/// posts.
pub async fn erase(conn: &mut AsyncPgConnection, post_ids: &[String]) -> QueryResult<usize> {
    if post_ids.is_empty() {
        return Ok(0);
    }
    let mut keys: Vec<Uuid> = post_ids.iter().map(|id| key_of(id)).collect();
    keys.sort_unstable();
    keys.dedup();
    query!("erasure/erase_recent", Array<SqlUuid>: &keys)
        .execute(conn)
        .await?;
    query!("erasure/erase_refused", Array<SqlUuid>: &keys)
        .execute(conn)
        .await?;
    // The id determines the partition.
    #[derive(QueryableByName)]
    struct Key {
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let stored: Vec<Key> = query!("erasure/find_ids", Array<SqlUuid>: &keys)
        .load(conn)
        .await?;
    if stored.is_empty() {
        return Ok(0);
    }
    let ids: Vec<Uuid> = stored.iter().map(|key| key.id).collect();
    let times: Vec<DateTime<Utc>> = ids
        .iter()
        .map(|id| domain::Id::from_uuid(*id).time().to_chrono())
        .collect();
    blank(conn, ids, times).await
}

/// Blanks the posts with these ids and times, and returns how many were not blank yet. By primary key. Records a
/// service event for each of their Scans whose Namespace receives it, which `scans_post_receive_time_idx` serves: those of
/// the newest [`MAX_EVENTS`] Scans of a Namespace.
async fn blank(
    conn: &mut AsyncPgConnection,
    ids: Vec<Uuid>,
    times: Vec<DateTime<Utc>>,
) -> QueryResult<usize> {
    #[derive(QueryableByName)]
    struct Blanked {
        #[diesel(sql_type = BigInt)]
        number: i64,
    }
    let blanked: Blanked = query!(
        "erasure/blank",
        Array<SqlUuid>: ids,
        Array<Timestamptz>: times,
        BigInt: MAX_EVENTS,
    )
    .get_result(conn)
    .await?;
    Ok(usize::try_from(blanked.number).unwrap_or(0))
}

/// Posts that a walk reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stage {
    /// Posts that became Scans.
    Posts,
    /// Posts that are kept for previews.
    Recent,
}

impl Stage {
    fn as_str(self) -> &'static str {
        match self {
            Self::Posts => "POSTS",
            Self::Recent => "RECENT",
        }
    }
}

/// Position of a walk.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub stage: Stage,
    /// False between two walks, when only [`missing`] posts are due. The position is then the start.
    pub is_walking: bool,
    time: DateTime<Utc>,
    id: Uuid,
}

/// Some posts of a platform whose deletion is to be checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Step {
    pub post_ids: Vec<String>,
    /// Position after them; `None` at the end of the walk.
    pub next: Option<Place>,
}

#[derive(QueryableByName)]
struct WalkRow {
    #[diesel(sql_type = Text)]
    stage: String,
    #[diesel(sql_type = Timestamptz)]
    place_time: DateTime<Utc>,
    #[diesel(sql_type = SqlUuid)]
    place_id: Uuid,
    #[diesel(sql_type = Bool)]
    is_walking: bool,
    #[diesel(sql_type = SmallInt)]
    crash_count: i16,
    #[diesel(sql_type = Bool)]
    is_suspect: bool,
}

/// Leases the walk over `platform`'s posts if it is due. By primary key.
pub async fn lease(
    conn: &mut AsyncPgConnection,
    platform: &str,
    claim: &Claim<'_>,
) -> QueryResult<Claimed<Place>> {
    #[derive(QueryableByName)]
    struct NextDue {
        #[diesel(sql_type = Double)]
        seconds: f64,
    }
    if claim.known.iter().any(|known| known == platform) {
        return Ok(Claimed::default());
    }
    let free = work::is_free("leased_by", "$2", "$3");
    let Remembered {
        crash_count,
        clear_time,
        is_suspect,
    } = work::remembered("", "leased_by", "$2", MAX_OF_RESTING);
    query!("erasure/insert_recheck", Text: platform)
        .execute(conn)
        .await?;
    let row: Option<WalkRow> = sql_query(format!(
        "UPDATE rechecks SET leased_by = $2, crash_count = {crash_count}, clear_time = {clear_time} \
         WHERE platform = $1 AND next_time <= clock_timestamp() AND {free} AND (NOT {is_suspect} OR $4) \
         RETURNING stage, place_time, place_id, begin_time <= clock_timestamp() AS is_walking, crash_count, \
             {} AS is_suspect",
        work::is_suspect("")
    ))
    .bind::<Text, _>(platform)
    .bind::<SqlUuid, _>(claim.replica)
    .bind::<Bool, _>(claim.take_over)
    .bind::<Bool, _>(claim.room.suspects() > 0)
    .get_result(conn)
    .await
    .optional()?;
    let Some(row) = row else {
        let next: NextDue = query!("erasure/next_due", Text: platform)
            .get_result(conn)
            .await?;
        return Ok(Claimed {
            next_due: Duration::try_from_secs_f64(next.seconds).ok(),
            ..Claimed::default()
        });
    };
    let place = Place {
        stage: match row.stage.as_str() {
            "RECENT" => Stage::Recent,
            _ => Stage::Posts,
        },
        is_walking: row.is_walking,
        time: row.place_time,
        id: row.place_id,
    };
    Ok(Claimed {
        items: vec![Leased {
            key: platform.to_owned(),
            account: Id::NIL,
            is_slow: false,
            crashes: work::count(row.crash_count),
            is_suspect: row.is_suspect,
            item: place,
        }],
        ..Claimed::default()
    })
}

/// The part of a walk that one statement read: enough for many steps, whose posts come from memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stretch {
    at: Place,
    /// The platform's own posts, each with the position after it.
    posts: VecDeque<(String, Place)>,
    /// Position after all rows that were read; `None` at the end of the walk.
    end: Option<Place>,
}

impl Stretch {
    /// Returns true if a step from `place` on need not read again.
    pub fn goes_on_at(&self, place: &Place) -> bool {
        self.at == *place && !self.posts.is_empty()
    }

    /// Takes the next posts, at most `limit`. There may be none among the rows read.
    pub fn step(&mut self, limit: usize) -> Step {
        let mut post_ids = Vec::new();
        while post_ids.len() < limit
            && let Some((post_id, after)) = self.posts.pop_front()
        {
            post_ids.push(post_id);
            self.at = after;
        }
        let next = if self.posts.is_empty() {
            self.end.clone()
        } else {
            Some(self.at.clone())
        };
        Step { post_ids, next }
    }
}

/// Time since the unfinished walk over a platform's posts began.
#[derive(Debug, Clone, PartialEq, QueryableByName)]
pub struct Age {
    #[diesel(sql_type = Text)]
    pub platform: String,
    /// 0 between two walks.
    #[diesel(sql_type = Double)]
    pub seconds: f64,
}

/// Returns the ages of all walks: one row for each platform.
pub async fn ages(conn: &mut AsyncPgConnection) -> QueryResult<Vec<Age>> {
    query!("erasure/ages").load(conn).await
}

/// Reads on from `place`. Served by the primary keys of `posts`, and by `recent_posts_newest_idx`.
pub async fn read(
    conn: &mut AsyncPgConnection,
    platform: &str,
    place: &Place,
) -> QueryResult<Stretch> {
    #[derive(QueryableByName)]
    struct Found {
        #[diesel(sql_type = Bool)]
        own: bool,
        #[diesel(sql_type = Text)]
        post_id: String,
        #[diesel(sql_type = Timestamptz)]
        time: DateTime<Utc>,
        #[diesel(sql_type = SqlUuid)]
        id: Uuid,
    }
    let rows: Vec<Found> = match place.stage {
        Stage::Posts => {
            query!(
                "erasure/read_posts",
                Text: platform,
                Timestamptz: place.time,
                SqlUuid: place.id,
                BigInt: STRETCH,
            )
            .load(conn)
            .await?
        }
        Stage::Recent => {
            query!(
                "erasure/read_recent",
                Text: platform,
                SqlUuid: place.id,
                BigInt: STRETCH,
            )
            .load(conn)
            .await?
        }
    };
    let all = rows.len();
    let (mut posts, mut last) = (VecDeque::<(String, Place)>::new(), place.clone());
    for row in rows {
        (last.time, last.id) = (row.time, row.id);
        // A post of several feeds has a row for each, and these rows stay together.
        match posts.back_mut() {
            Some((post_id, after)) if *post_id == row.post_id => *after = last.clone(),
            _ if row.own => posts.push_back((row.post_id, last.clone())),
            _ => {}
        }
    }
    let is_last = i64::try_from(all).is_ok_and(|all| all < STRETCH);
    let end = match (is_last, place.stage) {
        (false, _) => Some(last),
        (true, Stage::Posts) => Some(Place {
            stage: Stage::Recent,
            is_walking: true,
            time: DateTime::UNIX_EPOCH,
            id: Uuid::nil(),
        }),
        (true, Stage::Recent) => None,
    };
    Ok(Stretch {
        at: place.clone(),
        posts,
        end,
    })
}

/// Ends a step between two walks. The next one is due `wait` later at the earliest, although more missing posts may be
/// due now. By primary key, and `missing_posts_due_idx`.
pub async fn release(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    wait: Duration,
) -> QueryResult<()> {
    query!(
        "erasure/rest",
        Text: platform,
        SqlUuid: replica,
        Double: wait.as_secs_f64(),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Ends a step: the walk continues at `place` after `wait`. With `None` it is complete, and the next one starts `pass`
/// after this one started. Missing posts may be due earlier. Does nothing if `replica` has lost the lease.
pub async fn advance(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    place: Option<&Place>,
    wait: Duration,
    pass: Duration,
) -> QueryResult<()> {
    end(conn, platform, replica, place, wait, pass, false).await
}

/// Same as [`advance`] for a step that is set aside.
pub async fn set_aside(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    place: Option<&Place>,
    retry_in: Duration,
    pass: Duration,
) -> QueryResult<()> {
    end(conn, platform, replica, place, retry_in, pass, true).await
}

/// Ends a step; by primary key.
async fn end(
    conn: &mut AsyncPgConnection,
    platform: &str,
    replica: Uuid,
    place: Option<&Place>,
    wait: Duration,
    pass: Duration,
    is_set_aside: bool,
) -> QueryResult<()> {
    if let Some(place) = place {
        query!(
            "erasure/advance",
            Text: platform,
            SqlUuid: replica,
            Text: place.stage.as_str(),
            Timestamptz: place.time,
            SqlUuid: place.id,
            Double: wait.as_secs_f64(),
            Bool: is_set_aside,
        )
        .execute(conn)
        .await?;
    } else {
        query!(
            "erasure/finish",
            Text: platform,
            SqlUuid: replica,
            Double: pass.as_secs_f64(),
            Double: wait.as_secs_f64(),
            Bool: is_set_aside,
        )
        .execute(conn)
        .await?;
    }
    Ok(())
}
