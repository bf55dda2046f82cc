//! The published experiment: the same rows as rows and as columns, asked the same, where they are.

use std::path::Path;
use std::process::Command;
use std::time::Instant;

use arrow_array::RecordBatch;
use marquetry::Writer;
use marquetry::arrow::FromArrow;
use marquetry::tables::parquet::ParquetOptions;
use marquetry_base::Codec;
use marquetry_bench::program;
use marquetry_bench::report::{Better, Row};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Form, Pool};
use serde_json::json;

use crate::lineitem::Lines;
use crate::times;

/// The columns of the experiment, by their places: two keys, a quantity, a price.
const COLUMNS: [usize; 4] = [0, 1, 4, 5];
/// Rows of a batch.
const BATCH_ROWS: u64 = 50_000;
/// Runs of each query; the least of them counts.
const ROUNDS: usize = 3;

/// Columns by rows: how many times less work in the OSD for what columns are for, and of the space.
const FASTER_BAR: f64 = 10.0;
const SPACE_BAR: f64 = 1.0 / 3.0;
/// Of a plain loop's speed: what makes the row side fair.
const FAIR_BAR: f64 = 0.8;

/// Objects of so many rows, in both forms; and a program that reads rows by the FlatBuffers library, if there is one.
pub(crate) fn compare(
    pool: &Pool,
    files: &Path,
    rows: u64,
    plain: Option<&Path>,
) -> Result<Vec<Row>, String> {
    let text = |error: marquetry_base::Error| error.to_string();
    let (columns, flat) = (format!("forms/{rows}.parquet"), format!("forms/{rows}.rows"));
    for object in [&columns, &flat] {
        // What an earlier part left.
        let _ = pool.remove(object);
    }
    let path = files.join(format!("ceph-forms-{rows}.parquet"));
    write(&path, rows)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    pool.write(&columns, &bytes, true).map_err(text)?;
    pool.transform(&columns, &flat, Form::Rows).map_err(text)?;
    let back = format!("forms/{rows}.back.parquet");
    let _ = pool.remove(&back);
    let begun = Instant::now();
    let transformed = pool.transform(&flat, &back, Form::Parquet).map_err(text)?;
    let seconds = begun.elapsed().as_secs_f64();
    if transformed != rows {
        return Err(format!("{transformed} of {rows} rows were transformed"));
    }
    let size = |object: &str| pool.stat(object).map(|known| known.bytes as f64 / 1e6).map_err(text);
    let case = format!("{} thousand rows", rows / 1000);
    let space = (size(&back)?, size(&flat)?);
    let mut made = vec![Row {
        group: "Size of an object, as columns and as rows".to_owned(),
        case: case.clone(),
        unit: "MB",
        better: Better::Lower,
        ours: Some(space.0),
        peers: vec![("rows".to_owned(), space.1)],
        bar: SPACE_BAR * space.1,
        ratio: None,
        more: json!({ "transformed_rows_a_second": rows as f64 / seconds }),
    }];
    let sums = |predicate: &str| {
        Asked::new().aggregate("count(*)").aggregate("sum(l_extendedprice)").predicate(predicate)
    };
    let queries = [
        ("all rows", Asked::new(), 1.0),
        ("two columns", Asked::new().column("l_orderkey").column("l_extendedprice"), FASTER_BAR),
        ("1 %, sum", sums("l_partkey <= 2000"), FASTER_BAR),
        ("10 %, sum", sums("l_partkey <= 20000"), FASTER_BAR),
    ];
    for (name, asked, faster) in queries {
        let (ours, theirs) = (run(pool, &columns, &asked)?, run(pool, &flat, &asked)?);
        // Of small objects, calls take what they take.
        let bar = if rows >= 500_000 { theirs.work_ms / faster } else { f64::NAN };
        made.push(Row {
            group: format!("Work in the OSD, of columns and of rows: {name}"),
            case: case.clone(),
            unit: "ms",
            better: Better::Lower,
            ours: Some(ours.work_ms),
            peers: vec![("rows".to_owned(), theirs.work_ms)],
            bar,
            ratio: None,
            more: json!({
                "wall_ms": ours.wall_ms, "rows_wall_ms": theirs.wall_ms,
                "moved_bytes": ours.moved, "rows_moved_bytes": theirs.moved,
                "calls": ours.calls, "rows_calls": theirs.calls,
            }),
        });
    }
    if let Some(program) = plain {
        made.push(beside_plain(pool, (&flat, &files.join("ceph-forms.rows")), program, case)?);
    }
    made.iter().for_each(Row::tell);
    Ok(made)
}

/// The rows that have a tenth of the keys, by the class and by a plain loop, which counts no reads.
fn beside_plain(
    pool: &Pool,
    (object, file): (&str, &Path),
    program: &Path,
    case: String,
) -> Result<Row, String> {
    let length = pool.stat(object).map_err(|error| error.to_string())?.bytes;
    let (bytes, _) = pool.read(object, 0..length).map_err(|error| error.to_string())?;
    std::fs::write(file, &bytes).map_err(|error| format!("{}: {error}", file.display()))?;
    let said = program::output(Command::new(program).arg(file).args(["3", "1", "20000"]))?;
    let numbers: Vec<f64> = said.split_whitespace().filter_map(|word| word.parse().ok()).collect();
    let [_, _, plain_ms] = numbers.as_slice() else { return Err(format!("not understood: {said}")) };
    let asked = Asked::new().aggregate("count(*)").aggregate("sum(l_extendedprice)");
    let ours = run(pool, object, &asked.predicate("l_partkey <= 20000"))?;
    Ok(Row {
        group: "Rows, beside a plain loop by the FlatBuffers library's accessors: 10 %, sum".to_owned(),
        case,
        unit: "ms",
        better: Better::Lower,
        ours: Some(ours.work_ms),
        peers: vec![("plain loop".to_owned(), *plain_ms)],
        bar: plain_ms / FAIR_BAR,
        ratio: None,
        more: json!({}),
    })
}

struct Run {
    work_ms: f64,
    wall_ms: f64,
    moved: u64,
    calls: usize,
}

fn run(pool: &Pool, object: &str, asked: &Asked) -> Result<Run, String> {
    let mut best: Option<Run> = None;
    for _ in 0..ROUNDS {
        times(pool, object)?;
        let begun = Instant::now();
        let mut moved = 0;
        for answer in pool.query(object, asked).map_err(|error| error.to_string())? {
            moved += answer.map_err(|error| error.to_string())?.data.len() as u64;
        }
        let wall_ms = begun.elapsed().as_secs_f64() * 1e3;
        let (_, work) = times(pool, object)?;
        let run = Run { work_ms: work.iter().sum(), wall_ms, moved, calls: work.len() };
        if best.as_ref().is_none_or(|best| run.work_ms < best.work_ms) {
            best = Some(run);
        }
    }
    best.ok_or_else(|| "no rounds".to_owned())
}

fn write(path: &Path, rows: u64) -> Result<(), String> {
    let some = |batch: RecordBatch| batch.project(&COLUMNS).map_err(|error| error.to_string());
    let schema = some(Lines::new(rows).batch(1)?)?.schema();
    let schema = FromArrow::new(&schema).map_err(|error| error.to_string())?.schema().as_ref().clone();
    let mut options = ParquetOptions::default();
    options.write.column.compression = Compression::Codec(Codec::Zstd);
    let mut writer = Writer::with(path, schema, options).map_err(|error| error.to_string())?;
    let (mut lines, mut left) = (Lines::new(rows), rows);
    while left > 0 {
        let now = left.min(BATCH_ROWS);
        writer.write_arrow(&some(lines.batch(now)?)?).map_err(|error| error.to_string())?;
        left -= now;
    }
    writer.finish().map(drop).map_err(|error| error.to_string())
}
