//! A copy into a directory that can go on after whatever ended it: files appear one by one, and a state says which rows are in them.

use std::fs;
use std::io::ErrorKind as IoKind;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Result};
use marquetry_io::blocking::NewFile;
use marquetry_io::state_file::{Lock, quoted, sealed, unquoted, unsealed};
use marquetry_io::{ByteSink, SCHEMA_FILE, failed};
use marquetry_parquet::batch::{Batch, RowSelection};

use crate::copy::{Copied, CopyOptions, copy};
use crate::files::{Files, FilesOptions};
use crate::parquet::{NewParquetFile, ParquetOptions};
use crate::{
    Batches, Cancel, Destination, Piece, PieceOptions, Source, TABLE_SCHEMA_KEY, Table, Wants, Written,
};

/// A copy of a table, whose pieces are [token ranges](Piece::tokens), into a directory of Parquet files. Each file has the rows of some token
/// ranges, and appears when it is complete. A file of state says which ranges are in files that appeared; after whatever ended
/// the copy, another one reads the rest. So each row that was there all the time is in exactly one file, also if the servers split their ring
/// otherwise meanwhile: what is remembered are intervals.
///
/// 1. [`Parts::open`] reads the state, and locks it;
/// 2. the source is opened without the rows of [`Parts::done`];
/// 3. [`Parts::copy`] copies.
///
/// Unlike a [`NewParquetDirectory`](crate::parquet::NewParquetDirectory), the directory is there before it is complete.
#[derive(Debug)]
pub struct Parts {
    path: PathBuf,
    directory: PathBuf,
    options: String,
    /// The table that they are of, once known.
    source: Option<String>,
    parts: Vec<Part>,
    is_finished: bool,
    _lock: Lock,
}

/// Some rows, and the file that they are in.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Part {
    /// `None`: there were none.
    file: Option<String>,
    tokens: RangeInclusive<i64>,
    rows: u64,
    /// The file's length.
    bytes: u64,
}

/// The first line.
const TITLE: &str = "marquetry unload, version 2";
/// What the first line of any version begins with.
const TITLES: &str = "marquetry unload, version ";
/// The name of a part that has no file.
const NO_FILE: &str = "-";
/// Pieces whose rows are in one file: of those that are about 32 MiB large for a cluster's servers, files of a row group or so.
const PIECES_OF_A_FILE: usize = 8;

impl Parts {
    /// Reads the state of a copy that goes on, or begins one. `options` is what else says which rows there are.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `state`: a copy that is there and is not to go on, is another one, or goes on in another process; `Io` with
    /// [`Detail::AlreadyExists`] for a directory that is not empty when a copy begins; `Io` and `Corrupt` for a state that cannot be
    /// read.
    pub fn open(state: &Path, directory: &Path, resume: bool, options: &str) -> Result<Parts> {
        let lock = Lock::take(state, "state")?;
        // `trips/` is `trips`.
        let directory = &*directory.components().collect::<PathBuf>();
        let name = state.display().to_string();
        let wrong = |what: String| Error::option("state", what);
        let mut parts = Parts {
            path: state.to_path_buf(),
            directory: directory.to_path_buf(),
            options: options.to_owned(),
            source: None,
            parts: Vec::new(),
            is_finished: false,
            _lock: lock,
        };
        let text = match fs::read_to_string(state) {
            Ok(text) => text,
            Err(error) if error.kind() == IoKind::NotFound => {
                parts.expect_empty()?;
                return Ok(parts);
            }
            Err(error) => return Err(failed("read", &name, error)),
        };
        let read =
            read(&text).map_err(|what| Error::corrupt(what).at(|place| place.object = Some(name.clone())))?;
        if !resume {
            let how =
                if read.is_finished { "was finished; remove it to copy again" } else { "was not finished" };
            return Err(wrong(format!("{name} has the state of a copy that {how}"))
                .with(Detail::AdmittedBy(&["resume"])));
        }
        if read.directory != directory.display().to_string() {
            let what = format!(
                "{name} has the state of a copy into {}, and not {}",
                read.directory,
                directory.display()
            );
            return Err(wrong(what));
        }
        if read.options != options {
            return Err(wrong(format!(
                "{name} has the state of a copy with other options: it goes on with those that it began with"
            )));
        }
        (parts.source, parts.is_finished) = (Some(read.source), read.is_finished);
        for part in read.parts {
            // It was written down before its file appeared, which it then did not; or somebody removed it.
            let is_there = part.file.as_ref().is_none_or(|file| directory.join(file).is_file());
            parts.is_finished &= is_there;
            if is_there {
                part.check(directory)?;
                parts.parts.push(part);
            }
        }
        parts.expect_own()?;
        Ok(parts)
    }

    /// The tokens whose rows are in files: ranges that ascend, in order.
    pub fn done(&self) -> Vec<RangeInclusive<i64>> {
        let mut done: Vec<RangeInclusive<i64>> = self.parts.iter().map(|part| part.tokens.clone()).collect();
        done.sort_unstable_by_key(|tokens| *tokens.start());
        done
    }

    /// The rows that are in files.
    pub fn rows(&self) -> u64 {
        self.parts.iter().map(|part| part.rows).sum()
    }

    /// The files.
    pub fn files(&self) -> u64 {
        u64_of(self.parts.iter().filter(|part| part.file.is_some()).count())
    }

    /// Whether all rows are in files.
    pub fn is_finished(&self) -> bool {
        self.is_finished
    }

    /// Copies the source's rows, which are all but those of [`done`](Parts::done). `report` gets what was copied so far by this call.
    ///
    /// # Errors
    ///
    /// As [`copy`](crate::copy()); `Misuse` for another table than the one that the copy began with, for pieces that are no token ranges, and
    /// for a limit and an order, which parts do not have.
    pub fn copy(
        &mut self,
        source: &Arc<dyn Source>,
        parquet: &ParquetOptions,
        options: &CopyOptions,
        report: &mut dyn FnMut(&Copied),
    ) -> Result<Copied> {
        let table = source.table();
        self.expect(table)?;
        let none = |option: &'static str| {
            Error::option(option, "a copy in parts, which can go on, takes rows as they come")
        };
        if options.limit.is_some() {
            return Err(none("limit"));
        }
        if !options.sort.is_empty() {
            return Err(none("sort"));
        }
        let mut copied = Copied::default();
        if self.is_finished {
            return Ok(copied);
        }
        let directory = self.directory.display().to_string();
        fs::create_dir_all(&self.directory).map_err(|error| failed("created", &directory, error))?;
        // It says that the directory is complete, which it is no more if a file was removed.
        self.remove_schema()?;
        self.save()?;
        let mut first = 0;
        while first < source.pieces().len() {
            let some = PartOf::new(Arc::clone(source), first, PIECES_OF_A_FILE)?;
            first += some.pieces.len();
            let tokens = some.tokens.clone();
            let file = name_of(&tokens);
            let mut parquet = parquet.clone();
            // What is there is of the part that is written now, or somebody else's.
            parquet.overwrite = false;
            let part = Part { file: Some(file.clone()), tokens, rows: 0, bytes: 0 };
            let destination = NewParquetFile::new(self.directory.join(file), parquet)?;
            let mut destination = OfPart { file: destination, part: Some(part), parts: self };
            let some: Arc<dyn Source> = Arc::new(some);
            let before = copied;
            let of_part = copy(&some, &mut destination, options, &mut |now| report(&sum(&before, now)))?;
            copied = sum(&before, &of_part);
            if of_part.rows == 0 {
                // There is no file of it.
                copied.written = before.written;
            }
        }
        if self.files() == 0 {
            copied.written.files += self.write_empty(table, parquet)?;
        }
        self.write_schema(table)?;
        self.is_finished = true;
        self.save()?;
        Ok(copied)
    }

    /// Writes a file without rows, so that the directory of a table that has none is one, too; how many files there are now.
    fn write_empty(&mut self, table: &Table, parquet: &ParquetOptions) -> Result<u64> {
        let Some(last) = self.parts.last_mut() else { return Ok(0) };
        let name = name_of(&last.tokens);
        let parquet = ParquetOptions { overwrite: false, ..parquet.clone() };
        let mut file = NewParquetFile::new(self.directory.join(&name), parquet)?;
        file.begin(table)?;
        (last.file, last.bytes) = (Some(name), file.finish()?.bytes);
        self.save()?;
        file.commit()?;
        Ok(1)
    }

    fn expect_empty(&self) -> Result<()> {
        let has_entries = fs::read_dir(&self.directory).is_ok_and(|mut entries| entries.next().is_some());
        match has_entries {
            true => {
                let error = Error::io("the directory is not empty").with(Detail::AlreadyExists);
                Err(error.at(|place| place.object = Some(self.directory.display().to_string())))
            }
            false => Ok(()),
        }
    }

    /// Fails for a Parquet file in the directory that is none of the copy's: whoever reads the directory has its rows, too.
    fn expect_own(&self) -> Result<()> {
        let about = |error| failed("read", &self.directory.display().to_string(), error);
        let entries = match fs::read_dir(&self.directory) {
            Err(error) if error.kind() == IoKind::NotFound => return Ok(()),
            entries => entries.map_err(about)?,
        };
        for entry in entries {
            let entry = entry.map_err(about)?;
            let name = entry.file_name();
            let name = name.to_string_lossy();
            let is_own = self.parts.iter().any(|part| part.file.as_deref() == Some(&*name));
            if name.ends_with(".parquet") && !name.starts_with('.') && !is_own {
                let what = "this copy did not write it: move it elsewhere, so that the directory has the table's rows only";
                return Err(of_state(what, &entry.path()));
            }
        }
        Ok(())
    }

    /// The table is the one that the copy began with.
    fn expect(&mut self, table: &Table) -> Result<()> {
        let is = format!(
            "{} ({}, schema {:016x})",
            table_of(&table.name),
            table.identity.as_deref().unwrap_or("no identity"),
            table.fingerprint()
        );
        match &self.source {
            Some(was) if *was != is => {
                let what = format!(
                    "{} has the state of a copy of another table: {was}, and not {is}",
                    self.path.display()
                );
                Err(Error::option("state", what))
            }
            _ => {
                self.source = Some(is);
                Ok(())
            }
        }
    }

    /// Writes the statements that make the table beside the files, if there are any.
    fn write_schema(&self, table: &Table) -> Result<()> {
        let statements = table.key_values.iter().find(|it| it.key == TABLE_SCHEMA_KEY);
        let Some(statements) = statements.and_then(|it| it.value.as_ref()) else { return Ok(()) };
        let mut file = NewFile::create(self.directory.join(SCHEMA_FILE))?;
        file.append(statements)?;
        file.replace()
    }

    fn remove_schema(&self) -> Result<()> {
        let path = self.directory.join(SCHEMA_FILE);
        match fs::remove_file(&path) {
            Err(error) if error.kind() != IoKind::NotFound => {
                Err(failed("removed", &path.display().to_string(), error))
            }
            _ => Ok(()),
        }
    }

    fn save(&self) -> Result<()> {
        let mut text = format!(
            "{TITLE}\nsource {}\ndirectory {}\noptions {}\n",
            quoted(self.source.as_deref().unwrap_or_default()),
            quoted(&self.directory.display().to_string()),
            quoted(&self.options)
        );
        for Part { file, tokens, rows, bytes } in &self.parts {
            let file = file.as_deref().unwrap_or(NO_FILE);
            text.push_str(&format!("part {} {} {rows} {bytes} {file}\n", tokens.start(), tokens.end()));
        }
        text.push_str(if self.is_finished { "finished yes\n" } else { "finished no\n" });
        let mut file = NewFile::create(&self.path)?;
        file.append(sealed(&text).as_bytes())?;
        file.replace()
    }
}

/// What a state's file has.
struct Read {
    source: String,
    directory: String,
    options: String,
    parts: Vec<Part>,
    is_finished: bool,
}

impl Part {
    /// Fails unless its file is what was written: as long, a Parquet file, with as many rows.
    fn check(&self, directory: &Path) -> Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let path = directory.join(file);
        let name = path.display().to_string();
        let bytes = fs::metadata(&path).map_err(|error| failed("looked at", &name, error))?.len();
        let again = "remove it to have its rows copied again";
        if bytes != self.bytes {
            let what = format!(
                "it is not what this copy wrote: it has {bytes} bytes, and had {}; {again}",
                self.bytes
            );
            return Err(of_state(&what, &path));
        }
        let rows = Files::open([&path], &FilesOptions::default()).map(|file| file.table().rows);
        let what = match rows {
            Ok(Some(rows)) if rows == self.rows => return Ok(()),
            Ok(rows) => format!("it has {} rows, and had {}", rows.unwrap_or(0), self.rows),
            Err(error) => error.message().to_owned(),
        };
        Err(of_state(&format!("it is not what this copy wrote: {what}; {again}"), &path))
    }
}

/// What is wrong with a file of the directory that a copy goes on in.
fn of_state(what: &str, path: &Path) -> Error {
    let what = format!("{}: {what}", path.display());
    Error::option("state", what)
}

/// Reads what [`Parts::save`] wrote; what is wrong with another text.
fn read(text: &str) -> Result<Read, &'static str> {
    let is_other = "it is not the state of a copy in parts";
    if !text.starts_with(TITLES) {
        return Err(is_other);
    }
    if text.lines().next() != Some(TITLE) {
        return Err("another version of this program wrote it, which has to finish the copy");
    }
    let text = unsealed(text).ok_or("it was changed or cut: its checksum is not that of its lines")?;
    parse(text).ok_or(is_other)
}

fn parse(text: &str) -> Option<Read> {
    let mut lines = text.lines();
    (lines.next()? == TITLE).then_some(())?;
    let mut value = |key: &str| unquoted(lines.next()?.strip_prefix(key)?.strip_prefix(' ')?);
    let (source, directory, options) = (value("source")?, value("directory")?, value("options")?);
    let mut parts = Vec::new();
    loop {
        let line = lines.next()?;
        let Some(part) = line.strip_prefix("part ") else {
            let is_finished = match line {
                "finished yes" => true,
                "finished no" => false,
                _ => return None,
            };
            return lines.next().is_none().then_some(Read { source, directory, options, parts, is_finished });
        };
        let mut words = part.splitn(5, ' ');
        let (first, last): (i64, i64) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        let (rows, bytes) = (words.next()?.parse().ok()?, words.next()?.parse().ok()?);
        // A name of this copy's: nothing that leads out of the directory.
        let file = words.next().filter(|name| !name.contains(['/', '\\']))?;
        let file = (file != NO_FILE).then(|| file.to_owned());
        parts.push(Part { file, tokens: (first <= last).then_some(first..=last)?, rows, bytes });
    }
}

/// What two copies did.
fn sum(before: &Copied, now: &Copied) -> Copied {
    let mut sum = *before;
    sum.rows += now.rows;
    sum.bytes_read += now.bytes_read;
    sum.verified += now.verified;
    // All parts have one counter of these.
    sum.values_lost = now.values_lost;
    let (written, more) = (&mut sum.written, &now.written);
    written.rows += more.rows;
    written.bytes += more.bytes;
    written.files += more.files;
    written.row_groups += more.row_groups;
    sum
}

/// The file of a part: it is written down in the state before it appears.
struct OfPart<'a> {
    file: NewParquetFile,
    part: Option<Part>,
    parts: &'a mut Parts,
}

impl Destination for OfPart<'_> {
    fn name(&self) -> &str {
        self.file.name()
    }

    fn cancelled_by(&mut self, cancel: &Cancel) {
        self.file.cancelled_by(cancel);
    }

    fn set_threads(&mut self, threads: usize) {
        self.file.set_threads(threads);
    }

    fn set_sorting(&mut self, memory_bytes: Option<u64>) {
        self.file.set_sorting(memory_bytes);
    }

    fn begin(&mut self, table: &Table) -> Result<Wants> {
        self.file.begin(table)
    }

    fn rows_from(&mut self, object: &str) {
        self.file.rows_from(object);
    }

    fn write(&mut self, batch: Batch) -> Result<()> {
        if let Some(part) = &mut self.part {
            part.rows += u64_of(batch.rows);
        }
        self.file.write(batch)
    }

    fn drain(&mut self) -> Result<()> {
        self.file.drain()
    }

    fn finish(&mut self) -> Result<Written> {
        let written = self.file.finish()?;
        if let Some(part) = &mut self.part {
            part.bytes = written.bytes;
        }
        Ok(written)
    }

    fn written(&self) -> Result<Option<Box<dyn Source>>> {
        self.file.written()
    }

    fn commit(&mut self) -> Result<()> {
        let Some(mut part) = self.part.take() else {
            return Err(Error::misuse("a part that was written before"));
        };
        let has_rows = part.rows > 0;
        if !has_rows {
            part.file = None;
        }
        self.parts.parts.push(part);
        let appeared = self.parts.save().and_then(|()| if has_rows { self.file.commit() } else { Ok(()) });
        if appeared.is_err() {
            // Its rows are not there. The file of the state may have it: it counts if its file is there.
            self.parts.parts.pop();
        }
        appeared
    }

    fn settle(&mut self) {
        self.file.settle();
    }
}

/// Some pieces of a source, one after the other.
struct PartOf {
    source: Arc<dyn Source>,
    table: Table,
    pieces: Vec<Piece>,
    first: usize,
    tokens: RangeInclusive<i64>,
}

impl PartOf {
    /// Pieces from one on that follow each other without tokens between them, at most so many.
    fn new(source: Arc<dyn Source>, first: usize, most: usize) -> Result<PartOf> {
        let none = || {
            Error::option(
                "state",
                "rows that are not read by ranges of tokens cannot be copied in parts, which go on",
            )
        };
        let all = source.pieces();
        let mut pieces: Vec<Piece> = Vec::new();
        let mut tokens: Option<(i64, i64)> = None;
        for piece in all.iter().skip(first).take(most) {
            let (start, end) = piece.tokens.ok_or_else(none)?;
            tokens = match tokens {
                None => Some((start, end)),
                // What is between was copied before, or is not wanted: it is none of this part's.
                Some((_, before)) if before.checked_add(1) != Some(start) => break,
                Some((first, _)) => Some((first, end)),
            };
            pieces.push(piece.clone());
        }
        let (start, end) = tokens.ok_or_else(none)?;
        let mut table = source.table().clone();
        (table.rows, table.bytes, table.row_groups) = (None, None, None);
        Ok(PartOf { source, table, pieces, first, tokens: start..=end })
    }
}

impl Source for PartOf {
    fn table(&self) -> &Table {
        &self.table
    }

    fn pieces(&self) -> &[Piece] {
        &self.pieces
    }

    fn open(&self, piece: usize, options: &PieceOptions) -> Result<Box<dyn Batches>> {
        self.source.open(self.first + piece, options)
    }

    fn open_rows(
        &self,
        piece: usize,
        rows: RowSelection,
        options: &PieceOptions,
    ) -> Result<Option<Box<dyn Batches>>> {
        self.source.open_rows(self.first + piece, rows, options)
    }
}

/// The name of the file of a part: by its first token, in the order of tokens.
fn name_of(tokens: &RangeInclusive<i64>) -> String {
    format!("part-{:016x}.parquet", tokens.start().cast_unsigned() ^ 1 << 63)
}

/// The name of a table without how it is reached: its address's hosts and user, and whether connections are encrypted.
fn table_of(name: &str) -> &str {
    let table = without_hosts(name);
    match name.starts_with("cql://") {
        true => table.split_once('?').map_or(table, |(table, _)| table),
        false => table,
    }
}

/// The name of a table without the hosts and the user that its address begins with: another node has the same table.
fn without_hosts(name: &str) -> &str {
    name.strip_prefix("cql://").and_then(|rest| rest.split_once('/')).map_or(name, |(_, table)| table)
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;
    use marquetry_parquet::schema::{FieldDef, FieldType, PhysicalType, Schema};
    use std::sync::atomic::{AtomicU64, Ordering};

    use crate::{Reading, ReadingOptions, TokenRange};

    /// A ring of so many rows, at ten tokens each, that is split anyhow; it fails when so many pieces were opened.
    struct Ring {
        table: Table,
        pieces: Vec<Piece>,
        opened: AtomicU64,
        fails_after: u64,
    }

    const FIRST: i64 = -1000;
    const LAST: i64 = 999;

    impl Ring {
        fn split(width: usize, done: &[RangeInclusive<i64>], fails_after: u64) -> Arc<dyn Source> {
            Arc::new(Ring::new(width, done, fails_after))
        }

        fn new(width: usize, done: &[RangeInclusive<i64>], fails_after: u64) -> Ring {
            let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
            let mut table = Table::new("ring", Arc::new(Schema::of_fields(&[id]).unwrap()));
            table.identity = Some("1".to_owned());
            let wanted = TokenRange::without(&[FIRST..=LAST], done);
            let mut pieces = Vec::new();
            for start in (FIRST..=LAST).step_by(width) {
                let end = LAST.min(start + i64::try_from(width).unwrap() - 1);
                for range in &wanted {
                    let (start, end) = (start.max(*range.start()), end.min(*range.end()));
                    if start <= end {
                        let mut piece = Piece::of(format!("{start} to {end}"));
                        piece.tokens = Some((start, end));
                        pieces.push(piece);
                    }
                }
            }
            Ring { table, pieces, opened: AtomicU64::new(0), fails_after }
        }
    }

    impl Source for Ring {
        fn table(&self) -> &Table {
            &self.table
        }

        fn pieces(&self) -> &[Piece] {
            &self.pieces
        }

        fn open(&self, piece: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            if self.opened.fetch_add(1, Ordering::Relaxed) >= self.fails_after {
                return Err(Error::io("the ring broke"));
            }
            let (start, end) = self.pieces[piece].tokens.unwrap();
            // Of the tokens from 0 to 99 there are no rows.
            let rows: Vec<i64> =
                (start..=end).filter(|token| token % 10 == 0 && !(0..100).contains(token)).collect();
            Ok(Box::new(Once(Some(rows).filter(|rows| !rows.is_empty()))))
        }
    }

    struct Once(Option<Vec<i64>>);

    impl Batches for Once {
        fn next(&mut self) -> Result<Option<Batch>> {
            self.0.take().map(|rows| Batch::of_values([rows.into()])).transpose()
        }
    }

    fn run(parts: &mut Parts, source: &Arc<dyn Source>) -> Result<Copied> {
        let options = CopyOptions { threads: Some(1), ..CopyOptions::default() };
        parts.copy(source, &ParquetOptions::default(), &options, &mut |_| {})
    }

    /// Every row of the directory, in order.
    fn rows_of(directory: &Path) -> Vec<i64> {
        let files: Arc<dyn Source> = Arc::new(Files::open([directory], &FilesOptions::default()).unwrap());
        let mut reading = Reading::new(files, ReadingOptions::default()).unwrap();
        let mut rows = Vec::new();
        while let Some((_, batch)) = reading.next_batch().unwrap() {
            match &batch.columns[0].values {
                marquetry_parquet::batch::Values::Int64(values) => rows.extend(values.iter().copied()),
                other => panic!("{other:?}"),
            }
        }
        rows.sort_unstable();
        rows
    }

    fn all() -> Vec<i64> {
        (FIRST..=LAST).filter(|token| token % 10 == 0 && !(0..100).contains(token)).collect()
    }

    #[test]
    fn it_goes_on_however_the_ring_is_split() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let open = |resume: bool| Parts::open(&state, &directory, resume, "o");
        // Each run fails later than the one before, and the ring is split otherwise each time.
        let mut runs = 0;
        for width in [37_usize, 64, 23, 51, 19].into_iter().cycle() {
            let mut parts = open(true).unwrap();
            let source = Ring::split(width, &parts.done(), 20);
            runs += 1;
            match run(&mut parts, &source) {
                Ok(_) => break,
                Err(error) => assert!(error.to_string().contains("the ring broke"), "{error}"),
            }
            // What appeared is what the state says.
            assert_eq!(rows_of_some(&directory), parts.rows());
            assert!(runs < 50);
        }
        assert!(runs > 2, "{runs}");
        assert_eq!(rows_of(&directory), all());
        // It is not repeated.
        let error = open(false).unwrap_err();
        assert_eq!(error.detail(), Some(Detail::AdmittedBy(&["resume"])), "{error}");
        let mut parts = open(true).unwrap();
        assert!(parts.is_finished() && parts.rows() == u64_of(all().len()));
        let nothing = Ring::split(7, &parts.done(), 0);
        assert_eq!(run(&mut parts, &nothing).unwrap().rows, 0);
        drop(parts);
        // A file that somebody removed is written again.
        let lost = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(lost).unwrap();
        let mut parts = open(true).unwrap();
        assert!(!parts.is_finished());
        let source = Ring::split(100, &parts.done(), 99);
        run(&mut parts, &source).unwrap();
        assert_eq!(rows_of(&directory), all());
    }

    fn rows_of_some(directory: &Path) -> u64 {
        let has_some = fs::read_dir(directory).is_ok_and(|mut files| files.next().is_some());
        if has_some { u64_of(rows_of(directory).len()) } else { 0 }
    }

    /// A kill between the state and the file it speaks of, and after the file: neither loses nor doubles rows.
    #[test]
    fn a_state_is_believed_as_far_as_files_are_there() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let mut parts = Parts::open(&state, &directory, false, "o").unwrap();
        let source = Ring::split(50, &parts.done(), 20);
        run(&mut parts, &source).unwrap_err();
        let files = parts.files();
        drop(parts);
        assert_eq!(files, 2);
        let text = fs::read_to_string(&state).unwrap();
        let text = unsealed(&text).unwrap();
        let more = text.replace("finished", "part 500 549 5 99 part-never.parquet\nfinished");
        fs::write(&state, sealed(&more)).unwrap();
        let mut parts = Parts::open(&state, &directory, true, "o").unwrap();
        assert!(!parts.done().iter().any(|tokens| tokens.contains(&500)));
        let source = Ring::split(50, &parts.done(), 99);
        run(&mut parts, &source).unwrap();
        drop(parts);
        assert_eq!(rows_of(&directory), all());
    }

    /// Files that appeared are looked at before a copy goes on, or says that it was finished.
    #[test]
    fn a_part_that_is_another_file_by_now_is_an_error() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let mut parts = Parts::open(&state, &directory, false, "o").unwrap();
        let source = Ring::split(50, &parts.done(), 99);
        run(&mut parts, &source).unwrap();
        drop(parts);
        let error = || Parts::open(&state, &directory, true, "o").unwrap_err().to_string();
        let mut files: Vec<PathBuf> =
            fs::read_dir(&directory).unwrap().map(|it| it.unwrap().path()).collect();
        files.sort_unstable();
        let (first, whole) = (&files[0], fs::read(&files[0]).unwrap());
        fs::write(first, &whole[..whole.len() / 2]).unwrap();
        assert!(error().contains("it is not what this copy wrote: it has "), "{}", error());
        fs::write(first, vec![0; whole.len()]).unwrap();
        assert!(error().contains("remove it to have its rows copied again"), "{}", error());
        fs::write(first, &whole).unwrap();
        assert!(Parts::open(&state, &directory, true, "o").unwrap().is_finished());
        fs::copy(first, directory.join("mine.parquet")).unwrap();
        assert!(error().contains("mine.parquet: this copy did not write it"), "{}", error());
        fs::remove_file(directory.join("mine.parquet")).unwrap();
        // It is believed only as it was written.
        let text = fs::read_to_string(&state).unwrap();
        fs::write(&state, text.replacen("part -", "part ", 1)).unwrap();
        assert!(error().contains("its checksum"), "{}", error());
    }

    #[test]
    fn the_same_table_by_another_host() {
        for name in ["cql://localhost/k.t", "cql://me@127.0.0.1:9042,db2/k.t", "k.t"] {
            assert_eq!(without_hosts(name), "k.t");
        }
        assert_eq!(without_hosts("cql://h/k.t (id, schema 01)"), "k.t (id, schema 01)");
        for name in ["cql://localhost/k.t?tls=yes", "cql://me@db1:9042/k.t"] {
            assert_eq!(table_of(name), "k.t");
        }
        assert_eq!(table_of("what?.parquet"), "what?.parquet");
    }

    /// How a table is reached is none of the state's business.
    #[test]
    fn encryption_may_be_asked_for_otherwise() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let open = || Parts::open(&state, &directory, true, "o").unwrap();
        let named = |name: &str, parts: &Parts, fails_after| {
            let mut ring = Ring::new(50, &parts.done(), fails_after);
            ring.table.name = name.to_owned();
            Arc::new(ring) as Arc<dyn Source>
        };
        let mut parts = open();
        let source = named("cql://h/k.t?tls=yes", &parts, 20);
        run(&mut parts, &source).unwrap_err();
        drop(parts);
        let text = fs::read_to_string(&state).unwrap();
        assert!(text.contains("\nsource \"k.t (1, "), "{text}");
        let mut parts = open();
        let source = named("cql://other/k.t", &parts, 99);
        run(&mut parts, &source).unwrap();
        drop(parts);
        assert_eq!(rows_of(&directory), all());
    }

    /// A table without rows is a directory with a file without rows, which can be read.
    #[test]
    fn a_table_without_rows_has_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let open = || Parts::open(&state, &directory, true, "o").unwrap();
        let empty = |parts: &Parts| {
            let mut ring = Ring::new(50, &parts.done(), 99);
            ring.pieces.retain(|piece| piece.tokens.is_some_and(|(start, _)| (0..100).contains(&start)));
            Arc::new(ring) as Arc<dyn Source>
        };
        let mut parts = open();
        let source = empty(&parts);
        let copied = run(&mut parts, &source).unwrap();
        assert_eq!((copied.rows, copied.written.files, parts.files(), parts.rows()), (0, 1, 1, 0));
        drop(parts);
        assert_eq!(rows_of(&directory), [0_i64; 0]);
        let parts = open();
        assert!(parts.is_finished());
        // Without its file it is not complete, and made again.
        let file = fs::read_dir(&directory).unwrap().next().unwrap().unwrap().path();
        fs::remove_file(&file).unwrap();
        drop(parts);
        let mut parts = open();
        assert!(!parts.is_finished());
        let source = empty(&parts);
        assert_eq!(run(&mut parts, &source).unwrap().written.files, 1);
        assert!(file.exists());
    }

    /// The statements are there when all files are, and only then.
    #[test]
    fn what_is_begun_anew_is_not_complete() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let run = |fails_after| {
            let mut parts = Parts::open(&state, &directory, true, "o").unwrap();
            let mut ring = Ring::new(50, &parts.done(), fails_after);
            let value = Some(marquetry_base::Bytes::from(b"CREATE TABLE".to_vec()));
            let statements = marquetry_parquet::format::KeyValue { key: TABLE_SCHEMA_KEY.to_owned(), value };
            ring.table.key_values.push(statements);
            run(&mut parts, &(Arc::new(ring) as Arc<dyn Source>))
        };
        let is_complete = || directory.join(SCHEMA_FILE).exists();
        run(99).unwrap();
        assert!(is_complete());
        run(0).unwrap();
        assert!(is_complete());
        let is_part = |path: &PathBuf| path.extension().is_some_and(|it| it == "parquet");
        let lost = fs::read_dir(&directory).unwrap().map(|entry| entry.unwrap().path()).find(is_part);
        fs::remove_file(lost.unwrap()).unwrap();
        run(0).unwrap_err();
        assert!(!is_complete());
        run(99).unwrap();
        assert!(is_complete());
        fs::remove_file(directory.join(SCHEMA_FILE)).unwrap();
        assert_eq!(rows_of(&directory), all());
    }

    #[test]
    fn only_what_it_began_with() {
        let folder = tempfile::tempdir().unwrap();
        let (state, directory) = (folder.path().join("state"), folder.path().join("ring"));
        let open = |directory: &Path, options: &str| Parts::open(&state, directory, true, options);
        let mut parts = open(&directory, "o").unwrap();
        assert!(Parts::open(&state, &directory, true, "o").unwrap_err().to_string().contains("in use"));
        let source = Ring::split(50, &[], 20);
        run(&mut parts, &source).unwrap_err();
        drop(parts);
        let told = |made: Result<Parts>| made.unwrap_err().to_string();
        assert!(told(open(&directory, "other")).contains("other options"));
        drop(open(&directory.join(""), "o").unwrap());
        assert!(told(open(&folder.path().join("other"), "o")).contains("a copy into"));
        let mut parts = open(&directory, "o").unwrap();
        let id = FieldDef::new("id", FieldType::Leaf(PhysicalType::Int64, None)).required();
        let mut table = Table::new("ring", Arc::new(Schema::of_fields(&[id]).unwrap()));
        table.identity = Some("2".to_owned());
        let other: Arc<dyn Source> =
            Arc::new(Ring { table, pieces: Vec::new(), opened: AtomicU64::new(0), fails_after: 0 });
        assert!(run(&mut parts, &other).unwrap_err().to_string().contains("another table"));
        drop(parts);
        // A directory with something in it is nobody's to fill.
        fs::remove_file(&state).unwrap();
        assert_eq!(open(&directory, "o").unwrap_err().detail(), Some(Detail::AlreadyExists));
        for wrong in [
            "",
            "marquetry unload, version 1\n",
            "marquetry unload, version 2\nsource \"a\"\ndirectory \"b\"\noptions \"c\"\npart 5 4 0 0 -\nfinished no\n",
            "marquetry unload, version 2\nsource \"a\"\ndirectory \"b\"\noptions \"c\"\nfinished yes\n",
        ] {
            let is_sealed = wrong.ends_with("no\n");
            fs::write(&state, if is_sealed { sealed(wrong) } else { wrong.to_owned() }).unwrap();
            assert_eq!(open(&directory, "o").unwrap_err().kind(), ErrorKind::Corrupt, "{wrong}");
        }
    }
}
