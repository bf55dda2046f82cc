//! The options that say which rows there are and what becomes of them, as a text that later versions write the same way.

use clap::ValueEnum;

use marquetry::io::state_file::quoted;
use marquetry::tables::Rename;
use marquetry::tables::text::Quote;

use crate::args::RowArgs;
use crate::sstable_args::SstableArgs;
use crate::table_args::TableArgs;
use crate::text::{FormArgs, TextArgs};

/// Each option that is given, as on a command line. How a cluster is talked to is left out, as are defaults: so an option that is added
/// later changes no text.
pub(super) fn of_rows(rows: &RowArgs) -> String {
    let mut given = Given(Vec::new());
    // Each field by its name: whoever adds one decides whether it belongs here.
    let RowArgs {
        key,
        key_row_number,
        table,
        limit,
        timestamps_as,
        invalid_utf8,
        nulls,
        as_set,
        frozen,
        null_elements,
        duplicate_keys,
    } = rows;
    given.some("--key", key.as_ref());
    given.some("--key-row-number", key_row_number.as_ref());
    given.some("--limit", limit.as_ref());
    given.one_of("--timestamps-as", timestamps_as.as_ref(), None);
    given.one_of("--invalid-utf8", Some(invalid_utf8), Some(Default::default()));
    given.one_of("--nulls", Some(nulls), Some(Default::default()));
    as_set.iter().for_each(|list| given.some("--as-set", Some(list)));
    given.flag("--frozen", *frozen);
    given.one_of("--null-elements", Some(null_elements), Some(Default::default()));
    given.one_of("--duplicate-keys", Some(duplicate_keys), Some(Default::default()));
    given.table(table);
    given.0.join(" ")
}

struct Given(Vec<String>);

impl Given {
    fn some(&mut self, name: &str, value: Option<&impl ToString>) {
        self.0.extend(value.map(|value| format!("{name} {}", quoted(&value.to_string()))));
    }

    fn flag(&mut self, name: &str, is_given: bool) {
        self.0.extend(is_given.then(|| name.to_owned()));
    }

    fn one_of<T: ValueEnum + PartialEq>(&mut self, name: &str, value: Option<&T>, default: Option<T>) {
        let value = value.filter(|value| Some(*value) != default.as_ref());
        let value = value.and_then(ValueEnum::to_possible_value);
        self.some(name, value.as_ref().map(|value| value.get_name().to_owned()).as_ref());
    }

    fn character(&mut self, name: &str, value: Option<u8>) {
        self.some(name, value.as_ref());
    }

    fn renames(&mut self, name: &str, names: &Rename) {
        for (old, new) in names.names() {
            self.0.push(format!("{name} {} {}", quoted(old), quoted(new)));
        }
    }

    fn table(&mut self, table: &TableArgs) {
        // The limits decide whether rows can be read, not which there are.
        let TableArgs {
            columns,
            columns_file,
            predicate,
            types,
            rename,
            map,
            union,
            hive,
            text,
            sstables,
            connection,
            limits: _,
        } = table;
        self.some("--columns", columns.as_ref());
        self.some("--columns-file", columns_file.as_ref().map(|path| path.to_string_lossy()).as_ref());
        self.some("--where", predicate.as_ref());
        types.iter().for_each(|list| self.some("--types", Some(list)));
        rename.iter().for_each(|list| self.some("--rename", Some(list)));
        self.renames("--map", map);
        self.flag("--union", *union);
        self.one_of("--hive", Some(hive), Some(Default::default()));
        self.text(text);
        let SstableArgs { mapping, at, token_range, is_for_rows, is_for_writes: _ } = sstables;
        self.one_of("--mapping", mapping.as_ref(), None);
        self.some("--at", at.as_ref());
        self.some("--token-range", token_range.as_ref());
        self.flag("(as rows)", *is_for_rows);
        self.flag("--with-metadata", connection.with_metadata);
    }

    fn text(&mut self, text: &TextArgs) {
        // The unit of timestamps is the destination's.
        let TextArgs { from, form, timestamp_unit: _, schema, schema_file } = text;
        let FormArgs {
            delimiter,
            quote,
            header,
            null,
            short_rows,
            skip,
            comment,
            text_encoding,
            decimal,
            timestamp_format,
            trim,
            infer_all,
        } = form;
        self.one_of("--from", from.as_ref(), None);
        self.character("--delimiter", *delimiter);
        match quote {
            None | Some(Quote::OfFormat) => {}
            Some(Quote::None) => self.some("--quote", Some(&"none")),
            Some(Quote::Character(character)) => self.character("--quote", Some(*character)),
        }
        self.one_of("--header", Some(header), Some(Default::default()));
        null.iter().for_each(|text| self.some("--null", Some(text)));
        self.one_of("--short-rows", Some(short_rows), Some(Default::default()));
        self.some("--skip", Some(skip).filter(|skip| **skip > 0));
        self.character("--comment", *comment);
        self.some("--text-encoding", text_encoding.as_ref());
        self.character("--decimal", *decimal);
        self.some("--timestamp-format", timestamp_format.as_ref());
        self.flag("--trim", *trim);
        self.flag("--infer-all", *infer_all);
        self.some("--schema", schema.as_ref());
        self.some("--schema-file", schema_file.as_ref().map(|path| path.to_string_lossy()).as_ref());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Command {
        #[command(flatten)]
        rows: RowArgs,
    }

    fn of(arguments: &[&str]) -> String {
        of_rows(&Command::parse_from([&["x"][..], arguments].concat()).rows)
    }

    /// States that were written by this version are read by the next.
    #[test]
    fn the_text_stays_as_it_is() {
        assert_eq!(of(&[]), "");
        let most = "--limit 7 --types a=int --types b=text --nulls tombstone --from csv --null NA --delimiter | --quote none --skip 2 \
                    --union --token-range 1: --frozen --timestamps-as millis";
        let all: Vec<&str> =
            ["--key", "a, b", "--where", "c = \"x\""].into_iter().chain(most.split_whitespace()).collect();
        assert_eq!(
            of(&all),
            "--key \"a, b\" --limit \"7\" --timestamps-as \"millis\" --nulls \"null\" --frozen --where \"c = \\\"x\\\"\" \
             --types \"a=int\" --types \"b=text\" --union --from \"csv\" --delimiter \"124\" --quote \"none\" --null \"NA\" \
             --skip \"2\" --token-range \"1:\""
        );
        // How a cluster is talked to is none of it.
        assert_eq!(of(&["--consistency", "ONE", "--rate", "5K", "--trust"]), "");
    }
}
