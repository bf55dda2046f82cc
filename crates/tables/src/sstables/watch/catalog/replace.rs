//! With `--keep current`: which files are those of SSTables that are not part of their table any more.

use std::collections::BTreeSet;

use super::{Catalog, Keep, Report, SstableId, WatchEvent, list};
use crate::sstables::watch::directory::Seen;

impl Catalog {
    /// Removes the files of SSTables that are not part of the table any more, if all that are have theirs. It is asked after each conversion, and looks
    /// at all SSTables only if none is left that waits.
    pub(super) fn replace(&mut self, place: &str, report: &mut Report<'_>) {
        if self.keep != Keep::Current || self.is_blocked(place) {
            return;
        }
        let Some(name) = self.of_place(place).next().map(|table| table.directory.name.clone()) else {
            return;
        };
        if self.of_place(place).any(|table| !table.is_settled) {
            return;
        }
        let known = self.of_place(place).flat_map(|table| table.known.values());
        let current: BTreeSet<SstableId> =
            known.filter(|known| !known.is_leaving).map(|known| known.id.clone()).collect();
        #[cfg(test)]
        {
            self.looked_at += current.len();
        }
        // The one that comes last: until then, nothing else need be looked at.
        let mut last = self.queue.iter().rev().map(|item| &item.linked.id);
        let last = last.find(|id| id.place == place && current.contains(*id));
        if let Some(id) = last.or_else(|| current.iter().find(|id| !self.is_in_file(id))).cloned() {
            self.blocking.insert(place.to_owned(), id);
            return;
        }
        let incomplete = self.of_place(place).flat_map(|table| table.incomplete.keys());
        let incomplete: BTreeSet<&String> = incomplete.collect();
        // One that lacks its table of contents for a moment is not gone: it is written anew when an index is dropped.
        let is_obsolete = |id: &&SstableId| !current.contains(*id) && !incomplete.contains(&id.stem);
        let obsolete: Vec<SstableId> = self.output.of_table(place).filter(is_obsolete).cloned().collect();
        if obsolete.is_empty() {
            return;
        }
        // One that is not complete, and has no file, may be what replaces them.
        let have_files: BTreeSet<&String> = self.output.of_table(place).map(|id| &id.stem).collect();
        if !incomplete.is_subset(&have_files) {
            return;
        }
        // A disk that is gone is not a table without SSTables.
        if !self.are_there() {
            return;
        }
        // Once more: what replaces others may have appeared while the directories were read, and been missed.
        let mut is_same = true;
        for table in self.of_place(place) {
            let again = match list(&table.directory.path) {
                Ok(again) if again.faults.is_empty() => again,
                _ => return,
            };
            let stays = again.sstables.iter().filter(|(_, seen)| !seen.is_leaving);
            let is_known = |(stem, seen): (&String, &Seen)| {
                table.known.get(stem).is_some_and(|known| known.stamp == seen.stamp)
            };
            let before = table.known.values().filter(|known| !known.is_leaving).count();
            is_same &= again.incomplete.keys().eq(table.incomplete.keys()) && stays.clone().count() == before;
            is_same &= stays.into_iter().all(is_known);
        }
        if !is_same {
            self.is_to_look_again = true;
            return;
        }
        for id in obsolete {
            match self.output.remove(&id) {
                Ok(path) => {
                    self.counts.removed += 1;
                    report(&WatchEvent::Removed { table: &name, path: &path });
                }
                Err(error) => {
                    self.trouble(&self.output.path_of(&id).display().to_string(), &error, report);
                }
            }
        }
    }

    /// Whether an SSTable of the table that had no file when all were looked at has none still.
    fn is_blocked(&mut self, place: &str) -> bool {
        let Some(id) = self.blocking.get(place) else { return false };
        if self.is_current(id) && !self.is_in_file(id) {
            return true;
        }
        self.blocking.remove(place);
        false
    }

    /// Whether what an SSTable has is in a file: in the destination, or wherever that was taken to.
    fn is_in_file(&self, id: &SstableId) -> bool {
        (self.output.contains(id) || self.is_made(id)) && !self.waiting.contains_key(id)
    }
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::Path;

    use crate::sstables::watch::catalog::Catalog;
    use crate::sstables::watch::options::{Keep, WatchOptions};
    use crate::sstables::watch::output::Output;
    use crate::sstables::watch::report::WatchEvent;
    use crate::sstables::watch::state::State;
    use crate::sstables::watch::tables::find_tables;

    const SSTABLES: usize = 200;

    fn put(table: &Path, number: usize) {
        let write =
            |name: &str, text: &str| fs::write(table.join(format!("nb-{number}-big-{name}")), text).unwrap();
        write("Data.db", "rows");
        write("Statistics.db", "");
        write("Digest.crc32", &number.to_string());
        write("TOC.txt", "Data.db\nStatistics.db\nDigest.crc32\nTOC.txt\n");
    }

    /// Of each table, SSTables are looked at once for all, not once for each that is converted.
    #[test]
    fn what_is_replaced_is_not_looked_for_after_each_conversion() {
        let folder = tempfile::tempdir().unwrap();
        let places = ["t", "u"].map(|name| format!("ks/{name}-{}", "0".repeat(32)));
        let (data, lake) = (folder.path().join("data"), folder.path().join("lake"));
        for place in &places {
            fs::create_dir_all(data.join(place)).unwrap();
            fs::create_dir_all(lake.join(place)).unwrap();
            for number in 0..SSTABLES {
                put(&data.join(place), number);
            }
            fs::write(lake.join(place).join("nb-9999-big-00000001.parquet"), "of one that is gone").unwrap();
        }
        let mut options = WatchOptions::new(&data, &lake);
        options.keep = Keep::Current;
        fs::create_dir_all(options.work()).unwrap();
        let output = Output::open(&options.store, &lake).unwrap();
        let mut catalog = Catalog::new(&options, output, State::default(), options.work().join("state"));
        catalog.set_tables(find_tables(&data, &[]).unwrap().tables);
        let (mut removed, mut converted) = (Vec::new(), 0);
        let mut report = |event: &WatchEvent<'_>| match event {
            WatchEvent::Removed { table, .. } => removed.push((*table).to_owned()),
            event => panic!("{event:?}"),
        };
        let paths = catalog.table_paths();
        catalog.look(&paths, &mut report).unwrap();
        while let Some(item) = catalog.next(&mut report) {
            converted += 1;
            catalog.converted(&item, &mut report).unwrap();
        }
        assert_eq!((converted, removed), (2 * SSTABLES, vec!["ks.t".to_owned(), "ks.u".to_owned()]));
        // At first, and once they all are in files.
        assert_eq!(catalog.looked_at, 2 * 2 * SSTABLES);
    }
}
