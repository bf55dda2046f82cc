//! SSTables through the C interface, and what the library in Rust reads of the same files.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::ptr::{null, null_mut};
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_array::ffi::FFI_ArrowSchema;
use marquetry_arrow::{ArrowOptions, ToArrow};
use marquetry_base::{Bytes, Object};
use marquetry_c::abi::*;
use marquetry_c::machine::marquetry_machine_free;
use marquetry_c::marquetry_machine;
use marquetry_c::sstable::{marquetry_sstable_new, marquetry_sstable_schema};
use marquetry_io::{ByteSources, drive, memory::Memory};
use marquetry_scylla::bridge::mutations::{SstableOptions, SstableReader};
use marquetry_scylla::cql::{Definitions, TableName};
use marquetry_scylla::sstable::{FileName, TableColumns};

use crate::common::host::{call, defaults, next_of, take};
use crate::common::{self, folder, host};

/// The files of each SSTable of the fixtures.
fn fixtures() -> Option<Vec<Vec<PathBuf>>> {
    let mut found = Vec::new();
    let mut folders = marquetry_testing::sstables()?;
    while let Some(folder) = folders.pop() {
        let entries = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().path());
        let (inside, files): (Vec<PathBuf>, Vec<PathBuf>) = entries.partition(|path| path.is_dir());
        folders.extend(inside);
        let name = |path: &PathBuf| FileName::parse(path.file_name()?.to_str()?).ok()?;
        for data in files.iter().filter(|path| path.to_string_lossy().ends_with("-Data.db")) {
            let stem = name(data).unwrap().stem();
            let own = files.iter().filter(|path| name(path).is_some_and(|it| it.stem() == stem));
            let mut own: Vec<PathBuf> = own.cloned().collect();
            own.sort();
            found.push(own);
        }
    }
    found.sort();
    assert!(found.len() > 30, "{}", found.len());
    Some(found)
}

fn name_of(file: &Path) -> &str {
    file.file_name().unwrap().to_str().unwrap()
}

/// What the library in Rust reads.
fn in_rust(files: &[PathBuf], definition: Option<&str>) -> (Vec<RecordBatch>, Arc<arrow_schema::Schema>) {
    let (mut names, mut sources) = (Vec::new(), ByteSources::new());
    for (number, file) in files.iter().enumerate() {
        let object = Object(u32::try_from(number).unwrap());
        names.push((FileName::parse(name_of(file)).unwrap().unwrap(), object));
        sources = sources.with(object, Memory::new("file", Bytes::from(std::fs::read(file).unwrap())));
    }
    let mut options = SstableOptions::default();
    options.definitions = definition.map(|text| Definitions::parse(text).unwrap());
    let codecs = Arc::new(marquetry_codecs::StandardCodecs::default());
    let mut reader = SstableReader::new(&names, codecs, options).unwrap();
    let mut batches = Vec::new();
    while let Some(batch) = drive(&mut reader, &sources).unwrap() {
        batches.push(batch);
    }
    let pairs = reader.key_values().unwrap();
    let schema = reader.schema().unwrap();
    let mut to_arrow = ToArrow::of_table(schema, &pairs, None, ArrowOptions::default()).unwrap();
    let made = batches.iter().map(|batch| to_arrow.record_batch(batch).unwrap()).collect();
    (made, Arc::clone(to_arrow.schema()))
}

/// A machine for these files.
fn machine(
    files: &[PathBuf],
    definition: Option<&str>,
) -> Result<*mut marquetry_machine, (marquetry_error_kind, String)> {
    machine_of(files, definition, None)
}

/// The same, for the table of a name.
fn machine_of(
    files: &[PathBuf],
    definition: Option<&str>,
    table: Option<&str>,
) -> Result<*mut marquetry_machine, (marquetry_error_kind, String)> {
    let c_text = |text: &str| std::ffi::CString::new(text).unwrap();
    let names: Vec<_> = files.iter().map(|file| c_text(name_of(file))).collect();
    let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let (definition, table) = (definition.map(c_text), table.map(c_text));
    let options = marquetry_sstable_options {
        struct_size: size_of::<marquetry_sstable_options>(),
        files: pointers.as_ptr(),
        files_count: pointers.len(),
        definition: definition.as_ref().map_or(null(), |text| text.as_ptr()),
        table: table.as_ref().map_or(null(), |text| text.as_ptr()),
        ..defaults()
    };
    let mut machine = null_mut();
    call(|error| marquetry_sstable_new(&options, &mut machine, error)).map(|_| machine)
}

#[test]
fn batches_are_those_of_the_library_in_rust() {
    let Some(fixtures) = fixtures() else { return };
    for files in fixtures {
        let (expected, schema) = in_rust(&files, None);
        let bytes: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
        let machine = machine(&files, None).unwrap();
        let mut batches = Vec::new();
        while next_of(machine, &bytes).unwrap() == marquetry_status::Ready {
            batches.push(take(machine).unwrap());
        }
        // A batch that was taken has no metadata: those are the schema's.
        let parts = |batches: &[RecordBatch]| {
            let one = |it: &RecordBatch| (it.schema().fields().clone(), it.columns().to_vec());
            batches.iter().map(one).collect::<Vec<_>>()
        };
        assert!(parts(&batches) == parts(&expected), "{}", files[0].display());
        let mut found = FFI_ArrowSchema::empty();
        call(|error| marquetry_sstable_schema(machine, &mut found, error)).unwrap();
        assert_eq!(arrow_schema::Schema::try_from(&found).unwrap(), *schema);
        assert_eq!(found.metadata().unwrap()["marquetry.mapping"], "full");
        assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
    }
}

#[test]
fn misuses_are_errors() {
    let Some(fixtures) = fixtures() else { return };
    let files =
        fixtures.iter().find(|files| files[0].to_string_lossy().contains("5.0.9-oa-zstd/simple")).unwrap();
    let refused = |files: &[PathBuf], definition: Option<&str>, words: &str| {
        let (kind, text) = machine(files, definition).unwrap_err();
        assert!(kind == marquetry_error_kind::Misuse && text.contains(words), "{text}");
    };
    refused(&[], None, "no files");
    refused(&files[..1], None, "cannot be read");
    refused(&["schema.cql".into()], None, "not the name of an SSTable's file");
    refused(files, Some("CREATE TABLE t (id"), "definition: line 1: ");
    // A name without a keyspace, of two tables.
    let two = Some("CREATE TABLE ks.t (id int PRIMARY KEY); CREATE TABLE other.t (id int PRIMARY KEY)");
    let (kind, text) = machine_of(files, two, Some("t")).unwrap_err();
    assert_eq!(kind, marquetry_error_kind::Misuse);
    assert!(text.contains("table: t may be ks.t or other.t: name its keyspace, too"), "{text}");
    let named = machine_of(files, two, Some("other.t")).unwrap();
    assert_eq!(marquetry_machine_free(named), marquetry_status::Ok);
    let mut made = null_mut();
    call(|error| marquetry_sstable_new(null(), &mut made, error)).unwrap_err();
    let machine = machine(files, None).unwrap();
    let mut schema = FFI_ArrowSchema::empty();
    let early = call(|error| marquetry_sstable_schema(machine, &mut schema, error)).unwrap_err();
    assert_eq!(early.0, marquetry_error_kind::Misuse);
    let unknown = u32::try_from(files.len()).unwrap();
    let length =
        |object: u32| call(|error| marquetry_c::machine::marquetry_supply_length(machine, object, 1, error));
    assert_eq!(length(unknown).unwrap_err().0, marquetry_error_kind::Misuse);
    // A file that was not asked for: dropped.
    length(0).unwrap();
    assert!(take(machine).is_err());
    let bytes: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    assert_eq!(next_of(machine, &bytes).unwrap(), marquetry_status::Ready);
    let reader = marquetry_c::reader::marquetry_reader_schema;
    assert!(call(|error| reader(machine, &mut schema, error)).is_err());
    while call(|error| marquetry_c::machine::marquetry_machine_release(machine, null(), error)).unwrap()
        != marquetry_status::Done
    {}
    assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
}

#[test]
fn the_limit_of_memory_bounds_what_is_collected_and_what_is_read() {
    let Some(fixtures) = fixtures() else { return };
    let files =
        fixtures.iter().find(|files| files[0].to_string_lossy().contains("5.0.9-oa-zstd/simple")).unwrap();
    let bytes: Vec<Vec<u8>> = files.iter().map(|file| std::fs::read(file).unwrap()).collect();
    let names: Vec<_> = files.iter().map(|file| std::ffi::CString::new(name_of(file)).unwrap()).collect();
    let pointers: Vec<_> = names.iter().map(|name| name.as_ptr()).collect();
    let first = |memory_bytes_max| {
        let options = marquetry_sstable_options {
            struct_size: size_of::<marquetry_sstable_options>(),
            files: pointers.as_ptr(),
            files_count: pointers.len(),
            memory_bytes_max,
            ..defaults()
        };
        let mut machine = null_mut();
        call(|error| marquetry_sstable_new(&options, &mut machine, error)).unwrap();
        let first = next_of(machine, &bytes);
        assert_eq!(marquetry_machine_free(machine), marquetry_status::Ok);
        first
    };
    assert_eq!(first(64 << 20).unwrap(), marquetry_status::Ready);
    let (kind, text) = first(4 << 10).unwrap_err();
    assert_eq!(kind, marquetry_error_kind::LimitExceeded, "{text}");
}

#[test]
fn c_copies_sstables_to_parquet() {
    let Some(fixtures) = fixtures() else { return };
    let scratch = tempfile::tempdir().unwrap();
    for compiler in common::c() {
        let source = folder().join("examples/sstable.c");
        let program = compiler.compile(&[source], &[], scratch.path());
        for files in fixtures.iter().filter(|files| !files[0].to_string_lossy().contains("legacy")) {
            let (batches, schema) = in_rust(files, None);
            let (out, definition) = (scratch.path().join("out.parquet"), scratch.path().join("schema.cql"));
            let copy =
                |definition: &Path| common::run(Command::new(&program).arg(&out).arg(definition).args(files));
            let rows: usize = batches.iter().map(RecordBatch::num_rows).sum();
            assert_eq!(copy(Path::new("-")), format!("{rows} rows\n"), "{}", files[0].display());
            assert!(std::fs::read(&out).unwrap() == host::write(&batches, null()).unwrap(), "{schema}");

            // With its definition, whose key has another name.
            let text = definition_of(files).replace("pk0", "the_key");
            std::fs::write(&definition, &text).unwrap();
            let (batches, schema) = in_rust(files, Some(&text));
            assert_eq!(schema.field(0).name(), "the_key");
            assert_eq!(copy(&definition), format!("{rows} rows\n"));
            assert!(std::fs::read(&out).unwrap() == host::write(&batches, null()).unwrap());
        }
        // A definition that is not there, has nothing, or is not complete is not taken for none.
        let (empty, long) = (scratch.path().join("empty.cql"), scratch.path().join("long.cql"));
        std::fs::write(&empty, "").unwrap();
        std::fs::write(&long, " ".repeat(1 << 16)).unwrap();
        for definition in [&scratch.path().join("shema.cql"), &empty, &long] {
            let mut copy = std::process::Command::new(&program);
            let done =
                copy.arg(scratch.path().join("out")).arg(definition).args(&fixtures[0]).output().unwrap();
            let said = String::from_utf8_lossy(&done.stderr);
            assert_eq!(done.status.code(), Some(2), "{said}");
            assert!(said.contains("cannot be read, is empty, or is too long"), "{said}");
        }
    }
}

#[test]
fn a_refusal_of_memory_is_an_error() {
    let Some(fixtures) = fixtures() else { return };
    let Some(compiler) = common::c().into_iter().next() else { return };
    let scratch = tempfile::tempdir().unwrap();
    let source = folder().join("tests/memory_sstable.c");
    let program = compiler.compile(&[source], &["-fsanitize=address,undefined"], scratch.path());
    for name in ["5.0.9-oa-zstd/mix/oa-2", "3.11.10-md-lz4/simple/"] {
        let files = fixtures.iter().find(|files| files[0].to_string_lossy().contains(name)).unwrap();
        let said = common::run(Command::new(&program).args(files));
        let (rows, _) = in_rust(files, None);
        let rows: usize = rows.iter().map(RecordBatch::num_rows).sum();
        let runs = said.strip_prefix(&format!("{rows} rows, ")).unwrap_or_else(|| panic!("{said}"));
        let [refused, _runs] = runs.split(" refused of ").collect::<Vec<_>>()[..] else { panic!("{said}") };
        assert!(refused.parse::<u32>().unwrap() > 50, "{said}");
    }
}

/// `CREATE TABLE` as the header of the SSTable says.
fn definition_of(files: &[PathBuf]) -> String {
    use marquetry_scylla::sstable::statistics::StatisticsReader;
    let file = files.iter().find(|file| name_of(file).ends_with("Statistics.db")).unwrap();
    let name = FileName::parse(name_of(file)).unwrap().unwrap();
    let sources =
        ByteSources::new().with(Object(0), Memory::new("file", std::fs::read(file).unwrap().into()));
    let mut reader = StatisticsReader::new(Object(0), name.version, marquetry_base::Limits::DEFAULT);
    let statistics = drive(&mut reader, &sources).unwrap().unwrap();
    let columns = TableColumns::new(&[&statistics.header], None).unwrap();
    let (table, types) = columns.definition(&TableName::parse("ks.t").unwrap()).unwrap();
    types.iter().map(ToString::to_string).chain([table.to_string()]).collect()
}
