//! Evidence that can only raise the score of a post, and evidence that can only lower it.
//!
//! A few hundred labels are not enough to learn that a job advertisement is not a lead. With fixed signs, the other
//! weights generalise better to unseen customers.

use domain::Focus;
use matching::EVIDENCE;

/// Evidence for a post, by `Focus as usize`.
const FOR: [&str; 3] = [
    "surprise title_topic opening_topic terms topic_density best_term need_near_term problem_near_term \
    question_near_term title_asks title_need title_problem needs problems buying buying_near_term \
    asked_topic needed_topic ask_near_name compare_near_name first_person several_names name_on_topic",
    "surprise title_topic opening_topic topic_density mentions title_name opening_name name_density \
    several_names name_acts related_near_name title_related_name title_compare_name compare_near_name ask_near_name praise_near_name \
    problem_near_name trouble_near_name title_trouble_name name_on_topic own_name",
    "surprise title_topic mentions title_name opening_name name_density name_acts title_trouble_name \
    trouble_near_name problem_near_name complaining complaining_near_name troubles title_trouble \
    name_on_topic ask_near_name title_problem first_person related_near_name title_related_name",
];
/// Evidence against a post, by `Focus as usize`.
const AGAINST: [&str; 3] = [
    "title_hiring title_offer title_show title_guide title_news title_joke title_deal title_praise solved \
    headline tag name_is_doubtful name_off_topic name_is_place name_is_part title_trouble_name \
    trouble_near_name offers title_case name_is_common name_after_year name_is_platform",
    "name_is_doubtful name_off_topic name_is_place name_is_part tag title_joke title_show title_hiring \
    title_deal title_offer offers solved name_is_common name_after_year name_is_platform",
    "name_is_doubtful name_off_topic name_is_place name_is_part tag title_joke title_show title_hiring \
    title_deal title_offer title_praise title_guide offers solved title_case name_is_common name_after_year",
];

/// Weight that is set by hand, see `layers`.
const NOT_LEARNED: &str = "lacks_offer";

/// Returns the lowest and highest weight of each number of [`EVIDENCE`].
pub(crate) fn bounds(focus: Focus) -> [(f64, f64); EVIDENCE.len()] {
    let is_in = |list: &str, name: &str| list.split_whitespace().any(|known| known == name);
    std::array::from_fn(|at| {
        let name = EVIDENCE[at];
        if is_in(NOT_LEARNED, name) {
            return (0.0, 0.0);
        }
        let low = if is_in(FOR[focus as usize], name) {
            0.0
        } else {
            f64::NEG_INFINITY
        };
        let high = if is_in(AGAINST[focus as usize], name) {
            0.0
        } else {
            f64::INFINITY
        };
        (low, high)
    })
}
