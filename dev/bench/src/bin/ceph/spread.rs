//! The same objects in one OSD, in two, in four: how much the one works that works the most.

use std::collections::BTreeMap;

use marquetry_base::Codec;
use marquetry_bench::report::{Better, Row};
use marquetry_parquet::format::Compression;
use marquetry_rados::{Asked, Form, Pool};
use serde_json::json;

use crate::Options;
use crate::cluster::Cluster;
use crate::forms::{SHAPES, sum};
use crate::lineitem::{self, Lines};
use crate::measure::{Run, measured, text};

/// Objects, of which as many are queried at a time as there are threads.
const OBJECTS: usize = 32;
const THREADS: usize = 8;

/// A row for each number of OSDs and each thing that they are asked.
pub(crate) fn spread(options: &Options, rows_each: u64) -> Result<Vec<Row>, String> {
    let path = options.files.join("ceph-spread.parquet");
    let (lines, compression) = (&mut Lines::new(rows_each), Compression::Codec(Codec::Zstd));
    lineitem::write(&path, (lines, rows_each), SHAPES[0].columns, compression)?;
    let bytes = std::fs::read(&path).map_err(|error| format!("{}: {error}", path.display()))?;
    let mut table = Vec::new();
    let mut of_one: BTreeMap<&str, f64> = BTreeMap::new();
    for osds in &options.osds {
        let cluster = Cluster::start(options, *osds)?;
        let pool = Pool::open(&cluster.configuration, "test").map_err(text)?;
        for (name, run) in asked(&pool, &bytes, rows_each)? {
            let first = *of_one.entry(name).or_insert(run.busiest_ms);
            table.push(Row {
                group: format!("Work of the busiest OSD, of {OBJECTS} objects: {name}"),
                case: format!("{osds} OSDs"),
                unit: "ms",
                better: Better::Lower,
                ours: Some(run.busiest_ms),
                peers: vec![("all OSDs together".to_owned(), run.work_ms)],
                bar: f64::NAN,
                ratio: None,
                more: json!({ "part_of_first": run.busiest_ms / first, "calls": run.calls }),
            });
        }
    }
    table.iter().for_each(Row::tell);
    Ok(table)
}

fn asked(pool: &Pool, bytes: &[u8], rows_each: u64) -> Result<[(&'static str, Run); 3], String> {
    let named = |extension: &str| -> Vec<String> {
        (0..OBJECTS).map(|number| format!("spread/{number:02}.{extension}")).collect()
    };
    let (columns, flat, back) = (named("parquet"), named("rows"), named("back.parquet"));
    for (columns, flat) in columns.iter().zip(&flat) {
        pool.write(columns, bytes, true).map_err(text)?;
        pool.transform(columns, flat, Form::Rows).map_err(text)?;
    }
    let all_of = |asked: &Asked| {
        measured(pool, &columns, || {
            let (mut moved, mut rows) = (0, 0);
            let done = pool.query_all(&columns, asked, THREADS, |_, answer| {
                (moved, rows) = (moved + answer.data.len() as u64, rows + answer.rows);
                Ok(true)
            });
            done.map_err(text)?;
            if rows == 0 { Err("nothing was found".to_owned()) } else { Ok(moved) }
        })
    };
    let transformed = measured(pool, &columns, || {
        for (flat, back) in flat.iter().zip(&back) {
            if pool.transform(flat, back, Form::Parquet).map_err(text)? != rows_each {
                return Err("not all rows were transformed".to_owned());
            }
        }
        Ok(0)
    })?;
    Ok([
        ("rows into columns", transformed),
        ("all rows", all_of(&Asked::new())?),
        ("10 %, sum", all_of(&sum("l_partkey <= 20000"))?),
    ])
}
