//! A data directory, as a server has it, of copies of small SSTables.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use marquetry_base::{Error, Limits};
use marquetry_kernels::crc32;
use marquetry_scylla::cql::TableName;
use marquetry_tables::files::{Files, FilesOptions, ParquetFile};
use marquetry_tables::sstables::{
    Keep, NewSstables, NewSstablesOptions, Sstables, SstablesOptions, WatchEvent, WatchOptions, WatchSummary,
    watch,
};
use marquetry_tables::text::{TextFormat, TextOptions};
use marquetry_tables::{CopyOptions, DiffOptions, Source, copy, diff};

/// What the names of small SSTables begin with: one of 15 rows, one of 2, one of 2.
pub(crate) const INSERTED: &str = "oa-2-big";
pub(crate) const UPDATED: &str = "nb-2-big";
pub(crate) const DELETED: &str = "oa-3-big";

/// One of a row, which Cassandra flushed: with its positions in the commit log, and the node. In `tests/data/flushed`.
pub(crate) const FLUSHED: &str = "nb-1-big";

/// A table.
pub(crate) const TABLE: &str = "ks/t";

/// Those that Cassandra wrote for the tests of the command.
fn small() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../cli/tests/data/sstables/ks/t-0123456789abcdef0123456789abcdef")
}

/// Where the SSTable is that a name means.
fn home(stem: &str) -> PathBuf {
    match stem {
        FLUSHED => Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/flushed"),
        _ => small(),
    }
}

pub(crate) struct Node(tempfile::TempDir);

impl Node {
    /// With an empty table.
    pub(crate) fn new() -> Node {
        let node = Node(tempfile::tempdir().unwrap());
        fs::create_dir_all(node.table(TABLE)).unwrap();
        node
    }

    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub(crate) fn destination(&self) -> PathBuf {
        self.0.path().join("lake/node")
    }

    /// Where a table is: in the data directory, and in the destination.
    pub(crate) fn place(table: &str) -> String {
        format!("{table}-0123456789abcdef0123456789abcdef")
    }

    pub(crate) fn table(&self, table: &str) -> PathBuf {
        self.data().join(Node::place(table))
    }

    /// The components of a small SSTable.
    pub(crate) fn names(&self, small_stem: &str) -> Vec<String> {
        let files = fs::read_dir(home(small_stem)).unwrap();
        let names = files.map(|file| file.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> =
            names.filter_map(|name| Some(name.strip_prefix(small_stem)?[1..].to_owned())).collect();
        names.sort();
        names
    }

    /// Copies a small SSTable into a table, under a name; the table of contents last.
    pub(crate) fn put(&self, table: &str, small_stem: &str, stem: &str) {
        self.put_at(&self.table(table), small_stem, stem);
    }

    pub(crate) fn put_at(&self, folder: &Path, small_stem: &str, stem: &str) {
        for name in self.names(small_stem) {
            put_file(folder, small_stem, stem, &name);
        }
    }

    pub(crate) fn put_file(&self, table: &str, small_stem: &str, stem: &str, component: &str) {
        put_file(&self.table(table), small_stem, stem, component);
    }

    /// Removes the files of an SSTable.
    pub(crate) fn remove(&self, table: &str, stem: &str) {
        for file in fs::read_dir(self.table(table)).unwrap() {
            let file = file.unwrap();
            if file.file_name().to_str().unwrap().starts_with(&format!("{stem}-")) {
                fs::remove_file(file.path()).unwrap();
            }
        }
    }

    /// The definition of the tables.
    pub(crate) fn schema(&self) {
        fs::copy(small().join("schema.cql"), self.data().join("schema.cql")).unwrap();
    }

    /// Writes the node's schema tables, which define the table `ks.t` of this identifier, with these names of key columns.
    pub(crate) fn schema_tables(&self, id: &str, [pk, ck]: [&str; 2]) {
        let column = |name: &str, kind: &str, position: i8, order: &str, of: &str| {
            format!(
                r#"{{"keyspace_name":"ks","table_name":"t","column_name":"{name}","clustering_order":"{order}","kind":"{kind}","position":{position},"type":"{of}"}}
"#
            )
        };
        let columns = [
            column(pk, "partition_key", 0, "none", "text"),
            column(ck, "clustering", 0, "desc", "int"),
            column("st", "static", -1, "none", "int"),
            column("v", "regular", -1, "none", "int"),
            column("tags", "regular", -1, "none", "set<text>"),
        ];
        let with_dashes = [&id[..8], &id[8..12], &id[12..16], &id[16..20], &id[20..]].join("-");
        let tables = format!(
            r#"{{"keyspace_name":"ks","table_name":"t","flags":["compound"],"id":"{with_dashes}","comment":"a table"}}
"#
        );
        self.schema_table(
            "columns",
            "keyspace_name text, table_name text, column_name text, clustering_order text, kind text, position int, type text, \
             PRIMARY KEY (keyspace_name, table_name, column_name)",
            &columns.concat(),
        );
        self.schema_table(
            "tables",
            "keyspace_name text, table_name text, flags frozen<set<text>>, id uuid, comment text, PRIMARY KEY (keyspace_name, table_name)",
            &tables,
        );
    }

    fn schema_table(&self, name: &str, definition: &str, lines: &str) {
        let place = self.data().join("system_schema").join(format!("{name}-{}", "5".repeat(32)));
        let _ = fs::remove_dir_all(&place);
        fs::create_dir_all(place.parent().unwrap()).unwrap();
        let text = self.0.path().join("rows.jsonl");
        fs::write(&text, lines).unwrap();
        let mut files = FilesOptions::default();
        files.formats = vec![Arc::new(TextFormat::new(TextOptions::default()))];
        let rows: Arc<dyn Source> = Arc::new(Files::open([&text], &files).unwrap());
        let mut options = NewSstablesOptions::default();
        let name = format!("system_schema.{name}");
        options.rows.schema_cql = Some(format!("CREATE TABLE {name} ({definition});"));
        options.rows.table = Some(TableName::parse(&name).unwrap());
        let mut to = NewSstables::new(&place, options).unwrap();
        copy(&rows, &mut to, &CopyOptions::default(), &mut |_| {}).unwrap();
    }

    /// The columns of a Parquet file.
    pub(crate) fn columns(&self, file: &str) -> Vec<String> {
        let file = ParquetFile::open(&self.file(file), Limits::DEFAULT).unwrap();
        let schema = &file.metadata().schema;
        (0..schema.leaves().len()).map(|leaf| schema.leaf_path(leaf)).collect()
    }

    /// Writes the log of a transaction of Cassandra.
    pub(crate) fn log(&self, operation: &str, lines: &[(&str, &str)]) {
        let line = |(kind, stem): &(&str, &str)| {
            let path = match *stem {
                "" => String::new(),
                stem => format!("/data/{}/{stem}", Node::place(TABLE)),
            };
            let sum = crc32(crc32(crc32(0, path.as_bytes()), kind.as_bytes()), &[0; 12]);
            format!("{kind}:[{path},0,0][{sum}]\n")
        };
        let text: String = lines.iter().map(line).collect();
        let name = format!("oa_txn_{operation}_0badc0de-6d2a-11ef-b9ff-cd4b0f9e5d0e.log");
        fs::write(self.table(TABLE).join(name), text).unwrap();
    }

    /// Removes all logs.
    pub(crate) fn end_logs(&self) {
        for file in fs::read_dir(self.table(TABLE)).unwrap() {
            let path = file.unwrap().path();
            if path.extension().is_some_and(|ending| ending == "log") {
                fs::remove_file(path).unwrap();
            }
        }
    }

    /// The options of a run that ends by itself.
    pub(crate) fn options(&self) -> WatchOptions {
        let mut options = WatchOptions::new(self.data(), self.destination());
        (options.once, options.threads) = (true, Some(1));
        options
    }

    pub(crate) fn options_of(&self, keep: Keep) -> WatchOptions {
        let mut options = self.options();
        options.keep = keep;
        options
    }

    /// What happens in a run that ends by itself.
    pub(crate) fn once(&self) -> Vec<String> {
        Node::run(&self.options(), |_| {}).0
    }

    /// Runs; `each` sees what happens, too.
    pub(crate) fn run(options: &WatchOptions, mut each: impl FnMut(&str)) -> (Vec<String>, WatchSummary) {
        let mut events = Vec::new();
        let summary = watch(options, &mut |event| {
            if let Some(event) = shown(event) {
                each(&event);
                events.push(event);
            }
        });
        (events, summary.unwrap())
    }

    /// Why a run does not begin.
    pub(crate) fn error(options: &WatchOptions) -> Error {
        watch(options, &mut |event| panic!("{event:?}")).unwrap_err()
    }

    /// The files of the destination, by their places in it.
    pub(crate) fn files(&self) -> Vec<String> {
        let all = marquetry_io::files::list(&self.destination()).unwrap().into_iter();
        let inside =
            all.map(|(path, _)| path.strip_prefix(self.destination()).unwrap().display().to_string());
        inside.filter(|name| name != "_marquetry_watch").collect()
    }

    pub(crate) fn file(&self, file: &str) -> PathBuf {
        self.destination().join(file)
    }

    pub(crate) fn rows(&self, file: &str) -> u64 {
        ParquetFile::open(&self.file(file), Limits::DEFAULT).unwrap().metadata().rows
    }

    pub(crate) fn links_folder(&self) -> PathBuf {
        self.data().join(".marquetry/links")
    }

    /// How many links there are.
    pub(crate) fn links(&self) -> usize {
        let folders = ["links", "links.1"].map(|name| self.data().join(".marquetry").join(name));
        folders.iter().map(|folder| marquetry_io::files::list(folder).map_or(0, |links| links.len())).sum()
    }

    /// Whether a Parquet file has what an SSTable has.
    pub(crate) fn expect_same(&self, sstable: &str, parquet: &Path) {
        let mut options = SstablesOptions::default();
        options.definition = marquetry_tables::sstables::Definition::File(self.data().join("schema.cql"));
        let sstable: Arc<dyn Source> = Arc::new(Sstables::open(sstable.as_ref(), &options).unwrap());
        let file: Arc<dyn Source> = Arc::new(Files::open([parquet], &FilesOptions::default()).unwrap());
        let found = diff([&sstable, &file], &DiffOptions::default(), &mut |_| {}).unwrap();
        assert!(found.are_rows_equal() && found.schema.is_none(), "{found:?}");
    }
}

fn put_file(folder: &Path, small_stem: &str, stem: &str, component: &str) {
    fs::create_dir_all(folder).unwrap();
    let bytes = fs::read(home(small_stem).join(format!("{small_stem}-{component}"))).unwrap();
    // Under another name first, as what appears complete.
    let hidden = folder.join("arriving");
    fs::write(&hidden, bytes).unwrap();
    fs::rename(hidden, folder.join(format!("{stem}-{component}"))).unwrap();
}

/// What a test compares of an event.
fn shown(event: &WatchEvent<'_>) -> Option<String> {
    Some(match event {
        WatchEvent::Started { tables, waiting, .. } => format!("started {tables} {waiting}"),
        WatchEvent::Converted(file) => format!("converted {} {} {}", file.table, file.sstable, file.rows),
        WatchEvent::Skipped { table, sstable, why } => format!("skipped {table} {sstable} {why}"),
        WatchEvent::Removed { table, path } => {
            let name = path.file_name().unwrap().to_str().unwrap();
            format!("removed {table} {}", name.rsplit_once('-').unwrap().0)
        }
        WatchEvent::Failed { subject, error, again } => {
            format!(
                "failed {subject} {}: {}",
                if again.is_some() { "again" } else { "for good" },
                error.message()
            )
        }
        WatchEvent::FailedBefore { subject, .. } => format!("failed before {subject}"),
        _ => return None,
    })
}
