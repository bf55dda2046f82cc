//! What was given to a writer, where its manifest has that.

use std::collections::BTreeMap;
use std::path::Path;

use serde_json::Value;

/// The columns of a file: nulls, and the CRC-32 of the canonical bytes.
pub(crate) struct Given(Vec<(u64, u64)>);

impl Given {
    /// Nulls and CRC-32 of a leaf.
    pub(crate) fn column(&self, leaf: usize) -> (u64, u64) {
        self.0[leaf]
    }
}

/// The files of a manifest that say what was given.
pub(crate) fn read(manifest: &Path) -> BTreeMap<String, Given> {
    let manifest: Value = serde_json::from_slice(&std::fs::read(manifest).unwrap()).unwrap();
    let files = manifest["files"].as_array().expect("a manifest has files");
    let given = |file: &Value| {
        let columns = file["columns"].as_array()?;
        let column = |column: &Value| Some((column["nulls"].as_u64()?, column["crc32"].as_u64()?));
        let columns = columns.iter().map(column).collect::<Option<_>>().expect("nulls and CRC");
        Some((file["file"].as_str()?.to_owned(), Given(columns)))
    };
    files.iter().filter_map(given).collect()
}
