//! What helps, in the words of the command line.

use std::path::Path;

/// Advice, of the command that has the options.
pub(crate) fn advised(advice: &str) -> String {
    let with = if program_name() == "parquet2cql" { "with `marquetry cql`, " } else { "" };
    format!("; {with}{advice}")
}

/// What another value of an option of the library's would do.
pub(crate) fn of_option(option: &str) -> Option<&'static str> {
    Some(match option {
        "bundle" => "--bundle FILE.zip says where it is",
        "ca" => "--ca FILE names the authorities that are trusted",
        "cert" => "--cert FILE, with --key-file, says who you are",
        "columns" => "--columns chooses others",
        "counters_at_least_once" => "--counters-at-least-once loads them all the same",
        "create" => "--create creates it",
        "definition" => {
            "--schema FILE (--schema-file, of show) gives their CREATE TABLE, 'none' stands for no definition"
        }
        "footer_bytes_max" => "--footer-bytes admits a larger one",
        "formats" => "--from csv or --from jsonl says that it is text",
        "header" => "--header no takes it for a row, --header yes for the names of columns",
        "hive" => "--hive off takes directories for names only",
        "infer_bytes" => "--infer-all looks at all rows first",
        "lists_at_least_once" => "--lists-at-least-once loads them all the same",
        "mapping" => "of SSTables, --mapping logical loads the rows that a SELECT returns",
        "layout" => "--layout columns --overwrite writes it",
        "max_errors" => "--max-errors allows more",
        "overwrite" => "--overwrite replaces it",
        "password_file" => "--password-file FILE, or the variable MARQUETRY_PASSWORD, gives the password",
        "resume" => "--resume goes on with it",
        "schema" => "--schema gives the columns and their types",
        "short_rows" => "--short-rows null takes missing fields for null",
        "text_encoding" => "--text-encoding latin1, utf-16, … reads text in another encoding",
        "timestamps_as_millis" => "--timestamps-as millis cuts them off",
        "types" => "--types COLUMN=TYPE gives its type",
        "union" => "--union reads it as null where it is missing, as the wider type where types differ",
        "with_metadata" => "--with-metadata keeps them, of SSTables --mapping full",
        "where" => "--where 'COLUMN IS NOT NULL' leaves such rows out",
        _ => return None,
    })
}

/// How to get what is not compiled in.
pub(crate) const OF_FEATURE: &str = "; cargo install --path crates/cli makes a build with all features";

/// The command that does what somebody looked for under a name that other tools have for it.
pub(crate) fn of_command(name: &str) -> Option<&'static str> {
    Some(match name {
        "cat" | "head" | "print" | "tail" | "view" => "'marquetry rows FILE -n 10' prints the first rows",
        "tojson" | "to-json" => "'marquetry rows FILE --format json' prints rows as JSON lines",
        "schema" | "describe" | "footer" | "info" | "inspect" | "meta" | "metadata" | "stat" | "stats" => {
            "'marquetry show FILE' describes a file: its schema, columns and sizes"
        }
        "rowcount" | "wc" => "'marquetry count FILE' says how many rows a file has",
        "filter" | "grep" | "lookup" | "query" | "search" | "select" => {
            "'marquetry find FILE PREDICATE' prints the rows for which a predicate is true"
        }
        "convert" | "cp" | "export" | "import" | "load" | "merge" | "rewrite" | "sort" | "split"
        | "unload" => "'marquetry copy FROM TO' moves rows between files, directories and tables",
        "cmp" | "compare" => "'marquetry diff A B' compares two tables",
        "sql" | "ddl" | "insert" => "'marquetry cql FILE --table T --key K' prints CQL",
        #[cfg(not(feature = "rados"))]
        "ceph" => {
            "this build lacks the feature `rados`; cargo install --path crates/cli makes one with all features"
        }
        _ => return None,
    })
}

/// `marquetry` for any name but that of the other program.
pub(crate) fn program_name() -> String {
    let started_as = std::env::args_os().next();
    let stem = started_as.as_deref().map(Path::new).and_then(Path::file_stem);
    if stem.is_some_and(|stem| stem == "parquet2cql") { "parquet2cql".into() } else { "marquetry".into() }
}
