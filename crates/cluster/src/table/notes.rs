//! What is said of a load at its end.

use std::path::Path;

use marquetry_base::Error;
use marquetry_scylla::cql::Name;
use marquetry_tables::Distinct;
use marquetry_tables::stamps::Ttl;

use super::CqlTable;
use crate::cluster::Created;
use crate::loading::SameKey;

impl CqlTable {
    /// What is to be said of it now.
    pub(super) fn all_notes(&self) -> Vec<String> {
        let name = self.address.table();
        let mut notes = match self.created {
            Some(Created::AlreadyThere) => vec![format!("the table {name} already exists")],
            Some(Created::New) if self.options.dry_run => vec![format!("the table {name} would be created")],
            Some(Created::New) if !self.is_loaded => vec![remains(&name.to_string(), &self.types)],
            Some(Created::New) | None => Vec::new(),
        };
        if let (Some(left_out), Some(Created::New)) = (&self.left_out, self.created) {
            let made = if self.options.dry_run { "would be made" } else { "was made" };
            notes.push(format!("the table {name} {made} without {left_out}"));
        }
        if self.default_ttl_s > 0 && !matches!(self.options.ttl, Some(Ttl::Seconds(_))) {
            let ttl = self.default_ttl_s;
            notes.push(format!(
                "the table {name} has the source's default_time_to_live = {ttl}: rows that come without a TTL expire that many seconds after they are loaded"
            ));
        }
        if !self.indexes.is_empty() {
            let made = match (self.makes_indexes, self.options.dry_run, self.has_indexes) {
                (false, ..) => "are not created in one that exists",
                (true, true, _) => "would be created after the rows",
                (true, false, true) => "were created after the rows",
                (true, false, false) => "are not created yet",
            };
            notes.push(format!("the indexes of the source's table {made}: {}", self.indexes.join(" ")));
        }
        if !self.lists.is_empty() && !self.options.dry_run {
            let lists: Vec<String> = self.lists.iter().map(ToString::to_string).collect();
            notes.push(format!(
                "before the same is loaded again, truncate {name}: Cassandra would add the elements of lists a second time ({})",
                lists.join(", ")
            ));
        }
        if let (Some(path), 1..) = (&self.rejects, self.rejected) {
            notes.push(rejected(self.rejected, path, self.without_lines.as_ref()));
        }
        if let Some(keys) =
            self.keys.filter(|_| self.is_loaded && !self.has_counters && !self.options.dry_run)
        {
            notes.extend(repeated_keys(keys));
        }
        if let (Some(state), true) = (&self.options.state, self.was_finished) {
            let path = state.path.display();
            notes.push(format!(
                "this load was finished before, and nothing was loaded; remove {path} to load the rows again"
            ));
        }
        notes
    }
}

/// That rows have the same keys, as far as that is known.
fn repeated_keys((rows, keys, same): (u64, Distinct, SameKey)) -> Option<String> {
    // An estimate may be off by a few parts in a hundred.
    const DOUBT: u64 = 20;
    let (is_certain, about) = match keys {
        Distinct::Exactly(keys) => (keys < rows, ""),
        Distinct::About(keys) => (keys.saturating_add(keys / DOUBT) < rows, "about "),
    };
    let estimated = if about.is_empty() { "" } else { " (an estimate)" };
    let keys = match keys.get() {
        1 => "one key".to_owned(),
        keys => format!("{about}{keys} different keys{estimated}"),
    };
    is_certain.then(|| match same {
        SameKey::LastIsKept => {
            format!("{rows} rows were sent; they have {keys}: of rows with one key the last one is kept")
        }
        SameKey::Merged => {
            format!("{rows} writes of rows were sent; they have {keys}: those with one key are one row, merged by their write times")
        }
    })
}

/// How many rows were rejected, where they are, and why their lines are not known, if they should be.
fn rejected(rows: u64, path: &Path, without_lines: Option<&Error>) -> String {
    let subject = if rows == 1 { "row was" } else { "rows were" };
    let why = without_lines.map(|error| format!(", without the lines that they are in: {error}"));
    format!("{rows} {subject} rejected: see {}{}", path.display(), why.unwrap_or_default())
}

/// What a copy that failed leaves, and what that means for the next one.
fn remains(table: &str, types: &[Name]) -> String {
    let types: Vec<String> = types.iter().map(|name| name.as_type().to_string()).collect();
    let subject = match &*types {
        [] => format!("the new table {table} remains"),
        [only] => format!("the new table {table} and its type {only} remain"),
        all => format!("the new table {table} and its types {} remain", all.join(", ")),
    };
    format!("{subject}; to create it with other columns or another key, drop it first")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_failed_copy_leaves_is_known() {
        let names = ["p_a", "p_b"].map(|name| Name::new(name).unwrap());
        let advice = "; to create it with other columns or another key, drop it first";
        for (types, said) in [
            (&names[..0], "the new table k.p remains"),
            (&names[..1], "the new table k.p and its type p_a remain"),
            (&names[..], "the new table k.p and its types p_a, p_b remain"),
        ] {
            assert_eq!(remains("k.p", types), format!("{said}{advice}"));
        }
    }

    #[test]
    fn rejected_rows_without_lines_are_said() {
        let path = Path::new("bad.parquet");
        assert_eq!(rejected(1, path, None), "1 row was rejected: see bad.parquet");
        assert_eq!(
            rejected(2, path, Some(&Error::io("no space left on device"))),
            "2 rows were rejected: see bad.parquet, without the lines that they are in: no space left on device"
        );
    }

    #[test]
    fn keys_that_are_not_unique_are_said() {
        let told = |rows, keys| repeated_keys((rows, keys, SameKey::LastIsKept)).unwrap_or_default();
        assert_eq!(
            told(1000, Distinct::Exactly(223)),
            "1000 rows were sent; they have 223 different keys: of rows with one key the last one is kept"
        );
        assert_eq!(
            told(7, Distinct::Exactly(1)),
            "7 rows were sent; they have one key: of rows with one key the last one is kept"
        );
        assert!(told(100_000, Distinct::About(50_000)).contains("about 50000 different keys (an estimate)"));
        for (rows, keys) in [(5, Distinct::Exactly(5)), (100_000, Distinct::About(97_000))] {
            assert_eq!(told(rows, keys), "");
        }
        assert_eq!(
            repeated_keys((3, Distinct::Exactly(2), SameKey::Merged)).unwrap(),
            "3 writes of rows were sent; they have 2 different keys: those with one key are one row, merged by their write times"
        );
    }
}
