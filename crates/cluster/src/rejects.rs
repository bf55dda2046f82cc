//! Rows that could not be loaded: a Parquet file of them, each with the reason.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use marquetry_base::{Detail, Error, ErrorKind, Result};
use marquetry_parquet::batch::{Batch, ByteArrays, ColumnBatch, Layout, Values};
use marquetry_parquet::format::KeyValue;
use marquetry_parquet::schema::{Column, LogicalType, PhysicalType, Plan, Schema, Union};
use marquetry_scylla::bridge::mutations::MutationMapping;
use marquetry_tables::parquet::{NewParquetFile, ParquetOptions};
use marquetry_tables::{Cancel, Described, Destination, Reading, ReadingOptions, Source, Table, lines_of};

/// How many rows may be rejected before a load ends.
#[derive(Debug, Clone, Copy, PartialEq)]
#[non_exhaustive]
pub enum MaxErrors {
    /// So many.
    Rows(u64),
    /// So many of a hundred rows; of the first thousand, all may be.
    Percent(f64),
}

impl Default for MaxErrors {
    /// A hundred rows: more are rather a mapping that is wrong.
    fn default() -> MaxErrors {
        MaxErrors::Rows(100)
    }
}

impl FromStr for MaxErrors {
    type Err = Error;

    /// Parses a number of rows, or with a percent sign a part of them.
    ///
    /// # Errors
    ///
    /// `Misuse` for the option `max_errors`.
    fn from_str(text: &str) -> Result<MaxErrors> {
        let text = text.trim();
        let parsed = match text.strip_suffix('%') {
            Some(percent) => {
                let percent = percent.trim_end().parse::<f64>().ok();
                percent.filter(|it| (0.0..=100.0).contains(it)).map(MaxErrors::Percent)
            }
            None => text.parse().ok().map(MaxErrors::Rows),
        };
        parsed.ok_or_else(|| {
            let what = format!(
                "{text:?} is neither a number of rows, such as 100, nor a part of them, such as 0.1%"
            );
            Error::option("max_errors", what)
        })
    }
}

impl fmt::Display for MaxErrors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MaxErrors::Rows(rows) => rows.fmt(f),
            MaxErrors::Percent(percent) => write!(f, "{percent}%"),
        }
    }
}

/// Of fewer rows, a part says little.
const ROWS_MIN: u64 = 1000;

impl MaxErrors {
    /// Whether `rejected` of `rows` rows are too many.
    fn is_exceeded(self, rejected: u64, rows: u64, is_end: bool) -> bool {
        match self {
            MaxErrors::Rows(most) => rejected > most,
            MaxErrors::Percent(percent) => {
                (is_end || rows >= ROWS_MIN) && float(rejected) * 100.0 > float(rows) * percent
            }
        }
    }
}

/// Near enough: counts of rows that differ in their last digits.
fn float(rows: u64) -> f64 {
    let (high, low) = (rows >> 32, rows & u64::from(u32::MAX));
    let part = |part: u64| u32::try_from(part).map_or(0.0, f64::from);
    part(high) * 4_294_967_296.0 + part(low)
}

/// A row that is rejected.
#[derive(Debug)]
pub(crate) struct Rejected {
    /// The row alone.
    pub(crate) row: Batch,
    /// Its number among all rows.
    pub(crate) ordinal: u64,
    pub(crate) error: Error,
}

/// Whether a row with this error is rejected, and the load goes on: it cannot be a row of the table, whatever is done.
pub(crate) fn is_of_row(error: &Error) -> bool {
    matches!(error.kind(), ErrorKind::Conversion | ErrorKind::LimitExceeded)
}

/// The file of rejected rows: it appears at the end, whole, if there are any.
pub(crate) struct Rejects {
    file: NewParquetFile,
    path: PathBuf,
    max_errors: MaxErrors,
    /// Rows that earlier runs of the load rejected.
    before: u64,
    /// Their numbers among all rows.
    ordinals: Vec<u64>,
    leaves: usize,
    /// What the file is of: the rows' columns, and the reason.
    table: Table,
    /// Where the lines of rows can be found, and what ends that; `None` if nobody wants to know them.
    source: Option<(Arc<dyn Source>, Cancel)>,
    /// The objects that the rows are from, and of each row which one, and its number there; fewer than the rows if one is not known.
    objects: Vec<String>,
    places: Vec<(usize, u64)>,
}

impl Rejects {
    /// Begins the file, so that all that can be wrong with it is known before the first row.
    ///
    /// `before` is how many rows earlier runs have rejected, if the load goes on; then there may be a file already, and this is
    /// `bad-2.parquet` beside `bad.parquet`, and so on.
    ///
    /// # Errors
    ///
    /// `Misuse` if it exists; `Io` if it cannot be created.
    pub(crate) fn begin(
        path: &Path,
        before: Option<u64>,
        table: &Table,
        max_errors: MaxErrors,
    ) -> Result<Rejects> {
        let path = &*if before.is_some() { next_free(path) } else { path.to_path_buf() };
        expect_new(path)?;
        let mut file = NewParquetFile::new(path, ParquetOptions::default())?;
        let leaves = table.schema.leaves().len();
        let (schema, name) =
            with_column(&table.schema, "error", PhysicalType::ByteArray, Some(LogicalType::String))?;
        let mut rejected = Table::new("rejected rows", schema);
        // What is a write stays one, beside the reason.
        if Described::of(table)?.is_some_and(|it| it.mapping == MutationMapping::Full) {
            rejected.key_values.clone_from(&table.key_values);
            let value = Some(name.into_bytes().into());
            rejected.key_values.push(KeyValue { key: REASON_KEY.to_owned(), value });
        }
        file.begin(&rejected)?;
        Ok(Rejects {
            file,
            path: path.to_path_buf(),
            max_errors,
            before: before.unwrap_or(0),
            ordinals: Vec::new(),
            leaves,
            table: rejected,
            source: None,
            objects: Vec::new(),
            places: Vec::new(),
        })
    }

    /// Says the lines of the rows, if their source has lines.
    pub(crate) fn with_lines_of(mut self, source: Option<Arc<dyn Source>>, cancel: &Cancel) -> Rejects {
        self.source = source.map(|source| (source, cancel.clone()));
        self
    }

    /// Where they go.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    pub(crate) fn rows(&self) -> u64 {
        marquetry_base::cast::u64_of(self.ordinals.len())
    }

    /// Their numbers among all rows.
    pub(crate) fn ordinals(&self) -> &[u64] {
        &self.ordinals
    }

    /// Adds a row. `rows` were looked at so far, by all runs.
    ///
    /// # Errors
    ///
    /// `Conversion` if too many were rejected; `Io` if it could not be written.
    pub(crate) fn add(&mut self, rejected: Rejected, rows: u64) -> Result<()> {
        let Rejected { mut row, ordinal, error } = rejected;
        let text = error.to_string().into_bytes();
        let lengths = [text.len()];
        let reason = Values::ByteArray(ByteArrays::from_lengths(text.into(), lengths)?);
        row.columns.push(column(self.leaves, reason));
        self.file.write(row)?;
        self.ordinals.push(ordinal);
        let place = error.place();
        if let (Some(object), Some(row)) = (&place.object, place.row) {
            let known = self.objects.iter().rposition(|known| known == object);
            let number = known.unwrap_or(self.objects.len());
            self.objects.extend(known.is_none().then(|| object.clone()));
            self.places.push((number, row));
        }
        self.check(rows, false, Some(&error))
    }

    /// Fails if too many of all rows were rejected.
    ///
    /// # Errors
    ///
    /// `Conversion`.
    pub(crate) fn check(&self, rows: u64, is_end: bool, last: Option<&Error>) -> Result<()> {
        let rejected = self.before.saturating_add(self.rows());
        if !self.max_errors.is_exceeded(rejected, rows, is_end) {
            return Ok(());
        }
        let before = match self.before {
            0 => String::new(),
            before => format!(" ({before} of them by earlier runs)"),
        };
        let last = last.map_or_else(String::new, |error| format!("; the last of them: {error}"));
        let rows = if rejected == 1 { "row was" } else { "rows were" };
        let what = format!("{rejected} {rows} rejected{before}, and {} may be{last}", self.max_errors);
        Err(Error::conversion(what).with(Detail::AdmittedBy(&["max_errors"])))
    }

    /// Completes the file, if there are rows in it.
    ///
    /// # Errors
    ///
    /// `Io`, with its name.
    pub(crate) fn complete(mut self) -> Result<Option<Complete>> {
        let rows = self.rows();
        if rows == 0 {
            return Ok(None);
        }
        let bytes = self.file.finish().map_err(|error| named(error, &self.path))?.bytes;
        let lined = self.lines().map(|lines| self.lined(&lines));
        let Rejects { file, path, .. } = self;
        // The rows are what counts: where there is no space for a second file, they are kept without their lines.
        let (file, bytes, without_lines) = match lined {
            None => (file, bytes, None),
            Some(Ok((file, bytes))) => (file, bytes, None),
            Some(Err(error)) => (file, bytes, Some(named(error, &path))),
        };
        Ok(Some(Complete { file, path, rows, bytes, without_lines }))
    }

    /// The line of each row, if all have one: each text is read again, once.
    fn lines(&self) -> Option<Vec<i64>> {
        let (source, cancel) = self.source.as_ref()?;
        if self.places.len() < self.ordinals.len() {
            return None;
        }
        let mut lines = vec![0; self.places.len()];
        for (number, object) in self.objects.iter().enumerate() {
            let places = self.places.iter().enumerate().filter(|(_, (of, _))| *of == number);
            let mut rows: Vec<(u64, usize)> = places.map(|(at, (_, row))| (*row, at)).collect();
            rows.sort_unstable();
            let wanted: Vec<u64> = rows.iter().map(|(row, _)| *row).collect();
            let found = lines_of(source.as_ref(), object, &wanted, cancel)?;
            for ((_, at), line) in rows.iter().zip(found) {
                *lines.get_mut(*at)? = i64::try_from(line).ok()?;
            }
        }
        Some(lines)
    }

    /// The file, which is finished, once more, with a column more for the lines; and its length.
    fn lined(&self, lines: &[i64]) -> Result<(NewParquetFile, u64)> {
        let lost = || Error::internal("rejected rows that cannot be read again");
        let written: Arc<dyn Source> = Arc::from(self.file.written()?.ok_or_else(lost)?);
        let mut options = ReadingOptions::default();
        options.threads = Some(1);
        let mut reading = Reading::new(written, options)?;
        let mut table = self.table.clone();
        (table.schema, _) = with_column(&table.schema, "line", PhysicalType::Int64, None)?;
        let mut file = NewParquetFile::new(&self.path, ParquetOptions::default())?;
        file.begin(&table)?;
        let mut left = lines;
        while let Some((_, mut batch)) = reading.next_batch()? {
            let (of_batch, rest) = left.split_at_checked(batch.rows).ok_or_else(lost)?;
            batch.columns.push(column(self.leaves + 1, of_batch.to_vec().into()));
            file.write(batch)?;
            left = rest;
        }
        let bytes = file.finish()?.bytes;
        if left.is_empty() { Ok((file, bytes)) } else { Err(lost()) }
    }
}

/// A column without nulls.
fn column(leaf: usize, values: Values) -> ColumnBatch {
    ColumnBatch {
        leaf,
        rows: values.len(),
        nulls: 0,
        validity: None,
        values,
        layout: Layout::Spaced,
        levels: None,
        provisional: false,
    }
}

/// The file of rejected rows, which has all of them and no name yet.
pub(crate) struct Complete {
    file: NewParquetFile,
    path: PathBuf,
    rows: u64,
    bytes: u64,
    /// Why it does not say in which lines of a text its rows are, if it should.
    pub(crate) without_lines: Option<Error>,
}

impl Complete {
    /// Where it appears, and its length.
    pub(crate) fn file(&self) -> (&Path, u64) {
        (&self.path, self.bytes)
    }

    pub(crate) fn rows(&self) -> u64 {
        self.rows
    }

    /// Lets it appear.
    ///
    /// # Errors
    ///
    /// `Misuse` if there is one by now; `Io`, with its name.
    pub(crate) fn appear(&mut self) -> Result<()> {
        self.file.commit().map_err(|error| named(error, &self.path))
    }
}

fn named(error: Error, path: &Path) -> Error {
    match error.detail() {
        // It came to be meanwhile.
        Some(Detail::AlreadyExists) => is_there(path),
        _ => error.at(|place| place.object = Some(path.display().to_string())),
    }
}

/// Fails for a file that exists: it has rows that somebody may want, and nothing replaces it.
pub(crate) fn expect_new(path: &Path) -> Result<()> {
    if path.exists() { Err(is_there(path)) } else { Ok(()) }
}

fn is_there(path: &Path) -> Error {
    let what = format!(
        "{} exists, and rejected rows are never written over others: name another file, or move it",
        path.display()
    );
    Error::option("rejects", what)
}

/// The first of `bad.parquet`, `bad-2.parquet`, … that does not exist.
fn next_free(path: &Path) -> PathBuf {
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let extension = path.extension().map(|it| format!(".{}", it.to_string_lossy())).unwrap_or_default();
    let numbered = (2..u64::MAX).map(|number| path.with_file_name(format!("{stem}-{number}{extension}")));
    let mut names = std::iter::once(path.to_path_buf()).chain(numbered);
    names.find(|name| !name.exists()).unwrap_or_else(|| path.to_path_buf())
}

/// The key under which a file of rejected writes says which column is the reason.
const REASON_KEY: &str = "marquetry.rejects";

/// The column of a table that is the reason why its rows were rejected once.
pub(crate) fn reason_of(table: &Table) -> Option<&str> {
    let value = table.key_values.iter().find(|it| it.key == REASON_KEY)?.value.as_ref()?;
    core::str::from_utf8(value).ok()
}

/// A schema with a column more: of this name, or with a number where the rows have that; and its name.
fn with_column(
    schema: &Arc<Schema>,
    wanted: &str,
    physical_type: PhysicalType,
    logical_type: Option<LogicalType>,
) -> Result<(Arc<Schema>, String)> {
    let mut name = wanted.to_owned();
    let mut number = 1;
    while schema.child_of_root(&name).is_some() {
        number += 1;
        name = format!("{wanted}_{number}");
    }
    let column = Column { name: name.clone(), physical_type, logical_type };
    let mut union = Union::new();
    union.add(Arc::clone(schema));
    Ok((union.with([column]).plan().at_once()?.schema, name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_parquet::schema::{FieldDef, FieldType};
    use marquetry_tables::files::{Files, FilesOptions};
    use marquetry_tables::{Batches, Piece, PieceOptions};

    #[test]
    fn bounds_are_read() {
        let max = |text: &str| text.parse::<MaxErrors>().ok();
        assert_eq!(max("0"), Some(MaxErrors::Rows(0)));
        assert_eq!(max("12"), Some(MaxErrors::Rows(12)));
        assert_eq!(max("0.5 %"), Some(MaxErrors::Percent(0.5)));
        for wrong in ["", "-1", "%", "101%", "-1%", "NaN%", "1.5", "ten"] {
            assert_eq!(max(wrong), None, "{wrong}");
        }
        assert_eq!(MaxErrors::Percent(0.5).to_string(), "0.5%");
        let half = MaxErrors::Percent(50.0);
        assert!(!half.is_exceeded(999, 999, false) && half.is_exceeded(999, 999, true));
        assert!(half.is_exceeded(501, 1000, false) && !half.is_exceeded(500, 1000, true));
        assert!(MaxErrors::Rows(3).is_exceeded(4, 4, false) && !MaxErrors::Rows(3).is_exceeded(3, 3, true));
    }

    fn schema(names: &[&str]) -> Arc<Schema> {
        let int = FieldType::Leaf(PhysicalType::Int32, None);
        let fields: Vec<_> = names.iter().map(|name| FieldDef::new(*name, int.clone())).collect();
        Arc::new(Schema::of_fields(&fields).unwrap())
    }

    /// How many rows are in it.
    fn appear(rejects: Rejects) -> u64 {
        rejects.complete().unwrap().map_or(0, |mut file| {
            file.appear().unwrap();
            assert_eq!(std::fs::metadata(file.file().0).unwrap().len(), file.file().1);
            file.rows()
        })
    }

    /// A text whose lines are asked for when one file of rejected rows is complete, and the one with lines is not begun: then their directory is
    /// renamed.
    struct Moving {
        table: Table,
        pieces: [Piece; 1],
        from: PathBuf,
        to: PathBuf,
    }

    impl Source for Moving {
        fn table(&self) -> &Table {
            &self.table
        }

        fn pieces(&self) -> &[Piece] {
            &self.pieces
        }

        fn open(&self, _: usize, _: &PieceOptions) -> Result<Box<dyn Batches>> {
            Err(Error::internal("nobody reads it"))
        }

        fn lines_of(&self, _: usize, rows: &[u64], _: &Cancel) -> Option<Vec<u64>> {
            std::fs::rename(&self.from, &self.to).unwrap();
            Some(rows.iter().map(|row| row + 2).collect())
        }
    }

    /// A second file may be one too many for a disk: then the rows are in the first one.
    #[test]
    fn rows_are_kept_where_their_lines_cannot_be() {
        for (moved_to, columns) in [("there", &["a", "error", "line"][..]), ("away", &["a", "error"])] {
            let folder = tempfile::tempdir().unwrap();
            let (from, to) = (folder.path().join("there"), folder.path().join(moved_to));
            std::fs::create_dir(&from).unwrap();
            let path = from.join("bad.parquet");
            let table = Table::new("t", schema(&["a"]));
            let text = Moving {
                table: table.clone(),
                pieces: [Piece::of("a.csv")],
                from: from.clone(),
                to: to.clone(),
            };
            let rejects = Rejects::begin(&path, None, &table, MaxErrors::Rows(2)).unwrap();
            let mut rejects = rejects.with_lines_of(Some(Arc::new(text)), &Cancel::new());
            let error = Error::conversion("it is wrong").at(|place| {
                (place.object, place.row) = (Some("a.csv".to_owned()), Some(3));
            });
            let row = Batch::of_values([vec![7_i32].into()]).unwrap();
            rejects.add(Rejected { row, ordinal: 0, error }, 1).unwrap();
            let mut complete = rejects.complete().unwrap().unwrap();
            let why = complete.without_lines.take().map(|error| error.kind());
            assert_eq!(why, (columns.len() == 2).then_some(ErrorKind::Io));
            std::fs::rename(&to, &from).unwrap();
            complete.appear().unwrap();
            let file = Files::open([&path], &FilesOptions::default()).unwrap();
            let found = file.table();
            let names: Vec<_> = found.schema.nodes().iter().skip(1).map(|node| node.name.as_str()).collect();
            assert_eq!((&*names, found.rows), (columns, Some(1)));
        }
    }

    #[test]
    fn the_file_appears_whole_if_there_are_rows() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("bad.parquet");
        let table = Table::new("t", schema(&["a", "error"]));
        let rejects = || Rejects::begin(&path, None, &table, MaxErrors::Rows(2));
        assert_eq!(appear(rejects().unwrap()), 0);
        assert!(!path.exists());
        let mut some = rejects().unwrap();
        let row = |number: i32| {
            let row = Batch::of_values([vec![number].into(), vec![7].into()]).unwrap();
            let error = Error::conversion("it is wrong").at(|place| place.row = Some(3));
            Rejected { row, ordinal: 5, error }
        };
        some.add(row(1), 10).unwrap();
        some.add(row(2), 11).unwrap();
        let error = some.add(row(3), 12).unwrap_err();
        assert_eq!(
            error.to_string(),
            "3 rows were rejected, and 2 may be; the last of them: it is wrong (row 3)"
        );
        assert!(!path.exists());
        assert_eq!(some.ordinals(), [5, 5, 5]);
        assert_eq!(appear(some), 3);
        let sources = marquetry_tables::files::Files::open([&path], &Default::default()).unwrap();
        let found = marquetry_tables::Source::table(&sources);
        let names: Vec<_> = found.schema.nodes().iter().skip(1).map(|node| node.name.as_str()).collect();
        assert_eq!((names, found.rows), (vec!["a", "error", "error_2"], Some(3)));
        // What is there is not replaced.
        assert_eq!(rejects().map(drop).unwrap_err().detail(), Some(Detail::Option("rejects")));
        let nowhere = folder.path().join("no/such/bad.parquet");
        assert!(Rejects::begin(&nowhere, None, &table, MaxErrors::default()).is_err());
        // A load that goes on has further files.
        for name in ["bad-2.parquet", "bad-3.parquet"] {
            let mut more = Rejects::begin(&path, Some(1), &table, MaxErrors::Rows(2)).unwrap();
            assert_eq!(more.path(), folder.path().join(name));
            more.add(row(7), 1).unwrap();
            assert_eq!(appear(more), 1);
        }
        let new = folder.path().join("new.parquet");
        let mut new_one = Rejects::begin(&new, Some(1), &table, MaxErrors::Rows(2)).unwrap();
        assert_eq!(new_one.path(), new);
        // Those of earlier runs count.
        new_one.add(row(8), 20).unwrap();
        let error = new_one.add(row(9), 21).unwrap_err().to_string();
        assert!(
            error.starts_with("3 rows were rejected (1 of them by earlier runs), and 2 may be"),
            "{error}"
        );
        let mut none = Rejects::begin(&path, Some(0), &table, MaxErrors::Rows(0)).unwrap();
        assert!(none.add(row(7), 1).unwrap_err().message().starts_with("1 row was rejected, and 0 may be"));
        let part = Rejects::begin(&path, Some(3), &table, MaxErrors::Percent(0.1)).unwrap();
        assert!(part.check(3000, true, None).is_ok() && part.check(2999, true, None).is_err());
    }
}
