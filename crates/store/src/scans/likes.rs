//! Near-duplicates: for Managers with `duplicates: COLLAPSE`, a post that repeats a Scan's post becomes a place of
//! that Scan instead of a separate Scan.
//!
//! All of this happens while the Managers' clocks are locked. So if two near-duplicates are found at once, one is
//! first, and the other's scanner sees its Scan. It costs nothing if no Manager collapses duplicates. Otherwise it
//! costs one more statement for each poll with matches, and two more if there is something to write.

use std::{
    collections::{BTreeMap, BTreeSet, HashMap},
    time::Duration,
};

use chrono::{DateTime, Utc};
use diesel::{
    prelude::*,
    sql_types::{
        Array, BigInt, Binary, Bool, Double, Integer, Jsonb, Nullable, Timestamptz, Uuid as SqlUuid,
    },
};
use diesel_async::{AsyncPgConnection, RunQueryDsl};
use domain::{Id, ManagerName, Place, Post, ScanName, scan::MAX_PLACES};
use matching::likeness::{Likeness, Sketch};
use uuid::Uuid;

use crate::{Error, QueryResult, prepared::query, words};

/// How long after a Scan a near-duplicate still belongs to it.
pub const ALIKE_WITHIN: Duration = Duration::from_hours(7 * 24);

/// A Manager, and a post's key.
pub(super) type Key = (ManagerName, Uuid);

/// Text that a later post may repeat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Original {
    Stored(ScanName),
    /// Found just now; its Scan is created after all decisions.
    Found(Key),
}

/// An original that a key leads to, and its text if that has to be compared.
type Known = (Original, Option<Sketch>);

/// Similarity keys of a poll's posts, and of the Scans that share a key with them.
#[derive(Default)]
pub(super) struct Likes {
    /// Posts to decide on, for Managers that collapse duplicates.
    own: BTreeMap<Key, Likeness>,
    /// Known Scans, oldest first.
    known: HashMap<(ManagerName, i64), Vec<Known>>,
    places: BTreeMap<Original, Vec<Place>>,
}

impl Likes {
    /// Similarity keys of these posts, without any Scan.
    pub(super) fn of(fresh: &[(Key, &Post)]) -> Self {
        let mut computed: HashMap<Uuid, Likeness> = HashMap::new();
        let own = fresh.iter().map(|&(key, post)| {
            let likeness = computed.entry(key.1);
            let likeness = likeness.or_insert_with(|| Likeness::of(post));
            (key, likeness.clone())
        });
        Self {
            own: own.collect(),
            ..Self::default()
        }
    }

    /// Reads the Scans that share a key with `fresh`, posts of Managers that collapse duplicates. Served by
    /// `scan_likes_pkey`. Only posts that are silent too may become places of a silent Scan.
    pub(super) async fn load(
        conn: &mut AsyncPgConnection,
        fresh: &[(Key, &Post)],
        silently: bool,
    ) -> QueryResult<Self> {
        #[derive(QueryableByName)]
        struct Like {
            #[diesel(sql_type = SqlUuid)]
            namespace_id: Uuid,
            #[diesel(sql_type = SqlUuid)]
            manager_id: Uuid,
            #[diesel(sql_type = BigInt)]
            key: i64,
            #[diesel(sql_type = SqlUuid)]
            scan_id: Uuid,
            #[diesel(sql_type = Nullable<Binary>)]
            sketch: Option<Vec<u8>>,
        }
        let mut likes = Self::of(fresh);
        if likes.own.is_empty() {
            return Ok(likes);
        }
        let wanted: BTreeSet<(ManagerName, i64)> = likes
            .own
            .iter()
            .flat_map(|((manager, _), likeness)| likeness.keys().map(|key| (*manager, key)))
            .collect();
        let column = |id: fn(&ManagerName) -> Id| -> Vec<Uuid> {
            wanted.iter().map(|(name, _)| id(name).to_uuid()).collect()
        };
        let rows: Vec<Like> = query!(
            "scans/find_likes",
            Array<SqlUuid>: column(|name| name.namespace),
            Array<SqlUuid>: column(|name| name.manager),
            Array<BigInt>: wanted.iter().map(|(_, key)| *key).collect::<Vec<_>>(),
            Double: ALIKE_WITHIN.as_secs_f64(),
            Bool: silently,
        )
        .load(conn)
        .await?;
        for row in rows {
            let manager = ManagerName {
                namespace: Id::from_uuid(row.namespace_id),
                manager: Id::from_uuid(row.manager_id),
            };
            let scan = ScanName {
                namespace: manager.namespace,
                manager: manager.manager,
                scan: Id::from_uuid(row.scan_id),
            };
            let sketch = row.sketch.as_deref().and_then(Sketch::from_bytes);
            let known = likes.known.entry((manager, row.key)).or_default();
            known.push((Original::Stored(scan), sketch));
        }
        Ok(likes)
    }

    /// Returns true if the post repeats an earlier one of the Manager; then it becomes a place of that one.
    pub(super) fn is_again(&mut self, key: Key, post: &Post) -> bool {
        let Some(likeness) = self.own.get(&key) else {
            return false;
        };
        let of = |key_of: i64| self.known.get(&(key.0, key_of)).into_iter().flatten();
        let by_link = likeness.links.iter().find_map(|link| of(*link).next());
        let by_text = || {
            let sketch = likeness.sketch.as_ref()?;
            let met = likeness.bands.iter().flat_map(|band| of(*band));
            let alike =
                |other: &&Known| other.1.as_ref().is_some_and(|other| other.is_like(sketch));
            met.filter(alike).min_by_key(|(original, _)| *original)
        };
        let Some((original, _)) = by_link.or_else(by_text) else {
            return false;
        };
        let places = self.places.entry(*original).or_default();
        if places.len() < MAX_PLACES {
            places.push(Place::of(post));
        }
        true
    }

    /// Records that a Scan of this post will be created.
    pub(super) fn is_new(&mut self, key: Key) {
        let Some(likeness) = self.own.get(&key) else {
            return;
        };
        let original = Original::Found(key);
        for link in &likeness.links {
            let known = self.known.entry((key.0, *link)).or_default();
            known.push((original, None));
        }
        for band in &likeness.bands {
            let known = self.known.entry((key.0, *band)).or_default();
            known.push((original, likeness.sketch.clone()));
        }
    }

    /// Stores the similarity keys of new Scans, and the places that were found.
    pub(super) async fn store(
        self,
        conn: &mut AsyncPgConnection,
        made: &HashMap<Key, ScanName>,
        silently: bool,
    ) -> Result<(), Error> {
        let own = self.own.into_iter();
        let new = own.filter_map(|(key, likeness)| Some((*made.get(&key)?, likeness)));
        insert_likes(conn, new, silently).await?;
        let places = self.places.into_iter().filter_map(|(original, places)| {
            let scan = match original {
                Original::Stored(scan) => scan,
                Original::Found(key) => *made.get(&key)?,
            };
            Some((scan, places))
        });
        append_places(conn, places.collect()).await
    }
}

async fn insert_likes(
    conn: &mut AsyncPgConnection,
    new: impl Iterator<Item = (ScanName, Likeness)>,
    silently: bool,
) -> QueryResult<()> {
    let (mut scans, mut keys, mut sketches) = (Vec::new(), Vec::new(), Vec::new());
    for (scan, likeness) in new {
        let bytes = likeness.sketch.as_ref().map(Sketch::to_bytes);
        scans.extend(likeness.keys().map(|_| scan));
        keys.extend(likeness.keys());
        sketches.extend(likeness.links.iter().map(|_| None));
        sketches.extend(likeness.bands.iter().map(|_| bytes.clone()));
    }
    if scans.is_empty() {
        return Ok(());
    }
    let columns = Columns::of(&scans);
    query!(
        "scans/insert_likes",
        Array<SqlUuid>: columns.namespaces,
        Array<SqlUuid>: columns.managers,
        Array<Timestamptz>: columns.times,
        Array<SqlUuid>: columns.ids,
        Array<BigInt>: keys,
        Array<Nullable<Binary>>: sketches,
        Bool: silently,
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Adds places to Scans, up to [`MAX_PLACES`] each. The update time stays, because it identifies the customer's
/// verdicts.
async fn append_places(
    conn: &mut AsyncPgConnection,
    mut found: Vec<(ScanName, Vec<Place>)>,
) -> Result<(), Error> {
    if found.is_empty() {
        return Ok(());
    }
    // Other transactions lock in this order too.
    found.sort_by_key(|(scan, _)| *scan);
    let scans: Vec<ScanName> = found.iter().map(|(scan, _)| *scan).collect();
    let places = found
        .iter()
        .map(|(_, places)| Ok(words::json(serde_json::to_value(places)?)))
        .collect::<Result<Vec<_>, _>>()
        .map_err(Error::Json)?;
    let columns = Columns::of(&scans);
    query!(
        "scans/append_places",
        Array<SqlUuid>: columns.namespaces,
        Array<SqlUuid>: columns.managers,
        Array<Timestamptz>: columns.times,
        Array<SqlUuid>: columns.ids,
        Array<Jsonb>: places,
        Integer: i32::try_from(MAX_PLACES).unwrap_or(i32::MAX),
    )
    .execute(conn)
    .await?;
    Ok(())
}

/// Scans, stored column by column.
struct Columns {
    namespaces: Vec<Uuid>,
    managers: Vec<Uuid>,
    times: Vec<DateTime<Utc>>,
    ids: Vec<Uuid>,
}

impl Columns {
    fn of(scans: &[ScanName]) -> Self {
        let ids = |id: fn(&ScanName) -> Id| -> Vec<Uuid> {
            scans.iter().map(|scan| id(scan).to_uuid()).collect()
        };
        Self {
            namespaces: ids(|scan| scan.namespace),
            managers: ids(|scan| scan.manager),
            times: scans
                .iter()
                .map(|scan| scan.scan.time().to_chrono())
                .collect(),
            ids: ids(|scan| scan.scan),
        }
    }
}
