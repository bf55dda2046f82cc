//! What helps, in the words of the command line.

/// What another value of an option of the library's would do.
pub(crate) fn of_option(option: &str) -> Option<&'static str> {
    Some(match option {
        "columns" => "--columns chooses others",
        "create" => "--create creates it",
        "formats" => "--from csv or --from jsonl says that it is text",
        "header" => "--header no takes it for a row, --header yes for the names of columns",
        "hive" => "--hive off takes directories for names only",
        "infer_bytes" => "--infer-all looks at all rows first",
        "overwrite" => "--overwrite replaces it",
        "schema" => "--schema gives the columns and their types",
        "short_rows" => "--short-rows null takes missing fields for null",
        "types" => "--types COLUMN=TYPE gives its type",
        "union" => "--union reads it as null where it is missing, as the wider type where types differ",
        _ => return None,
    })
}
