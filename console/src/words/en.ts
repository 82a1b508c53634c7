// Every word that the console says, in English.
import type { Action, Connection, Delivery, Feed, Focus, Kind, Manager, Match, Mute, Sensitivity, ServiceEventType, SourceType } from "../api/types";

type ByWord = Record<string, string | undefined>;

const plural = (count: number, one: string, many: string) => `${count.toLocaleString("en")} ${count === 1 ? one : many}`;
const quotedList = (words: string[]) => {
  const quoted = words.map((word) => `“${word}”`);
  return quoted.length < 2 ? quoted.join("") : `${quoted.slice(0, -1).join(", ")} and ${quoted.at(-1)}`;
};
const capital = (text: string) => text.charAt(0).toUpperCase() + text.slice(1);
const spanWords: Record<string, string> = { "1h": "hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days" };

export const w = {
  loading: "Loading…",
  more: "Load more",
  save: "Save",
  saved: "Saved.",
  create: "Create",
  cancel: "Cancel",
  close: "Close",
  delete: "Delete",
  deleted: "Deleted.",
  on: "On",
  off: "Off",
  or: "or",
  newTab: "opens in a new tab",
  nickname: "Name",
  addWord: "Add…",
  remove: (what: string) => `Remove ${what}`,

  time: { now: "just now", soon: "in a moment", never: "never" },
  toast: { messages: "Messages", undo: "Undo", undoHint: "Can be undone.", close: "Dismiss" },
  confirm: { type: "To confirm, type" },

  roles: { OWNER: "Owner", EDITOR: "Editor", VIEWER: "Viewer" },
  sources: { FORUM: "Forums", MICROBLOG: "Microblogs", NETWORK: "Networks" } satisfies Record<SourceType, string>,
  focus: { SALES: "Sales", COMPETITOR: "Competitors", CRISIS: "Crisis" } satisfies Record<Focus, string>,
  focusMeans: {
    SALES: "People who want to choose, buy or hire what you offer.",
    COMPETITOR: "A competitor is named, compared or judged.",
    CRISIS: "People who complain about you.",
  } satisfies Record<Focus, string>,
  sensitivityLabel: "Sensitivity",
  sensitivity: { PRECISE: "Precise", BALANCED: "Balanced", BROAD: "Broad" } satisfies Record<Sensitivity, string>,
  sensitivityMeans: {
    PRECISE: "Fewer posts, and more of them are worth reading. Some relevant posts are missed.",
    BALANCED: "A balance between wrong posts and missed ones.",
    BROAD: "More posts, and fewer relevant ones are missed. More of them are wrong.",
  } satisfies Record<Sensitivity, string>,

  nav: {
    skip: "Skip to content", main: "Pages", overview: "Overview", inbox: "Inbox", managers: "Managers", connections: "Connections", help: "Help",
    namespace: "Namespace", chooseNamespace: "Namespace…", allNamespaces: "All Namespaces…", account: "Account", key: "This key", audit: "Audit log", theme: "Appearance",
    themes: { auto: "System", light: "Light", dark: "Dark" }, signOut: "Sign out",
  },
  banner: {
    offline: "No connection to the server.", failing: "The server cannot answer now.", retry: "Try now",
    age: (ago: string) => `What you see is from ${ago}.`,
    retryIn: (seconds: number) => `Trying again in ${seconds} s.`,
    limited: (seconds: number) => `This key has used up its requests for now. Going on in ${seconds} s; nothing is lost.`,
    expires: "This key expires", rotate: "Ask your operator for a new one.",
    readOnly: "This key may read. Changing things takes a key of the role Editor.",
  },
  error: {
    retry: "Try again", requestId: "Request id:", unreachable: "The server cannot be reached.", unknown: "Something went wrong in this page.",
    status: {
      400: "The server did not take this.", 403: "This key may not do that.", 404: "It is not there (any more).", 408: "The request took too long.",
      413: "This is too much at once.", 429: "Too many requests for this key; try again in a moment.", 500: "The server failed.", 502: "The server cannot be reached.",
      503: "The server cannot answer now.", 504: "The server did not answer in time.",
    } as Record<number, string | undefined>,
    issues: {
      required: "must be given", too_short: "too short", too_long: "too long", too_many: "too many", too_costly: "too costly: narrow it", quota_exceeded: "more than the account may have", out_of_range: "out of range", invalid_type: "of the wrong type",
      invalid_format: "not in the right form", invalid_enum: "not one of the words that are known", unknown_field: "not known to this server", duplicate: "given twice",
      not_found: "does not exist", not_empty: "not empty", in_use: "in use", forbidden: "not allowed", forbidden_address: "not a public address", conflict: "contradicts something else",
    } as ByWord,
  },
  broken: { title: "Something broke", why: "This page failed. The others are fine, and nothing was lost.", reload: "Reload" },
  nowhere: { title: "Not found", why: "There is no such page.", back: "To the start" },

  object: { more: "More", copyName: "Copy name", copyCurl: "Copy as curl", asJson: "As JSON", copied: "Copied.", copy: "Copy", copyByHand: "Select and copy" },

  key: {
    title: "Sign in with an API key", label: "API key", show: "Show", enter: "Continue", checking: "Checking…", hint: "Your operators make keys:",
    kept: "The key stays in this tab, and is forgotten when it closes.", ended: "The server does not take your key any more. Sign in again to go on where you were.",
    signedOut: "You are signed out; the key is forgotten.", missing: "Enter a key.", malformed: "A key looks like esk_…, an underscore, and 43 more characters.",
    refused: "The server does not know this key, or it has expired or been revoked.",
    signIn: "Sign in", with: (provider: string) => `Sign in with ${provider}`, or: "Or enter an API key.", signingIn: "Signing in…", person: "Person",
    notRevoked: "You are signed out in this tab, but the server could not be reached. Your session ends at its time.",
    failed: {
      unavailable: "Signing in does not work now. Try again in a moment, or ask your operator.", expired: "This sign-in was used before, took too long, or began in another browser. Try again.",
      refused: "Your provider did not sign you in.", invalid: "Your provider's answer cannot be used. Try again, or ask your operator.",
      "not-allowed": "You are signed in at your provider, but none of your groups may use Earshot. Ask your operator.", "too-many": "Too many people are signing in from your network. Try again in a few minutes.",
    } as ByWord,
    page: "This key", account: "Account", role: "Role", namespaces: "Namespaces", expires: "Expires", rate: "Rate limit", all: "All of the account:", never: "never",
    quotas: "Quotas of the account",
    quota: {
      namespaces: (used: string, limit: string) => `${used} of ${limit} Namespaces`,
      managers: (used: string, limit: string) => `${used} of ${limit} Managers`,
      connections: (used: string, limit: string) => `${used} of ${limit} Connections`,
      feeds: (used: string, limit: string) => `${used} of ${limit} feeds`,
      contentBytes: (used: string, limit: string) => `${used} of ${limit} bytes of instructions and mutes`,
      scansPerDay: (used: string, limit: string) => `${used} of ${limit} Scans today (UTC)`,
    },
    points: (points: string) => `${points} points a minute; a read costs 1, a change 5, tests and previews 20`,
    accountPoints: (points: string) => `${points} points a minute for all keys of the account together`,
    roleMeans: { OWNER: "everything, and making and deleting Namespaces", EDITOR: "everything inside of Namespaces but the audit log", VIEWER: "reading all but the audit log" },
  },
  namespaces: {
    title: "Namespaces", lead: (account: string, role: string) => `Signed in to ${account} as ${role}.`, none: "No Namespaces yet", noneWhy: "A Namespace holds Managers, which watch, and Connections, which deliver. Create the first one.",
    noneAsk: "This key opens no Namespace. An owner of the account can create one.", since: "made", expires: "The key expires", expiresNever: "The key does not expire.", create: "New Namespace", createHint: "A team or a product, for example.",
  },

  chart: { asTable: "As a table", time: "Time" },
  overview: {
    title: "Overview", range: "Range", ranges: { "1h": "1 hour", "24h": "24 hours", "7d": "7 days", "30d": "30 days" },
    posts: "Posts read", scans: "Scans", scansRight: "Scans, on the right scale", delivered: "Deliveries acknowledged", failing: "Failing Connections",
    ofConnections: (count: number) => `of ${count}`,
    same: (range: string) => `as in the ${spanWords[range]} before`,
    noneBefore: (range: string) => `none in the ${spanWords[range]} before`,
    change: (up: boolean, percent: number, range: string) => `${up ? "↑" : "↓"} ${percent.toLocaleString("en")}\u00a0% on the ${spanWords[range]} before`,
    postsAndScans: "Posts and Scans", deliveries: "Deliveries", delayScan: "From post to Scan", delayDelivery: "From Scan to acknowledgement",
    acknowledged: "Acknowledged", failedAttempts: "Failed attempts", exhausted: "Given up",
    saysPosts: (posts: number, scans: number) => (posts + scans === 0 ? "No post was read in this time." : `${plural(posts, "post", "posts")} read, ${plural(scans, "Scan", "Scans")} made.`),
    saysDeliveries: (good: number, bad: number, lost: number) => (good + bad + lost === 0 ? "Nothing was delivered in this time."
      : `${good.toLocaleString("en")} acknowledged, ${bad === 0 ? "no attempt failed" : `${plural(bad, "attempt", "attempts")} failed`}${lost === 0 ? "" : `, ${lost.toLocaleString("en")} given up`}.`),
    saysDelay: (worst: number, time: (ms: number) => string) => (worst === 0 ? "Nothing was measured in this time." : `99 of 100 within ${time(worst)}, at worst.`),
    fresh: "Nothing is watched yet", freshWhy: "A Manager watches forums and feeds for posts that matter to you. Give it a page about your product, and it works out what to look for.",
  },
  attention: {
    title: "Needs attention", all: (count: number) => `Show all ${count}`, nothing: "Nothing needs you.", tune: "Tune it", feeds: "See feeds", deliveries: "See deliveries", feedOf: "Feed of",
    looked: (managers: number, connections: number) => `${plural(managers, "Manager", "Managers")} and ${plural(connections, "Connection", "Connections")} looked at.`,
    waiting: (count: number) => (count === 0 ? "Attempts fail." : `${plural(count, "delivery waits", "deliveries wait")}.`),
  },

  inbox: {
    title: "Inbox", list: "Scans", reading: "Reading", filters: "Filters", text: "Text in title, post or author", textHint: "Search text…", manager: "Manager", feed: "Feed", sites: "Sites", placesIn: "Places",
    score: "Score", value: "Verdict", time: "Time", label: "Label", notWrong: "Not wrong", clear: "Clear filters", asFilter: "Filter:", noFilter: "none", filterField: "Filter of the API", apply: "Apply",
    export: "Export", exporting: "Exporting", exportedSoFar: (count: number) => `${plural(count, "Scan", "Scans")} so far…`, exported: (count: number) => `${plural(count, "Scan", "Scans")} exported.`,
    exportedSome: (count: number) => `${plural(count, "Scan", "Scans")} exported, which is as many as one file holds; narrow the filter for the rest.`,
    choose: "Choose a Scan to read it.", back: "Back to the list", keysMove: "to move", keysAll: "for all keys",
    fresh: (count: number) => `${count >= 100 ? "100 or more" : count} new – show`,
    shown: (count: number) => `${plural(count, "new Scan", "new Scans")} shown.`,
    found: (count: number, more: boolean) => (count === 0 ? "No Scans." : `${plural(count, "Scan", "Scans")}${more ? ", and more" : ""}.`),
  },
  silence: {
    noManagers: "No Manager watches yet", nothing: "Nothing matched", filtered: "Nothing matches these filters", cannotLook: "We could not look",
    allOff: "It is turned off, so nothing is read for it.", notApplied: "No Manager has instructions yet: they are being worked out, or could not be.",
    read: (posts: string) => `${posts} posts were read in the last 24 hours.`, lastPost: "The newest post was made", lastLook: "We looked", nextLook: "and look again",
    unknown: "When we last looked could not be found out just now.", blind: (bad: number, all: number) => `${bad} of ${plural(all, "feed", "feeds")} cannot be read.`,
    seeManagers: "See Managers",
  },
  post: { wordless: "(no words)", by: "by", open: "Open the post" },
  score: {
    title: "Score", alone: (score: string) => `Score ${score}.`, of: (score: string, threshold: string) => `Score ${score}, threshold ${threshold}.`,
    noTerms: "No term counted.", judged: "A language model was asked as well, and had the last word.", counted: (terms: string[]) => `${quotedList(terms)} counted.`,
    reader: {
      JUDGED: "The post was compared with what you sell, and the score comes from that.", OVER_BUDGET: "Scored by words alone: today's comparisons with what you sell are used up.", BUSY: "Scored by words alone: there was no time to compare the post with what you sell.",
      UNAVAILABLE: "Scored by words alone: comparing with what you sell does not work at the moment.", NO_OFFERS: "Scored by words alone: nothing says what you sell.",
      OTHER_LANGUAGE: "Scored by words alone: the post or what you sell is not in English.", UNTITLED: "Scored by words alone: the post has no title.",
    } satisfies Record<NonNullable<Match["reader"]>, string>,
    tipped: (terms: string[], more: number) => `${quotedList(terms)} counted most${more > 0 ? `, and ${more} more` : ""}.`,
    signal: {
      buying: (percent: number) => `Reads like somebody who wants to buy (${percent}\u00a0%).`, comparison: (percent: number) => `Weighs things against each other (${percent}\u00a0%).`,
      trouble: (percent: number) => `Reads like trouble (${percent}\u00a0%).`,
    } as Record<string, ((percent: number) => string) | undefined>,
  },
  scan: {
    verdict: "Your verdict", byKey: (key: string) => `By key: ${key}`, right: "Right", wrong: "Wrong", label: "Label…", labels: "Labels", labelsField: "Labels, with commas between", labelsHint: "Up to 10 words of your own; they can be filtered by. A Scan with labels counts as right unless it is marked as wrong.",
    why: "Why you were shown this", foundBy: "Found by", aManager: "a Manager", places: "Also posted at", notSaved: "Not saved.",
    markedRight: "Marked as right.", markedWrong: "Marked as wrong.", learns: "The Manager learns from it at its next compile, after a few verdicts.", learnsNothing: "This Manager is kept by hand: verdicts do not change what it looks for.", labelled: "Labels saved.",
  },
  mute: {
    title: "Mute", mute: "Mute", what: "What", howLong: "For how long", value: "Author, place, site or word", until: "until",
    author: (name: string) => `Author ${name}`, place: (name: string) => `Place ${name}`, site: (host: string) => `Site ${host}`,
    expiries: { always: "Until I take it back", week: "A week", month: "30 days" } as ByWord,
    everywhere: (namespace: string | undefined) => `For all Managers of ${namespace ?? "the Namespace"}`,
    means: "New posts of it make no Scans from now on. Scans that are there stay.", done: (what: string, everywhere: boolean) => `${what} is muted${everywhere ? " for all Managers" : ""} from now on.`,
    nothing: { AUTHOR: "This post names no author to mute.", SUBFORUM: "This post is of no place that could be muted." }, undone: "No longer muted.", added: "Muted from now on.", removed: "No longer muted.",
    hints: { AUTHOR: "Their name there", SUBFORUM: "Its name", SITE: "example.com", TERM: "Word or phrase" } satisfies Record<Mute["type"], string>,
    types: { AUTHOR: "Author", SUBFORUM: "Place", SITE: "Site", TERM: "Word" } satisfies Record<Mute["type"], string>,
  },

  managers: {
    title: "Managers", one: "Manager", new: "New Manager", none: "No Managers yet", noneWhy: "A Manager watches forums and feeds for posts that matter to you, and says why each one does.",
    name: "Manager", state: "State", focus: "Focus", day: "Scans, 24 hours", quality: "Right : wrong", qualityMeans: "Of those judged among the newest 100 Scans of the Namespace", on: "On",
    scansInDay: (count: string) => `${count} Scans in 24 hours`, ratio: (right: number, wrong: number) => `${right} : ${wrong}`, unjudged: "not judged",
  },
  manager: {
    states: { failed: "Not compiled", pending: "Compiling", blind: "Blind", off: "Off" },
    healths: { OK: "Watching", QUIET: "Quiet", NOISY: "Noisy", FAILING: "Blind" } satisfies Record<Manager["health"]["state"], string>,
    reasons: {
      apply_failed: "Its pages could not be turned into instructions.", instructions_unreadable: "Its instructions are of a newer release; an upgrade is under way.",
      feeds_failing: "None of its feeds could be read recently.", quota_exceeded: "The account has used up its Scans of a day. Posts that match wait until there is room.", backfill_failed: "A search of its feeds for past posts ended with an error, so Scans may be missing. Look back again.", flooded: "There are more matches today than its bound lets through.", feedback_bad: "Most of its judged Scans were wrong.", no_posts: "Its feeds had no post for a day and more.",
    } as ByWord,
    applyErrors: {
      no_reachable_url: "None of its pages answered.", no_usable_content: "None of its pages has usable content.", forbidden_address: "Its pages are not on public addresses.", invalid_instructions: "Its instructions cannot be used.", quota_exceeded: "Its feeds or instructions exceed a quota of the account.",
    } as ByWord,
    modes: { AUTOMATIC: "automatic", MANUAL: "by hand" } satisfies Record<Manager["mode"], string>,
    tabs: { scans: "Scans", looks: "What it looks for", feeds: "Feeds", try: "Try it", settings: "Settings" },
    terms: "Terms", appliedAt: "at work since", oldAtWork: "What was at work before still is.", applyAgain: "Compile again", applying: "Compiling again; what is at work stays so until then.",
    turnedOn: "Turned on: it watches from now on.", turnedOff: "Turned off: it matches nothing.", onOff: (name: string) => `${name}: on`, noConnections: "There is no Connection yet. Scans are in the inbox all the same.",
    noticeFilter: "Only Scans that meet this filter", noticeFilterExample: "match.score > 0.8 AND post.text : \"price\"",
  },
  looks: {
    none: "No instructions yet", noneYet: "They are being worked out from its pages.", noneFailed: "Its pages could not be turned into instructions.",
    must: "Must mention", mustMention: "must mention", terms: "Terms", names: "Names", exclude: "Never with", threshold: "Threshold", feeds: "Feeds", near: "near",
    nameKinds: { OWN: "yours", WATCHED: "watched" }, moreTerms: (count: number) => `and ${count} more`, calibrated: "of a score from 0 to 1", summed: "of the sum of the weights of the terms that occur",
    mutes: "Mutes", change: "Change", takeOver: "Take over", edit: "Edit",
    takeOverMeans: "You change the instructions yourself from now on. Once you save, they are not compiled from the pages any more, and verdicts on Scans do not change them. Giving pages in the settings makes it automatic again.",
    takingOver: "Nothing changes until you save. Saving makes this Manager one that is kept by hand.", save: "Save and put to work", saved: "Saved; they are put to work in a moment.",
    addTerm: "Add a term…", weightOf: (term: string) => `Weight of ${term}`, newGroup: "Add a group…", groupLabel: (at: number) => `Group ${at}`, excludeHint: "A post with any of these never matches.", namesHint: "Yours and others': companies, brands, products. Each opens for more.",
    addName: "Add a name…", nameIs: (kind: "OWN" | "WATCHED", aliases: number) => `${kind === "OWN" ? "yours" : "watched"}${aliases === 0 ? "" : `, ${plural(aliases, "alias", "aliases")}`}`,
    whose: "Whose name", kindMeans: { OWN: "Our own", WATCHED: "Another's, which is watched" }, aliases: "Also called", aliasesHint: "Other spellings and short forms that count as this name.",
    context: "Only near", contextHint: "One of these must occur too for the name to count; without any, it always does.", caseSensitive: "Only as it is written, in upper and lower case",
    feedsHint: "As platform:feed. Without any, the newest posts of all platforms of its source.", sells: "What you sell", summary: "In a sentence or two", summaryHint: "What it is, and for whom.", offers: "Goods and services", offersHint: "Five to twelve phrases, each as a buyer would ask for it: burr grinder, repair of espresso machines.",
    brief: "In a sentence", briefHint: "What is relevant, for people to read.",
    effect: "What it would change", counting: "Comparing…",
  },
  preview: {
    count: (matched: number, all: number) => `${matched} of ${plural(all, "recent post", "recent posts")} would match.`, all: (count: number) => `Show all ${count}`,
    kept: (count: number) => `${count} kept`, lost: (count: number) => `${count} lost`, gained: (count: number) => `${count} gained`, lostMark: "lost", gainedMark: "gained", keptMark: "kept", showKept: (count: number) => `Show the ${count} that are kept`, hideKept: "Hide what is kept",
    byWords: "Words alone decide here. Where posts are also compared with what you sell, a Scan can have another score.",
    ofRecent: (count: number) => `of ${plural(count, "post", "posts")}.`, noPosts: "No posts have been read yet: its feeds are looked at for the first time soon.",
  },
  reason: {
    words: { MATCHED: "Matches", BELOW_THRESHOLD: "Below threshold", REQUIRE: "Lacks a word", EXCLUDE: "Excluded", MUTED: "Muted", LANGUAGE: "Language", NOT_WATCHED: "Not watched", NEVER_SEEN: "Never seen" } as ByWord,
    means: {
      MATCHED: "It would be a Scan.", BELOW_THRESHOLD: "Its score does not reach the threshold.", REQUIRE: "It lacks a word that it must mention.", EXCLUDE: "It has a word that is never wanted.", MUTED: "It matches, but its author, place, site or a word is muted.",
      LANGUAGE: "It matches, but is in a language that is not wanted.", NOT_WATCHED: "None of the feeds is of its platform, or it is of another kind.", NEVER_SEEN: "This post has not been read.",
    } as ByWord,
  },
  feed: {
    feed: "Feed", last: "Last look", next: "Next look", lastPost: "Newest post", posts: "Posts a day", scans: "Scans a day", gaps: "Gaps", quarantined: "Skipped", quarantinedWhy: (reason: string) => `The last post that was skipped ${reason}.`, allGood: (count: number) => (count === 1 ? "1 good" : `${count} good`), some: (count: number, all: number, how: string) => (all === 1 ? capital(how) : `${count} of ${all} ${how}`), none: "No feeds", noneWhy: "They appear once its instructions are at work.",
    days: "Day by day", daysMean: "What each feed brought on each UTC day, for all that watch it.", day: "Day", read: "Read", late: "Late", gone: "Gone",
    filled: "Filled.", ids: "Ids explained", notVisible: (count: number) => `${count} not visible yet.`, unexplained: (count: number, named: string) => `${count} unexplained: ${named}${count > named.split(", ").length ? ", …" : ""}.`,
    gap: (from: string | undefined, to: string, reason: string) => (from === undefined ? `Until ${to}: ${reason}.` : from === to ? `At ${to}: ${reason}.` : `${from} to ${to}: ${reason}.`),
    states: { OK: "Good", LATE: "Late", FAILING: "Failing", BLOCKED: "Blocked", BUDGET_SPENT: "Budget spent" } satisfies Record<Feed["state"], string>,
    means: { OK: "", LATE: "It is looked at later than planned.", FAILING: "It could not be read lately.", BLOCKED: "The platform does not let us read it.", BUDGET_SPENT: "The platform's allowance for now is used up." } satisfies Record<Feed["state"], string>,
  },
  backfill: {
    title: "Look back", means: "Reads older posts of feeds that can look back, and makes Scans of those that match. They are in the inbox as they are found, and are not sent to Connections.", reach: "How far back",
    days: (days: number) => (days === 1 ? "1 day" : `${days} days`), run: "Look back", back: "back to", cannot: "cannot look back", none: "None of its feeds can look back.",
  },
  tryIt: {
    postTitle: "Title", post: "Post, or its address", hint: "Paste a post's text. An address alone is looked up among the posts that were read.", judge: "Judge it", recent: "The last 100 posts", answer: "Answer",
    none: "Nothing tried yet", noneWhy: "The verdict stands here with its reason: which words counted, the score and the threshold, and the gate that a post failed.",
  },
  settings: {
    general: "General", mutes: "Mutes of this Manager", mutesHint: "Posts that make no Scans, whatever the instructions say.", namespaceMutes: "Mutes of the whole Namespace", namespaceMutesHint: "They hold for all its Managers.", noMutes: "Nothing is muted.",
    sellsHint: "What you leave empty is taken from your pages.", input: "Pages, focus, sensitivity and what you sell", inputMeans: "Saving compiles the Manager again. What is at work stays so until that is done.", inputTakesBack: "This Manager is kept by hand; saving pages makes it automatic again.", urls: "Pages",
    screen: "What is let through", screenHint: "Of posts that match.", languages: "Languages", languagesHint: "Tags such as en or pt; without any, all are welcome.", anyLanguage: "all", kinds: "Kinds",
    kindWords: { POST: "Posts", COMMENT: "Comments" } satisfies Record<Kind, string>, duplicates: "The same post in several places", duplicatesHint: "Collapsed, it is one Scan that lists the places.",
    keep: "A Scan each", collapse: "One Scan", maxScans: "Scans a day, at most", maxScansHint: "A guard against floods: near the bound only the best come through.", noMax: "no bound",
    connections: "Connections", connectionsHint: "Each Scan is sent to these.", delete: "Delete this Manager", deleteMeans: "It stops watching, and its Scans are gone with it. This cannot be undone.",
  },
  newManager: {
    title: "New Manager", lead: "It reads your pages, works out what to look for, and shows you before it starts.", urls: "Pages about your product", urlsHint: "One to twenty addresses; press Enter after each. Pages of communities to watch may be among them.",
    focus: "What makes a post worth your time", names: "Names to watch", namesHint: "Competitors, brands, products. Without any, they are taken from the pages.", nicknameHint: "What you call it.", source: "Where to look",
    connections: "Send Scans to", connectionsHint: "Scans are in the inbox in any case.", create: "Work it out", creating: "Creating…", nothingYet: "Nothing is watched until you turn it on.",
    asked: "Asked for", compiling: "Working it out", compiled: "Worked out", failed: "Could not be worked out", isOn: "Watching", isOff: "Not watching yet", reading: (pages: number) => `Reading ${plural(pages, "page", "pages")}…`,
    changeUrls: "Change the pages", understood: "What was understood", preview: "What it makes of recent posts", turnOn: "Turn it on", refine: "Refine it first",
  },

  connections: {
    title: "Connections", one: "Connection", new: "New Connection", none: "No Connections yet", noneWhy: "A Connection is a server of yours, or a chat channel, that gets each Scan within moments. Scans are in the inbox without one, too.",
    name: "Connection", rate: "Success rate", last: "Last acknowledged", waiting: "Waiting", oldest: "Oldest waits", breaker: "Breaker", many: "1,000+",
  },
  connection: {
    states: { paused: "Paused", resting: "Failing", behind: "Behind", unsteady: "Unsteady", unused: "Not used yet", good: "Delivering" },
    breakers: { CLOSED: "Closed", OPEN: "Open", HALF_OPEN: "Trying" } satisfies Record<NonNullable<Connection["health"]>["breaker"], string>,
    breakerMeans: { CLOSED: "all is sent", OPEN: "given a rest", HALF_OPEN: "one delivery tells" } satisfies Record<NonNullable<Connection["health"]>["breaker"], string>,
    openBreaker: "It has failed so often that it is given a rest. Retrying one delivery by hand goes through at once.", digestRests: (reason: string) => `The mail of the last hour or day is late, and tried again: ${reason}.`, ofLast: "of the last attempts", nobodyWaits: "nothing waits", oldest: (age: string) => `oldest for ${age}`,
    test: "Send test", pause: "Pause", enable: "Enable", enabled: "Enabled: what waits is sent now.", pausedNow: "Paused: what comes waits.", chart: "Deliveries, 24 hours",
    recipients: "Recipients", recipientStates: { PENDING: "has not confirmed yet", CONFIRMED: "gets mail", UNSUBSCRIBED: "unsubscribed", REFUSED: "does not exist" } satisfies Record<NonNullable<Connection["recipients"]>[number]["state"], string>,
    what: "Where it delivers", whatHint: "Changes hold for what is sent from now on, and for what is tried again.", tabs: { deliveries: "Deliveries", replays: "Replays", settings: "Settings" }, delete: "Delete this Connection", deleteMeans: "Nothing more is sent to it; it is taken out of the Managers that name it, and what waits is cancelled. This cannot be undone.",
  },
  newConnection: {
    title: "New Connection", lead: "A server that answers any 2xx within 10 seconds, a chat channel's incoming webhook, or e-mail.", url: "Address", urlHint: "https, on a public host. For e-mail: mailto: and up to ten addresses, separated by commas; each recipient has to confirm.", format: "Format", formatHint: "The shape of what is sent.",
    formats: { EARSHOT: "Earshot's own", SLACK: "Slack", DISCORD: "Discord", TEAMS: "Microsoft Teams", EMAIL: "E-mail" } satisfies Record<NonNullable<Connection["format"]>, string>,
    headers: "Headers", headersHint: "Sent with every delivery, so that your server knows us. Values are written and never shown again.", headerName: "Header", headerValue: "Value", addHeader: "Add a header", keep: "as it is",
    digest: "Mails", digestHint: "A digest lists the newest 20 Scans; without Scans, none comes.",
    periods: { SINGLE: "One for each Scan", HOURLY: "A digest every hour", DAILY: "A digest every day" } satisfies Record<"SINGLE" | NonNullable<Connection["digest"]>["period"], string>,
    timeZone: "Time zone", timeZoneHint: "Where hours and days begin, such as Europe/Berlin.",
    more: "Method, pace, signature and service events", moreOfMail: "Pace and service events", method: "Method", max: "Requests a second, at most", maxHint: "Empty: as many as it takes, or as the chat service allows.", secret: "Signing secret", secretHint: "Recommended. Deliveries are signed with it, so your server can refuse forged ones. Copy it to your server now; it is not shown again.",
    secretKept: "Empty keeps what is there. A new one takes its place.", makeSecret: "Make one", events: "Service events", eventsHint: "Also sent here, for the whole Namespace.", test: "Test it", testAgain: "Test again", keepIt: "Keep it", keepUntested: "Save without a test", saved: "The Connection is saved. Managers can send to it now.",
    testMeans: "The test saves it and sends one made-up Scan. Nothing else goes there until a Manager names it; leaving without keeping it takes it away again.",
  },
  test: { ok: "Acknowledged", failed: "Not acknowledged", answered: (status: number) => `Answered ${status}`, within: (time: string) => `within ${time}.`, means: "One made-up Scan was sent. It is in no log and no statistics." },
  delivery: {
    one: "Delivery", filters: "Filters", state: "State", status: "Answer", noAnswer: "No answer", anyFailed: "Failed, any", none: "Nothing was delivered yet", noneSuch: "No such delivery", noneWhy: "A delivery is made for each Scan of the Managers that name this Connection.",
    created: "Made", scan: "Scan", fresh: (count: number, page: number) => `${count >= page ? `${page} or more` : count} new – show`, answer: "Answer", attempts: "Attempts", next: "Next attempt", createdAt: "made", nextAt: "next attempt", retry: "Retry", again: "Send again", retried: "It is sent again now.", request: "Request", headers: "With headers", body: "Body",
    events: { MANAGER_APPLIED: "Manager applied", MANAGER_APPLY_FAILED: "Manager could not be applied", CONNECTION_DISABLED: "Connection disabled by the service", COVERAGE_GAP: "Posts may be missing", POST_DELETED: "Post of a Scan deleted", POST_EDITED: "Post of a Scan edited" } satisfies Record<ServiceEventType, string>,
    otherFormat: (format: string) => `Sent in the form of ${format}.`, notYet: "Not sent yet.", newestOnly: (count: number) => `The newest ${count} are shown.`, total: "total",
    states: { PENDING: "To be sent", IN_FLIGHT: "Being sent", SUCCEEDED: "Acknowledged", RETRYING: "Retrying", EXHAUSTED: "Given up", CANCELLED: "Cancelled" } satisfies Record<Delivery["state"], string>,
    phases: { dns: "DNS", connect: "Connect", tls: "TLS", firstByte: "First byte", rest: "Rest" },
    errors: {
      dns_failure: "Name not found", forbidden_address: "Address not allowed", connect_refused: "Connection refused", connect_timeout: "No connection in time", unreachable: "Unreachable", tls_failure: "TLS failed", proxy_failure: "Stopped at the proxy", timeout: "No answer in time",
      reset: "Connection cut", protocol_error: "Not HTTP", invalid_request: "Cannot be sent", expired: "Too old", scan_expired: "Scan not kept", scan_deleted: "Scan deleted", connection_deleted: "Connection deleted",
      no_confirmed_recipient: "No recipient has confirmed", invalid_recipient: "No such address", smtp_not_configured: "E-mail is not set up", smtp_unavailable: "Mail server away", smtp_login_refused: "Mail server refused us", too_many_mails: "Too many mails at once",
      undecryptable_headers: "Headers unreadable", unreadable: "Unreadable", internal_error: "Our fault",
    } as ByWord,
  },
  replay: {
    open: "Replay…", title: "Replay deliveries", means: "Deliveries made in this window are sent again, slower than what is new. Receivers see the same names as before.", from: "From", to: "To", toHint: "Empty: until now.", states: "In state", statesHint: "None chosen: all of them.",
    ask: "Count first", count: (count: number) => `${plural(count, "delivery", "deliveries")} would be sent again.`, begin: (count: string) => `Send ${count} again`, begun: "The replay has begun.", none: "No replays", noneWhy: "After an outage of your server, a replay sends what it missed.",
    words: { RUNNING: "Running", DONE: "Done", CANCELLED: "Cancelled" }, anyState: "any state", progress: "Progress", done: (done: string, total: string) => `${done} of ${total}`, cancel: "Cancel replay", cancelled: "Cancelled: nothing more is reopened.",
  },
  audit: {
    title: "Audit log", lead: "Who changed what, when, and from where.", all: "All events", none: "No such events", action: "Action", resource: "Resource", time: "Time", actor: "Key", address: "Address", operator: "Operator",
    actions: {
      CREATE: "Created", UPDATE: "Changed", DELETE: "Deleted", APPLY: "Applied", BACKFILL: "Searched past posts", ENABLE: "Enabled", TEST: "Tested", REPLAY: "Replayed", CANCEL: "Cancelled", RETRY: "Retried",
      READ_SECRETS: "Read secrets", REVOKE: "Revoked",
    } satisfies Record<Action, string>,
  },
  help: {
    title: "Help", keys: "Keys", keysOn: "Single letters do something", more: "More", docs: "The API, with examples", licences: "Licences of what this page is made of", version: "Version",
    keyList: [
      ["j k", "Next and previous Scan"], ["o", "Open the post"], ["y", "Right"], ["n", "Wrong"], ["a", "Mute its author"], ["p", "Mute its place"], ["m", "Mute…"], ["l", "Label…"], ["u", "Undo"], ["/", "To the search field"],
      ["g o", "Overview"], ["g i", "Inbox"], ["g m", "Managers"], ["g c", "Connections"], ["?", "These keys"],
    ] as [string, string][],
  },
};
