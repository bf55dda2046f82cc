//! How far a load is, in a small file, so that it can go on after whatever ended it.

use std::fs;
use std::io::ErrorKind as IoKind;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use marquetry_base::{Detail, Error, Result};
use marquetry_io::blocking::NewFile;
use marquetry_io::state_file::{Lock, quoted, sealed, unquoted, unsealed};
use marquetry_io::{ByteSink, failed};
use marquetry_tables::Table;

/// Where a load keeps how far it is.
///
/// The file is replaced as a whole, at most once a second, and says of which rows all that are before were acknowledged. Going on, the load
/// skips these and sends the others, possibly a second time, with the write times that they had: nothing is lost, and nothing changes by
/// being sent twice. It goes on only with what it began with: rows of the same name, schema and size, the same table, the same options; and with
/// the same [`source`](StateOptions::source). Its last line is a checksum: a file that was changed is an error.
/// While a load goes on it is locked, by a file `FILE.lock` beside it: another process that wants it is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct StateOptions {
    /// The file.
    pub path: PathBuf,
    /// Go on from there, if the file exists; otherwise it must not.
    pub resume: bool,
    /// What else decides which rows there are and what they become: it must be the same, too.
    pub options: String,
    /// What tells the rows from others of that name, schema and size, as [`files::unchanged`](marquetry_tables::files::unchanged) does of files.
    /// Empty if nothing is known.
    pub source: String,
}

impl StateOptions {
    /// A file for a load that begins.
    pub fn new(path: impl Into<PathBuf>) -> StateOptions {
        StateOptions { path: path.into(), resume: false, options: String::new(), source: String::new() }
    }
}

/// What a load is of: as long as it is the same, it can go on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Identity {
    pub(crate) source: String,
    /// What tells the source from one that has its name, schema and size.
    pub(crate) content: String,
    pub(crate) destination: String,
    pub(crate) options: String,
}

/// A load's state.
#[derive(Debug)]
pub(crate) struct State {
    path: PathBuf,
    identity: Identity,
    /// That of the table in its cluster, known when it is connected.
    table_id: Option<String>,
    pub(crate) first_write_time_us: i64,
    /// All rows before this one were acknowledged.
    pub(crate) rows: u64,
    /// How often the load was begun or went on.
    pub(crate) runs: u64,
    /// How often a row may have been sent by these runs, at most.
    pub(crate) sent: i64,
    /// The load makes its table: what is made after the rows is not there before it has ended.
    pub(crate) makes_table: bool,
    /// No row from this one on was sent; known only of writes that add to lists.
    pub(crate) sent_until: u64,
    /// Rows before [`rows`](State::rows) that were rejected, and are in files.
    pub(crate) rejected: u64,
    pub(crate) is_finished: bool,
    /// The file of rejected rows that is to appear, and what is true once it has.
    appearing: Option<Appearing>,
    written_at: Option<Instant>,
    /// While this process loads.
    _lock: Option<Lock>,
}

/// How far a load is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Reached {
    /// As [`State::rows`].
    pub(crate) rows: u64,
    /// As [`State::rejected`].
    pub(crate) rejected: u64,
    pub(crate) is_finished: bool,
}

/// A file that is complete and has no name yet.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Appearing {
    file: PathBuf,
    bytes: u64,
    then: Reached,
}

/// The first line.
const TITLE: &str = "marquetry load, version 5";
/// What the first line of any version begins with.
const TITLES: &str = "marquetry load, version ";
/// The time between two versions of the file, at least.
const INTERVAL: Duration = Duration::from_secs(1);
/// Instead of a file of rejected rows.
const NO_FILE: &str = "none";
/// Rows that are noted as sent before they are: of as many, a load that goes on does not know whether they were.
const SENT_AHEAD: u64 = 1 << 14;

impl State {
    /// Reads the state of a load that goes on, or begins one. Nothing is written yet.
    ///
    /// # Errors
    ///
    /// `Misuse` for a load that is there and is not to go on, is another one, or goes on in another process; `Io` or `Corrupt` for a file
    /// that cannot be read, or be locked.
    pub(crate) fn open(
        options: &StateOptions,
        identity: Identity,
        first_write_time_us: i64,
    ) -> Result<State> {
        let name = options.path.display().to_string();
        let wrong = |what: String| Error::option("state", what);
        let lock = Lock::take(&options.path, "state")?;
        let text = match fs::read_to_string(&options.path) {
            Ok(text) => text,
            Err(error) if error.kind() == IoKind::NotFound => {
                return Ok(State {
                    path: options.path.clone(),
                    identity,
                    table_id: None,
                    first_write_time_us,
                    rows: 0,
                    runs: 1,
                    sent: 0,
                    makes_table: false,
                    sent_until: 0,
                    rejected: 0,
                    is_finished: false,
                    appearing: None,
                    written_at: None,
                    _lock: Some(lock),
                });
            }
            Err(error) => return Err(failed("read", &name, error)),
        };
        let mut state = read(&options.path, &text)
            .map_err(|what| Error::corrupt(what).at(|place| place.object = Some(name.clone())))?;
        // The process ended between the two: the file is there, and nothing said so.
        if let Some(Appearing { file, bytes, then }) = state.appearing.take()
            && fs::metadata(file).is_ok_and(|it| it.len() == bytes)
        {
            state.reach(then);
        }
        let rows = state.rows;
        match (state.is_finished, options.resume) {
            (true, false) => {
                return Err(wrong(format!(
                    "{name} says that this load was finished, with {rows} rows; remove it to load them again"
                )));
            }
            (false, false) => {
                return Err(wrong(format!(
                    "{name} has the state of a load that was not finished, after {rows} rows"
                ))
                .with(Detail::AdmittedBy(&["resume"])));
            }
            (_, true) => {}
        }
        let differs = |what: &str, was: &str, is: &str| {
            let what = format!("{name} has the state of a load whose {what} is another: {was}, and not {is}");
            Err(wrong(what))
        };
        let was = &state.identity;
        if was.source != identity.source {
            return differs("source", &was.source, &identity.source);
        }
        if was.content != identity.content {
            let what = format!(
                "{name} has the state of a load of other rows: {} was changed since; remove {name} to load all of its rows",
                was.source
            );
            return Err(wrong(what));
        }
        if was.destination != identity.destination {
            return differs("destination", &was.destination, &identity.destination);
        }
        if was.options != identity.options {
            let what = format!(
                "{name} has the state of a load with other options: it goes on with those that it began with"
            );
            return Err(wrong(what));
        }
        state.runs += 1;
        state._lock = Some(lock);
        Ok(state)
    }

    /// The load is about to make its table; or it has not, if that failed, or somebody else was faster. It is written before, so that a load that goes on
    /// knows whose the table is; the file of a load that came no further than that is removed.
    ///
    /// # Errors
    ///
    /// As [`State::save`]; `Io` for a file that cannot be removed.
    pub(crate) fn make_table(&mut self, makes: bool) -> Result<()> {
        self.makes_table = makes;
        if makes || self.runs > 1 {
            return self.save();
        }
        fs::remove_file(&self.path).map_err(|error| failed("remove", &self.path.display().to_string(), error))
    }

    /// The table that rows go to, in its cluster.
    ///
    /// # Errors
    ///
    /// `Misuse` if it is not the one that rows went to before: then those are not there.
    pub(crate) fn expect_table(&mut self, id: &str) -> Result<()> {
        match &self.table_id {
            Some(was) if was != id => {
                let what = format!(
                    "{} has the state of a load into another table of that name: one that was dropped since, or of another cluster",
                    self.path.display()
                );
                Err(Error::option("state", what))
            }
            _ => {
                self.table_id = Some(id.to_owned());
                Ok(())
            }
        }
    }

    /// All rows before this one were acknowledged. It is written if the last time was a while ago.
    ///
    /// # Errors
    ///
    /// As [`State::save`].
    pub(crate) fn note(&mut self, rows: u64) -> Result<()> {
        let is_due = self.written_at.is_none_or(|at| at.elapsed() >= INTERVAL);
        if rows <= self.rows || !is_due {
            return Ok(());
        }
        self.rows = rows;
        self.save()
    }

    /// Rows up to this one may be sent from now on. It is written before they are, and then for so many more that it rarely is.
    ///
    /// # Errors
    ///
    /// As [`State::save`].
    pub(crate) fn may_send(&mut self, until: u64) -> Result<()> {
        if until <= self.sent_until {
            return Ok(());
        }
        self.sent_until = until.saturating_add(SENT_AHEAD);
        self.save()
    }

    fn reach(&mut self, Reached { rows, rejected, is_finished }: Reached) {
        (self.rows, self.rejected, self.is_finished) = (rows, rejected, is_finished);
    }

    /// Writes the state that a load ends with. A file of rejected rows, of so many bytes, appears by `appear`; `reached` is how far the load is without
    /// it, and with it. That is written before, too: whenever the process ends, rows are rejected in one file.
    ///
    /// # Errors
    ///
    /// As [`State::save`], and `appear`'s.
    pub(crate) fn end(
        &mut self,
        [without, with]: [Reached; 2],
        file: Option<(&Path, u64)>,
        appear: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        self.reach(without);
        let mut outcome = Ok(());
        if let Some((path, bytes)) = file {
            // The load may go on from another directory.
            let file = std::path::absolute(path).unwrap_or_else(|_| path.to_path_buf());
            self.appearing = Some(Appearing { file, bytes, then: with });
            outcome = self.save();
        }
        // Without the state they would be rejected again, by a load that goes on.
        let appeared = if outcome.is_ok() { appear() } else { Ok(()) };
        let is_there = outcome.is_ok() && appeared.is_ok();
        self.appearing = None;
        if is_there {
            self.reach(with);
        }
        outcome = outcome.and(appeared);
        self.is_finished &= outcome.is_ok();
        outcome.and(self.save())
    }

    /// Writes the file, in place of the one before.
    ///
    /// # Errors
    ///
    /// `Io`, with its name.
    pub(crate) fn save(&mut self) -> Result<()> {
        let mut file = NewFile::create(&self.path)?;
        file.append(sealed(&self.to_string()).as_bytes())?;
        file.replace()?;
        self.written_at = Some(Instant::now());
        Ok(())
    }
}

impl std::fmt::Display for State {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Identity { source, content, destination, options } = &self.identity;
        writeln!(f, "{TITLE}")?;
        for (key, text) in [
            ("source", &**source),
            ("content", &**content),
            ("destination", &**destination),
            ("options", &**options),
            ("table", self.table_id.as_deref().unwrap_or_default()),
        ] {
            writeln!(f, "{key} {}", quoted(text))?;
        }
        writeln!(f, "first-write-time {}", self.first_write_time_us)?;
        writeln!(f, "rows {}", self.rows)?;
        writeln!(f, "runs {}", self.runs)?;
        writeln!(f, "sent {}", self.sent)?;
        writeln!(f, "makes-table {}", yes_or_no(self.makes_table))?;
        writeln!(f, "sent-until {}", self.sent_until)?;
        writeln!(f, "rejected {}", self.rejected)?;
        match &self.appearing {
            None => writeln!(f, "rejects {NO_FILE}")?,
            Some(Appearing { file, bytes, then: Reached { rows, rejected, is_finished } }) => {
                let file = quoted(&file.display().to_string());
                writeln!(f, "rejects {bytes} {rows} {rejected} {} {file}", yes_or_no(*is_finished))?;
            }
        }
        writeln!(f, "finished {}", yes_or_no(self.is_finished))
    }
}

fn yes_or_no(is: bool) -> &'static str {
    if is { "yes" } else { "no" }
}

fn is_yes(text: &str) -> Option<bool> {
    match text {
        "yes" => Some(true),
        "no" => Some(false),
        _ => None,
    }
}

/// Reads what a state says of a file that is to appear.
fn parse_appearing(text: &str) -> Option<Appearing> {
    let mut words = text.splitn(5, ' ');
    let mut number = || words.next()?.parse::<u64>().ok();
    let (bytes, rows, rejected) = (number()?, number()?, number()?);
    let is_finished = is_yes(words.next()?)?;
    let file = PathBuf::from(unquoted(words.next()?)?);
    Some(Appearing { file, bytes, then: Reached { rows, rejected, is_finished } })
}

/// Reads what [`State::save`] wrote; what is wrong with another text.
fn read(path: &Path, text: &str) -> Result<State, &'static str> {
    if !text.starts_with(TITLES) {
        return Err("it is not the state of a load");
    }
    if text.lines().next() != Some(TITLE) {
        return Err("another version of this program wrote it, which has to finish the load");
    }
    let text = unsealed(text).ok_or("it was changed or cut: its checksum is not that of its lines")?;
    parse(path, text).ok_or("it is not the state of a load")
}

/// Reads what [`State`] prints.
fn parse(path: &Path, text: &str) -> Option<State> {
    let mut lines = text.lines();
    (lines.next()? == TITLE).then_some(())?;
    let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
    let state = State {
        path: path.to_path_buf(),
        identity: Identity {
            source: unquoted(value("source")?)?,
            content: unquoted(value("content")?)?,
            destination: unquoted(value("destination")?)?,
            options: unquoted(value("options")?)?,
        },
        table_id: Some(unquoted(value("table")?)?).filter(|id| !id.is_empty()),
        first_write_time_us: value("first-write-time")?.parse().ok()?,
        rows: value("rows")?.parse().ok()?,
        runs: value("runs")?.parse().ok()?,
        sent: value("sent")?.parse().ok()?,
        makes_table: is_yes(value("makes-table")?)?,
        sent_until: value("sent-until")?.parse().ok()?,
        rejected: value("rejected")?.parse().ok()?,
        appearing: match value("rejects")? {
            NO_FILE => None,
            text => Some(parse_appearing(text)?),
        },
        is_finished: is_yes(value("finished")?)?,
        written_at: None,
        _lock: None,
    };
    lines.next().is_none().then_some(state)
}

/// What is known of a table before its rows are read, in one line.
pub(crate) fn identity_of(table: &Table) -> String {
    let number = |number: Option<u64>| number.map_or_else(|| "?".to_owned(), |number| number.to_string());
    format!(
        "{} ({} rows, {} bytes, schema {:016x})",
        table.name,
        number(table.rows),
        number(table.bytes),
        table.fingerprint()
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    fn identity(source: &str) -> Identity {
        let text = |text: &str| text.to_owned();
        Identity {
            source: text(source),
            content: text("1234"),
            destination: text("k.\"T\""),
            options: text("a\\b\n\"c\" é\u{1}"),
        }
    }

    #[test]
    fn what_is_written_is_read() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StateOptions::new(folder.path().join("load.state"));
        let mut state = State::open(&options, identity("a.parquet"), 7).unwrap();
        assert!(!options.path.exists());
        state.expect_table("id").unwrap();
        state.save().unwrap();
        // Not too often.
        state.note(10).unwrap();
        assert!(fs::read_to_string(&options.path).unwrap().contains("\nrows 0\n"));
        state.written_at = None;
        state.note(12).unwrap();
        // Nobody else has it meanwhile.
        options.resume = true;
        let in_use = State::open(&options, identity("a.parquet"), 0).unwrap_err().to_string();
        assert!(in_use.contains("is in use"), "{in_use}");
        options.resume = false;
        let was = state.identity.clone();
        drop(state);
        let error =
            |options: &StateOptions, identity: Identity| State::open(options, identity, 0).unwrap_err();
        let found = error(&options, identity("a.parquet"));
        assert_eq!(
            (found.kind(), found.detail()),
            (ErrorKind::Misuse, Some(Detail::AdmittedBy(&["resume"])))
        );
        options.resume = true;
        let mut again = State::open(&options, identity("a.parquet"), 99).unwrap();
        // What may be sent is written ahead, now and then.
        again.may_send(5).unwrap();
        let ahead = 5 + SENT_AHEAD;
        assert!(fs::read_to_string(&options.path).unwrap().contains(&format!("\nsent-until {ahead}\n")));
        again.rejected = 3;
        again.may_send(ahead).unwrap();
        assert!(fs::read_to_string(&options.path).unwrap().contains("\nrejected 0\n"));
        again.rejected = 0;
        assert_eq!((again.rows, again.runs, again.first_write_time_us, again.is_finished), (12, 2, 7, false));
        assert_eq!(again.identity, was);
        let parsed = read(&options.path, &fs::read_to_string(&options.path).unwrap()).unwrap();
        assert_eq!((parsed.identity, parsed.rows), (was, 12));
        // Only with what it began with.
        again._lock = None;
        let other = error(&options, identity("b.parquet")).to_string();
        assert!(other.contains("whose source is another: a.parquet, and not b.parquet"), "{other}");
        let mut other = identity("a.parquet");
        other.content.push('x');
        let other = error(&options, other).to_string();
        assert!(other.contains("a load of other rows: a.parquet was changed since"), "{other}");
        let mut other = identity("a.parquet");
        other.options.push('x');
        assert!(error(&options, other).to_string().contains("with other options"));
        assert!(again.expect_table("other").unwrap_err().to_string().contains("another table of that name"));
        again.expect_table("id").unwrap();
        again.is_finished = true;
        again.save().unwrap();
        assert!(State::open(&options, identity("a.parquet"), 0).unwrap().is_finished);
        options.resume = false;
        let finished = error(&options, identity("a.parquet")).to_string();
        assert!(finished.contains("was finished, with 12 rows; remove it"), "{finished}");
    }

    /// Whenever the process ends, rows that are in a file are not rejected again, and others are.
    #[test]
    fn rejected_rows_are_in_one_file() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StateOptions::new(folder.path().join("load.state"));
        let mut state = State::open(&options, identity("a"), 7).unwrap();
        state.save().unwrap();
        let bad = folder.path().join("bad \"1\".parquet");
        let [without, with] = [(12, 1, false), (40, 3, true)].map(|it| Reached {
            rows: it.0,
            rejected: it.1,
            is_finished: it.2,
        });
        // As if the process were killed before the file appears.
        let mut kept = String::new();
        let appear = || {
            kept = fs::read_to_string(&options.path).unwrap();
            fs::write(&bad, "rejected").unwrap();
            Ok(())
        };
        state.end([without, with], Some((&bad, 8)), appear).unwrap();
        drop(state);
        options.resume = true;
        let open = |text: &str| {
            fs::write(&options.path, text).unwrap();
            let State { rows, rejected, is_finished, .. } = State::open(&options, identity("a"), 7).unwrap();
            Reached { rows, rejected, is_finished }
        };
        let ended = fs::read_to_string(&options.path).unwrap();
        assert_eq!((open(&ended), open(&kept)), (with, with));
        fs::write(&bad, "another file").unwrap();
        assert_eq!((open(&ended), open(&kept)), (with, without));
        fs::remove_file(&bad).unwrap();
        assert_eq!((open(&ended), open(&kept)), (with, without));
        // It does not appear at all.
        fs::write(&options.path, &kept).unwrap();
        let mut state = State::open(&options, identity("a"), 7).unwrap();
        let failed = || Err(Error::conversion("it is full"));
        let error = state.end([without, with], Some((&bad, 8)), failed).unwrap_err();
        assert_eq!(error.message(), "it is full");
        drop(state);
        assert_eq!(open(&fs::read_to_string(&options.path).unwrap()), without);
    }

    #[test]
    fn a_table_that_a_load_makes_is_its_own() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StateOptions::new(folder.path().join("load.state"));
        let open = |options: &StateOptions| State::open(options, identity("a.parquet"), 7);
        // It was not made: nothing is left of the load.
        let mut state = open(&options).unwrap();
        state.make_table(true).unwrap();
        assert!(options.path.exists());
        state.make_table(false).unwrap();
        assert!(!options.path.exists());
        // It was, and the process ended before a row was sent.
        state.make_table(true).unwrap();
        drop(state);
        options.resume = true;
        let mut state = open(&options).unwrap();
        assert!(state.makes_table && state.runs == 2);
        state.expect_table("id").unwrap();
        state.save().unwrap();
        drop(state);
        // Not made again, what is known of the rows is kept.
        let mut state = open(&options).unwrap();
        assert!(state.makes_table);
        state.make_table(false).unwrap();
        drop(state);
        let state = open(&options).unwrap();
        assert!(!state.makes_table && state.table_id.as_deref() == Some("id"));
    }

    #[test]
    fn other_files_are_no_states() {
        let folder = tempfile::tempdir().unwrap();
        let mut options = StateOptions::new(folder.path().join("load.state"));
        options.resume = true;
        let mut state = State::open(&options, identity("a"), 7).unwrap();
        state.save().unwrap();
        drop(state);
        let text = fs::read_to_string(&options.path).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        let without = |at: usize| [&lines[..at], &lines[at + 1..]].concat().join("\n");
        let old = fs::read_to_string(&options.path).unwrap().replace("version 5", "version 4");
        for wrong in [
            String::new(),
            "id,name\n".to_owned(),
            format!("{text}more\n"),
            // A number is another one: what it says would be believed.
            text.replace("rows 0", "rows 1"),
            sealed(&unsealed(&text).unwrap().replace("rows 0", "rows -1")),
            old,
        ]
        .into_iter()
        .chain((0..lines.len()).map(without))
        {
            fs::write(&options.path, &wrong).unwrap();
            let error = State::open(&options, identity("a"), 7).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corrupt, "{wrong}");
        }
        // Nowhere to write it.
        let nowhere = StateOptions::new(folder.path().join("no/such/file"));
        assert_eq!(State::open(&nowhere, identity("a"), 7).unwrap_err().kind(), ErrorKind::Io);
    }
}
