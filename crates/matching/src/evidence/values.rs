//! The numbers that a decision with a focus is based on.

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
    /// Share of mentions that something else is made for (`a case for the iPad`, `iPad case`).
    name_is_platform,
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
