//! Patterns of names.
//!
//! The crate `globset` would do, but brings four more, regular expressions among them, which took two thirds as long to compile as this crate: it is made for very many patterns at once.

use std::ffi::OsStr;
use std::iter::Peekable;
use std::mem;
use std::path::is_separator;
use std::str::Chars;

/// Braces within braces, at most: each is a call of the parser within another.
const DEPTH_MAX: usize = 8;

/// A pattern that names are matched with, each as a whole: `*`, `?`, `[a-z]`, `[!a-z]`, `{a,b}`; a backslash takes what follows it literally, where it does
/// not separate names.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    steps: Vec<Step>,
}

#[derive(Clone, Debug)]
enum Step {
    /// One character of these.
    One(Class),
    /// Any characters, and none.
    Many,
    /// One of the alternatives, which begin at these steps.
    Either(Vec<usize>),
    /// The end of an alternative: it goes on there.
    GoTo(usize),
}

/// Characters from the first of a pair to the last, or all others.
#[derive(Clone, Debug)]
struct Class {
    ranges: Vec<(char, char)>,
    is_negated: bool,
}

impl Class {
    fn has(&self, character: char) -> bool {
        let is_in = |&(first, last): &(char, char)| (first..=last).contains(&character);
        self.ranges.iter().any(is_in) != self.is_negated
    }
}

impl Glob {
    /// The pattern as it is spelled.
    ///
    /// # Errors
    ///
    /// Why it is none.
    pub(crate) fn new(pattern: &str) -> Result<Glob, String> {
        let mut parser = Parser { rest: pattern.chars().peekable(), steps: Vec::new() };
        parser.sequence(0)?;
        Ok(Glob { steps: parser.steps })
    }

    /// Whether the pattern matches all of a name. What is no text in it is matched by `*` and `?`.
    pub(crate) fn is_match(&self, name: impl AsRef<OsStr>) -> bool {
        // All steps that may be next, and the end, at once: so no pattern takes longer than its length times the name's.
        let (mut now, mut next) = (vec![false; self.steps.len() + 1], vec![false; self.steps.len() + 1]);
        let mut open = Vec::new();
        self.reach(0, &mut now, &mut open);
        for character in name.as_ref().to_string_lossy().chars() {
            next.fill(false);
            for (at, step) in self.steps.iter().enumerate() {
                match step {
                    _ if !now[at] => {}
                    Step::One(class) if class.has(character) => self.reach(at + 1, &mut next, &mut open),
                    Step::Many => self.reach(at, &mut next, &mut open),
                    _ => {}
                }
            }
            mem::swap(&mut now, &mut next);
        }
        now[self.steps.len()]
    }

    /// Marks a step, and those that are reached from it without a character. `open` is empty before and after.
    fn reach(&self, step: usize, marked: &mut [bool], open: &mut Vec<usize>) {
        open.push(step);
        while let Some(at) = open.pop() {
            if mem::replace(&mut marked[at], true) {
                continue;
            }
            match self.steps.get(at) {
                Some(Step::Many) => open.push(at + 1),
                Some(Step::Either(starts)) => open.extend(starts),
                Some(Step::GoTo(to)) => open.push(*to),
                Some(Step::One(_)) | None => {}
            }
        }
    }
}

struct Parser<'a> {
    rest: Peekable<Chars<'a>>,
    steps: Vec<Step>,
}

impl Parser<'_> {
    /// Parses up to the end, or that of an alternative, and returns what that ended with: a comma or a brace.
    fn sequence(&mut self, depth: usize) -> Result<Option<char>, String> {
        while let Some(character) = self.rest.next() {
            match character {
                '*' => self.steps.push(Step::Many),
                '?' => self.steps.push(Step::One(Class { ranges: Vec::new(), is_negated: true })),
                '[' => {
                    let class = self.class()?;
                    self.steps.push(Step::One(class));
                }
                '{' if depth == DEPTH_MAX => return Err("too many braces within braces".to_owned()),
                '{' => self.alternatives(depth + 1)?,
                '}' | ',' if depth > 0 => return Ok(Some(character)),
                '}' => return Err("a brace that is not opened within the name".to_owned()),
                '\\' if !is_separator('\\') => {
                    let character = self.rest.next().ok_or("a backslash at the end")?;
                    self.literal(character);
                }
                _ => self.literal(character),
            }
        }
        Ok(None)
    }

    fn literal(&mut self, character: char) {
        self.steps.push(Step::One(Class { ranges: vec![(character, character)], is_negated: false }));
    }

    /// What is between braces, after the first of them.
    fn alternatives(&mut self, depth: usize) -> Result<(), String> {
        let either = self.steps.len();
        self.steps.push(Step::Either(Vec::new()));
        let (mut starts, mut ends) = (Vec::new(), Vec::new());
        loop {
            starts.push(self.steps.len());
            let end = self.sequence(depth)?.ok_or("a brace that is not closed within the name")?;
            ends.push(self.steps.len());
            self.steps.push(Step::GoTo(0));
            if end == '}' {
                break;
            }
        }
        let after = self.steps.len();
        for end in ends {
            self.steps[end] = Step::GoTo(after);
        }
        self.steps[either] = Step::Either(starts);
        Ok(())
    }

    /// What is between brackets, after the first of them. A bracket that is the first character there is itself.
    fn class(&mut self) -> Result<Class, String> {
        let is_negated = self.rest.next_if(|next| matches!(next, '!' | '^')).is_some();
        let mut class = Class { ranges: Vec::new(), is_negated };
        loop {
            let first = self.rest.next().ok_or("unclosed character class; missing ']'")?;
            if first == ']' && !class.ranges.is_empty() {
                return Ok(class);
            }
            let mut ahead = self.rest.clone();
            let last = match (ahead.next(), ahead.next()) {
                (Some('-'), Some(last)) if last != ']' => {
                    self.rest = ahead;
                    last
                }
                _ => first,
            };
            if last < first {
                return Err(format!("invalid range; '{first}' > '{last}'"));
            }
            class.ranges.push((first, last));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of these names, those that match.
    fn matching(pattern: &str, names: &str) -> String {
        let glob = Glob::new(pattern).unwrap();
        names.split(' ').filter(|name| glob.is_match(name)).collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_are_matched_as_a_whole() {
        for (pattern, names, expected) in [
            ("a*", "a ab ba", "a ab"),
            ("*a*b", "ab xaxb xaxbx ba", "ab xaxb"),
            ("a**b", "ab axxb", "ab axxb"),
            ("?", "a ab ü \u{1f600}", "a ü \u{1f600}"),
            ("[a-c]x", "ax bx dx", "ax bx"),
            ("[!a-c]x", "ax dx xx x", "dx xx"),
            ("[^a]", "a b", "b"),
            ("[]a]", "] a b", "] a"),
            ("[!]]", "] a", "a"),
            ("[a-]", "a - b", "a -"),
            ("[-a]", "a - b", "a -"),
            ("[*]", "* a", "*"),
            ("[{,}]", "{ , } a", "{ , }"),
            ("{a,bc}d", "ad bcd abcd d", "ad bcd"),
            ("{a,b{c,d}}e", "ae bce bde be", "ae bce bde"),
            ("x{,.txt}", "x x.txt xx", "x x.txt"),
            ("{*.a,b?}", "x.a bb b", "x.a bb"),
            ("a,b", "a,b a", "a,b"),
        ] {
            assert_eq!(matching(pattern, names), expected, "{pattern}");
        }
        if cfg!(unix) {
            assert_eq!(matching("\\*\\\\", "*\\ a\\ **"), "*\\");
        }
    }

    #[test]
    fn what_is_no_pattern_says_why() {
        for (pattern, why) in [
            ("[a", "unclosed character class; missing ']'"),
            ("[]", "unclosed character class; missing ']'"),
            ("[z-a]", "invalid range; 'z' > 'a'"),
            ("{a,b", "a brace that is not closed within the name"),
            ("a}", "a brace that is not opened within the name"),
            ("{{{{{{{{{a}}}}}}}}}", "too many braces within braces"),
        ] {
            assert_eq!(Glob::new(pattern).unwrap_err(), why, "{pattern}");
        }
    }

    #[test]
    fn no_pattern_takes_long() {
        let glob = Glob::new(&"*a".repeat(200)).unwrap();
        assert!(!glob.is_match("a".repeat(10_000) + "b"));
    }
}
