//! Plain rows into SSTables: what is read back is what was written, whatever the order of the rows and however little memory there is.

mod made;
mod ordered;
mod wrong;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_parquet::format::SortingColumn;
use marquetry_tables::files::{Files, FilesOptions};
use marquetry_tables::sstables::{
    MutationMapping, NewSstables, NewSstablesOptions, Sstables, SstablesOptions, time_at,
};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{Copied, CopyOptions, DiffOptions, Source, copy, diff};

/// What a SELECT returns of a table, before anything in the fixtures has expired.
pub(crate) fn logical(path: &Path) -> Arc<dyn Source> {
    let mut options = SstablesOptions::default();
    options.mapping = MutationMapping::Logical;
    options.at = Some(time_at("2024-01-01").unwrap());
    Arc::new(Sstables::open(path, &options).unwrap())
}

/// Writes, with their times.
pub(crate) fn full(path: &Path) -> Arc<dyn Source> {
    Arc::new(Sstables::open(path, &SstablesOptions::default()).unwrap())
}

/// A file of text, by its name.
pub(crate) fn text(path: &Path, options: TextOptions) -> Arc<dyn Source> {
    let mut files = FilesOptions::default();
    files.formats = vec![Arc::new(TextFormat::new(options))];
    Arc::new(Files::open([path], &files).unwrap())
}

/// Options whose rows are written at a time of their own.
pub(crate) fn options(version: &str) -> NewSstablesOptions {
    let mut options = NewSstablesOptions::new(version).unwrap();
    options.rows.timestamp = "1700000000000000".parse().unwrap();
    options.rows.now_us = Some(1_700_000_000_000_000);
    options
}

pub(crate) fn write(
    source: &Arc<dyn Source>,
    to: &Path,
    options: NewSstablesOptions,
    how: &CopyOptions,
) -> marquetry_base::Result<Copied> {
    copy(source, &mut NewSstables::new(to, options)?, how, &mut |_| {})
}

pub(crate) fn expect_same(a: &Arc<dyn Source>, b: &Arc<dyn Source>, what: &str) {
    let found = diff([a, b], &DiffOptions::default(), &mut |_| {}).unwrap();
    assert!(found.are_rows_equal(), "{what}: {found:?}");
}

/// The contents of all files of a directory.
pub(crate) fn contents(path: &Path) -> Vec<(String, Vec<u8>)> {
    let entries = std::fs::read_dir(path).unwrap();
    let mut all: Vec<(String, Vec<u8>)> = entries
        .map(|entry| {
            let path = entry.unwrap().path();
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read(&path).unwrap())
        })
        .collect();
    all.sort();
    all
}

/// The table `mix` of the fixtures.
const MIX: &str = "CREATE TYPE ks.addr (street text, zip int, tags frozen<set<text>>);
CREATE TABLE ks.t (pk0 int, ck0 text, ck1 bigint, st text static, v_bool boolean, v_int int, v_big bigint, v_si smallint, v_ti tinyint,
 v_f float, v_d double, v_dec decimal, v_vi varint, v_text text, v_ascii ascii, v_blob blob, v_ts timestamp, v_date date, v_time time,
 v_dur duration, v_uuid uuid, v_tu timeuuid, v_inet inet, li list<int>, se set<text>, ma map<text,int>, fl frozen<list<int>>,
 fm frozen<map<text,frozen<set<int>>>>, tu tuple<int,text,double>,
 u frozen<addr>, un addr, primary key ((pk0), ck0, ck1)) with clustering order by (ck0 asc, ck1 desc);";
/// Tables of a real Cassandra: all types, collections, static rows, several clustering columns, some in descending order.
#[test]
fn what_a_select_returns_is_the_same_again() {
    let Some(folders) = marquetry_testing::sstables() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut compared = Vec::new();
    for (number, of) in
        ["5.0.9-oa-zstd", "4.1.10-nb-lz4", "3.11.19-me-none", "5.0.9-da-none"].iter().enumerate()
    {
        let entries = std::fs::read_dir(folders[0].join(of)).unwrap();
        let mut tables: Vec<PathBuf> =
            entries.map(|entry| entry.unwrap().path()).filter(|path| path.is_dir()).collect();
        tables.sort();
        for path in tables {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            let source = logical(&path);
            let mut made = options(["me", "nb", "oa", "da"][number]);
            made.rows.table = Some(marquetry_scylla::cql::TableName::parse("ks.t").unwrap());
            let to = folder.path().join(format!("{number}-{name}"));
            // Counters are what they are only as writes.
            if name.starts_with("cnt") {
                let error = write(&source, &to, made, &CopyOptions::default()).unwrap_err();
                assert!(error.message().contains("counters cannot be made of rows"), "{error}");
                continue;
            }
            if name.starts_with("mix") {
                made.rows.schema_cql = Some(MIX.to_owned());
            }
            // In another order: by the last flat column, which is no key, from the greatest on.
            let schema = &source.table().schema;
            let flat = (0..schema.leaves().len()).rev().find(|leaf| schema.leaves()[*leaf].is_flat());
            let mut how = CopyOptions::default();
            how.sort = flat
                .map(|leaf| SortingColumn {
                    column: u32::try_from(leaf).unwrap(),
                    descending: true,
                    nulls_first: true,
                })
                .into_iter()
                .collect();
            write(&source, &to, made, &how).unwrap_or_else(|error| panic!("{of}/{name}: {error}"));
            expect_same(&source, &logical(&to), &format!("{of}/{name}"));
            compared.push(name);
        }
    }
    assert!(compared.len() > 5, "{compared:?}");
}
