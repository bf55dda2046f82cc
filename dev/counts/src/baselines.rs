//! The file of baselines, `dev/counts/baselines.txt`: sections by compiler and level, in each a line per case.
//!
//! ```text
//! [rustc 1.95.0, x86_64, avx2]
//! 123456  0c1d2e3f  read int64 PLAIN      instructions, the CRC-32 of what is worked on, the case
//! ```
//!
//! The checksum tells a slower reader from a file that is written differently.

use std::collections::BTreeMap;

/// How far a count may be from its baseline, up or down, in percent. Less than a compiler's whim within one version;
/// a count that falls by more is a baseline to renew, because a later loss would hide below the old one.
pub const PERCENT: u64 = 2;

/// A case's count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Count {
    /// Its name.
    pub case: String,
    /// The checksum of what it works on, in hexadecimal.
    pub input: String,
    /// Instructions.
    pub instructions: u64,
}

/// The file: sections by their titles, and the counts in the order of the cases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Baselines(BTreeMap<String, Vec<Count>>);

impl Baselines {
    /// Reads the file's text.
    ///
    /// # Errors
    /// A sentence with the line that is wrong.
    pub fn parse(text: &str) -> Result<Self, String> {
        let mut sections: BTreeMap<String, Vec<Count>> = BTreeMap::new();
        let mut at = None;
        for (number, line) in text.lines().enumerate() {
            let wrong = || format!("line {}: {line:?}", number + 1);
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some(title) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
                if sections.insert(title.to_owned(), Vec::new()).is_some() {
                    return Err(format!("{}: a second section of that name", wrong()));
                }
                at = Some(title.to_owned());
                continue;
            }
            let section = at.as_ref().and_then(|title| sections.get_mut(title)).ok_or_else(wrong)?;
            let mut words = line.splitn(3, "  ");
            let (Some(count), Some(input), Some(case)) = (words.next(), words.next(), words.next()) else {
                return Err(wrong());
            };
            let instructions = count.parse().map_err(|_| wrong())?;
            section.push(Count { case: case.to_owned(), input: input.to_owned(), instructions });
        }
        Ok(Self(sections))
    }

    /// The file's text.
    pub fn print(&self) -> String {
        let mut text = "# Instructions by case, for each compiler and level; ".to_owned();
        text += "`dev/counts.sh renew` writes the section of this compiler anew.\n";
        for (title, counts) in &self.0 {
            text += &format!("\n[{title}]\n");
            for Count { case, input, instructions } in counts {
                text += &format!("{instructions}  {input}  {case}\n");
            }
        }
        text
    }

    /// The section of a title.
    pub fn section(&self, title: &str) -> Option<&[Count]> {
        self.0.get(title).map(Vec::as_slice)
    }

    /// The titles of the sections.
    pub fn titles(&self) -> impl Iterator<Item = &str> {
        self.0.keys().map(String::as_str)
    }

    /// Puts a section, in place of the one of its title.
    pub fn put(&mut self, title: &str, counts: Vec<Count>) {
        self.0.insert(title.to_owned(), counts);
    }
}

/// What differs between counts and their baselines: a sentence for each case.
pub fn faults(baselines: &[Count], counts: &[Count]) -> Vec<String> {
    let mut faults = Vec::new();
    for count in counts {
        let case = &count.case;
        let Some(baseline) = baselines.iter().find(|baseline| baseline.case == *case) else {
            faults.push(format!("{case}: {} instructions, and no baseline", count.instructions));
            continue;
        };
        if baseline.input != count.input {
            faults.push(format!(
                "{case}: it works on other bytes than its baseline did (CRC-32 {}, not {}): what makes them has changed",
                count.input, baseline.input
            ));
        } else if is_far(baseline.instructions, count.instructions) {
            let percent = percent(baseline.instructions, count.instructions);
            faults.push(format!(
                "{case}: {} instructions instead of {} ({percent})",
                count.instructions, baseline.instructions
            ));
        }
    }
    let is_counted = |baseline: &&Count| counts.iter().any(|count| count.case == baseline.case);
    let left = baselines.iter().filter(|baseline| !is_counted(baseline));
    faults.extend(left.map(|baseline| format!("{}: a baseline, and no such case", baseline.case)));
    faults
}

fn is_far(baseline: u64, count: u64) -> bool {
    count.abs_diff(baseline).saturating_mul(100) > baseline.saturating_mul(PERCENT)
}

/// The difference, with a tenth of a percent.
pub fn percent(baseline: u64, count: u64) -> String {
    let sign = if count < baseline { '-' } else { '+' };
    let thousandths = count.abs_diff(baseline).saturating_mul(1000) / baseline.max(1);
    format!("{sign}{}.{} %", thousandths / 10, thousandths % 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn count(case: &str, input: &str, instructions: u64) -> Count {
        Count { case: case.to_owned(), input: input.to_owned(), instructions }
    }

    #[test]
    fn a_file_is_read_as_it_is_written() {
        let mut baselines = Baselines::default();
        baselines.put("rustc 2, avx2", vec![count("read int64 PLAIN", "0a", 100), count("a", "0b", 7)]);
        baselines.put("rustc 1, avx2", vec![count("a", "0b", 8)]);
        let text = baselines.print();
        assert_eq!(Baselines::parse(&text), Ok(baselines.clone()));
        assert_eq!(baselines.titles().collect::<Vec<_>>(), ["rustc 1, avx2", "rustc 2, avx2"]);
        assert!(text.ends_with("[rustc 2, avx2]\n100  0a  read int64 PLAIN\n7  0b  a\n"), "{text}");
        for wrong in ["7  0b  a\n", "[a]\n7 0b a\n", "[a]\nx  0b  a\n", "[a]\n[a]\n"] {
            assert!(Baselines::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn two_percent_are_near_and_more_are_far() {
        let baselines = [count("a", "0", 1000)];
        let faults = |instructions| faults(&baselines, &[count("a", "0", instructions)]);
        assert!(faults(980).is_empty() && faults(1000).is_empty() && faults(1020).is_empty());
        assert_eq!(faults(1021), ["a: 1021 instructions instead of 1000 (+2.1 %)"]);
        assert_eq!(faults(979), ["a: 979 instructions instead of 1000 (-2.1 %)"]);
    }

    #[test]
    fn cases_and_inputs_must_be_the_same() {
        let baselines = [count("a", "0", 1000), count("gone", "0", 1)];
        let found = faults(&baselines, &[count("a", "1", 1000), count("new", "0", 1)]);
        assert_eq!(found.len(), 3, "{found:?}");
        assert!(found[0].contains("other bytes") && found[1].contains("no baseline"));
        assert_eq!(found[2], "gone: a baseline, and no such case");
    }
}
