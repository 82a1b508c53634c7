"""Types of the API: resources, bodies of requests, and the webhook.

Generated from crates/api-gateway/openapi.yaml by generate.py. Do not edit.
"""

from __future__ import annotations

import sys
from typing import Literal, TypedDict

if sys.version_info >= (3, 11):
    from typing import NotRequired, TypeAlias
else:
    from typing_extensions import NotRequired, TypeAlias

Id: TypeAlias = str
"""
A lower-case ULID.
"""


Timestamp: TypeAlias = str
"""
RFC 3339, UTC, six fractional digits.
"""


NamespaceName: TypeAlias = str


ManagerName: TypeAlias = str


ConnectionName: TypeAlias = str


ScanName: TypeAlias = str


Nickname: TypeAlias = str
"""
What people call it. Space at the ends is cut off.
"""


class Quota(TypedDict):
    limit: int
    used: int


class Mute(TypedDict):
    type: Literal["AUTHOR", "SUBFORUM", "SITE", "TERM"]
    """
    `AUTHOR`, `SUBFORUM`: by id, name or address, in any case. `SITE`: by the host of the post's address, and those
    below it. `TERM`: a word or phrase of title or text, as `exclude` of the instructions has it.

    """
    value: str
    """
    Of a `TERM` at most 100 characters, with a letter or digit among them; of a `SITE` a host.
    """
    expireTime: NotRequired[Timestamp | None]
    """
    From then on it has no effect; absent or null, it stands until it is taken out.
    """


LanguagesLanguage: TypeAlias = str


Languages: TypeAlias = list[LanguagesLanguage]
"""
Posts in other languages are left out; without any, all are welcome. Tags of BCP 47, of which the language alone
counts (`pt-BR` is kept as `pt`), and only languages that are told apart (else `invalid_enum`). A post that is too
short to tell passes.

"""


MaxScansPerDay: TypeAlias = int
"""
A guard against floods. Once half of a day's (UTC) Scans are made, and more than the part of the day that is over
allows, the working threshold rises with each further one, so that the best still come; at the bound nothing does. What
was held back is counted as `suppressed` in the statistics, and shows in `health`.

"""


NextPageToken: TypeAlias = str
"""
The `pageToken` of the next page; absent on the last one.
"""


ManagerType: TypeAlias = Literal["FEED_MANAGER"]


Kinds: TypeAlias = list[Literal["POST", "COMMENT"]]
"""
What kinds of posts it hears; absent in answers where it is `POST` alone, which is the rule. With `COMMENT` its feeds
gain those of the comments that belong to them, where the platform has such: another value has it compiled again.

"""


Duplicates: TypeAlias = Literal["KEEP", "COLLAPSE"]
"""
With `COLLAPSE`, a post with the same link as an earlier one's, or near-same text, becomes another of the `places` of
the earlier one's Scan for seven days from that, and no Scan of its own. Absent in answers where it is `KEEP`.

"""


class CreateBackfill(TypedDict):
    startTime: NotRequired[Timestamp | None]
    """
    No more than 30 days back, which is the rule.
    """
    notify: NotRequired[bool | None]
    """
    Whether what is found is delivered to the Manager's Connections.
    """


class BackfillFeed(TypedDict):
    feed: str
    reachTime: Timestamp
    """
    From when on its posts will be had. Where a platform bounds their number alone, an estimate by how many it
    brings.

    """


class Backfill(TypedDict):
    feeds: list[BackfillFeed]


class FeedLastQuarantine(TypedDict):
    """
    The last time that posts were skipped; absent if none were.
    """

    time: Timestamp
    reason: str
    """
    Why.
    """


FeedDayGap = TypedDict(
    "FeedDayGap",
    {
        "from": NotRequired[Timestamp],
        "to": Timestamp,
        "reason": str,
        "state": Literal["OPEN", "FILLED"],
    },
)


class FeedDayIds(TypedDict):
    """
    Account of the ids that were checked on that day, where the platform numbers its items without gaps: each id is
    read, another item, gone, not visible yet, or unexplained. An id is checked ten minutes after it appears. Absent
    if the feed has no such ids.

    """

    upTo: int
    """
    Every id up to this one is accounted for, since the account began.
    """
    read: int
    """
    Ids whose posts were read.
    """
    other: int
    """
    Ids of items that the feed does not have, such as comments.
    """
    gone: int
    """
    Ids of deleted and dead items.
    """
    notVisible: int
    """
    Ids for which the platform has shown nothing for less than an hour. They are checked again.
    """
    unexplained: int
    """
    Ids for which the platform has shown nothing for longer. They are checked again for three days, and leave this
    count when they are explained.

    """
    unexplainedIds: list[int]
    """
    The lowest hundred of these ids.
    """


class FeedDay(TypedDict):
    """
    What the feed brought on one UTC day, for all that watch it.
    """

    day: str
    """
    The day of the looks; a post may be older.
    """
    read: int
    """
    Posts that were read, including the late ones.
    """
    late: int
    """
    Posts among them that became visible after the feed had passed their time.
    """
    gone: int
    """
    Stored posts that turned out to be deleted at their source.
    """
    quarantined: int
    """
    Posts that were skipped because they could not be read or stored.
    """
    gapCount: int
    """
    How often posts may have been missing.
    """
    gaps: list[FeedDayGap]
    """
    The periods whose posts may be missing, newest first; of the feed's newest 100.
    """
    ids: NotRequired[FeedDayIds]
    """
    Account of the ids that were checked on that day, where the platform numbers its items without gaps: each id is
    read, another item, gone, not visible yet, or unexplained. An id is checked ten minutes after it appears. Absent
    if the feed has no such ids.

    """


class PlaceSubforum(TypedDict):
    id: str
    name: str
    url: str


class Place(TypedDict):
    url: str
    subforum: NotRequired[PlaceSubforum]
    time: Timestamp


class ManagerHealth(TypedDict):
    """
    Whether the Manager does what is expected of it.
    """

    state: Literal["OK", "QUIET", "NOISY", "FAILING"]
    """
    The worst that one of the reasons stands for, `FAILING` before `NOISY` before `QUIET`.
    """
    reasons: list[Literal["apply_failed", "instructions_unreadable", "feeds_failing", "quota_exceeded", "flooded", "feedback_bad", "backfill_failed", "no_posts"]]
    """
    `FAILING`: `apply_failed` (see `applyError`; what was at work before still is), `instructions_unreadable` (a newer
    release wrote them; for the time of an upgrade), `feeds_failing` (none of its feeds could be read lately),
    `quota_exceeded` (the account has used up its Scans of a day; posts that match wait until there is room). `NOISY`:
    `flooded` (`maxScansPerDay` holds matches of today back), `feedback_bad` (of those of its newest 50 Scans that were
    judged, five or more, most were judged to be of no value). `QUIET`: `backfill_failed` (an error ended the search of a
    feed for posts of the past, so Scans may be missing; `:backfill` searches again), `no_posts` (its feeds had no post for
    a day and more).

    """


class UpdateManagerSource(TypedDict):
    """
    As `Source`; what is left out stays as it is.
    """

    type: NotRequired[Literal["FORUM", "MICROBLOG", "NETWORK"]]


UpdateManagerInputUrl: TypeAlias = str


class ApplyError(TypedDict):
    """
    Why the Manager could not be compiled; there in state `APPLY_FAILED`.
    """

    code: Literal["no_reachable_url", "no_usable_content", "forbidden_address", "invalid_instructions", "quota_exceeded"]
    """
    `quota_exceeded`: the account would watch more distinct feeds, or have more bytes of instructions, than its quotas
    allow. The previous instructions stay in use.

    """
    message: str


class Source(TypedDict):
    type: Literal["FORUM", "MICROBLOG", "NETWORK"]
    """
    The family of platforms to watch.
    """


InputUrl: TypeAlias = str


Sensitivity: TypeAlias = Literal["PRECISE", "BALANCED", "BROAD"]
"""
How certain the service must be that a post is worth your attention. It sets `instructions.threshold`; your feedback
on Scans moves the threshold within the chosen setting. Answers always have this field. A change is compiled, as any
change of `input` is.

`PRECISE` finds a third to a half as many posts as `BALANCED`, and more of them are worth reading. `BALANCED` is the
default. `BROAD` finds one and a half to three times as many as `BALANCED`, and misses fewer relevant ones. These ratios
were measured on 13 customers of our own and differ between customers: see `docs/matching-quality.md`.

"""


Focus: TypeAlias = Literal["SALES", "COMPETITOR", "CRISIS"]
"""
What makes a post worth attention, beside its topic: somebody wants to choose, buy or hire (`SALES`); a competitor is
named, compared or judged (`COMPETITOR`); somebody complains about you (`CRISIS`).

"""


InstructionsBackgroundScore: TypeAlias = float


TermText: TypeAlias = str
"""
At least one letter or digit, in any script; else it is `invalid_format`.
"""


class WatchedName(TypedDict):
    text: TermText
    kind: Literal["OWN", "WATCHED"]
    """
    Your own name, or another's.
    """
    aliases: NotRequired[list[TermText]]
    caseSensitive: NotRequired[bool]
    """
    For names that are also words: `Apple`, not `apple`.
    """
    context: NotRequired[list[TermText]]
    """
    When given, one of these must occur too for the name to count.
    """
    onTopicPercent: NotRequired[int]
    """
    Percentage of ordinary posts with the name that are about your subject. Only used with `focus`: the lower it is, the
    less the name says by itself. A compile sets it; without it, 50 is assumed.

    """
    ordinaryPosts: NotRequired[int]
    """
    How many of 10,000 ordinary posts contain the name. Only used with `focus`: mentions of a name that everyone uses
    need more of your subject in the title. A compile sets it; without it, 0 is assumed.

    """


class Notice(TypedDict):
    type: Literal["HTTP_REQUEST"]
    connection: ConnectionName
    filter: NotRequired[str]
    """
    Only Scans that meet this condition are delivered to the Connection; absent for all. The grammar and the fields are those
    of the `filter` of a list of Scans. It is evaluated once, when a Scan is new: `value` is `true` and `labels` are empty then.
    A later change applies to later Scans. An error names the column.

    """


ConnectionType: TypeAlias = Literal["HTTP_CONNECTION"]


DeliveryMethod: TypeAlias = Literal["POST", "PUT", "PATCH"]
"""
The method of deliveries.
"""


Headers: TypeAlias = dict[str, str]
"""
Sent with every delivery. Up to 8 KiB in all; none by which HTTP frames messages or manages connections, such as
`Host`, `Content-Length` or `Content-Encoding`, which are `forbidden`. Stored encrypted; a key of role
`VIEWER` sees `***` for each value. Where the service cannot open them any more, because its operators took away the key
that they were stored with, there is one header `***` with the value `***`.

"""


class Digest(TypedDict):
    """
    For the format `EMAIL`: the Scans of an hour or a day come in one mail when it is over, if there are any. It lists the
    newest 20, and says how many there are. Without it, each Scan is a mail.

    """

    period: Literal["HOURLY", "DAILY"]
    timeZone: NotRequired[str]
    """
    Where hours and days begin, as a name of the IANA time zone database.
    """


class Recipient(TypedDict):
    address: str
    """
    A key without write permission sees `***` in place of what is before the `@`.
    """
    state: Literal["PENDING", "CONFIRMED", "UNSUBSCRIBED", "REFUSED"]
    """
    `PENDING` until the recipient confirms the address, by a link in a mail that is sent once; setting `url` again, 30 days
    later at the earliest, sends another one. None is sent to an address that has unsubscribed from another Connection of
    the account. Only `CONFIRMED` recipients get mail. `REFUSED`: the mail server answered
    that there is no such address. Without a recipient who is `PENDING` or `CONFIRMED`, the Connection is disabled.

    """


class ConnectionHealth(TypedDict):
    """
    How deliveries fare. Given where a Connection is read or listed.
    """

    successRate: NotRequired[float]
    """
    Of the last attempts, 20 at most. Absent before the first.
    """
    lastSuccessTime: NotRequired[Timestamp]
    """
    To about a minute.
    """
    pending: int
    """
    Deliveries that wait to be sent, or sent again; 1,000 is as many or more.
    """
    oldestPendingTime: NotRequired[Timestamp]
    """
    When the oldest of those was created.
    """
    breaker: Literal["CLOSED", "OPEN", "HALF_OPEN"]
    """
    `OPEN` after many failures: nothing is sent for a while, from 30 seconds to 10 minutes, save what is retried by
    hand. Then, `HALF_OPEN`, one delivery shows whether the endpoint is well again.

    """
    digestError: NotRequired[str]
    """
    Why a digest could not be made. Absent otherwise, and once it is tried again: after a minute, then less often, at least
    once a day. Its Scans are kept.

    """


class UpdateConnectionDigest(TypedDict):
    period: NotRequired[Literal["HOURLY", "DAILY"]]
    timeZone: NotRequired[str | None]


Format: TypeAlias = Literal["EARSHOT", "SLACK", "DISCORD", "TEAMS", "EMAIL"]
"""
The shape of the body that is sent: our own, or what the incoming webhooks of a chat service take. `EMAIL` sends mail to
the addresses in a `mailto:` URL; `method`, `headers` and `signingSecrets` have no meaning for it. A Connection cannot
change to or from `EMAIL` (`conflict`): create another one.

"""


MaxPerSecond: TypeAlias = int
"""
The most requests in a second; without it, as many as the Connection takes, or what the chat service of its `format`
takes: one a second for `SLACK`, four a second for `TEAMS`. `DISCORD` gets 28 a minute whatever it is, which is what a
channel takes. `EMAIL` gets what the operators allow in a minute.

"""


SigningSecrets: TypeAlias = list[str]
"""
With these deliveries are signed, as Standard Webhooks has it; two, so that one can take over from the other. Each is
`whsec_` and the base64 of 24 to 64 bytes. Written and never shown; stored encrypted.

"""


ServiceEventType: TypeAlias = Literal["MANAGER_APPLIED", "MANAGER_APPLY_FAILED", "CONNECTION_DISABLED", "COVERAGE_GAP", "POST_DELETED", "POST_EDITED"]
"""
- `MANAGER_APPLIED`: the instructions of a Manager came into use.
- `MANAGER_APPLY_FAILED`: a Manager could not be compiled; earlier instructions stay in use.
- `CONNECTION_DISABLED`: the service disabled another Connection, because its server answered 410, nothing has arrived
  there for five days, or no recipient of its mails is left. What its owner disables causes no event.
- `COVERAGE_GAP`: posts of a feed that a Manager watches may be missing. A later look may still find them.
  Gaps of a feed that are less than an hour apart cause one event.
- `POST_DELETED`: the post of a Scan was deleted at its source, or at the request of its author. Its text and author are
  removed from the Scan. If many posts are deleted at once, the newest 100 Scans cause an event.
- `POST_EDITED`: the text of a Scan's post was edited at its source. The Scan keeps the text that matched. An edit is
  found up to about a day later, and only on platforms whose posts are checked again and that show their text then.

"""


ServiceEventGap = TypedDict(
    "ServiceEventGap",
    {
        "feed": str,
        "from": NotRequired[Timestamp],
        "to": Timestamp,
        "reason": str,
    },
)


class ServiceEventPost(TypedDict):
    """
    The post of the Scan; with `POST_DELETED` and `POST_EDITED`.
    """

    id: str


class ServiceEvent(TypedDict):
    """
    What a Connection receives for each service event. It contains nothing of a post but its id. More fields may come.

    """

    type: ServiceEventType
    id: Id
    """
    The same for all Connections, and in each attempt.
    """
    time: Timestamp
    """
    When it happened; for a deleted or edited post, when that was found.
    """
    name: str
    """
    What it is about: the `name` of the Manager, of the Connection, of the Scan for `POST_DELETED` and `POST_EDITED`, or
    of the Namespace for `COVERAGE_GAP`.

    """
    nickname: NotRequired[str]
    """
    That of the Manager or Connection.
    """
    error: NotRequired[ApplyError]
    reason: NotRequired[str]
    """
    Why the Connection was disabled.
    """
    gap: NotRequired[ServiceEventGap]
    """
    Of which time posts may be missing; with `COVERAGE_GAP`.
    """
    post: NotRequired[ServiceEventPost]
    """
    The post of the Scan; with `POST_DELETED` and `POST_EDITED`.
    """


IdOrAny: TypeAlias = str


class Nothing(TypedDict):
    """
    Nothing at all. An empty body, or none, does as well.
    """


class TestResult(TypedDict):
    ok: bool
    """
    Whether it was acknowledged by a 2xx; under `x-test`, whether it could be sent.
    """
    sent: bool
    """
    Whether a request was made.
    """
    statusCode: NotRequired[int]
    latencyMs: int
    error: NotRequired[str]
    """
    What went wrong, for people.
    """


DeliveryName: TypeAlias = str


DeliveryState: TypeAlias = Literal["PENDING", "IN_FLIGHT", "SUCCEEDED", "RETRYING", "EXHAUSTED", "CANCELLED"]
"""
`PENDING` is to be sent, `IN_FLIGHT` is being sent, `SUCCEEDED` was acknowledged, `RETRYING` has failed and is sent
again, `EXHAUSTED` was given up, `CANCELLED` has lost its Connection or Scan, or its post was deleted at its source.

"""


DeliveryError: TypeAlias = str
"""
Why there was no answer, or the delivery was given up: `dns_failure`, `forbidden_address`, `connect_refused`,
`connect_timeout`, `unreachable`, `tls_failure`, `proxy_failure`, `timeout`, `reset`, `protocol_error`, `invalid_request`,
`expired`, `scan_expired`, `scan_deleted`, `post_deleted`, `connection_deleted`, `undecryptable_headers`, `unreadable`,
`internal_error`. By e-mail also `no_confirmed_recipient`, `invalid_recipient`, `smtp_not_configured`, `smtp_unavailable`,
`smtp_login_refused` and `too_many_mails`, which the operators' server or limit caused, or the recipients. More may come.

"""


class Delivery(TypedDict):
    name: DeliveryName
    createTime: Timestamp
    updateTime: Timestamp
    scan: NotRequired[ScanName]
    """
    Absent for a service event.
    """
    event: NotRequired[ServiceEvent]
    state: DeliveryState
    attemptCount: int
    lastAttemptTime: NotRequired[Timestamp]
    nextAttemptTime: NotRequired[Timestamp]
    """
    When it is sent next at the earliest; of PENDING and RETRYING alone.
    """
    lastStatusCode: NotRequired[int]
    """
    The status of the last attempt, if it was answered; by e-mail the reply of the mail server, such as 250 or 550.
    """
    lastError: NotRequired[DeliveryError]


class DeliveryAttemptPhases(TypedDict):
    """
    Where the time went; what did not take place, on a connection that was there, is absent.
    """

    dnsMs: NotRequired[int]
    connectMs: NotRequired[int]
    tlsMs: NotRequired[int]
    firstByteMs: NotRequired[int]


class DeliveryAttempt(TypedDict):
    time: Timestamp
    statusCode: NotRequired[int]
    error: NotRequired[DeliveryError]
    latencyMs: int
    phases: DeliveryAttemptPhases
    """
    Where the time went; what did not take place, on a connection that was there, is absent.
    """
    address: NotRequired[str]
    """
    The IP address that was talked to.
    """
    responseBody: NotRequired[str]
    """
    The beginning of the answer, as text: the first 4 KiB of a failed attempt, but of a Connection's attempts only one in five
    minutes; of others the first 256 bytes.
    """


class DeliveryList(TypedDict):
    deliveries: list[Delivery]
    nextPageToken: NotRequired[NextPageToken]


class AuditEventActor(TypedDict):
    type: Literal["API_KEY", "OPERATOR"]
    """
    `OPERATOR`: a person who used `earshot` with access to the database.
    """
    key: NotRequired[str]
    """
    The id of the API key.
    """


class AuditEvent(TypedDict):
    """
    One change, or one reading of secrets. It has the names of fields, never their values.
    """

    name: str
    """
    `namespaces/-/auditEvents/…` for changes that belong to the whole account.
    """
    createTime: Timestamp
    action: Literal["CREATE", "UPDATE", "DELETE", "APPLY", "BACKFILL", "ENABLE", "TEST", "REPLAY", "CANCEL", "RETRY", "READ_SECRETS", "REVOKE"]
    """
    `READ_SECRETS`: a response contained the addresses or header values of Connections; recorded once an hour for each key, resource and client address. Responses to `CREATE`, `UPDATE` and `ENABLE` of a Connection contain them too.
    """
    resource: str
    """
    The name of the changed resource, which may be deleted by now; `keys/…` for an API key, `people/…/sessions/…` for a sign-in to the console, `quotas` for those of the account.
    """
    fields: NotRequired[list[str]]
    """
    Names of the fields that an update sent.
    """
    actor: AuditEventActor
    clientAddress: NotRequired[str]
    """
    The client's IP address, behind trusted proxies.
    """
    requestId: NotRequired[str]
    """
    The request's `X-Request-Id`.
    """


class AuditEventList(TypedDict):
    auditEvents: list[AuditEvent]
    nextPageToken: NotRequired[NextPageToken]


ReplayName: TypeAlias = str


class Replay(TypedDict):
    name: ReplayName
    createTime: Timestamp
    updateTime: Timestamp
    startTime: Timestamp
    endTime: Timestamp
    states: NotRequired[list[DeliveryState]]
    """
    Of the deliveries that are reopened; absent for all.
    """
    state: Literal["RUNNING", "DONE", "CANCELLED"]
    """
    `DONE` when all are reopened; whether they arrive, the deliveries tell.
    """
    total: int
    """
    How many deliveries are to be reopened; of more than 20,000 at least so many, until they are counted.
    """
    done: int
    """
    How many were.
    """


class CreateReplay(TypedDict):
    startTime: str
    endTime: NotRequired[str]
    states: NotRequired[list[DeliveryState]]


class ReplayList(TypedDict):
    replays: list[Replay]
    nextPageToken: NotRequired[NextPageToken]


class MatchSpan(TypedDict):
    field: Literal["title", "text"]
    start: int
    """
    In code points, from the beginning of the field.
    """
    end: int
    """
    The first code point behind it.
    """
    term: str


class MatchSignals(TypedDict):
    """
    With a focus, how far the post is of each kind, whatever it is about.
    """

    buying: float
    """
    Somebody wants to choose, buy or hire.
    """
    comparison: float
    """
    Things are weighed against each other.
    """
    trouble: float
    """
    Somebody complains or needs help.
    """


class Match(TypedDict):
    """
    Why the post matched; in a preview, what speaks for one that does not, too.
    """

    score: float
    """
    With `focus`, the probability that a person would keep the post, 0 to 1; 0 where a quick look ruled the post out.
    Without `focus`, the sum of the weights of the `include` terms that occur.

    """
    terms: list[str]
    """
    The terms and names that counted, strongest first; at most 50.
    """
    focus: NotRequired[Focus]
    spans: NotRequired[list[MatchSpan]]
    """
    Where they stand, in the order of the post; of matches alone, and of those made by this release on.
    """
    signals: NotRequired[MatchSignals]
    """
    With a focus, how far the post is of each kind, whatever it is about.
    """
    judged: NotRequired[bool]
    """
    True if the LLM filter decided: the operator's model was asked about the post, and its answer replaced the decision by the threshold. The score can then lie below the threshold. Absent otherwise: a filter says `NOT match.judged = true`.
    """
    reader: NotRequired[Literal["JUDGED", "OVER_BUDGET", "BUSY", "UNAVAILABLE", "NO_OFFERS", "OTHER_LANGUAGE", "UNTITLED"]]
    """
    May be present with a focus, where the operator configured the reader, which compares posts with `instructions.sells`.
    `JUDGED`: the score is the reader's. The others say why it is not: the Manager's budget of the day is spent
    (`OVER_BUDGET`), other posts had the turns (`BUSY`), the reader does not work (`UNAVAILABLE`), the instructions do
    not say what is sold (`NO_OFFERS`), the post or what is sold is not in English (`OTHER_LANGUAGE`), or the post has no
    title (`UNTITLED`). More may come. `:preview` decides without the reader, so a post can have another score there.

    """


PreviewUrl: TypeAlias = str


PreviewDraftUrl: TypeAlias = str


RecentStartTime: TypeAlias = str
"""
Only with `recent`. Leaves out posts that are older than this.
"""


RecentEndTime: TypeAlias = str
"""
Only with `recent`. Leaves out posts of this time, and younger ones. To read more than 100 posts, send the `time` of
the oldest one plus a microsecond: other posts of the same time may be missing, and this one comes again.

"""


class PreviewPlace(TypedDict):
    id: str
    name: str
    url: str


LabelsLabel: TypeAlias = str


Labels: TypeAlias = list[LabelsLabel]
"""
Words of your own, each once. A filter finds one by a part of it: `labels : "lead"`.
"""


class UpdateScan(TypedDict):
    """
    What changes of a Scan. Output-only fields are ignored where they are given.
    """

    value: NotRequired[bool]
    labels: NotRequired[Labels | None]


class PostSubforum(TypedDict):
    id: str
    name: str
    url: str


class PostUser(TypedDict):
    """
    The author; the feed or site itself where the platform names none.
    """

    id: str
    name: str
    url: str


class Post(TypedDict):
    type: Literal["FORUM_LINK", "FORUM_COMMENT", "MICROBLOG_TWEET", "NETWORK_POST"]
    """
    A `FORUM_LINK` always has `title` and `subforum`; a `MICROBLOG_TWEET` has `text` and no `title`; a `NETWORK_POST`
    has `text`, and `title` when there is one. A `FORUM_COMMENT` has `text`, and `subforum` where the platform says it.
    Of a post that was deleted at its source, `title`, `text` and the fields of `user` become empty, where its platform
    tells of deletions or the operator has them looked for; its `id` and `url` stay.

    """
    time: Timestamp
    id: str
    """
    The platform's; unique over everything that a receiver may get.
    """
    title: NotRequired[str]
    text: NotRequired[str]
    """
    Plain text.
    """
    url: str
    subforum: NotRequired[PostSubforum]
    user: PostUser
    """
    The author; the feed or site itself where the platform names none.
    """


class WebhookEvent(TypedDict):
    """
    What a Connection receives for each Scan.
    """

    type: Literal["SCAN"]
    name: ScanName
    post: Post


Interval: TypeAlias = Literal["1m", "1h", "1d"]


class StatsPointDeliveries(TypedDict):
    succeeded: int
    failedAttempts: int
    exhausted: int
    """
    Deliveries that were given up.
    """


class Quantiles(TypedDict):
    """
    In milliseconds, at most an eighth above the truth; zero where nothing was measured.
    """

    p50: int
    p99: int


Issue: TypeAlias = Literal["required", "too_short", "too_long", "too_many", "out_of_range", "invalid_type", "invalid_format", "invalid_enum", "too_costly", "quota_exceeded", "unknown_field", "duplicate", "not_found", "not_empty", "in_use", "forbidden", "forbidden_address", "conflict"]
"""
`required`: must be given. `too_short`, `too_long`: characters, bytes, or too few items. `too_many`: items.
`out_of_range`: a number beyond its bounds. `invalid_type`: another JSON type is expected. `invalid_format`: the right
type in a wrong form. `invalid_enum`: not one of the closed set of words. `too_costly`: takes longer than a request
may; `message` says how to narrow it. `quota_exceeded`: the account has as many as it may; `GET /v1/caller` shows
its quotas, and the operators can raise them. `unknown_field`: no such field or parameter.
`duplicate`: twice, where it may stand once. `not_found`: what it names does not exist. `not_empty`, `in_use`: `force`
is needed. `forbidden`: not allowed here. `forbidden_address`: not a public address, or a port that is not permitted. `conflict`: contradicts another
field.

"""


class CallerQuotas(TypedDict):
    """
    What the whole account may have and has, in all its Namespaces. What would exceed a quota is 400
    `quota_exceeded`. `used` is above `limit` after a quota was lowered: what exists stays and works.

    """

    namespaces: Quota
    managers: Quota
    connections: Quota
    feeds: Quota
    """
    Distinct feeds that the enabled Managers watch.
    """
    contentBytes: Quota
    """
    Bytes of the instructions and mutes of Managers and the mutes of Namespaces, as JSON. What would exceed it is
    reported on `instructions` or `mutes`.

    """
    scansPerDay: Quota
    """
    Scans of today (UTC), those of backfills too. When they are used up, posts that match wait: their Managers
    have the health reason `quota_exceeded`, and get the Scans on the next day, or when the quota is raised.

    """


class Caller(TypedDict):
    account: str
    role: Literal["OWNER", "EDITOR", "VIEWER"]
    """
    `OWNER`: everything. `EDITOR`: everything but creating and deleting Namespaces. `VIEWER`: reading.

    """
    namespaces: NotRequired[list[NamespaceName]]
    """
    Those that the key is narrowed to; absent when it is not.
    """
    expireTime: NotRequired[Timestamp]
    person: NotRequired[str]
    """
    Who signed in to the console, if the key is a session.
    """
    rateLimitPerMinute: int
    """
    Points that the key may spend in a minute.
    """
    accountRateLimitPerMinute: int
    """
    Points that all keys of the account together may spend in a minute.
    """
    quotas: CallerQuotas
    """
    What the whole account may have and has, in all its Namespaces. What would exceed a quota is 400
    `quota_exceeded`. `used` is above `limit` after a quota was lowered: what exists stays and works.

    """


Mutes: TypeAlias = list[Mute]
"""
Posts not to hear of, whatever the instructions say. Yours: no compile touches them. A Namespace's are for all its
Managers, beside their own. They hold for posts that are found from now on.

"""


class Feed(TypedDict):
    feed: str
    url: NotRequired[str]
    """
    Where people see what it has.
    """
    state: Literal["OK", "LATE", "FAILING", "BLOCKED", "BUDGET_SPENT"]
    """
    `LATE`: its look is overdue. `FAILING`: the last look failed, for a reason that may pass. `BLOCKED`: the platform
    refuses it until somebody changes something. `BUDGET_SPENT`: the platform's limit, or the operator's, is reached.

    """
    lastPollTime: NotRequired[Timestamp]
    """
    Whether that look succeeded or not; absent before the first.
    """
    nextPollTime: Timestamp
    lastPostTime: NotRequired[Timestamp]
    """
    Of the newest post that was read.
    """
    postsPerDay: NotRequired[float]
    """
    How many posts it brings, whoever watches it: an estimate.
    """
    scansPerDay: float
    """
    How many Scans this Manager gets of them, by those of seven days.
    """
    gaps: int
    """
    How often posts may have been missing, for the platform gave no more.
    """
    quarantinedPosts: int
    """
    How many posts of the feed were skipped so far, because they could not be read or stored, are empty, or were dated
    far back when they appeared. The feed continues without them.

    """
    lastQuarantine: NotRequired[FeedLastQuarantine]
    """
    The last time that posts were skipped; absent if none were.
    """
    error: NotRequired[str]
    """
    Why the last look gave nothing; absent when it did.
    """
    notice: NotRequired[str]
    """
    What is odd about a feed that can be read: it has no entries or more than are read, ends too early, gives several
    entries the same id or its entries new ids at each reading, its pages do not advance, or a part of it cannot be read
    (private communities among several, an instance that shows only its own members). Absent where nothing is.

    """
    days: list[FeedDay]
    """
    The last seven UTC days on which the feed brought anything, newest first.
    """


class UpdateManagerInputFocus(TypedDict):
    type: NotRequired[Focus]
    names: NotRequired[list[TermText] | None]


class InputFocus(TypedDict):
    type: Focus
    names: NotRequired[list[TermText]]
    """
    Names to watch: competitors, brands, products. Without them they are taken from the pages.

    """


InstructionsRequireItem: TypeAlias = list[TermText]


class InstructionsIncludeItem(TypedDict):
    text: TermText
    weight: float


class InstructionsOffer(TypedDict):
    text: TermText
    weight: float


class Sells(TypedDict):
    """
    What you sell, in plain words, to compare posts with by meaning. A compile writes it to `instructions`. In `input`, each
    field that you give replaces what a compile takes from the pages, and the Manager stays `AUTOMATIC`. A change of
    `instructions.sells` makes it `MANUAL`: then verdicts on its Scans teach it nothing. An object without words counts as absent.

    """

    summary: NotRequired[str]
    """
    What you sell, and to whom, in a sentence or two. Without control characters, such as line breaks.
    """
    offers: NotRequired[list[TermText]]
    """
    Goods and services, one phrase each. Different upper and lower case does not make a different phrase (`duplicate`). No
    control characters.

    """


class UpdateConnection(TypedDict):
    """
    What changes of a Connection. Output-only fields are ignored where they are given.
    """

    nickname: NotRequired[Nickname]
    type: NotRequired[ConnectionType]
    url: NotRequired[str]
    method: NotRequired[Literal["POST", "PUT", "PATCH"] | None]
    headers: NotRequired[dict[str, str | None] | None]
    format: NotRequired[Literal["EARSHOT", "SLACK", "DISCORD", "TEAMS", "EMAIL"] | None]
    maxPerSecond: NotRequired[int | None]
    signingSecrets: NotRequired[list[str] | None]
    events: NotRequired[list[ServiceEventType] | None]
    digest: NotRequired[UpdateConnectionDigest | None]
    state: NotRequired[Literal["ACTIVE", "DISABLED"]]
    """
    Pauses and resumes.
    """


Events: TypeAlias = list[ServiceEventType]
"""
The types of service events that the Connection receives, from its whole Namespace; absent for none. A type concerns
what happens after it was added. Up to 20 Connections of a Namespace may receive any, otherwise `quota_exceeded`.

"""


class DeliveryWithAttempts(TypedDict):
    name: DeliveryName
    createTime: Timestamp
    updateTime: Timestamp
    scan: NotRequired[ScanName]
    """
    Absent for a service event.
    """
    event: NotRequired[ServiceEvent]
    state: DeliveryState
    attemptCount: int
    lastAttemptTime: NotRequired[Timestamp]
    nextAttemptTime: NotRequired[Timestamp]
    """
    When it is sent next at the earliest; of PENDING and RETRYING alone.
    """
    lastStatusCode: NotRequired[int]
    """
    The status of the last attempt, if it was answered; by e-mail the reply of the mail server, such as 250 or 550.
    """
    lastError: NotRequired[DeliveryError]
    attempts: list[DeliveryAttempt]


class Scan(TypedDict):
    name: ScanName
    createTime: Timestamp
    updateTime: Timestamp
    post: Post
    value: bool
    """
    Whether the post is worth attention. True when the Scan is made; yours once you set it.

    """
    labels: Labels
    match: Match
    places: NotRequired[list[Place]]
    """
    Where the same was found again, of a Manager with `duplicates: COLLAPSE`; absent where it was not. `updateTime` does
    not tell of it.

    """


class PreviewPost(TypedDict):
    """
    A post in the form of `Post`. Its `id` begins with the platform and a colon, as those of Scans do, if it is to be held
    against the feeds.

    """

    type: Literal["FORUM_LINK", "FORUM_COMMENT", "MICROBLOG_TWEET", "NETWORK_POST"]
    time: Timestamp
    id: str
    title: NotRequired[str]
    text: NotRequired[str]
    url: str
    subforum: NotRequired[PreviewPlace]
    user: PreviewPlace


class PreviewResultsResult(TypedDict):
    url: NotRequired[str]
    """
    As it was asked for, of `urls`.
    """
    post: NotRequired[Post]
    value: bool
    """
    Whether it would be a Scan.
    """
    match: Match
    reason: Literal["MATCHED", "BELOW_THRESHOLD", "REQUIRE", "EXCLUDE", "MUTED", "LANGUAGE", "NOT_WATCHED", "NEVER_SEEN"]
    """
    What decided. `NOT_WATCHED`: read through other feeds than the Manager's; of a post of yours, of another type
    than its source and `kinds`, or of a platform that none of its feeds is of. `MUTED`, `LANGUAGE`: it matched,
    and was kept out. `NEVER_SEEN`: no such post was read lately.

    """


class PreviewResults(TypedDict):
    results: list[PreviewResultsResult]
    keptSince: NotRequired[Timestamp]
    """
    Only with `recent`: since then, all posts of the feeds are stored, and of some feeds longer. Earlier days are not covered.
    Absent if a feed stores none yet. Feeds that no Manager of the Namespace watches are left out.

    """


class ScanList(TypedDict):
    scans: list[Scan]
    nextPageToken: NotRequired[NextPageToken]


class StatsPoint(TypedDict):
    """
    What happened in one interval. Only what the resource has is in it.
    """

    time: Timestamp
    """
    The beginning of the interval.
    """
    posts: NotRequired[int]
    """
    Posts read from the feeds that are watched now.
    """
    scans: NotRequired[int]
    suppressed: NotRequired[int]
    """
    Matches of which no Scan was made, for there were too many.
    """
    deliveries: NotRequired[StatsPointDeliveries]
    scanDelayMs: NotRequired[Quantiles]
    """
    From the making of a post to its Scan.
    """
    deliveryDelayMs: NotRequired[Quantiles]
    """
    From a Scan to its acknowledgement by your server.
    """


class ErrorDetail(TypedDict):
    field: str
    """
    The path of the field in the body, such as `input.urls[0]`; the name of a query parameter or header; `body`
    for a body that is no object. An empty name is shown as `""`.

    """
    issue: Issue


class Error(TypedDict):
    code: int
    """
    The HTTP status code.
    """
    message: str
    """
    Short, lower-case, for people.
    """
    details: NotRequired[list[ErrorDetail]]
    """
    There when fields failed; all of them, up to 1,000.
    """


class Namespace(TypedDict):
    name: NamespaceName
    createTime: Timestamp
    updateTime: Timestamp
    nickname: Nickname
    mutes: NotRequired[Mutes]


class CreateNamespace(TypedDict):
    """
    A Namespace to be. Its output-only fields are ignored where they are given.
    """

    nickname: Nickname
    mutes: NotRequired[Mutes | None]


class UpdateNamespace(TypedDict):
    """
    What changes of a Namespace. Output-only fields are ignored where they are given.
    """

    nickname: NotRequired[Nickname]
    mutes: NotRequired[Mutes | None]


class NamespaceList(TypedDict):
    namespaces: list[Namespace]
    nextPageToken: NotRequired[NextPageToken]


class FeedList(TypedDict):
    feeds: list[Feed]


class UpdateManagerInput(TypedDict):
    """
    As `Input`; what is left out stays as it is.
    """

    type: NotRequired[Literal["STRUCTURED"]]
    urls: NotRequired[list[UpdateManagerInputUrl]]
    focus: NotRequired[UpdateManagerInputFocus]
    sensitivity: NotRequired[Sensitivity | None]
    sells: NotRequired[Sells | None]


class Input(TypedDict):
    """
    What the instructions are compiled from.
    """

    type: Literal["STRUCTURED"]
    urls: list[InputUrl]
    """
    Pages about your product, and pages of communities to watch. `http` or `https`, without credentials, on public
    hosts.

    """
    focus: InputFocus
    sensitivity: NotRequired[Sensitivity]
    sells: NotRequired[Sells]


class Instructions(TypedDict):
    """
    What a Manager looks for. A post matches when each group of `require` has a term that occurs, no term of `exclude`
    does, and the score reaches `threshold`. With `focus` the score is the probability that a person would keep the post, 0 to
    1; without it, it is the sum of the weights of the `include` terms that occur. Terms are whole words or phrases, in any case. At most 500 terms in all, and
    at least one in `include`, `names`, `require` or `exclude` (`required` on `instructions.include`).

    In answers: those at work; absent until the first apply. Of a `MANUAL` Manager that is `PENDING_APPLY`, those submitted.

    """

    feeds: NotRequired[list[str]]
    """
    Which feeds to watch, `<platform>:<feed>`. Without any, the newest posts of all platforms of the source.
    """
    require: NotRequired[list[InstructionsRequireItem]]
    """
    Each group must have a term that occurs.
    """
    include: NotRequired[list[InstructionsIncludeItem]]
    """
    Terms that add to the score.
    """
    names: NotRequired[list[WatchedName]]
    """
    Names to look for.
    """
    exclude: NotRequired[list[TermText]]
    """
    Any of these vetoes.
    """
    focus: NotRequired[Focus]
    threshold: NotRequired[float]
    """
    The score that a post must reach. With `focus` 0 to 1: all else is `out_of_range`.
    """
    backgroundScores: NotRequired[list[InstructionsBackgroundScore]]
    """
    Topic scores that one in ten, in a hundred and in a thousand ordinary posts reach. Only used with `focus`: they say
    how unusual a post's topic is. A compile sets them; without them, usual values are assumed. Stored in ascending order.

    """
    relatedTerms: NotRequired[list[TermText]]
    """
    Words that ordinary posts about your subject contain. Only used with `focus`: near a name they say that the post is
    about your subject. They never make a post match by themselves. A compile sets them.

    """
    offers: NotRequired[list[InstructionsOffer]]
    """
    Words of what you sell, with what each counts. Only used with the focus `SALES`: a post that names none of it scores
    low, even if it asks for something else in your field. A compile sets them; without any, every post counts.

    """
    sells: NotRequired[Sells]
    brief: NotRequired[str]
    """
    What is relevant, in a sentence or two.
    """


class Connection(TypedDict):
    name: ConnectionName
    createTime: Timestamp
    updateTime: Timestamp
    nickname: Nickname
    type: ConnectionType
    url: str
    """
    Where deliveries go. It is a secret, since who knows the address of a hook can post there: it is stored encrypted,
    cannot be filtered or ordered by, and a key without write permission sees scheme and host alone. For `EMAIL` it is
    `mailto:` and up to 10 addresses, separated by commas.

    """
    method: DeliveryMethod
    headers: Headers
    format: Format
    maxPerSecond: NotRequired[MaxPerSecond]
    events: NotRequired[Events]
    digest: NotRequired[Digest]
    state: Literal["ACTIVE", "DISABLED"]
    """
    Nothing is sent to a disabled Connection.
    """
    stateReason: NotRequired[str]
    """
    Why it is disabled.
    """
    health: NotRequired[ConnectionHealth]
    recipients: NotRequired[list[Recipient]]
    """
    Who gets the mails of a Connection with the format `EMAIL`. Given where a Connection is read or listed.
    """


class CreateConnection(TypedDict):
    """
    A Connection to be. Its output-only fields are ignored where they are given.
    """

    nickname: Nickname
    type: ConnectionType
    url: str
    """
    `https` on a public host, without credentials; `http` where the operators allow it. For the format `EMAIL`, and only
    for it, `mailto:` and up to 10 addresses, separated by commas.

    """
    method: NotRequired[DeliveryMethod]
    headers: NotRequired[Headers]
    format: NotRequired[Format]
    maxPerSecond: NotRequired[MaxPerSecond]
    signingSecrets: NotRequired[SigningSecrets]
    events: NotRequired[Events]
    digest: NotRequired[Digest]


class ConnectionList(TypedDict):
    connections: list[Connection]
    nextPageToken: NotRequired[NextPageToken]


class Preview(TypedDict):
    """
    Exactly one of `posts`, `recent` and `urls`.
    """

    posts: NotRequired[list[PreviewPost]]
    recent: NotRequired[int]
    """
    So many of the newest posts of the Manager's feeds, or of those of the draft; of these, such that a Manager of the
    Namespace watches, or that have everything new on a platform.

    """
    startTime: NotRequired[RecentStartTime]
    endTime: NotRequired[RecentEndTime]
    urls: NotRequired[list[PreviewUrl]]
    """
    Posts that were read, by `url` or `id`.
    """
    instructions: NotRequired[Instructions]
    """
    A draft, in the place of those at work; required where none are.
    """


class PreviewDraft(TypedDict):
    """
    A draft of a Manager, and exactly one of `posts`, `recent` and `urls`.
    """

    source: Source
    instructions: Instructions
    mutes: NotRequired[Mutes]
    languages: NotRequired[Languages]
    kinds: NotRequired[Kinds]
    """
    For `posts` of yours. Of `recent` ones and `urls`, the feeds decide: comments have feeds of their own.
    """
    posts: NotRequired[list[PreviewPost]]
    recent: NotRequired[int]
    """
    As for `previewManager`.
    """
    startTime: NotRequired[RecentStartTime]
    endTime: NotRequired[RecentEndTime]
    urls: NotRequired[list[PreviewDraftUrl]]
    """
    Posts that were read, by `url` or `id`.
    """


class Stats(TypedDict):
    interval: Interval
    points: list[StatsPoint]
    """
    In the order of time, one for each interval; those without anything are all zeros.
    """


class Manager(TypedDict):
    name: ManagerName
    createTime: Timestamp
    updateTime: Timestamp
    nickname: Nickname
    type: ManagerType
    enable: bool
    """
    A disabled Manager is compiled but matches nothing.
    """
    mode: Literal["AUTOMATIC", "MANUAL"]
    """
    `AUTOMATIC` when its instructions are compiled from `input`, `MANUAL` when they were given.
    """
    state: Literal["PENDING_APPLY", "APPLIED", "APPLY_FAILED"]
    """
    How far the present `input` or `instructions` have come. Older instructions, if any, stay at work until new ones
    are applied.

    """
    applyTime: NotRequired[Timestamp]
    applyError: NotRequired[ApplyError]
    source: Source
    input: NotRequired[Input]
    instructions: NotRequired[Instructions]
    notices: list[Notice]
    mutes: NotRequired[Mutes]
    languages: NotRequired[Languages]
    maxScansPerDay: NotRequired[MaxScansPerDay]
    kinds: NotRequired[Kinds]
    duplicates: NotRequired[Duplicates]
    health: ManagerHealth


class CreateManager(TypedDict):
    """
    A Manager to be, with exactly one of `input` and `instructions`. Its output-only fields are ignored where they are
    given.

    """

    nickname: Nickname
    type: ManagerType
    enable: NotRequired[bool]
    """
    A disabled Manager is compiled but matches nothing.
    """
    source: Source
    input: NotRequired[Input]
    instructions: NotRequired[Instructions]
    notices: NotRequired[list[Notice]]
    """
    Where its Scans are delivered; each Connection once, of the same Namespace.
    """
    mutes: NotRequired[Mutes | None]
    languages: NotRequired[Languages | None]
    maxScansPerDay: NotRequired[MaxScansPerDay | None]
    kinds: NotRequired[Kinds | None]
    duplicates: NotRequired[Duplicates | None]


class UpdateManager(TypedDict):
    """
    What changes of a Manager. Output-only fields are ignored where they are given.
    """

    nickname: NotRequired[Nickname]
    type: NotRequired[ManagerType]
    enable: NotRequired[bool | None]
    source: NotRequired[UpdateManagerSource]
    """
    As `Source`; what is left out stays as it is.
    """
    input: NotRequired[UpdateManagerInput | None]
    """
    As `Input`; what is left out stays as it is.
    """
    instructions: NotRequired[Instructions | None]
    notices: NotRequired[list[Notice] | None]
    mutes: NotRequired[Mutes | None]
    languages: NotRequired[Languages | None]
    maxScansPerDay: NotRequired[MaxScansPerDay | None]
    kinds: NotRequired[Kinds | None]
    duplicates: NotRequired[Duplicates | None]


class ManagerList(TypedDict):
    managers: list[Manager]
    nextPageToken: NotRequired[NextPageToken]
