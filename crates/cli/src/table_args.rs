//! The options that select files and read them as one table.

use std::fs;
use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use clap::{Args, ValueEnum};

use marquetry::base::{Detail, Error, Limits};
use marquetry::cluster::{OpenedTable, UnloadOptions};
use marquetry::tables::files::{self, FileFormat, FilesOptions};
use marquetry::tables::text::Types;
use marquetry::tables::{
    Address, ColumnPath, Described, Filter, LostValues, Note, Rename, Source, Table, convert, filter, project,
};
use marquetry::{OptionGroup, Reader, SourceOptions};

use crate::connection_args::ConnectionArgs;
use crate::failure::{Failure, Outcome, plain, say};
use crate::hints::{advised, of_option};
use crate::output::Interrupted;
use crate::sstable_args::SstableArgs;
use crate::text::{self, Format, TextArgs};

/// The files that are read as one table, and their columns.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct TableArgs {
    /// Columns to take, in this order, with dots for nested ones: a,b.c
    ///
    /// Names are separated by commas. A dot selects a field of a group; 'element' is a list's element, and may
    /// be left out before a field's name; 'key' and 'value' are a map's. If names contain dots, the longest
    /// match wins. A name that contains a comma or a dot, begins or ends with a space or a quote, or is empty
    /// can be put in double quotes, which are doubled inside: 'a,"b,c","d.e".f,""'. A name without an exact
    /// match is looked up in lower case. Of several columns or fields called 'a' the second is 'a#2', the third
    /// 'a#3'.
    #[arg(long, value_name = "A,B.C,…", help_heading = "Rows and columns")]
    pub(crate) columns: Option<String>,

    /// File of column names, one per line, as in --columns
    #[arg(long, value_name = "FILE", conflicts_with = "columns", help_heading = "Rows and columns")]
    pub(crate) columns_file: Option<PathBuf>,

    /// Only rows for which this is true: "fare > 20.5 AND city IN ('Rome', 'Oslo')"
    ///
    /// Comparisons (= <> < <= > >=), IN, BETWEEN, LIKE 'prefix%', IS NULL, AND, OR, NOT and parentheses. Columns have the names that they
    /// have in the files, with dots for nested ones; of a list, one element has to match. Literals are CQL's: 42, -1.5e3, 'text',
    /// '2024-02-29T12:00Z', 0xcafe, true, a UUID. Parquet files are searched by their statistics, Bloom filters and page index, and
    /// other columns are read only where rows were found. --limit counts the rows that match.
    #[arg(
        long = "where",
        value_name = "PREDICATE",
        allow_hyphen_values = true,
        help_heading = "Rows and columns"
    )]
    pub(crate) predicate: Option<String>,

    /// Types of some columns, in the words of --schema: fare=decimal(12,2),place.lat=double
    ///
    /// Text is read as these types, and the other columns' types are inferred; 'o=text' keeps the JSON of a field that no one
    /// type holds. Columns of other files are converted: numbers, if nothing is lost but digits of a float; times to other
    /// units, if nothing is lost; text as it is read; anything to text. A value that does not fit is an error with its row.
    /// Columns are named as in --columns, by the names in the file, whatever --rename says.
    #[arg(long, value_name = "COLUMN=TYPE,…", help_heading = "Rows and columns")]
    pub(crate) types: Vec<String>,

    /// Other names of columns: old=new,…
    ///
    /// A dot selects a field of a group, as in --columns: place.lat=latitude. All other options (--columns, --key, --sort and so
    /// on) use the new names; only --types, --schema and --where, which are about the file, use those in it.
    #[arg(long, value_name = "OLD=NEW,…", help_heading = "Rows and columns")]
    pub(crate) rename: Vec<String>,

    /// What a destination calls the columns, by the names that they have after --rename.
    #[arg(skip)]
    pub(crate) map: Rename,

    /// Union of schemas that differ: columns missing from a file are null, narrower numbers are widened
    ///
    /// Columns are matched by name at every level. Their order, the spelling of lists and maps, and nullability
    /// may always differ. With this option a column may also be missing from a file, and have different types
    /// if one type holds all values: integers, FLOAT and DOUBLE, decimals of one scale, STRING and ENUM and
    /// JSON. Other types are still an error.
    #[arg(long, help_heading = "Files")]
    pub(crate) union: bool,

    /// Columns from Hive partition directories such as 'year=2024'
    ///
    /// They come after the files' own columns and replace those of the same name, wherever the directory is in
    /// a path. 'auto' infers bigint if all values are integers in their usual form (not 07), date if all look
    /// like 2024-02-29, otherwise text. __HIVE_DEFAULT_PARTITION__ is null.
    #[arg(long, value_enum, value_name = "WHAT", default_value_t, help_heading = "Files")]
    pub(crate) hive: Hive,

    #[command(flatten)]
    pub(crate) text: TextArgs,

    #[command(flatten)]
    pub(crate) sstables: SstableArgs,

    #[command(flatten)]
    pub(crate) connection: ConnectionArgs,

    #[command(flatten)]
    pub(crate) limits: LimitArgs,
}

/// What directories such as `year=2024` mean.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub(crate) enum Hive {
    /// Columns of type bigint, date or text, inferred from the values
    #[default]
    Auto,
    /// Columns of type text
    Text,
    /// No columns: plain directories
    Off,
}

/// Limits on sizes in a file.
#[derive(Debug, Clone, Copy, Default, Args)]
pub(crate) struct LimitArgs {
    /// Lift the size limits, for files from a trusted source
    ///
    /// By default, footers, pages, dictionaries and values may have at most 256 MiB each, and reading a file may take
    /// 256 MiB, 16 times the file's size, and 2 MiB for each column, at most 4 GiB, so that a broken or hostile file cannot use all memory.
    /// Copies are written so that they can be read within these limits, or refused; with --trust, reading them may need
    /// it, too.
    #[arg(long, help_heading = "Files")]
    pub(crate) trust: bool,
}

impl LimitArgs {
    pub(crate) fn limits(self) -> Limits {
        if self.trust { Limits::TRUSTED } else { Limits::DEFAULT }
    }
}

impl TableArgs {
    /// Opens files as one table. Everything that can be wrong before the first row is found here.
    pub(crate) fn open(&self, paths: &[PathBuf], interrupted: &Interrupted) -> Outcome<Arc<dyn Source>> {
        self.open_for(&Address::Standard, paths, interrupted)
    }

    /// The same for counting rows: of files without columns, which may differ then, unless some are asked for.
    pub(crate) fn open_to_count(
        &self,
        paths: &[PathBuf],
        interrupted: &Interrupted,
    ) -> Outcome<Arc<dyn Source>> {
        let is_file = |path: &PathBuf| {
            let address = Address::parse(path);
            address == Address::Standard || address.object().is_some()
        };
        if self.changing().next().is_some() || !paths.iter().all(is_file) {
            return self.open(paths, interrupted);
        }
        let mut options = self.options_of(paths, interrupted)?;
        options.columns = Some(Vec::new());
        let opened = marquetry::open_all(paths, &self.source_options(options)?)?;
        self.expect_text(&[&opened])?;
        Ok(Arc::clone(opened.source()))
    }

    /// The same for what will be copied to an address. What is there is not read, even if it is among the files.
    pub(crate) fn open_for(
        &self,
        destination: &Address,
        paths: &[PathBuf],
        interrupted: &Interrupted,
    ) -> Outcome<Arc<dyn Source>> {
        let mut options = self.options_of(paths, interrupted)?;
        options.destination = Some(destination.clone());
        options.renames = vec![self.renamed()?, self.map.clone()];
        let filter = self.predicate.as_ref().map(Filter::new);
        let opened = self.opened(paths, filter.as_ref(), options)?;
        self.expect_text(&[&opened])?;
        self.shaped(&opened, filter.as_ref(), &self.renamed()?, self.wanted()?)
    }

    /// The same, of the rows that a filter takes, too.
    pub(crate) fn open_filtered(
        &self,
        paths: &[PathBuf],
        wanted: &Filter,
        interrupted: &Interrupted,
    ) -> Outcome<Arc<dyn Source>> {
        let opened = self.opened(paths, Some(wanted), self.options_of(paths, interrupted)?)?;
        self.expect_text(&[&opened])?;
        self.shaped(&opened, Some(wanted), &self.renamed()?, self.wanted()?)
    }

    /// A text that is the same as long as files and SSTables are.
    pub(crate) fn unchanged(&self, paths: &[PathBuf], interrupted: &Interrupted) -> Outcome<String> {
        let options = self.source_options(self.options_of(paths, interrupted)?)?;
        let sstables = paths.iter().filter_map(|path| Address::parse(path).sstables().map(PathBuf::from));
        let sstables: Vec<PathBuf> = sstables.collect();
        let mut text = String::new();
        for path in &sstables {
            text += &marquetry::tables::sstables::unchanged(path, &options.sstables)?;
        }
        if sstables.is_empty() {
            text = files::unchanged(paths, &options.files)?;
        }
        Ok(text)
    }

    /// Opens two tables that are compared, with these columns besides those that are asked for; if there are none, with the key of a table of a
    /// cluster. Options of text are for
    /// either that is text.
    pub(crate) fn open_pair(
        &self,
        paths: [&PathBuf; 2],
        more: &mut Vec<ColumnPath>,
        interrupted: &Interrupted,
    ) -> Outcome<[Arc<dyn Source>; 2]> {
        let open = |path: &PathBuf, beside: &PathBuf| {
            let mut options = self.options_of(std::slice::from_ref(path), interrupted)?;
            options.destination = Some(Address::parse(beside)).filter(|it| it.scheme() == Some("cql"));
            options.renames = vec![self.renamed()?];
            if self.predicate.is_some() {
                return Ok(marquetry::open_all([path], &self.source_options(options)?)?);
            }
            self.opened(std::slice::from_ref(path), None, options)
        };
        let [a, b] = [open(paths[0], paths[1])?, open(paths[1], paths[0])?];
        self.expect_text(&[&a, &b])?;
        if more.is_empty() {
            let live =
                paths.iter().zip([&a, &b]).find(|(path, _)| Address::parse(path).scheme() == Some("cql"));
            more.extend(live.into_iter().flat_map(|(_, table)| table.table().key_columns()));
        }
        let wanted = self.wanted()?.map(|columns| ColumnPath::joined(columns, more));
        let (rename, filter) = (self.renamed()?, self.predicate.as_ref().map(Filter::new));
        let has = |table: &Reader, name: &str| {
            let is_there = |path: ColumnPath| path.leaves(table.schema()).is_ok();
            is_there(ColumnPath::of([name])) || ColumnPath::parse(name).is_ok_and(is_there)
        };
        let shaped = |table: &Reader| {
            // What only one table calls so is renamed there.
            let is_here = |(old, _): &&(String, String)| has(table, old) || !(has(&a, old) || has(&b, old));
            let rename = Rename::of(rename.names().iter().filter(is_here).cloned());
            self.shaped(table, filter.as_ref(), &rename, wanted.clone())
        };
        Ok([shaped(&a)?, shaped(&b)?])
    }

    /// Opens files as they are; of the columns those that are wanted, and those that rows are filtered by, if nothing else is
    /// needed to find them.
    fn opened(
        &self,
        paths: &[PathBuf],
        filter: Option<&Filter>,
        mut options: FilesOptions,
    ) -> Outcome<Reader> {
        // What becomes writes is opened whole: its metadata say whether it is made of writes.
        let is_for_cql = self.sstables.is_for_writes || self.sstables.is_for_rows;
        if !is_for_cql && self.types.is_empty() && self.rename.is_empty() && self.map.names().is_empty() {
            match filter {
                None => options.columns = self.wanted()?,
                Some(filter) => {
                    let needed = self.wanted()?.zip(filter.columns());
                    options.needed = needed.map(|(wanted, more)| ColumnPath::joined(wanted, &more));
                }
            }
        }
        Ok(marquetry::open_all(paths, &self.source_options(options)?)?)
    }

    /// Opens the table of a cluster that rows go to, with the options of its connection.
    pub(crate) fn open_destination(&self, address: &Address, interrupted: &Interrupted) -> Outcome<Reader> {
        let Address::Url { text, .. } = address else {
            return Err(Error::internal("a table of a cluster without an address").into());
        };
        let mut options = SourceOptions::default();
        self.connection.connect(&mut options.cluster.connect);
        (options.cluster.consistency, options.cluster.retry_for) =
            (self.connection.consistency, self.connection.retry_for());
        options.cluster.cancel = interrupted.cancel();
        Ok(marquetry::open_all([text], &options)?)
    }

    /// A table of a cluster, as what it is.
    pub(crate) fn stored(&self, address: &Address, interrupted: &Interrupted) -> Outcome<OpenedTable> {
        let Address::Url { text, .. } = address else {
            return Err(Error::internal("a table of a cluster without an address").into());
        };
        let parsed = text.parse().map_err(|error| Failure::usage(format!("{address}: {error}")));
        let mut options = self.connection.unload_options(UnloadOptions::default());
        options.cancel = interrupted.cancel();
        Ok(OpenedTable::open(parsed?, &options)?)
    }

    fn source_options(&self, files: FilesOptions) -> Outcome<SourceOptions> {
        let mut options = SourceOptions::from(files);
        options.sstables = self.sstables.options(&self.text, options.sstables)?;
        options.cluster = self.connection.unload_options(options.cluster);
        options.cluster.tokens = self.sstables.token_range;
        Ok(options)
    }

    /// What is asked for of these files. Of SSTables, --schema is CQL.
    fn options_of(&self, paths: &[PathBuf], interrupted: &Interrupted) -> Outcome<FilesOptions> {
        let mut args = self.clone();
        if paths.iter().any(|path| Address::parse(path).sstables().is_some()) {
            (args.text.schema, args.text.schema_file) = (None, None);
        }
        args.options(interrupted)
    }

    /// Fails if there are options of text, but no table is text; and of SSTables and clusters.
    fn expect_text(&self, tables: &[&Reader]) -> Outcome {
        let is_any = |group: OptionGroup| tables.iter().any(|table| table.takes(group));
        let is_of_cluster = is_any(OptionGroup::Cluster);
        self.connection.check(is_of_cluster)?;
        let given = self.sstables.given(is_of_cluster);
        if let Some(option) = given.filter(|_| !is_any(OptionGroup::Sstables)) {
            return Err(Failure::usage(format!("{option} is for SSTables: sstable:DIR")));
        }
        if is_any(OptionGroup::Text) {
            return Ok(());
        }
        let given = match is_any(OptionGroup::Sstables) {
            true => self.text.form.given(),
            false => self.text.given(),
        };
        match (given, self.text.from) {
            (Some(option), None | Some(Format::Parquet)) => Err(Failure::usage(format!(
                "{option} is for CSV, TSV and JSON lines; --from says that the files are such"
            ))),
            (option, Some(from)) if from != Format::Parquet => {
                let option = option.unwrap_or("--from");
                Err(Failure::usage(format!(
                    "{option} is for CSV, TSV and JSON lines, and {} begins as Parquet files do",
                    tables.first().map_or("it", |table| &table.table().name)
                )))
            }
            _ => Ok(()),
        }
    }

    /// A table of the rows, with the types, the names and then the columns that are asked for.
    fn shaped(
        &self,
        table: &Reader,
        wanted: Option<&Filter>,
        rename: &Rename,
        columns: Option<Vec<ColumnPath>>,
    ) -> Outcome<Arc<dyn Source>> {
        let mut source = Arc::clone(table.source());
        if let Some(wanted) = wanted {
            wanted.check(&source.table().schema).map_err(|error| Failure::of_predicate(wanted, &error))?;
            if self.sstables.is_for_writes {
                Described::expect_partitions(source.table(), wanted)?;
            }
            source = filter(&source, wanted)?;
        }
        if self.sstables.is_for_writes || self.sstables.is_for_rows {
            let changing = self.changing().find(|(option, _)| *option != "--where");
            changing.map_or(Ok(()), |(_, name)| Described::expect_columns(source.table(), name))?;
        }
        let source = convert(&source, &self.types()?)?;
        let source = marquetry::tables::rename(&source, rename)?;
        let source = marquetry::tables::rename(&source, &self.map)?;
        Ok(match columns {
            Some(columns) => project(&source, &columns)?,
            None => source,
        })
    }

    /// Options that are given, and make rows or columns others than those of the source.
    /// Each as it is typed, and as the library calls it.
    pub(crate) fn changing(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        [
            (self.columns.is_some(), ("--columns", "columns")),
            (self.columns_file.is_some(), ("--columns-file", "columns_file")),
            (!self.types.is_empty(), ("--types", "types")),
            (!self.rename.is_empty(), ("--rename", "rename")),
            (!self.map.names().is_empty(), ("--map", "map")),
            (self.predicate.is_some(), ("--where", "where")),
        ]
        .into_iter()
        .filter_map(|(is_given, names)| is_given.then_some(names))
    }

    /// Whether the columns are not those of the source.
    pub(crate) fn changes_columns(&self) -> bool {
        self.changing().any(|(option, _)| option != "--where")
    }

    /// The names that columns get.
    fn renamed(&self) -> Outcome<Rename> {
        parsed_list(&self.rename)
    }

    fn types(&self) -> Outcome<Types> {
        parsed_list(&self.types)
    }

    /// What is asked for, but for the columns.
    pub(crate) fn options(&self, interrupted: &Interrupted) -> Outcome<FilesOptions> {
        let mut options = FilesOptions::default();
        options.union = self.union;
        options.hive = match self.hive {
            Hive::Auto => files::Hive::Auto,
            Hive::Text => files::Hive::Text,
            Hive::Off => files::Hive::Off,
        };
        options.limits = self.limits.limits();
        options.cancel = interrupted.cancel();
        options.store = interrupted.stores();
        options.extensions = text::extensions(self.text.from);
        if self.text.from != Some(Format::Parquet) {
            let text = self.text.format(&self.types()?, options.limits, interrupted)?;
            options.formats = vec![Arc::new(text) as Arc<dyn FileFormat>];
        }
        Ok(options)
    }

    /// The columns that are named; `None` if none are.
    pub(crate) fn wanted(&self) -> Outcome<Option<Vec<ColumnPath>>> {
        let Some(path) = &self.columns_file else {
            let parsed = self.columns.as_deref().map(ColumnPath::parse_list).transpose();
            return parsed.map_err(|error| error.with(Detail::Option("columns")).into());
        };
        let name = path.display();
        let text = fs::read_to_string(path)
            .map_err(|error| Failure::unreachable(format!("{name}: {}", plain(&error.to_string()))))?;
        let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
        let wanted = lines.map(|(number, line)| {
            let wrong =
                |error: Error| Failure::usage(format!("{name}, line {}: {}", number + 1, error.message()));
            ColumnPath::parse(line).map_err(wrong)
        });
        match wanted.collect::<Outcome<Vec<_>>>()? {
            wanted if wanted.is_empty() => Err(Failure::usage(format!("{name}: no column is named"))),
            wanted => Ok(Some(wanted)),
        }
    }
}

/// Notes of a table, each a line on standard error.
pub(crate) fn say_notes(table: &Table) {
    for note in &table.notes {
        say("marquetry", &format!("note: {}: {}", table.name, advised_note(note)));
    }
}

/// Says the notes that a table has beside those of the one that it was made of.
pub(crate) fn say_more_notes(table: &Table, of: &Table) {
    let mut more = Table::new(table.name.clone(), Arc::clone(&table.schema));
    more.notes.extend(table.notes.iter().filter(|note| !of.notes.contains(note)).cloned());
    say_notes(&more);
}

/// Notes of what was done, each a line on standard error, and one of the values that became null meanwhile.
pub(crate) fn noted(mut notes: Vec<String>, lost: &LostValues, quiet: bool) -> Vec<String> {
    notes.extend(lost.note().as_ref().map(advised_note));
    notes.iter().filter(|_| !quiet).for_each(|note| say("marquetry", &format!("note: {note}")));
    notes
}

/// A note, and what changes what it says.
pub(crate) fn advised_note(note: &Note) -> String {
    let advice = note.option.and_then(of_option).map(advised).unwrap_or_default();
    format!("{}{advice}", note.text)
}

/// What an option that can be given several times says.
fn parsed_list<T: Default + FromStr<Err = Error>>(given: &[String]) -> Outcome<T> {
    if given.is_empty() {
        return Ok(T::default());
    }
    given.join(",").parse().map_err(Failure::from)
}
