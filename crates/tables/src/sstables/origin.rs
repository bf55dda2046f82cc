//! What the path of a directory says of the table whose SSTables are in it.

use std::path::Path;

use marquetry_scylla::sstable::KnownName;

/// What a path says of a table. Nothing, if it is not laid out as servers and their backups do.
///
/// | layout | path |
/// |---|---|
/// | a server's directory | `KEYSPACE/TABLE-ID` |
/// | a snapshot, a backup | `KEYSPACE/TABLE-ID/snapshots/NAME`, `KEYSPACE/TABLE-ID/backups` |
/// | ScyllaDB Manager | `backup/sst/cluster/…/dc/…/node/…/keyspace/KEYSPACE/table/TABLE/ID` |
/// | Medusa | `NODE/data/KEYSPACE/TABLE-ID`, `NODE/BACKUP/data/KEYSPACE/TABLE-ID` |
///
/// Sources: `specification.rst` of ScyllaDB Manager, `design.md` of Medusa, `Directories.java` of Cassandra.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Origin {
    pub(super) keyspace: Option<String>,
    pub(super) table: Option<String>,
    /// What tells it from a table of the same name that was dropped: 32 hexadecimal digits.
    pub(super) id: Option<String>,
}

impl Origin {
    /// What definitions are searched for.
    pub(super) fn known(&self) -> KnownName<'_> {
        KnownName { keyspace: self.keyspace.as_deref(), table: self.table.as_deref() }
    }

    /// The table's name.
    pub(super) fn name(&self) -> Option<String> {
        let table = self.table.as_ref()?;
        Some(match &self.keyspace {
            Some(keyspace) => format!("{keyspace}.{table}"),
            None => table.clone(),
        })
    }
}

/// What the path of a directory of SSTables says.
pub(super) fn of(folder: &Path) -> Origin {
    // A relative path may begin inside of the layout.
    let absolute = std::path::absolute(folder).ok().filter(|_| !folder.to_string_lossy().contains("://"));
    let parts: Vec<&str> =
        absolute.as_deref().unwrap_or(folder).iter().filter_map(|part| part.to_str()).collect();
    let parts = match &*parts {
        [before @ .., "snapshots", _] | [before @ .., "backups" | "staging" | "upload" | "quarantine"] => {
            before
        }
        all => all,
    };
    let owned = |part: &str| Some(part.to_owned());
    match parts {
        [.., "keyspace", keyspace, "table", table, id] if is_id(id) => {
            Origin { keyspace: owned(keyspace), table: owned(table), id: owned(id) }
        }
        [before @ .., last] => match last.rsplit_once('-') {
            Some((table, id)) if is_id(id) && is_word(table) => {
                let keyspace = before.last().filter(|keyspace| is_word(keyspace)).and_then(|it| owned(it));
                Origin { keyspace, table: owned(table), id: owned(id) }
            }
            _ => Origin::default(),
        },
        [] => Origin::default(),
    }
}

fn is_id(text: &str) -> bool {
    text.len() == 32 && text.bytes().all(|digit| digit.is_ascii_hexdigit())
}

/// Whether a keyspace or a table may be called so.
fn is_word(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|letter| letter.is_ascii_alphanumeric() || letter == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn layouts() {
        const ID: &str = "f34b6ff0f8f711eb9fcf000000000000";
        for (path, name) in [
            ("/var/lib/cassandra/data/ks/t-ID", Some("ks.t")),
            ("/var/lib/cassandra/data/ks/t-ID/snapshots/2024-01-01", Some("ks.t")),
            ("/var/lib/cassandra/data/ks/t-ID/backups", Some("ks.t")),
            ("/backup/sst/cluster/c/dc/dc1/node/n/keyspace/ks/table/t/ID", Some("ks.t")),
            ("s3://bucket/backup/sst/cluster/c/dc/dc1/node/n/keyspace/ks/table/t/ID", Some("ks.t")),
            ("s3://bucket/node1/data/ks/t-ID", Some("ks.t")),
            ("/copies/my-files/t-ID", Some("t")),
            ("/copies/ks/t", None),
            ("/copies/ks/t-1234", None),
        ] {
            let origin = of(Path::new(&path.replace("ID", ID)));
            assert_eq!(origin.name().as_deref(), name, "{path}");
            assert_eq!(origin.id.as_deref(), name.map(|_| ID), "{path}");
        }
    }
}
