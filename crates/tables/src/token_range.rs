//! Ranges of tokens, by which partitions are sorted.

use std::fmt;
use std::ops::RangeInclusive;
use std::str::FromStr;

use marquetry_base::{Error, Result};

/// Tokens of partitions: those after a start, up to an end; from the greatest on to the least where the end comes first, as
/// in a ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TokenRange {
    /// The last token before the range. `None`: it begins with the least.
    pub after: Option<i64>,
    /// The last token of the range. `None`: it ends with the greatest.
    pub end: Option<i64>,
}

impl TokenRange {
    /// Whether a token is in the range.
    pub fn contains(self, token: i64) -> bool {
        let is_after = self.after.is_none_or(|after| token > after);
        let is_before = self.end.is_none_or(|end| token <= end);
        if self.wraps() { is_after || is_before } else { is_after && is_before }
    }

    /// Whether all tokens of the range are in another.
    ///
    /// ```
    /// use marquetry_tables::TokenRange;
    ///
    /// let [one, other]: [TokenRange; 2] = ["0:100".parse()?, "50:200".parse()?];
    /// assert!(!other.is_within(one) && !one.is_within(other));
    /// assert!("50:100".parse::<TokenRange>()?.is_within(one));
    /// # Ok::<(), marquetry_base::Error>(())
    /// ```
    pub fn is_within(self, other: TokenRange) -> bool {
        TokenRange::without(&self.ranges(), &other.ranges()).is_empty()
    }

    /// The same as ranges that do not wrap, in the order of partitions.
    pub fn ranges(self) -> Vec<RangeInclusive<i64>> {
        let after = self.after.map_or(Some(i64::MIN), |after| after.checked_add(1));
        let start = after.map(|start| start..=i64::MAX);
        let end = i64::MIN..=self.end.unwrap_or(i64::MAX);
        match start {
            Some(start) if self.wraps() => vec![end, start],
            Some(start) => vec![*start.start()..=*end.end()],
            None if self.wraps() => vec![end],
            None => Vec::new(),
        }
    }

    /// These ranges without others, of which each ascends and all are in order; so does, and is, what is left.
    ///
    /// ```
    /// use marquetry_tables::TokenRange;
    ///
    /// assert_eq!(TokenRange::without(&[0..=9, 20..=29], &[5..=22]), [0..=4, 23..=29]);
    /// ```
    pub fn without(
        ranges: &[RangeInclusive<i64>],
        others: &[RangeInclusive<i64>],
    ) -> Vec<RangeInclusive<i64>> {
        let mut left = Vec::new();
        for range in ranges {
            let mut start = Some(*range.start());
            for other in others {
                let Some(first) = start else { break };
                if other.end() < &first || other.start() > range.end() {
                    continue;
                }
                if let Some(before) = other.start().checked_sub(1).filter(|before| *before >= first) {
                    left.push(first..=before);
                }
                start = other.end().checked_add(1);
            }
            left.extend(start.filter(|start| start <= range.end()).map(|start| start..=*range.end()));
        }
        left
    }

    /// It goes on with the least token after the greatest.
    fn wraps(self) -> bool {
        matches!((self.after, self.end), (Some(after), Some(end)) if end <= after)
    }
}

/// The form that is parsed.
impl fmt::Display for TokenRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown = |token: Option<i64>| token.map_or_else(String::new, |token| token.to_string());
        write!(f, "{}:{}", shown(self.after), shown(self.end))
    }
}

/// `A:B`, as in `WHERE token(k) > A AND token(k) <= B`; either may be missing.
impl FromStr for TokenRange {
    type Err = Error;

    fn from_str(text: &str) -> Result<TokenRange> {
        let wrong = || {
            let what = format!("'{text}' is not two tokens, such as -100:100, 0: or :0");
            Error::option("token_range", what)
        };
        let (after, end) = text.split_once(':').ok_or_else(wrong)?;
        let token = |text: &str| match text.trim() {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| wrong()),
        };
        Ok(TokenRange { after: token(after)?, end: token(end)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_of_ranges() {
        let all = [i64::MIN..=i64::MAX];
        assert_eq!(TokenRange::without(&all, &[]), all);
        assert_eq!(TokenRange::without(&all, &all), []);
        assert_eq!(TokenRange::without(&all, &[i64::MIN..=-1]), [0..=i64::MAX]);
        assert_eq!(TokenRange::without(&all, &[0..=i64::MAX]), [i64::MIN..=-1]);
        let some = [-5..=5, 10..=10, 20..=30];
        assert_eq!(TokenRange::without(&some, &[-9..=-6, 6..=9, 31..=40]), some);
        assert_eq!(TokenRange::without(&some, &[-5..=-5, 5..=5, 9..=11]), [-4..=4, 20..=30]);
        assert_eq!(
            TokenRange::without(&some, &[0..=1, 3..=3, 25..=26]),
            [-5..=-1, 2..=2, 4..=5, 10..=10, 20..=24, 27..=30]
        );
    }

    #[test]
    fn ranges_are_within_others() {
        let is_within = |one: &str, other: &str| -> bool {
            one.parse::<TokenRange>().unwrap().is_within(other.parse().unwrap())
        };
        for all in [":", "-5:5", "5:-5", "9223372036854775807:"] {
            assert!(is_within(all, ":") && is_within(all, all), "{all}");
        }
        assert!(is_within("0:5", "-5:5") && is_within("-5:5", "-5:9"));
        assert!(!is_within("-6:5", "-5:5") && !is_within("-5:6", "-5:5") && !is_within(":", "-5:5"));
        // Around the ring.
        assert!(is_within("7:9", "5:-5") && is_within("7:-9", "5:-5") && is_within(":-9", "5:-5"));
        assert!(!is_within("-9:9", "5:-5") && !is_within("5:-5", "5:"));
    }

    #[test]
    fn ranges_of_tokens() {
        let range = |text: &str| text.parse::<TokenRange>().unwrap();
        let tokens = |text: &str| [-9, -5, 0, 5, 9].map(|token| range(text).contains(token));
        assert_eq!(tokens("-5:5"), [false, false, true, true, false]);
        assert_eq!(tokens("0:"), [false, false, false, true, true]);
        assert_eq!(tokens(" : -5"), [true, true, false, false, false]);
        assert_eq!(tokens(":"), [true; 5]);
        assert_eq!([":", "-5:5", "0:"].map(|text| range(text).to_string()), [":", "-5:5", "0:"]);
        // Around the ring.
        assert_eq!(tokens("5:-5"), [true, true, false, false, true]);
        let all = |text: &str| range(text).ranges();
        assert_eq!(all("-5:5"), [-4..=5]);
        assert_eq!(all("5:-5"), [i64::MIN..=-5, 6..=i64::MAX]);
        assert_eq!(all(":"), [i64::MIN..=i64::MAX]);
        assert_eq!(all("9223372036854775807:"), []);
        assert_eq!(all("9223372036854775807:-5"), [i64::MIN..=-5]);
        for wrong in ["", "5", "a:b", "1:2:3", "1.5:2", "9223372036854775808:"] {
            assert!(wrong.parse::<TokenRange>().is_err(), "{wrong}");
        }
    }
}
