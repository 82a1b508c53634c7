//! Evidence in a post for a plan: what it says about the plan's topic and names, and where.
//!
//! Topic and names show which posts may concern a plan. Whether a person would keep the post depends on more: is the
//! name in the title or mentioned in passing, is there a need or a complaint in the same sentence, is it a job
//! advertisement or a guide. Each of these is a number here. [`EVIDENCE`] names them, and a linear layer per focus
//! computes a probability from them.

mod bound;
pub(crate) mod cues;
mod layout;
pub(crate) mod of_post;
pub(crate) mod values;

use std::ops::Range;

use bound::MAX_TERM;
pub(crate) use bound::TopicBound;
use cues::{Class, Cue};
use domain::{Focus, instructions::NameKind};
use of_post::{NEGATION_REACH, PostEvidence, is_capitalised, number};
pub use values::{EVIDENCE, Evidence};

use crate::{
    heads,
    plan::{Name, Plan, Rule, Term},
    post::PostText,
    steps, strength,
};

/// Offers count in the title and in this many bytes after it.
const OFFER_REACH: usize = 2_000;
/// Minimum weight of the offers that a request names.
const MIN_OFFER: f64 = 0.4;
/// Related words count within this many bytes of a mention.
const RELATED_REACH: usize = 60;
/// Number of mentions in the text around which related words are searched for.
const RELATED_MENTIONS: usize = 4;
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
    pub fn weigh(plan: &Plan, post: &PostText) -> Option<Self> {
        let (evidence, _) = steps::within(steps::OF_PLAN, || {
            let (_, _, any) = strength::gate_features(plan, post)?;
            any.then(|| Self::of(plan, post))
        });
        evidence
    }

    /// Returns the evidence of the post for the plan with the focus.
    pub(crate) fn of(plan: &Plan, post: &PostText) -> Self {
        let Some(focus) = plan.focus() else {
            return Self::default();
        };
        let (surprise, _) = strength::surprise(plan, post);
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
        evidence.name_is_platform = share(&|m| self.is_platform(m));
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
        evidence.complaining_near_name =
            self.head_of(Focus::Crisis, |at| sentences.binary_search(&at).is_ok());
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
                        weight: layout.mention(self.post.source(), start, end)
                            * if close { 1.0 } else { 0.5 },
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

    /// Returns whether something else is made for what the mention names.
    fn is_platform(&self, mention: &Mention) -> bool {
        let is_after = self.word_after(mention).is_some_and(|word| {
            let mut cues = self.cues_from(word.start, word.start + 1);
            word.start <= mention.end + 1 && cues.any(|cue| cue.class == Class::Accessory)
        });
        is_after
            || self.word_before(mention).is_some_and(|word| {
                let is_close = word.end <= mention.start && mention.start - word.end <= 5;
                let mut cues = self.cues_from(word.end.saturating_sub(NEGATION_REACH), word.end);
                is_close && cues.any(|cue| cue.class == Class::ForName && cue.end == word.end)
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
