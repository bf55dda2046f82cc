//! What must be known after a restart, beside what is in the destination: a small file in the directory for work.
//!
//! ```text
//! marquetry-watch 2
//! destination s3://lake/node-1
//! mapping full
//! keep flushes
//! owner 5f0c…
//! written yes
//! first /disk1/data
//! also /disk2/data
//! begun ks/t-f34b…
//! host 1f3c…
//! covered ks/t-f34b… 1700000000001:100..1700000000001:5000
//! made ks/t-f34b… nb-6-big-0a0b0c0d
//! convert ks/t-f34b… nb-7-big-1f0a93c5
//! skip ks/t-f34b… nb-8-big-77d0e001 compaction
//! failed ks/t-f34b… nb-9-big-00c1a2b3 nb-9-big-Data.db: a checksum differs
//! ```
//!
//! It is replaced as a whole, and on disk before anything is done that depends on it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Write};
use std::path::Path;

use marquetry_base::{Error, Result};
use marquetry_io::failed;

use super::coverage::Coverage;
use super::links::SstableId;

const FIRST_LINE: &str = "marquetry-watch 2";

/// That of states which do not know what was made.
const FIRST_LINE_BEFORE: &str = "marquetry-watch 1";

/// The most characters of a reason.
const WHY_CHARS_MAX: usize = 500;

/// What was decided of an SSTable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Decision {
    /// It becomes a file.
    Convert,
    /// It became one, wherever that is now.
    Made,
    /// It does not, because what it has is in other files.
    Skip(String),
    /// It cannot.
    Failed(String),
}

/// What is known.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct State {
    pub(super) destination: String,
    pub(super) mapping: String,
    pub(super) keep: String,
    /// What the destination's own file says of who writes to it.
    pub(super) owner: String,
    /// Whether a file was written to the destination.
    pub(super) is_written: bool,
    /// What was decided says nothing of what was made: it is of an earlier version.
    pub(super) is_without_made: bool,
    /// The first data directory, and those beside it.
    pub(super) first: Option<String>,
    pub(super) others: BTreeSet<String>,
    /// The places of the tables of which all that was there at first is decided. (Until then nothing of them can be in files already.)
    pub(super) begun: BTreeSet<String>,
    /// The node whose commit log is meant, in hexadecimal digits, once that is certain.
    pub(super) host: Option<String>,
    /// What is in files, by the places of tables.
    pub(super) covered: BTreeMap<String, Coverage>,
    pub(super) decisions: BTreeMap<SstableId, Decision>,
}

impl State {
    /// Reads the file. `None` if there is none.
    ///
    /// # Errors
    ///
    /// `Io` if it cannot be read, `Corrupt` for another file.
    pub(super) fn load(path: &Path) -> Result<Option<State>> {
        let name = path.display().to_string();
        let text = match fs::read_to_string(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            text => text.map_err(|error| failed("read", &name, error))?,
        };
        let parsed = State::parse(&text).map(Some);
        parsed.map_err(|error| error.at(|place| place.object = Some(name)))
    }

    fn parse(text: &str) -> Result<State> {
        let mut lines = text.lines().enumerate();
        let is_without_made = match lines.next() {
            Some((_, FIRST_LINE)) => false,
            Some((_, FIRST_LINE_BEFORE)) => true,
            _ => return Err(Error::corrupt("not a state of `marquetry watch`, or one of another version")),
        };
        let mut state = State { is_without_made, ..State::default() };
        for (number, line) in lines {
            state.line(line).ok_or_else(|| {
                Error::corrupt(format!("line {}: not one of a state of `marquetry watch`", number + 1))
            })?;
        }
        // Nothing was, before anything was decided.
        state.is_written |= state.is_without_made && !(state.begun.is_empty() && state.decisions.is_empty());
        Ok(state)
    }

    fn line(&mut self, line: &str) -> Option<()> {
        let (word, rest) = line.split_once(' ')?;
        let (place, more) = rest.split_once(' ').unwrap_or((rest, ""));
        let (name, why) = more.split_once(' ').unwrap_or((more, ""));
        let why = why.to_owned();
        match word {
            "destination" => rest.clone_into(&mut self.destination),
            "mapping" => rest.clone_into(&mut self.mapping),
            "keep" => rest.clone_into(&mut self.keep),
            "owner" => rest.clone_into(&mut self.owner),
            "written" => self.is_written = true,
            "first" => self.first = Some(rest.to_owned()),
            "also" => drop(self.others.insert(rest.to_owned())),
            "begun" => drop(self.begun.insert(rest.to_owned())),
            "host" => self.host = Some(rest.to_owned()),
            "covered" => drop(self.covered.insert(place.to_owned(), more.parse().ok()?)),
            "convert" => drop(self.decisions.insert(SstableId::of_name(place, name)?, Decision::Convert)),
            "made" => drop(self.decisions.insert(SstableId::of_name(place, name)?, Decision::Made)),
            "skip" => drop(self.decisions.insert(SstableId::of_name(place, name)?, Decision::Skip(why))),
            "failed" => drop(self.decisions.insert(SstableId::of_name(place, name)?, Decision::Failed(why))),
            _ => return None,
        }
        Some(())
    }

    /// Replaces the file. It is on disk then.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn save(&self, path: &Path) -> Result<()> {
        let hidden = path.with_extension("new");
        let write = || -> io::Result<()> {
            let mut file = fs::File::create(&hidden)?;
            file.write_all(self.text().as_bytes())?;
            file.sync_all()?;
            fs::rename(&hidden, path)?;
            #[cfg(unix)]
            if let Some(directory) = path.parent() {
                fs::File::open(directory)?.sync_all()?;
            }
            Ok(())
        };
        write().map_err(|error| failed("written", &path.display().to_string(), error))
    }

    fn text(&self) -> String {
        let mut text = format!("{FIRST_LINE}\n");
        let mut line = |word: &str, rest: &str| text.push_str(&format!("{word} {}\n", one_line(rest)));
        line("destination", &self.destination);
        line("mapping", &self.mapping);
        line("keep", &self.keep);
        line("owner", &self.owner);
        if self.is_written {
            line("written", "yes");
        }
        if let Some(first) = &self.first {
            line("first", first);
        }
        for other in &self.others {
            line("also", other);
        }
        for place in &self.begun {
            line("begun", place);
        }
        if let Some(host) = &self.host {
            line("host", host);
        }
        for (place, covered) in self.covered.iter().filter(|(_, covered)| !covered.is_empty()) {
            line("covered", &format!("{place} {covered}"));
        }
        for (id, decision) in &self.decisions {
            let what = format!("{} {}", id.place, id.name());
            match decision {
                Decision::Convert => line("convert", &what),
                Decision::Made => line("made", &what),
                Decision::Skip(why) => line("skip", &format!("{what} {why}")),
                Decision::Failed(why) => {
                    line(
                        "failed",
                        &format!("{what} {}", why.chars().take(WHY_CHARS_MAX).collect::<String>()),
                    );
                }
            }
        }
        text
    }
}

/// Text without line ends, which a path may have.
pub(super) fn one_line(text: &str) -> String {
    text.replace(char::is_control, " ")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(stem: &str) -> SstableId {
        SstableId { place: "ks/t-0".into(), stem: stem.into(), digest: 7 }
    }

    #[test]
    fn what_is_saved_is_loaded() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("state");
        assert_eq!(State::load(&path), Ok(None));
        let mut state = State {
            destination: "a directory/with spaces".into(),
            mapping: "full".into(),
            keep: "flushes".into(),
            owner: "0f".into(),
            ..State::default()
        };
        state.save(&path).unwrap();
        assert_eq!(State::load(&path).unwrap().as_ref(), Some(&state));
        state.others = ["/disk 2/data".to_owned(), "/disk3".to_owned()].into();
        (state.first, state.is_written) = (Some("/disk 1/data".to_owned()), true);
        (state.begun, state.host) = (["ks/t-0".to_owned()].into(), Some("ab".into()));
        state.covered.insert("ks/t-0".into(), "1:2..3:4 5:6..7:8".parse().unwrap());
        state.decisions.insert(id("nb-1-big"), Decision::Convert);
        state.decisions.insert(id("nb-2-big"), Decision::Skip("compaction".into()));
        state.decisions.insert(id("nb-3-big"), Decision::Failed("a checksum (of two) differs".into()));
        state.decisions.insert(id("nb-4-big"), Decision::Made);
        state.save(&path).unwrap();
        assert_eq!(State::load(&path).unwrap(), Some(state));
        assert_eq!(fs::read_dir(folder.path()).unwrap().count(), 1, "nothing else is left");
    }

    #[test]
    fn states_of_the_first_version_are_read() {
        let state = State::parse("marquetry-watch 1\ndestination lake\n").unwrap();
        assert!(state.is_without_made && !state.is_written);
        for decided in ["begun ks/t-0", "convert ks/t-0 nb-1-big-00000007"] {
            let state = State::parse(&format!("marquetry-watch 1\n{decided}\n")).unwrap();
            assert!(state.is_without_made && state.is_written, "{decided}");
            let again = State::parse(&state.text()).unwrap();
            assert!(!again.is_without_made && again.is_written, "{decided}");
        }
    }

    #[test]
    fn reasons_are_of_one_line() {
        let mut state = State::default();
        let why = format!("first\nsecond {}", "x".repeat(9_000));
        state.decisions.insert(id("nb-1-big"), Decision::Failed(why));
        let again = State::parse(&state.text()).unwrap();
        let Some(Decision::Failed(why)) = again.decisions.get(&id("nb-1-big")) else { panic!() };
        assert!(why.starts_with("first second x") && why.len() == WHY_CHARS_MAX);
    }

    #[test]
    fn other_files_are_no_state() {
        for text in
            ["", "marquetry-watch 3\n", "marquetry-watch 2\nmore\n", "marquetry-watch 1\nconvert a b\n"]
        {
            assert!(State::parse(text).is_err(), "{text}");
        }
        let error = State::parse("marquetry-watch 1\nkeep current\ncovered ks/t 1\n").unwrap_err();
        assert!(error.message().starts_with("line 3:"), "{error}");
    }
}
