//! What helps, in the words of the command line.

/// What another value of an option of the library's would do.
pub(crate) fn of_option(option: &str) -> Option<&'static str> {
    Some(match option {
        "header" => "--header no takes it for a row, --header yes for the names of columns",
        "infer_bytes" => "--infer-all looks at all rows first, --schema gives the columns and their types",
        "schema" => "--schema gives the columns and their types",
        "short_rows" => {
            "--short-rows null takes missing fields for null, --schema gives columns that the first row lacks"
        }
        _ => return None,
    })
}
