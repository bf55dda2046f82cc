//! The published experiment: the same rows as rows and as columns, asked the same, where they are.

use std::path::Path;
use std::process::Command;

use marquetry_base::{Codec, Fields, Frame};
use marquetry_bench::program;
use marquetry_bench::report::{Better, Row};
use marquetry_ceph::{ANSWER, AnswerField, Method, REQUEST, RequestField, call};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Form, Pool};
use serde_json::json;

use crate::lineitem::{self, Lines};
use crate::measure::{Answered, Run, client_ms, measured, queried, text};

/// Runs of each query; the one of the least work counts.
const ROUNDS: usize = 3;
/// Values of an object of rows, at most: a few tens of bytes each, and an object is written at once, so it has 90 MiB at most.
const FLAT_VALUES: u64 = 2_000_000;
/// Rows that a plain loop is compared with, at most.
const PLAIN_ROWS: u64 = 500_000;
const PLAIN_ROUNDS: usize = 5;

/// Columns by rows: how many times less work in the OSD, and time, for what columns are for; and of the space.
const FASTER_BAR: f64 = 10.0;
const SPACE_BAR: f64 = 1.0 / 3.0;
/// Of a plain loop's speed: what makes the row side fair.
const FAIR_BAR: f64 = 0.8;
/// Rows of what is held to these bars.
const MEDIUM_ROWS: u64 = 500_000;

/// Columns of the table, and how many rows of them are in an object.
pub(crate) struct Shape {
    pub(crate) name: &'static str,
    /// By their places.
    pub(crate) columns: &'static [usize],
    pub(crate) sizes: &'static [u64],
}

/// The published shape: two keys, a quantity and a price. And the whole table, of which five million rows are no object as columns, either.
pub(crate) const SHAPES: [Shape; 2] = [
    Shape { name: "four columns", columns: &[0, 1, 4, 5], sizes: &[50_000, 500_000, 5_000_000] },
    Shape {
        name: "all columns",
        columns: &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
        sizes: &[50_000, 500_000],
    },
];

/// The same rows in both forms.
struct Made {
    /// An object of columns, as a copy writes it.
    columns: Vec<String>,
    /// Objects of rows: as many as they need.
    flat: Vec<String>,
    /// What the class transforms each of these into.
    back: Vec<String>,
    /// What that took, one way and the other.
    into_rows: Run,
    into_columns: Run,
}

/// Rows of a shape in both forms; and a program that reads rows by the FlatBuffers library, if there is one.
pub(crate) fn compare(
    pool: &Pool,
    files: &Path,
    (shape, rows): (&Shape, u64),
    plain: Option<&Path>,
) -> Result<Vec<Row>, String> {
    let case = format!("{}, {} thousand rows", shape.name, rows / 1000);
    let made = Made::new(pool, files, shape, rows)?;
    let mut table = made.sizes(pool, rows, &case)?;
    for (name, asked, faster) in queries() {
        let expected = Answered::of(pool, &made.columns, &asked)?;
        expected.expect(&Answered::of(pool, &made.flat, &asked)?, &format!("{case}, {name}, as rows"))?;
        expected.expect(&Answered::of(pool, &made.back, &asked)?, &format!("{case}, {name}, transformed"))?;
        if name == "all rows" && expected.rows != rows {
            return Err(format!("{case}: {} rows are there", expected.rows));
        }
        let ours = queried(pool, &made.columns, &asked, ROUNDS)?;
        let theirs = queried(pool, &made.flat, &asked, ROUNDS)?;
        let row = |what: &str, ours_ms: f64, theirs_ms: f64| Row {
            group: format!("{what}, of columns and of rows: {name}"),
            case: case.clone(),
            unit: "ms",
            better: Better::Lower,
            ours: Some(ours_ms),
            peers: vec![("rows".to_owned(), theirs_ms)],
            // Of small objects, calls take what they take.
            bar: if rows >= MEDIUM_ROWS { theirs_ms / faster } else { f64::NAN },
            ratio: None,
            more: json!({
                "times_faster": theirs_ms / ours_ms,
                "moved_bytes": ours.moved, "rows_moved_bytes": theirs.moved,
                "calls": ours.calls, "rows_calls": theirs.calls,
            }),
        };
        table.push(row("Work in the OSD", ours.work_ms, theirs.work_ms));
        table.push(row("Time until the last answer", ours.wall_ms, theirs.wall_ms));
    }
    if let Some(program) = plain.filter(|_| rows <= PLAIN_ROWS) {
        table.push(made.beside_plain(pool, (&files.join("ceph-forms.rows"), program), shape, case)?);
    }
    table.iter().for_each(Row::tell);
    Ok(table)
}

/// The queries, and how many times less they are to take of columns.
fn queries() -> [(&'static str, Asked, f64); 4] {
    [
        ("all rows", Asked::new(), 1.0),
        ("two columns", Asked::new().column("l_orderkey").column("l_extendedprice"), FASTER_BAR),
        ("1 %, sum", sum("l_partkey <= 2000"), FASTER_BAR),
        ("10 %, sum", sum("l_partkey <= 20000"), FASTER_BAR),
    ]
}

/// How many rows have such a key, of 200,000, and the sum of their prices.
pub(crate) fn sum(predicate: &str) -> Asked {
    Asked::new().aggregate("count(*)").aggregate("sum(l_extendedprice)").predicate(predicate)
}

impl Made {
    fn new(pool: &Pool, files: &Path, shape: &Shape, rows: u64) -> Result<Made, String> {
        for old in pool.list("forms/").map_err(text)? {
            pool.remove(&old).map_err(text)?;
        }
        let path = files.join("ceph-forms.parquet");
        let upload = |object: &str, lines: &mut Lines, rows: u64| {
            lineitem::write(&path, (lines, rows), shape.columns, Compression::Codec(Codec::Zstd))?;
            let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
            pool.write(object, &bytes, true).map_err(text)
        };
        let columns = vec!["forms/columns.parquet".to_owned()];
        upload(&columns[0], &mut Lines::new(rows), rows)?;
        // The same rows again, by parts.
        let (mut lines, mut left) = (Lines::new(rows), rows);
        let (mut flat, mut back, mut into_rows, mut into_columns) =
            (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        while left > 0 {
            let now = left.min(FLAT_VALUES / shape.columns.len() as u64);
            left -= now;
            let part = "forms/part.parquet".to_owned();
            upload(&part, &mut lines, now)?;
            let as_rows = format!("forms/{:03}.rows", flat.len());
            let transformed = format!("forms/{:03}.parquet", flat.len());
            into_rows.push(transform(pool, (&part, &as_rows), Form::Rows, now)?);
            into_columns.push(transform(pool, (&as_rows, &transformed), Form::Parquet, now)?);
            pool.remove(&part).map_err(text)?;
            flat.push(as_rows);
            back.push(transformed);
        }
        Ok(Made { columns, flat, back, into_rows: all(&into_rows), into_columns: all(&into_columns) })
    }

    /// How large objects are, and what it takes to make one form of the other.
    fn sizes(&self, pool: &Pool, rows: u64, case: &str) -> Result<Vec<Row>, String> {
        let size = |objects: &[String]| {
            let bytes = objects.iter().map(|object| pool.stat(object).map(|known| known.bytes as f64));
            bytes.sum::<marquetry_base::Result<f64>>().map_err(text)
        };
        let flat = size(&self.flat)? / 1e6;
        let row = |group: &str, unit: &'static str, (ours, theirs): (f64, f64), bar: f64, more| Row {
            group: group.to_owned(),
            case: case.to_owned(),
            unit,
            better: Better::Lower,
            ours: Some(ours),
            peers: vec![("rows".to_owned(), theirs)],
            bar,
            ratio: None,
            more,
        };
        let bar = SPACE_BAR * flat;
        let (copied, transformed) = (size(&self.columns)? / 1e6, size(&self.back)? / 1e6);
        let objects = json!({ "objects_of_rows": self.flat.len() });
        let (to, from) = (&self.into_columns, &self.into_rows);
        let speeds = json!({
            "rows_a_second": rows as f64 / to.wall_ms * 1e3, "calls": to.calls, "wall_ms": to.wall_ms,
            "into_rows_wall_ms": from.wall_ms, "into_rows_calls": from.calls,
        });
        Ok(vec![
            row("Size, as columns by `copy` and as rows", "MB", (copied, flat), bar, objects.clone()),
            row("Size, as columns by `transform` and as rows", "MB", (transformed, flat), bar, objects),
            row(
                "Work in the OSD to transform all, into columns and into rows",
                "ms",
                (to.work_ms, from.work_ms),
                f64::NAN,
                speeds,
            ),
        ])
    }

    /// The rows that have a tenth of the keys, by the class's engine and by a plain loop, both over bytes in memory.
    fn beside_plain(
        &self,
        pool: &Pool,
        (file, program): (&Path, &Path),
        shape: &Shape,
        case: String,
    ) -> Result<Row, String> {
        let (mut objects, mut all) = (Vec::new(), Vec::new());
        for object in &self.flat {
            let length = pool.stat(object).map_err(text)?.bytes;
            let bytes = pool.read(object, 0..length).map_err(text)?.0;
            all.extend_from_slice(&bytes);
            objects.push(bytes);
        }
        std::fs::write(file, &all).map_err(|error| format!("{}: {error}", file.display()))?;
        let place = |column: usize| {
            let place = shape.columns.iter().position(|known| *known == column);
            place.map(|place| place.to_string()).ok_or("a column that the shape lacks")
        };
        let columns = [place(lineitem::PRICE)?, place(lineitem::PART)?];
        let said = program::output(Command::new(program).arg(file).args(columns).arg("20000"))?;
        let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
        let [plain_rows, plain_sum, plain_ms] = *numbers.as_slice() else {
            return Err(format!("{} says {said}", program.display()));
        };
        let told = Answered::of(pool, &self.flat, &sum("l_partkey <= 20000"))?;
        let is_near = |told: f64, plain: f64| (told - plain).abs() <= 1e-9 * plain.abs();
        if !is_near(told.rows as f64, plain_rows) || !is_near(told.sum, plain_sum) {
            return Err(format!("{case}: {} rows with {}, and by a plain loop {said}", told.rows, told.sum));
        }
        // As often as the plain loop; the fastest counts there, too.
        let (mut best, mut calls) = (f64::INFINITY, 0);
        for _ in 0..PLAIN_ROUNDS {
            let begun = client_ms();
            calls = 0;
            for object in &objects {
                calls += in_memory(object)?;
            }
            best = best.min(client_ms() - begun);
        }
        Ok(Row {
            group: "Rows in memory, beside a plain loop by the FlatBuffers library's accessors: 10 %, sum"
                .to_owned(),
            case,
            unit: "ms",
            better: Better::Lower,
            ours: Some(best),
            peers: vec![("plain loop".to_owned(), plain_ms)],
            bar: plain_ms / FAIR_BAR,
            ratio: None,
            more: json!({ "calls": calls }),
        })
    }
}

/// What the class does about an object of rows when it is asked for the sum of those with a tenth of the keys: how many calls that takes.
fn in_memory(mut object: &[u8]) -> Result<usize, String> {
    let (mut cursor, mut calls) = (None::<Vec<u8>>, 0);
    loop {
        let mut request = Frame::new(REQUEST);
        request.push(RequestField::Aggregate as u16, b"count(*)");
        request.push(RequestField::Aggregate as u16, b"sum(l_extendedprice)");
        request.push(RequestField::Where as u16, b"l_partkey <= 20000");
        if let Some(cursor) = &cursor {
            request.push(RequestField::Cursor as u16, cursor);
        }
        let answer = call(Method::Query, &mut object, &request.into_bytes());
        (cursor, calls) = (None, calls + 1);
        for field in Fields::of(&answer, ANSWER).map_err(text)? {
            let field = field.map_err(text)?;
            if field.number == AnswerField::Error as u16 {
                return Err(String::from_utf8_lossy(field.bytes).into_owned());
            }
            if field.number == AnswerField::Cursor as u16 {
                cursor = Some(field.bytes.to_vec());
            }
        }
        if cursor.is_none() {
            return Ok(calls);
        }
    }
}

/// Makes an object of another's rows, which are so many. Nothing is asked of the new one meanwhile.
fn transform(pool: &Pool, (from, to): (&str, &str), form: Form, rows: u64) -> Result<Run, String> {
    measured(pool, &[from.to_owned()], || {
        let made = pool.transform(from, to, form).map_err(text)?;
        if made == rows { Ok(0) } else { Err(format!("{made} of {rows} rows were transformed")) }
    })
}

/// Several one after the other.
fn all(runs: &[Run]) -> Run {
    let sum = |of: fn(&Run) -> f64| -> f64 { runs.iter().map(of).sum() };
    Run {
        work_ms: sum(|run| run.work_ms),
        busiest_ms: sum(|run| run.busiest_ms),
        wall_ms: sum(|run| run.wall_ms),
        moved: runs.iter().map(|run| run.moved).sum(),
        calls: runs.iter().map(|run| run.calls).sum(),
    }
}
