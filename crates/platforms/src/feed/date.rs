//! Reads dates as feeds write them.
//!
//! RSS asks for RFC 822, Atom and JSON Feed for RFC 3339. Feeds also leave out the comma, the weekday, the zone or the
//! time, name the zone, write months in their own language, or follow ISO 8601, `asctime` or no rule at all. A date
//! without a zone is taken as UTC. What can be read in two ways is not read.

use chrono::{NaiveDate, NaiveDateTime, NaiveTime, TimeDelta, Weekday};
use domain::Timestamp;

/// The longest text that can be a date.
const MAX_BYTES: usize = 120;
/// No date has more words.
const MAX_WORDS: usize = 12;
/// No zone is further from UTC.
const MAX_OFFSET_MINUTES: i32 = 15 * 60;

/// The time that `text` names.
pub(super) fn date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    if text.is_empty() || text.len() > MAX_BYTES {
        return None;
    }
    let text = text.to_lowercase();
    // Comments, and names of zones after an offset.
    let text = text.split(['(', '[']).next().unwrap_or_default();
    let text = normalised(text);
    let parts = compact(text.trim()).or_else(|| words(&text))?;
    parts.time()
}

/// A date as it was found, part by part.
#[derive(Debug, Default, Clone, Copy)]
struct Parts {
    date: Option<NaiveDate>,
    day: Option<u32>,
    month: Option<u32>,
    year: Option<i32>,
    time: Option<Clock>,
    afternoon: Option<bool>,
    offset_minutes: Option<i32>,
}

#[derive(Debug, Clone, Copy)]
struct Clock {
    hour: u32,
    minute: u32,
    second: u32,
    micros: u32,
}

impl Parts {
    fn time(self) -> Option<Timestamp> {
        let of_parts = || NaiveDate::from_ymd_opt(self.year?, self.month?, self.day?);
        let mut date = self.date.or_else(of_parts)?;
        let mut clock = self.time.unwrap_or(Clock {
            hour: 0,
            minute: 0,
            second: 0,
            micros: 0,
        });
        match self.afternoon {
            Some(true) if clock.hour < 12 => clock.hour += 12,
            Some(false) if clock.hour == 12 => clock.hour = 0,
            _ => {}
        }
        if clock.hour == 24 {
            date = date.succ_opt()?;
            clock.hour = 0;
        }
        // A leap second.
        let second = clock.second.min(59);
        let time = NaiveTime::from_hms_micro_opt(clock.hour, clock.minute, second, clock.micros)?;
        let offset = TimeDelta::minutes(self.offset_minutes.unwrap_or(0).into());
        let utc = NaiveDateTime::new(date, time).checked_sub_signed(offset)?;
        Timestamp::from_micros(utc.and_utc().timestamp_micros())
    }
}

/// Halves of the day become `am` and `pm`; years, months and days that are marked by ideographs or Hangul become
/// separated by dashes.
fn normalised(text: &str) -> String {
    const MARKS: [char; 5] = ['年', '月', '년', '월', '.'];
    const HALVES: [(&str, &str); 9] = [
        ("下午", " pm "),
        ("午後", " pm "),
        ("오후", " pm "),
        ("p. m.", " pm "),
        ("上午", " am "),
        ("午前", " am "),
        ("오전", " am "),
        ("a. m.", " am "),
        (" at ", " "),
    ];
    let mut text = text.to_owned();
    for (half, english) in HALVES {
        if text.contains(half) {
            text = text.replace(half, english);
        }
    }
    if !text.contains(['年', '년']) {
        return text;
    }
    let mut out = String::new();
    let mut skips = false;
    for c in text.chars() {
        match c {
            _ if MARKS.contains(&c) => {
                out.push('-');
                skips = true;
            }
            '日' | '일' | '分' | '분' => out.push(' '),
            '时' | '時' | '시' => out.push(':'),
            ' ' if skips => {}
            _ => {
                skips = false;
                out.push(c);
            }
        }
    }
    out
}

/// A date that begins with digits and holds its parts without spaces (ISO 8601 and its relatives).
fn compact(text: &str) -> Option<Parts> {
    let (date, rest) = match text.find(['t', ' ', '_']) {
        Some(end) => (&text[..end], text[end + 1..].trim_start()),
        None => (text.trim_end_matches('z'), ""),
    };
    let mut parts = Parts {
        date: Some(digits(date).or_else(|| separated(date))?),
        ..Parts::default()
    };
    for word in rest
        .split([' ', ','])
        .filter(|word| !matches!(*word, "" | "-"))
    {
        let (clock, zone) = match compact_clock(word) {
            Some((clock, zone)) if parts.time.is_none() => (Some(clock), zone),
            _ => (None, word),
        };
        parts.time = parts.time.or(clock);
        if !zone.is_empty() && !parts.take_time(zone) {
            return None;
        }
    }
    (rest.is_empty() || parts.time.is_some()).then_some(parts)
}

/// A date of digits alone: `20031231`, `031231`, `2003335`, `03335`, `2003`, `-0312`.
fn digits(text: &str) -> Option<NaiveDate> {
    let number = |range: std::ops::Range<usize>| text.get(range)?.parse::<u32>().ok();
    if let Some(short) = text
        .strip_prefix('-')
        .filter(|short| is_number(short) && short.len() == 4)
    {
        let (year, month) = (short[..2].parse().ok()?, short[2..].parse().ok()?);
        return NaiveDate::from_ymd_opt(full_year(year), month, 1);
    }
    if !is_number(text) {
        return None;
    }
    let year = |length| text.get(..length)?.parse::<i32>().ok();
    match text.len() {
        4 => NaiveDate::from_ymd_opt(year(4)?, 1, 1),
        5 => NaiveDate::from_yo_opt(full_year(year(2)?), number(2..5)?),
        6 => NaiveDate::from_ymd_opt(full_year(year(2)?), number(2..4)?, number(4..6)?),
        7 => NaiveDate::from_yo_opt(year(4)?, number(4..7)?),
        8 => NaiveDate::from_ymd_opt(year(4)?, number(4..6)?, number(6..8)?),
        _ => None,
    }
}

/// A date whose parts are separated: `2003-12-31`, `2003/12`, `31.12.2003`, `31-Dec-2003`, `2003-w52-7`, `2003-335`.
fn separated(text: &str) -> Option<NaiveDate> {
    let parts: Vec<&str> = text
        .trim_end_matches(['.', ','])
        .split(['-', '/', '.'])
        .collect();
    let is_year = |text: &str| text.len() == 4 && is_number(text);
    let short = |text: &str| text.parse::<u32>().ok().filter(|_| text.len() <= 2);
    match parts[..] {
        [year, week, ref day @ ..] if is_year(year) && week.starts_with('w') && day.len() <= 1 => {
            let day = day.first().map_or(Some(1), |day| short(day))?;
            let weekday = Weekday::try_from(u8::try_from(day.checked_sub(1)?).ok()?).ok()?;
            NaiveDate::from_isoywd_opt(year.parse().ok()?, week[1..].parse().ok()?, weekday)
        }
        [year, day] if is_year(year) && day.len() == 3 && is_number(day) => {
            NaiveDate::from_yo_opt(year.parse().ok()?, day.parse().ok()?)
        }
        [year, month] if is_year(year) => {
            NaiveDate::from_ymd_opt(year.parse().ok()?, short(month)?, 1)
        }
        [year, month, day] if is_year(year) => {
            let month = short(month).or_else(|| month_of(month))?;
            NaiveDate::from_ymd_opt(year.parse().ok()?, month, short(day)?)
        }
        [day, month, year] if is_number(year) && matches!(year.len(), 2 | 4) => {
            // `26-04-21` may begin with its year.
            if year.len() == 2 && !text.contains('.') && month_of(month).is_none() {
                return None;
            }
            let year = full_year(year.parse().ok()?);
            let day = short(day)?;
            match (month_of(month), short(month)) {
                (Some(month), _) => NaiveDate::from_ymd_opt(year, month, day),
                (None, Some(month)) if text.contains('.') => {
                    NaiveDate::from_ymd_opt(year, month, day)
                }
                // `4/21/2021` is American, `21/4/2021` is not, and `4/5/2021` may be either.
                (None, Some(month)) if day > 12 || day == month => {
                    NaiveDate::from_ymd_opt(year, month, day)
                }
                (None, Some(month)) if month > 12 => NaiveDate::from_ymd_opt(year, day, month),
                _ => None,
            }
        }
        _ => None,
    }
}

/// A date in words: RFC 822, `asctime`, and others in which each part can be told by itself.
fn words(text: &str) -> Option<Parts> {
    let mut parts = Parts::default();
    let words = text.split(|c: char| c.is_whitespace() || matches!(c, ',' | ';'));
    let words = words.filter(|word| !word.is_empty());
    for (number, word) in words.enumerate() {
        // What has digits and is not understood may be the date or the time.
        let is_understood = parts.take(word) || !word.contains(|c: char| c.is_ascii_digit());
        if !is_understood || number == MAX_WORDS {
            return None;
        }
    }
    let is_whole = parts.date.is_some() || parts.day.and(parts.month).and(parts.year).is_some();
    is_whole.then_some(parts)
}

impl Parts {
    /// Takes any part of a date. Returns false for any other word.
    fn take(&mut self, word: &str) -> bool {
        if self.take_time(word) {
            return true;
        }
        if self.date.is_none()
            && let Some(date) = separated(word).or_else(|| digits(word).filter(|_| word.len() == 8))
        {
            self.date = Some(date);
            return true;
        }
        let ordinal = word.trim_end_matches(['.', ':']);
        let ordinal = ["st", "nd", "rd", "th", "º"]
            .iter()
            .find_map(|end| ordinal.strip_suffix(end))
            .unwrap_or(ordinal);
        if is_number(ordinal) {
            match (ordinal.len(), ordinal.parse::<i32>()) {
                (1 | 2, Ok(number)) if self.day.is_none() => self.day = u32::try_from(number).ok(),
                (2, Ok(number)) if self.year.is_none() => self.year = Some(full_year(number)),
                (4, Ok(number)) if self.year.is_none() => self.year = Some(number),
                _ => return false,
            }
            return true;
        }
        let Some(month) = month_of(word) else {
            return false;
        };
        // Of two, as in `mar. 21 avr. 2021`, the first is a weekday, if it may be one.
        if self.month.is_none_or(|month| month == MARCH) {
            self.month = Some(month);
        }
        true
    }

    /// Takes a time of day, a half of the day or a zone. Returns false if the word is none of them.
    fn take_time(&mut self, word: &str) -> bool {
        if let Some((clock, rest)) = clock(word) {
            self.time = self.time.or(Some(clock));
            if !rest.is_empty() {
                self.take_time(rest);
            }
            return true;
        }
        match word.trim_end_matches('.') {
            "am" | "a.m" => self.afternoon = Some(false),
            "pm" | "p.m" => self.afternoon = Some(true),
            // Words of other languages, unless they follow a time.
            "et" | "ct" | "mt" | "pt" if self.time.is_none() => {}
            word => match (offset(word), named_offset(word)) {
                // An offset is clearer than a name.
                (Some(offset), None) => self.offset_minutes = Some(offset),
                (Some(offset), Some(_)) => {
                    self.offset_minutes = self.offset_minutes.or(Some(offset));
                }
                (None, _) => return false,
            },
        }
        true
    }
}

/// The time of day at the beginning of `word`, and what follows it.
fn clock(word: &str) -> Option<(Clock, &str)> {
    let (hour, rest) = leading_number(word)?;
    let has_minute = |rest: &&str| rest.starts_with(|c: char| c.is_ascii_digit());
    let after_hour = rest.strip_prefix(':');
    let after_hour = after_hour.or_else(|| rest.strip_prefix('h').filter(has_minute));
    let Some(rest) = after_hour else {
        // `3pm`, `T10Z`
        let is_half = matches!(rest.trim_end_matches('.'), "am" | "pm" | "a.m" | "p.m");
        let clock = Clock {
            hour,
            minute: 0,
            second: 0,
            micros: 0,
        };
        return (is_half && hour <= 12).then_some((clock, rest));
    };
    let (minute, rest) = leading_number(rest)?;
    let (second, rest) = match rest.strip_prefix(':') {
        Some(rest) => leading_number(rest)?,
        None => (0, rest),
    };
    let (micros, rest) = match rest.strip_prefix(['.', ',']) {
        Some(rest) => {
            let length = rest.bytes().take_while(u8::is_ascii_digit).count();
            let digits = format!("{:0<6}", &rest[..length.min(6)]);
            (digits.parse().ok()?, &rest[length..])
        }
        None => (0, rest),
    };
    let is_valid = hour <= 24 && minute < 60 && second <= 60;
    is_valid.then_some((
        Clock {
            hour,
            minute,
            second,
            micros,
        },
        rest,
    ))
}

/// The time of day in digits alone: `1631`, `163100`.
fn compact_clock(word: &str) -> Option<(Clock, &str)> {
    let length = word.bytes().take_while(u8::is_ascii_digit).count();
    let (digits, rest) = word.split_at(length);
    let number = |at: usize| digits.get(at..at + 2)?.parse().ok();
    let clock = Clock {
        hour: number(0)?,
        minute: number(2)?,
        second: number(4).unwrap_or(0),
        micros: 0,
    };
    (matches!(length, 4 | 6) && !rest.starts_with(':')).then_some((clock, rest))
}

fn leading_number(text: &str) -> Option<(u32, &str)> {
    let length = text.bytes().take_while(u8::is_ascii_digit).count();
    let number = text[..length].parse().ok().filter(|_| length <= 2)?;
    Some((number, &text[length..]))
}

/// Minutes east of UTC.
fn offset(word: &str) -> Option<i32> {
    let word = word.strip_prefix("etc/").unwrap_or(word);
    if let Some(minutes) = named_offset(word) {
        return Some(minutes);
    }
    let word = ["gmt", "utc", "ut", "z"]
        .iter()
        .find_map(|name| word.strip_prefix(name))
        .unwrap_or(word);
    let (sign, digits) = match word.split_at_checked(1)? {
        ("+", digits) => (1, digits),
        ("-" | "−", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match digits.split_once(':') {
        Some((hours, minutes)) => (hours, minutes),
        None if digits.len() > 2 => digits.split_at_checked(digits.len() - 2)?,
        None => (digits, "0"),
    };
    let number = |text: &str| {
        text.parse::<i32>()
            .ok()
            .filter(|_| text.len() <= 2 && is_number(text))
    };
    let (hours, minutes) = (number(hours)?, number(minutes)?);
    let total = hours * 60 + minutes;
    (minutes < 60 && total <= MAX_OFFSET_MINUTES).then_some(sign * total)
}

fn named_offset(name: &str) -> Option<i32> {
    let hours = match name {
        "z" | "ut" | "utc" | "gmt" | "wet" => 0,
        "west" | "bst" | "cet" | "met" | "mez" => 1,
        "cest" | "mest" | "mesz" | "eet" | "sast" | "cat" => 2,
        "eest" | "msk" | "eat" | "trt" => 3,
        "gst" => 4,
        "pkt" => 5,
        "ist" => return Some(5 * 60 + 30),
        "wib" | "ict" => 7,
        "hkt" | "sgt" | "awst" | "pht" => 8,
        "jst" | "kst" => 9,
        "acst" => return Some(9 * 60 + 30),
        "acdt" => return Some(10 * 60 + 30),
        "aest" => 10,
        "aedt" => 11,
        "nzst" => 12,
        "nzdt" => 13,
        "brt" | "art" | "adt" => -3,
        "ast" | "edt" => -4,
        "est" | "et" | "cdt" => -5,
        "cst" | "ct" | "mdt" => -6,
        "mst" | "mt" | "pdt" => -7,
        "pst" | "pt" | "akdt" => -8,
        "akst" => -9,
        "hst" => -10,
        "nst" => return Some(-(3 * 60 + 30)),
        "ndt" => return Some(-(2 * 60 + 30)),
        _ => return None,
    };
    Some(hours * 60)
}

/// RFC 2822, section 4.3.
fn full_year(year: i32) -> i32 {
    match year {
        0..=49 => 2_000 + year,
        50..=99 => 1_900 + year,
        _ => year,
    }
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

const MARCH: u32 = 3;

/// The month whose name `word` is, or begins with.
fn month_of(word: &str) -> Option<u32> {
    // English, German, French, Spanish, Italian, Portuguese, Dutch, Hungarian, Polish; Russian; Greek.
    const MONTHS: [&[&str]; 12] = [
        &["jan", "ene", "gen", "sty", "янв", "ιαν"],
        &["feb", "fév", "fev", "lut", "фев", "φεβ"],
        &[
            "mar", "mär", "mrz", "már", "maa", "mrt", "мар", "μάρ", "μαρ",
        ],
        &["apr", "avr", "abr", "ápr", "kwi", "апр", "απρ"],
        &[
            "may", "mai", "maj", "mei", "mag", "máj", "мая", "май", "μάι", "μαι", "μάϊ", "μαϊ",
        ],
        &[
            "jun", "juin", "giu", "jún", "cze", "июн", "ιούν", "ιουν", "ιον",
        ],
        &[
            "jul", "juil", "lug", "júl", "lip", "июл", "ιούλ", "ιουλ", "ιολ",
        ],
        &["aug", "aoû", "aou", "ago", "sie", "авг", "αύγ", "αυγ"],
        &["sep", "sze", "set", "wrz", "сен", "σεπ"],
        &["oct", "okt", "out", "ott", "paź", "окт", "οκτ"],
        &["nov", "lis", "ноя", "νοέ", "νοε"],
        &["dec", "déc", "dez", "dic", "gru", "дек", "δεκ"],
    ];
    let found = MONTHS
        .iter()
        .position(|names| names.iter().any(|name| word.starts_with(name)))?;
    u32::try_from(found + 1).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let found = date(text).map(|time| time.to_string());
        let found = found.unwrap_or_default().replace(".000000", "");
        assert_eq!(found, expected, "{text}");
    }

    #[test]
    fn dates_of_standards_are_read() {
        for text in [
            "Sun, 11 Jul 2004 16:31:00 +0000",
            "11 Jul 2004 16:31 GMT",
            "Sun, 11 Jul 04 11:31:00 EST",
            "2004-07-11T16:31:00Z",
            "2004-07-11T18:31:00+02:00",
            "20040711T163100Z",
            "2004-193T16:31Z",
            "2004-W28-7T16:31Z",
        ] {
            check(text, "2004-07-11T16:31:00Z");
        }
        check("2004-07-11", "2004-07-11T00:00:00Z");
        check("2004-07", "2004-07-01T00:00:00Z");
        check("2004", "2004-01-01T00:00:00Z");
        check("2004-07-11T16:31:00.25Z", "2004-07-11T16:31:00.250000Z");
        check("Sat, 31 Dec 2016 23:59:60 GMT", "2016-12-31T23:59:59Z");
        check("2004-07-11T24:00:00Z", "2004-07-12T00:00:00Z");
    }

    #[test]
    fn dates_of_no_standard_are_read() {
        for text in [
            "Sun Jul 11 16:31:00 2004",
            "Sun Jul 11 16:31:00 +0000 2004",
            "Sun Jul 11 2004 18:31:00 +0200",
            "2004-07-11 16:31:00",
            "2004-07-11 16:11:00 -00:20",
            "2004/07/11 16:31:00.0",
            "Sun, 11 July 2004 12:31:00 EDT",
            "Sunday 11th July, 2004 4:31 pm",
            "July 11, 2004 4:31PM UTC",
            "11.07.2004 - 16:31",
            "11-Jul-2004 16:31:00",
            "Sun, 11 Jul 2004 16:31:00 GMT+0:00 (Greenwich)",
            "So, 11. Juli 2004 18:31 MESZ",
            "dim. 11 juil. 2004 16:31",
            "вс, 11 июля 2004 19:31:00 MSK",
            "Κυρ, 11 Ιούλ 2004 11:31:00 EST",
            "2004년 07월 11일 오후 04:31",
            "2004年7月11日 16:31",
            "2004-július-11T16:31Z",
            "Sun, 11 Jul 2004 22:01:00+5:30",
            "7/11/2004 16:31",
            "July 11, 2004 at 4:31 pm UTC",
            "Pt, 11 lip 2004 18:31 +0200",
            "11 jul 2004 4:31 p. m.",
            "11 juillet 2004 16h31",
            "2004/7/11 下午4:31",
            "2004年7月11日 16时31分",
            "2004 Jul 11 16:31:00",
            "2004-07-11T18:31:00+02:00[Europe/Berlin]",
            "2004. július 11. szerda 16:31",
            "Sun Jul 11 2004 23:31:00 GMT+0700 (Novosibirsk Standard Time)",
        ] {
            let expected = if text == "7/11/2004 16:31" {
                ""
            } else {
                "2004-07-11T16:31:00Z"
            };
            check(text, expected);
        }
        check("7/21/2004 16:31", "2004-07-21T16:31:00Z");
        check("21/7/2004", "2004-07-21T00:00:00Z");
    }

    #[test]
    fn what_is_no_date_is_not_read() {
        for text in [
            "",
            "yesterday",
            "11 Jul",
            "16:31",
            "99999999",
            "2004-13-45",
            "Jul 2004",
            "(",
            "11 Jul 2004 99:99:99x",
            "11 Jul 2004 16.31",
            "04-07-11 16:31",
            "Mon, 05 Jul 2004 10:00:00 +200000000000",
        ] {
            check(text, "");
        }
        check(&"1 ".repeat(100), "");
    }
}
