//! Evidence in a post for a plan: what it says about the plan's topic and names, and where.
//!
//! Topic and names show which posts may concern a plan. Whether a person would keep the post depends on more: is the
//! name in the title or mentioned in passing, is there a need or a complaint in the same sentence, is it a job
//! advertisement or a guide. Each of these is a number here. [`EVIDENCE`] names them, and a linear layer per focus
//! computes a probability from them.

mod bound;
pub(crate) mod cues;
mod layout;

use std::ops::Range;

pub(crate) use bound::TopicBound;
use cues::{Class, Cue};
use domain::{Focus, instructions::NameKind};
use layout::{Layout, Zone};

use crate::{
    decision, heads,
    plan::{Name, Plan, Rule, Term},
    post::PostText,
};

macro_rules! evidence {
    ($($(#[$doc:meta])* $name:ident,)*) => {
        /// Numbers that a decision with a focus is based on.
        #[derive(Debug, Clone, Copy, Default, PartialEq)]
        pub struct Evidence {
            $($(#[$doc])* pub $name: f64,)*
        }

        /// The names of the numbers, in their order.
        pub const EVIDENCE: &[&str] = &[$(stringify!($name)),*];

        impl Evidence {
            /// Returns the numbers in the order of [`EVIDENCE`].
            #[must_use]
            pub fn values(&self) -> [f64; EVIDENCE.len()] {
                [$(self.$name),*]
            }
        }
    };
}

evidence! {
    /// How rare this topic score is among ordinary posts: orders of magnitude, 0 to 3.
    surprise,
    /// Weights of the plan's terms in the title.
    title_topic,
    /// Weights of the terms in the title and the first sentences.
    opening_topic,
    /// Number of distinct terms.
    terms,
    /// Terms per word.
    topic_density,
    /// Weight of the strongest term.
    best_term,
    /// Mentions, in title and prose, of the names that the focus asks about.
    mentions,
    /// How early in the title a name occurs: 1 at its start, 0 where it is absent.
    title_name,
    /// A name occurs in the first sentences.
    opening_name,
    /// Mentions per word.
    name_density,
    /// More than one of the names is mentioned.
    several_names,
    /// Mentions as the subject of a sentence.
    name_acts,
    /// Share of mentions after a preposition that makes the name a place or a source.
    name_is_place,
    /// Share of mentions of names that are also words, without context near them.
    name_is_doubtful,
    /// Share of mentions that are part of a longer name.
    name_is_part,
    /// Trouble and a name in the title.
    title_trouble_name,
    /// Sentences of the text with trouble and a name.
    trouble_near_name,
    /// Sentences with comparison and a name.
    compare_near_name,
    title_compare_name,
    /// Sentences with a need or a question and a name.
    ask_near_name,
    /// Sentences with praise and a name.
    praise_near_name,
    /// Sentences with a problem and a name.
    problem_near_name,
    /// Weights of the terms in the best sentence that expresses a need.
    need_near_term,
    /// The same for a problem.
    problem_near_term,
    /// The same for a question.
    question_near_term,
    title_asks,
    title_need,
    title_problem,
    needs,
    problems,
    title_trouble,
    troubles,
    title_compare,
    compares,
    title_praise,
    title_deal,
    title_hiring,
    title_offer,
    title_show,
    title_guide,
    title_news,
    offers,
    solved,
    title_joke,
    first_person,
    /// A title without text that neither asks a question nor speaks of the author.
    headline,
    /// The title begins with a tag in brackets.
    tag,
    /// Share of capitalised words in the title.
    title_case,
    length,
    buying,
    comparing,
    complaining,
    /// The complaint classifier's answer for the sentences that contain a name.
    complaining_near_name,
    /// The buying classifier's answer for the sentences that contain a term.
    buying_near_term,
    /// Surprise where the title asks or expresses a need.
    asked_topic,
    /// Surprise where the text does.
    needed_topic,
    /// The customer's own name is mentioned, where the focus asks about others.
    own_name,
    /// Share of ordinary posts with the mentioned names that are about the subject.
    name_on_topic,
    /// How common the mentioned names are, where the title has nothing related to the topic.
    name_is_common,
    /// Related words next to the first mentions.
    related_near_name,
    /// Related words in a title that contains a name.
    title_related_name,
    /// Neither title nor a request names what the customer sells, the text does not name much of it, and no rival is
    /// named in its place.
    lacks_offer,
    /// Share of mentions after a year (`2003 Toyota`): a product that a person owns.
    name_after_year,
    /// How far the mentioned names mean something else, where the post has nothing of the topic.
    name_off_topic,
    /// A post without a title, as on microblogs, that contains a watched name (COMPETITOR) or any name (CRISIS).
    untitled,
    /// For a post without a title that names the customer: how strongly it complains.
    untitled_complaint,
    /// The same, measured by cues of trouble.
    untitled_trouble,
}

/// Evidence in a post that does not depend on the plan.
#[derive(Debug, Default)]
pub(crate) struct PostEvidence {
    layout: Layout,
    words: Vec<Range<usize>>,
    cues: Vec<Cue>,
    /// Classes of the cues of each sentence, without negated ones.
    classes: Vec<u32>,
    /// Number of cues of each class in the title and outside of it, without negated and overlapping ones.
    counts: [(f64, f64); Class::ALL.len()],
    /// End of the first sentences of the text.
    opening_end: usize,
    title_words: usize,
    own: Evidence,
}

/// Maximum weight of a term; more says nothing new, and a plan of one term has a weight of 5.
const MAX_TERM: f64 = 2.5;
/// Length of the text's opening, in bytes.
const OPENING: usize = 200;
/// Offers count in the title and in this many bytes after it.
const OFFER_REACH: usize = 2_000;
/// Minimum weight of the offers that a request names.
const MIN_OFFER: f64 = 0.4;
/// Related words count within this many bytes of a mention.
const RELATED_REACH: usize = 60;
/// Number of mentions in the text around which related words are searched for.
const RELATED_MENTIONS: usize = 4;
/// Maximum distance, in bytes, between a negation and what it negates.
const NEGATION_REACH: usize = 24;

impl PostEvidence {
    pub(crate) fn of(post: &PostText) -> Self {
        let source = post.source();
        let layout = Layout::of(source, post.title_len());
        let words = post.words().ranges();
        let cues = post.cues().all.clone();
        let mut evidence = Self {
            classes: vec![0; layout.sentences.len()],
            opening_end: source.floor_char_boundary(layout.title_end + OPENING),
            title_words: words.partition_point(|word| word.start < layout.title_end),
            layout,
            words,
            cues,
            ..Self::default()
        };
        evidence.classify();
        evidence.own = evidence.of_post(post);
        evidence
    }

    fn classify(&mut self) {
        let mut ends = [0; Class::ALL.len()];
        for at in 0..self.cues.len() {
            let cue = self.cues[at];
            if self.is_negated(&cue) || !self.counts(cue.start) {
                continue;
            }
            let sentence = self.layout.sentence(cue.start);
            if let Some(classes) = self.classes.get_mut(sentence) {
                *classes |= cue.class.bit();
            }
            let end = &mut ends[cue.class as usize];
            if cue.start < *end {
                continue;
            }
            *end = cue.end;
            let (title, text) = &mut self.counts[cue.class as usize];
            if cue.start < self.layout.title_end {
                *title += 1.0;
            } else {
                *text += 1.0;
            }
        }
    }

    /// Returns whether the text at the byte is the author's own words.
    fn counts(&self, at: usize) -> bool {
        !matches!(
            self.layout.zone(at),
            Zone::Link | Zone::Quote | Zone::Code | Zone::Signature
        )
    }

    fn is_negated(&self, cue: &Cue) -> bool {
        if !matches!(
            cue.class,
            Class::Trouble | Class::Praise | Class::Need | Class::Problem
        ) {
            return false;
        }
        let sentence = self.layout.sentence(cue.start);
        let from = self
            .cues
            .partition_point(|c| c.start + NEGATION_REACH < cue.start);
        self.cues[from..]
            .iter()
            .take_while(|c| c.start < cue.start)
            .any(|c| {
                c.class == Class::Negation
                    && c.end <= cue.start
                    && self.layout.sentence(c.start) == sentence
            })
    }

    /// Returns the cues of the class in the title, and outside of it.
    fn count(&self, class: Class) -> (f64, f64) {
        self.counts[class as usize]
    }

    fn of_post(&self, post: &PostText) -> Evidence {
        let source = post.source();
        let title = &source[..self.layout.title_end];
        let has = |class| f64::from(u8::from(self.count(class).0 > 0.0));
        let all = |class| {
            let (title, text) = self.count(class);
            (title + text).ln_1p()
        };
        let title_asks = self
            .layout
            .sentences
            .iter()
            .any(|s| s.asks && s.range.start < self.layout.title_end && s.zone == Zone::Title)
            || self.title_begins_with_question(title);
        let text_words = number(self.words.len() - self.title_words);
        let (_, first_in_text) = self.count(Class::FirstPerson);
        let (first_in_title, _) = self.count(Class::FirstPerson);
        let words = number(self.words.len());
        let headline = text_words < 3.0 && !title_asks && first_in_title == 0.0;
        Evidence {
            title_asks: f64::from(u8::from(title_asks)),
            title_need: has(Class::Need),
            title_problem: has(Class::Problem),
            needs: all(Class::Need),
            problems: all(Class::Problem),
            title_trouble: has(Class::Trouble),
            troubles: all(Class::Trouble),
            title_compare: has(Class::Compare),
            compares: all(Class::Compare),
            title_praise: has(Class::Praise),
            title_deal: has(Class::Deal),
            title_hiring: has(Class::Hiring),
            title_offer: has(Class::Offer),
            title_show: has(Class::Show),
            title_guide: has(Class::Guide),
            title_news: has(Class::News),
            offers: all(Class::Offer),
            solved: all(Class::Solved),
            title_joke: has(Class::Joke),
            first_person: (10.0 * (first_in_title + first_in_text) / (words + 10.0)).min(1.0),
            headline: f64::from(u8::from(headline)),
            tag: f64::from(u8::from(title.trim_start().starts_with(['[', '【']))),
            title_case: self.title_case(source),
            length: (words / 20.0).ln_1p(),
            buying: post.head(Focus::Sales),
            comparing: post.head(Focus::Competitor),
            complaining: post.head(Focus::Crisis),
            ..Evidence::default()
        }
    }

    fn title_begins_with_question(&self, title: &str) -> bool {
        let begin = title.len()
            - title
                .trim_start_matches(|c: char| !c.is_alphanumeric())
                .len();
        self.cues
            .iter()
            .any(|cue| cue.class == Class::Question && cue.start <= begin && cue.end <= title.len())
    }

    /// Returns the share of the title's words, except the first, that begin with a capital.
    fn title_case(&self, source: &str) -> f64 {
        let words = self.words.get(1..self.title_words).unwrap_or_default();
        if words.len() < 3 {
            return 0.5;
        }
        let capital = |word: &&Range<usize>| is_capitalised(&source[(*word).clone()]);
        number(words.iter().filter(capital).count()) / number(words.len())
    }
}

fn is_capitalised(word: &str) -> bool {
    word.chars().next().is_some_and(char::is_uppercase)
}

fn number(count: usize) -> f64 {
    f64::from(u32::try_from(count).unwrap_or(u32::MAX))
}

/// Returns whether a text ends with a year and at most one word after it (`1998 Toyota `).
fn is_behind_year(before: &str) -> bool {
    let mut words = before.rsplit(' ').filter(|word| !word.is_empty()).take(2);
    words.any(|word| {
        let digits = word.strip_prefix(['\'', '’']).unwrap_or(word);
        let is_number = digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number
            && ((digits.len() == 2 && digits != word) || matches!(digits.parse(), Ok(1900..=2099)))
    })
}

/// A mention of a name.
struct Mention {
    start: usize,
    end: usize,
    name: usize,
    /// How much the mention counts, from 0 to 1.
    weight: f64,
}

impl Evidence {
    /// Returns the evidence of a post for a plan with a focus; `None` where no term and no name of the plan occurs.
    #[must_use]
    pub fn weigh(plan: &Plan, post: &PostText) -> Option<Self> {
        let (_, _, any) = decision::gate_features(plan, post)?;
        any.then(|| Self::of(plan, post))
    }

    /// Returns the evidence of the post for the plan with the focus.
    pub(crate) fn of(plan: &Plan, post: &PostText) -> Self {
        let Some(focus) = plan.focus() else {
            return Self::default();
        };
        let (surprise, _) = decision::surprise(plan, post);
        let of_post = post.evidence();
        let mut evidence = of_post.own;
        evidence.surprise = surprise;
        let of_plan = OfPlan {
            plan,
            post,
            of_post,
        };
        of_plan.topic(&mut evidence);
        of_plan.names(focus, &mut evidence);
        if focus == Focus::Sales {
            evidence.lacks_offer = f64::from(u8::from(of_plan.lacks_offer(&evidence)));
        }
        evidence.name_off_topic = if evidence.mentions > 0.0 {
            (1.0 - evidence.name_on_topic) * (1.0 - surprise.min(1.0))
        } else {
            0.0
        };
        if post.title_len() == 0 {
            match focus {
                Focus::Sales => {}
                Focus::Competitor => {
                    evidence.untitled = f64::from(u8::from(evidence.mentions > 0.0))
                }
                Focus::Crisis => return Self::untitled_complaint(&evidence),
            }
        }
        let asks = evidence
            .title_asks
            .max(evidence.title_need)
            .max(0.5 * evidence.title_problem);
        evidence.asked_topic = surprise * asks;
        evidence.needed_topic = surprise * evidence.needs.min(1.0);
        evidence
    }
}

impl Evidence {
    /// Evidence of short posts that address a company: their wording is one of the best signals.
    fn untitled_complaint(&self) -> Self {
        let named = f64::from(u8::from(self.mentions > 0.0));
        Self {
            untitled: 1.0,
            untitled_complaint: named * self.complaining,
            untitled_trouble: named * (self.troubles - 0.15 * self.praise_near_name),
            ..Self::default()
        }
    }
}

struct OfPlan<'a> {
    plan: &'a Plan,
    post: &'a PostText,
    of_post: &'a PostEvidence,
}

impl OfPlan<'_> {
    fn topic(&self, evidence: &mut Evidence) {
        let layout = &self.of_post.layout;
        let mut by_sentence = vec![0.0_f64; layout.sentences.len()];
        let (mut title, mut opening, mut all, mut distinct) = (0.0, 0.0, 0.0, 0.0);
        for term in self.plan.include.iter().filter(|term| term.weight > 0.0) {
            let weight = term.weight.min(MAX_TERM);
            let mut last = None;
            let (mut in_title, mut in_opening, mut any) = (false, false, false);
            self.term_ranges(term, |start| {
                if !self.of_post.counts(start) {
                    return;
                }
                any = true;
                in_title |= start < layout.title_end;
                in_opening |= start < self.of_post.opening_end;
                all += weight;
                let sentence = layout.sentence(start);
                // Occurrences ascend within a reading.
                if last != Some(sentence)
                    && let Some(sum) = by_sentence.get_mut(sentence)
                {
                    *sum += weight;
                }
                last = Some(sentence);
            });
            if any {
                distinct += 1.0;
                evidence.best_term = evidence.best_term.max(weight);
            }
            if in_title {
                title += weight;
            }
            if in_opening {
                opening += weight;
            }
        }
        evidence.title_topic = f64::min(title, 3.0);
        evidence.opening_topic = f64::min(opening, 5.0);
        evidence.terms = f64::ln_1p(distinct);
        evidence.topic_density =
            f64::min(10.0 * all / (number(self.of_post.words.len()) + 20.0), 3.0);
        let near = |class: u32, asks: bool| {
            let sentences = layout.sentences.iter().zip(&self.of_post.classes);
            let best = sentences
                .zip(&by_sentence)
                .filter(|((sentence, classes), _)| {
                    *classes & class != 0 || (asks && sentence.asks)
                });
            best.map(|(_, sum)| sum.min(2.5)).fold(0.0, f64::max)
        };
        evidence.need_near_term = near(Class::Need.bit(), false);
        evidence.problem_near_term = near(Class::Problem.bit(), false);
        evidence.question_near_term = near(0, true);
        let strong = by_sentence.iter().copied().fold(0.0, f64::max) / 2.0;
        let with_term = |at: usize| {
            by_sentence
                .get(at)
                .is_some_and(|sum| *sum > 0.0 && *sum >= strong)
        };
        evidence.buying_near_term = self.head_of(Focus::Sales, with_term);
    }

    fn lacks_offer(&self, evidence: &Evidence) -> bool {
        let knows_offers = matches!(self.plan.rule, Rule::Focus { has_offers, .. } if has_offers);
        if !knows_offers || evidence.title_name > 0.0 {
            return false;
        }
        let layout = &self.of_post.layout;
        let mut by_sentence = vec![0.0_f64; layout.sentences.len()];
        let (mut title, mut text) = (0.0, 0.0);
        for offer in &self.plan.offers {
            let (mut in_title, mut in_text) = (false, false);
            let mut last = None;
            self.term_ranges(offer, |start| {
                if start >= layout.title_end + OFFER_REACH || !self.of_post.counts(start) {
                    return;
                }
                in_text = true;
                in_title |= start < layout.title_end;
                let sentence = layout.sentence(start);
                if last != Some(sentence)
                    && let Some(sum) = by_sentence.get_mut(sentence)
                {
                    *sum += offer.weight;
                }
                last = Some(sentence);
            });
            let weight = |is_there| if is_there { offer.weight } else { 0.0 };
            title += weight(in_title);
            text += weight(in_text);
        }
        let sentences = layout.sentences.iter().zip(&self.of_post.classes);
        let mut asking = sentences
            .zip(&by_sentence)
            .filter(|((sentence, classes), _)| sentence.asks || **classes & Class::Need.bit() != 0);
        let is_asked = title >= MIN_OFFER || asking.any(|(_, sum)| *sum >= MIN_OFFER);
        let is_named = text >= 2.0 * MIN_OFFER || evidence.mentions > 0.0;
        !(is_asked && is_named)
    }

    fn term_ranges(&self, term: &Term, mut found: impl FnMut(usize)) {
        for phrase in term.readings.phrases() {
            self.post.ranges(phrase, |start, _| found(start));
        }
    }

    /// Returns the classifier's answer for the first sentences that `wanted` selects.
    fn head_of(&self, focus: Focus, wanted: impl Fn(usize) -> bool) -> f64 {
        let source = self.post.source();
        let sentences = &self.of_post.layout.sentences;
        let wanted: Vec<&str> = sentences
            .iter()
            .enumerate()
            .filter(|(at, _)| wanted(*at))
            .take(4)
            .map(|(_, sentence)| &source[sentence.range.clone()])
            .collect();
        if wanted.is_empty() {
            return 0.0;
        }
        heads::answers("", &wanted.join(" "))[focus as usize]
    }

    fn names(&self, focus: Focus, evidence: &mut Evidence) {
        let kind = match focus {
            Focus::Sales | Focus::Competitor => NameKind::Watched,
            Focus::Crisis => NameKind::Own,
        };
        if focus != Focus::Crisis {
            let own: f64 = self.mentions(NameKind::Own).iter().map(|m| m.weight).sum();
            evidence.own_name = own.ln_1p();
        }
        let mentions = self.mentions(kind);
        let total: f64 = mentions.iter().map(|mention| mention.weight).sum();
        if total <= 0.0 {
            return;
        }
        let of_post = self.of_post;
        let (layout, source) = (&of_post.layout, self.post.source());
        evidence.mentions = total.ln_1p();
        let words = number(of_post.words.len());
        evidence.name_density = (20.0 * total / (words + 5.0)).min(3.0);
        let counted = || mentions.iter().filter(|mention| mention.weight > 0.0);
        if let Some(first) = counted().next()
            && first.start < layout.title_end
        {
            evidence.title_name = 1.0 - number(first.start) / number(layout.title_end);
        }
        let opening = counted().any(|m| m.start < of_post.opening_end);
        evidence.opening_name = f64::from(u8::from(opening));
        let first = counted().next().map(|mention| mention.name);
        evidence.several_names = f64::from(u8::from(counted().any(|m| Some(m.name) != first)));
        let share = |is: &dyn Fn(&Mention) -> bool| {
            counted().filter(|m| is(m)).map(|m| m.weight).sum::<f64>() / total
        };
        let on_topic = counted()
            .map(|m| m.weight * f64::from(self.plan.names[m.name].on_topic_percent) / 100.0);
        evidence.name_on_topic = on_topic.sum::<f64>() / total;
        evidence.name_is_place = share(&|m| self.is_behind_preposition(m));
        evidence.name_is_doubtful =
            share(&|m| m.weight < 1.0 && layout.zone(m.start).mention() >= 1.0);
        evidence.name_is_part = share(&|m| self.is_part(m, source));
        let acts: f64 = counted()
            .filter(|m| self.acts(m, source))
            .map(|m| m.weight)
            .sum();
        evidence.name_acts = acts.ln_1p();

        let mut sentences: Vec<usize> = counted().map(|m| layout.sentence(m.start)).collect();
        sentences.dedup();
        let near = |class: Class, in_title: bool| {
            let hits = sentences.iter().filter(|&&at| {
                let is_title = layout.sentences[at].range.start < layout.title_end;
                is_title == in_title && of_post.classes[at] & class.bit() != 0
            });
            number(hits.count()).ln_1p()
        };
        let flag = |value: f64| f64::from(u8::from(value > 0.0));
        evidence.title_trouble_name = flag(near(Class::Trouble, true));
        evidence.trouble_near_name = near(Class::Trouble, false);
        evidence.title_compare_name = flag(near(Class::Compare, true));
        evidence.compare_near_name = near(Class::Compare, false);
        evidence.praise_near_name = near(Class::Praise, false) + near(Class::Praise, true);
        evidence.problem_near_name = near(Class::Problem, false) + near(Class::Problem, true);
        let asked = sentences.iter().filter(|&&at| {
            layout.sentences[at].asks || of_post.classes[at] & Class::Need.bit() != 0
        });
        evidence.ask_near_name = number(asked.count()).ln_1p();
        evidence.complaining_near_name = self.head_of(Focus::Crisis, |at| sentences.contains(&at));
        evidence.name_after_year = share(&|m| is_behind_year(&source[..m.start]));
        let counted: Vec<&Mention> = counted().collect();
        self.related(&counted, evidence);
    }

    fn related(&self, mentions: &[&Mention], evidence: &mut Evidence) {
        let title_end = self.of_post.layout.title_end;
        let in_title = mentions.first().is_some_and(|m| m.start < title_end);
        let of_text = mentions.iter().filter(|m| m.start >= title_end);
        let near: Vec<Range<usize>> = of_text
            .take(RELATED_MENTIONS)
            .map(|m| m.start.saturating_sub(RELATED_REACH)..m.end + RELATED_REACH)
            .collect();
        let (mut title, mut close) = (0.0, 0.0);
        for term in &self.plan.related {
            let (mut of_title, mut is_close) = (false, false);
            for phrase in term.readings.phrases() {
                self.post.ranges(phrase, |start, _| {
                    of_title |= start < title_end;
                    is_close |= near.iter().any(|range| range.contains(&start));
                });
            }
            title += f64::from(u8::from(of_title));
            close += f64::from(u8::from(is_close || (in_title && of_title)));
        }
        let title = f64::min(title / 2.0, 1.0);
        evidence.related_near_name = f64::min(close / 2.5, 1.0);
        evidence.title_related_name = if in_title { title } else { 0.0 };
        let mut names: Vec<usize> = mentions.iter().map(|mention| mention.name).collect();
        names.sort_unstable();
        names.dedup();
        let usage = |&name: &usize| f64::from(self.plan.names[name].ordinary_posts).ln_1p() / 3.0;
        let common = names.iter().map(usage).sum::<f64>() / number(names.len().max(1));
        evidence.name_is_common = common * (1.0 - title);
    }

    /// Returns the mentions of the names of a kind, by position; of two that overlap, the longer counts.
    fn mentions(&self, kind: NameKind) -> Vec<Mention> {
        let mut mentions = Vec::new();
        for (at, name) in self.plan.names.iter().enumerate() {
            if name.kind == kind {
                self.add_mentions(at, name, &mut mentions);
            }
        }
        mentions.sort_by(|a: &Mention, b| {
            let key = |m: &Mention| (m.start, usize::MAX - m.end);
            key(a).cmp(&key(b)).then(b.weight.total_cmp(&a.weight))
        });
        let mut end = 0;
        mentions.retain(|mention| {
            let keep = mention.start >= end;
            if keep {
                end = mention.end;
            }
            keep
        });
        mentions
    }

    fn add_mentions(&self, at: usize, name: &Name, mentions: &mut Vec<Mention>) {
        let occurs = |range: &mut dyn FnMut(usize)| {
            for term in &name.context {
                for phrase in term.readings.phrases() {
                    self.post.ranges(phrase, |start, _| range(start));
                }
            }
        };
        // Sentences that contain a word of the subject; a match in the title counts for all.
        let mut near: Vec<usize> = Vec::new();
        let mut in_title = false;
        if !name.context.is_empty() {
            occurs(&mut |start| {
                in_title |= start < self.of_post.layout.title_end;
                near.push(self.of_post.layout.sentence(start));
            });
            if near.is_empty() {
                return;
            }
            near.sort_unstable();
            near.dedup();
        }
        for spelling in &name.spellings {
            for phrase in spelling.readings.phrases() {
                let mut push = |start: usize, end: usize| {
                    let layout = &self.of_post.layout;
                    let close = name.context.is_empty()
                        || in_title
                        || near.binary_search(&layout.sentence(start)).is_ok();
                    mentions.push(Mention {
                        start,
                        end,
                        name: at,
                        weight: layout.zone(start).mention() * if close { 1.0 } else { 0.5 },
                    });
                };
                match &spelling.cased {
                    Some(cased) => self.post.ranges_cased(phrase, cased, &mut push),
                    None => self.post.ranges(phrase, &mut push),
                }
            }
        }
    }

    fn is_behind_preposition(&self, mention: &Mention) -> bool {
        self.word_before(mention).is_some_and(|word| {
            let is_close = word.end <= mention.start && mention.start - word.end <= 5;
            let mut cues = self.cues_from(word.end.saturating_sub(NEGATION_REACH), word.end);
            is_close
                && cues.any(|cue| {
                    cue.class == Class::BeforeName
                        && (cue.start == word.start || cue.end == word.end)
                })
        })
    }

    /// Returns the cues that start in a range of bytes. This is a lookup, so that a post full of names and cues costs
    /// no more for each.
    fn cues_from(&self, start: usize, end: usize) -> impl Iterator<Item = &Cue> {
        let cues = &self.of_post.cues;
        let from = cues.partition_point(|cue| cue.start < start);
        cues[from..].iter().take_while(move |cue| cue.start < end)
    }

    fn word_before(&self, mention: &Mention) -> Option<&Range<usize>> {
        let words = &self.of_post.words;
        let at = words.partition_point(|word| word.start < mention.start);
        at.checked_sub(1).and_then(|at| words.get(at))
    }

    fn word_after(&self, mention: &Mention) -> Option<&Range<usize>> {
        let words = &self.of_post.words;
        words.get(words.partition_point(|word| word.start < mention.end))
    }

    /// Returns whether a capitalised word is right before or after the mention, in a text that is not all capitals.
    fn is_part(&self, mention: &Mention, source: &str) -> bool {
        let in_title = mention.start < self.of_post.layout.title_end;
        if in_title && self.of_post.own.title_case > 0.6 {
            return false;
        }
        let tied = |gap: &str| !gap.is_empty() && gap.chars().all(|c| c == ' ');
        let after = self.word_after(mention).is_some_and(|word| {
            tied(&source[mention.end..word.start.max(mention.end)])
                && is_capitalised(&source[word.clone()])
        });
        let before = self.word_before(mention).is_some_and(|word| {
            let sentence = self.of_post.layout.sentence(word.start);
            let begins = self.of_post.layout.sentences[sentence].range.start;
            let first = source[begins..word.start].trim().is_empty();
            word.end <= mention.start
                && tied(&source[word.end..mention.start])
                && !first
                && is_capitalised(&source[word.clone()])
                && word.len() > 1
        });
        after || before
    }

    /// Returns whether the name is the subject of its sentence: followed by `'s` or by a verb.
    fn acts(&self, mention: &Mention, source: &str) -> bool {
        if ["'s ", "’s ", "' ", "’ "]
            .iter()
            .any(|end| source[mention.end..].starts_with(end))
        {
            return true;
        }
        self.word_after(mention).is_some_and(|word| {
            let mut cues = self.cues_from(word.start, word.start + 1);
            cues.any(|cue| cue.class == Class::AfterName)
        })
    }
}
