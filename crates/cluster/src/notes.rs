//! What is said of a load at its end.

use marquetry_scylla::cql::Name;
use marquetry_tables::Distinct;

use crate::loading::SameKey;

/// That rows have the same keys, as far as that is known.
pub(crate) fn repeated_keys((rows, keys, same): (u64, Distinct, SameKey)) -> Option<String> {
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

/// What a copy that failed leaves, and what that means for the next one.
pub(crate) fn remains(table: &str, types: &[Name]) -> String {
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
