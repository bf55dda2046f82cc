//! What is known of a node's SSTables, and what waits to be converted.

mod replace;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use marquetry_base::{Error, ErrorKind, Result};

use super::choice::{self, Origin};
use super::coverage::Coverage;
use super::directory::{Lacks, Made, Stamp, list};
use super::held::AllLinks;
use super::links::{Linked, Linking, Links, SstableId};
use super::options::{Keep, TablePattern, WatchOptions};
use super::output::Output;
use super::report::{WatchEvent, WatchSummary};
use super::retry::{AGAIN, Retry};
use super::state::{Decision, State};
use super::tables::{TableDirectory, name_of_place};

/// How often it is written down which files were made, while many are.
const SAVE: Duration = Duration::from_secs(1);

/// A table that is watched.
#[derive(Debug)]
struct Table {
    directory: TableDirectory,
    /// Its complete SSTables that were linked, whether or not they are in files by now.
    known: BTreeMap<String, Known>,
    incomplete: BTreeMap<String, Incomplete>,
    /// Everything in it is known.
    is_settled: bool,
}

#[derive(Debug)]
struct Known {
    stamp: Stamp,
    id: SstableId,
    is_leaving: bool,
}

/// An SSTable that is not complete.
#[derive(Debug)]
struct Incomplete {
    lacks: Lacks,
    /// When it was seen so first.
    since: Instant,
}

/// An SSTable that waits.
#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) linked: Linked,
    /// `ks.t`
    pub(super) table: String,
    pub(super) noticed: Instant,
    /// When it is tried again, if it failed.
    pub(super) retry: Retry,
}

/// An SSTable that was linked, and of which nothing is decided.
struct Candidate {
    linked: Linked,
    made: Option<Made>,
}

/// Where what happens goes.
pub(super) type Report<'a> = dyn FnMut(&WatchEvent<'_>) + 'a;

pub(super) struct Catalog {
    links: AllLinks,
    pub(super) output: Output,
    state: State,
    state_path: PathBuf,
    keep: Keep,
    limits: marquetry_base::Limits,
    tables: BTreeMap<PathBuf, Table>,
    queue: VecDeque<Item>,
    /// The one that is being converted.
    current: Option<Linked>,
    /// Those that wait for the next run.
    left: Vec<Item>,
    /// All of these, and where their links are.
    waiting: BTreeMap<SstableId, PathBuf>,
    /// Of tables, by their places: an SSTable that must be in a file before any file is removed.
    blocking: BTreeMap<String, SstableId>,
    /// Those that cannot be converted. Their links stay: what they have may be nowhere else, and a later run may be able to.
    held: BTreeMap<SstableId, Linked>,
    pub(super) counts: WatchSummary,
    /// What earlier runs could not convert.
    failed_before: Vec<SstableId>,
    /// The places of tables of which SSTables were linked since somebody looked at this.
    pub(super) linked_of: BTreeSet<String>,
    /// What was reported, so that it is not once more.
    said: BTreeSet<(String, String)>,
    /// Something could not be read or linked, and is to be looked at again.
    pub(super) is_to_look_again: bool,
    /// What was there when it was started is decided.
    has_begun: bool,
    /// Which node this is by its own table. It is not kept: between two runs there may be what positions do not tell of.
    local: Option<String>,
    /// When the state was saved, and whether it is another one by now.
    saved: Instant,
    is_unsaved: bool,
    /// SSTables that were looked at to know which files are obsolete.
    #[cfg(test)]
    looked_at: usize,
}

impl Catalog {
    pub(super) fn new(
        options: &WatchOptions,
        output: Output,
        mut state: State,
        state_path: PathBuf,
    ) -> Catalog {
        let is_of_before = std::mem::take(&mut state.is_without_made);
        if is_of_before {
            let is_made = |(id, decision): &(&SstableId, &mut Decision)| {
                **decision == Decision::Convert && output.contains(id)
            };
            for (_, decision) in state.decisions.iter_mut().filter(is_made) {
                *decision = Decision::Made;
            }
        }
        Catalog {
            local: None,
            links: AllLinks::new(options),
            output,
            state,
            state_path,
            keep: options.keep,
            limits: options.limits,
            tables: BTreeMap::new(),
            queue: VecDeque::new(),
            current: None,
            left: Vec::new(),
            waiting: BTreeMap::new(),
            blocking: BTreeMap::new(),
            held: BTreeMap::new(),
            failed_before: Vec::new(),
            counts: WatchSummary::default(),
            linked_of: BTreeSet::new(),
            said: BTreeSet::new(),
            is_to_look_again: false,
            has_begun: false,
            saved: Instant::now(),
            is_unsaved: is_of_before,
            #[cfg(test)]
            looked_at: 0,
        }
    }

    /// Goes on where an earlier run was ended: takes links to what is to be converted, and removes those to what is done with. Before the
    /// directories are looked at, `only_decided`, because what made an SSTable may be seen there; after that, all that is left.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn resume(&mut self, only_decided: bool, report: &mut Report<'_>) -> Result<()> {
        let mut found = self.links.all()?;
        if only_decided {
            let failed = self.state.decisions.iter().filter(|(_, it)| matches!(it, Decision::Failed(_)));
            self.failed_before = failed.map(|(id, _)| id.clone()).collect();
            found.retain(|linked| self.state.decisions.contains_key(&linked.id));
        }
        let candidates = found.into_iter().map(|linked| Candidate { linked, made: None });
        self.decide(candidates.collect(), report)
    }

    /// Reports what earlier runs could not convert, and is still there.
    pub(super) fn say_failed_before(&mut self, report: &mut Report<'_>) {
        for id in std::mem::take(&mut self.failed_before) {
            let mut tables = self.tables.values().filter(|table| table.directory.place == id.place);
            let is_there = tables.any(|table| table.known.values().any(|known| known.id == id));
            let is_there = is_there || self.held.contains_key(&id);
            if let (true, Some(Decision::Failed(why))) = (is_there, self.state.decisions.get(&id)) {
                self.counts.failed_before += 1;
                let subject = format!("{} {}", name_of_place(&id.place), id.stem);
                report(&WatchEvent::FailedBefore { subject: &subject, why });
            }
        }
    }

    /// Names SSTables that lack something for a time, and not because they are being written.
    pub(super) fn say_incomplete(&mut self, at_least: Duration, report: &mut Report<'_>) {
        let mut found = Vec::new();
        for table in self.tables.values() {
            let lasting = table.incomplete.iter().filter(|(_, its)| its.since.elapsed() >= at_least);
            let named = lasting.filter_map(|(stem, its)| Some((stem, its.lacks.name(stem)?)));
            found.extend(named.map(|(stem, lacks)| (format!("{} {stem}", table.directory.name), lacks)));
        }
        for (subject, lacks) in found {
            self.note(&subject, &format!("not complete, so it is not converted: {lacks}"), report);
        }
    }

    /// Whether a table that is there is meant.
    pub(super) fn has_any(&self, pattern: &TablePattern) -> bool {
        self.tables.values().any(|table| pattern.contains_named(&table.directory.name))
    }

    /// Takes the tables that there are. Those that are new are to be looked at.
    pub(super) fn set_tables(&mut self, tables: Vec<TableDirectory>) {
        let mut before = std::mem::take(&mut self.tables);
        for directory in tables {
            let known = before.remove(&directory.path).filter(|table| table.directory == directory);
            let new = |directory| Table {
                directory,
                known: BTreeMap::new(),
                incomplete: BTreeMap::new(),
                is_settled: false,
            };
            let table = known.unwrap_or_else(|| new(directory.clone()));
            self.tables.insert(directory.path, table);
        }
    }

    pub(super) fn table_paths(&self) -> Vec<PathBuf> {
        self.tables.keys().cloned().collect()
    }

    pub(super) fn table_count(&self) -> usize {
        self.tables.values().map(|table| &table.directory.place).collect::<BTreeSet<_>>().len()
    }

    /// The directories of a table: one in each of the data directories that have it.
    fn of_place<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Table> + Clone {
        self.tables.values().filter(move |table| table.directory.place == place)
    }

    pub(super) fn waiting(&self) -> usize {
        self.queue.len()
    }

    /// Looks at the directories of tables: links what is new and complete, and decides what becomes of it.
    ///
    /// # Errors
    ///
    /// `Io` if what was decided cannot be written down.
    pub(super) fn look<'p>(
        &mut self,
        paths: impl IntoIterator<Item = &'p PathBuf>,
        report: &mut Report<'_>,
    ) -> Result<()> {
        let (mut candidates, mut touched) = (Vec::new(), BTreeSet::new());
        for path in paths {
            if let Some(table) = self.tables.get(path) {
                touched.insert(table.directory.place.clone());
                self.look_at(path, &mut candidates, report);
            }
        }
        self.decide(candidates, report)?;
        if self.has_begun {
            self.begun()?;
        }
        for place in touched {
            self.replace(&place, report);
        }
        if self.keep == Keep::Current {
            self.release(report);
        }
        self.count();
        Ok(())
    }

    fn look_at(&mut self, path: &Path, candidates: &mut Vec<Candidate>, report: &mut Report<'_>) {
        let listed = match list(path) {
            Ok(listed) => listed,
            // A table that was dropped.
            Err(_) if !path.exists() => return,
            Err(error) => {
                if let Some(table) = self.tables.get_mut(path) {
                    table.is_settled = false;
                }
                self.trouble(&path.display().to_string(), &error, report);
                return;
            }
        };
        self.succeeded(&path.display().to_string());
        let Some(mut table) = self.tables.remove(path) else { return };
        table.is_settled = listed.faults.is_empty();
        let mut before = std::mem::take(&mut table.incomplete);
        for (stem, lacks) in &listed.incomplete {
            let known = before.remove(stem).filter(|known| known.lacks == *lacks);
            let new = || Incomplete { lacks: lacks.clone(), since: Instant::now() };
            table.incomplete.insert(stem.clone(), known.unwrap_or_else(new));
        }
        table.known.retain(|stem, known| {
            let seen = listed.sstables.get(stem);
            seen.is_some_and(|seen| seen.stamp == known.stamp)
        });
        for (stem, seen) in &listed.sstables {
            if let Some(known) = table.known.get_mut(stem) {
                known.is_leaving = seen.is_leaving;
                continue;
            }
            if seen.is_leaving && self.keep == Keep::Current {
                continue;
            }
            if let Some(id) = self.links.id_of(&table.directory, seen).filter(|id| self.is_done_with(id)) {
                let (stamp, is_leaving) = (seen.stamp, seen.is_leaving);
                table.known.insert(stem.clone(), Known { stamp, id, is_leaving });
                continue;
            }
            match self.links.link(&table.directory, seen) {
                Ok(Linking::Done(linked)) => {
                    let (id, stamp, is_leaving) = (linked.id.clone(), seen.stamp, seen.is_leaving);
                    table.known.insert(stem.clone(), Known { stamp, id, is_leaving });
                    candidates.push(Candidate { linked, made: seen.made.clone() });
                }
                Ok(Linking::Gone) => table.is_settled = false,
                Ok(Linking::Taken) => (table.is_settled, self.is_to_look_again) = (false, true),
                Err(error) => {
                    table.is_settled = false;
                    let subject = format!("{} {stem}", table.directory.name);
                    self.trouble(&subject, &error, report);
                }
            }
        }
        for (stem, error) in &listed.faults {
            let subject = format!("{} {stem}", table.directory.name);
            match error.kind() {
                ErrorKind::Io => self.trouble(&subject, error, report),
                _ if self.is_new(&subject, error) => {
                    self.counts.failed += 1;
                    report(&WatchEvent::Failed { subject: &subject, error, again: None });
                }
                _ => {}
            }
        }
        self.tables.insert(path.to_path_buf(), table);
    }

    /// Decides what becomes of SSTables that were linked, writes that down, and then lets them wait to be converted.
    fn decide(&mut self, candidates: Vec<Candidate>, report: &mut Report<'_>) -> Result<()> {
        let (mut convert, mut obsolete, mut undecided) = (Vec::new(), Vec::new(), Vec::new());
        let mut has_changed = false;
        // Tables of which not all can be looked at now.
        let unsettled = self.tables.values().filter(|table| !table.is_settled);
        let mut unsettled: BTreeSet<String> = unsettled.map(|table| table.directory.place.clone()).collect();
        for candidate in candidates {
            let id = &candidate.linked.id;
            match self.state.decisions.get(id) {
                // What is there by its name, and nobody remembers to have made, may be another one's: that is found out when it is converted.
                Some(Decision::Convert) => convert.push(candidate.linked),
                // Wherever its file is by now.
                Some(Decision::Made | Decision::Skip(_)) => obsolete.push(candidate.linked),
                Some(Decision::Failed(_)) => drop(self.held.insert(id.clone(), candidate.linked)),
                None if self.keep == Keep::Current => {
                    self.state.decisions.insert(id.clone(), Decision::Convert);
                    has_changed = true;
                    convert.push(candidate.linked);
                }
                None => match Origin::of(&candidate.linked, candidate.made, self.limits) {
                    Ok(origin) => undecided.push((origin, candidate.linked)),
                    Err(error) => {
                        unsettled.insert(id.place.clone());
                        match self.not_decided(&candidate.linked, &error, report) {
                            true => has_changed = true,
                            false => obsolete.push(candidate.linked),
                        }
                    }
                },
            }
        }
        undecided.sort_by_key(|(origin, _)| origin.rank());
        let (mut adding, nothing): (Vec<(String, Origin)>, _) = (Vec::new(), Coverage::default());
        for (origin, linked) in undecided {
            has_changed = true;
            if origin.is_flush() && self.state.host.is_none() {
                self.state.host.clone_from(&origin.host);
            }
            let place = linked.id.place.clone();
            let key = coverage_key(&place, origin.host.as_deref());
            let known = choice::Known {
                covered: self.state.covered.get(&key).unwrap_or(&nothing),
                host: self.state.host.as_deref().or(self.local.as_deref()),
                is_first: !self.state.begun.contains(&place),
                is_in_files: &|stem| is_in_files(&self.state, &place, stem),
                has_sibling: &|| self.has_sibling(&linked.id, &origin),
            };
            match origin.left_out(&known) {
                Some(why) => {
                    self.counts.skipped += 1;
                    let (table, sstable) = (name_of_place(&place), linked.id.stem.clone());
                    report(&WatchEvent::Skipped { table: &table, sstable: &sstable, why: &why });
                    self.state.decisions.insert(linked.id.clone(), Decision::Skip(why));
                    obsolete.push(linked);
                }
                None => {
                    if !unsettled.contains(&place) {
                        adding.push((key, origin));
                    }
                    self.state.decisions.insert(linked.id.clone(), Decision::Convert);
                    convert.push(linked);
                }
            }
        }
        // All of them at last: several SSTables of one flush or compaction have the same positions, and each has other rows.
        for (key, origin) in adding {
            self.state.covered.entry(key).or_default().add(&origin.intervals);
        }
        let now = Instant::now();
        for linked in convert {
            if let Some(folder) = self.waiting.get(&linked.id) {
                // The same was written again, or is in two data directories.
                if *folder != linked.files.folder {
                    obsolete.push(linked);
                }
            } else {
                let table = name_of_place(&linked.id.place);
                self.linked_of.insert(linked.id.place.clone());
                self.waiting.insert(linked.id.clone(), linked.files.folder.clone());
                self.queue.push_back(Item { linked, table, noticed: now, retry: Retry::new() });
            }
        }
        if has_changed {
            self.save()?;
        }
        for linked in obsolete {
            self.unlink(&linked, report);
        }
        Ok(())
    }

    /// Whether it is known of which node positions of the commit log are.
    pub(super) fn is_node_known(&self) -> bool {
        self.state.host.is_some() || self.local.is_some()
    }

    /// Which node it is, if that is known.
    pub(super) fn node_is(&mut self, host: Option<String>) {
        self.local = host;
    }

    /// Whether an SSTable with the same positions as another one has other rows: shards of one flush, and outputs of one compaction, have the same.
    /// They are as a rule found together. If one is found later, without the log, the other one is still there; if it is a rewrite of the
    /// other one, that is gone. One that was left out itself says that all of it is in files.
    fn has_sibling(&self, id: &SstableId, origin: &Origin) -> bool {
        let tables = self.tables.values().filter(|table| table.directory.place == id.place);
        let known = tables.flat_map(|table| table.known.iter().map(move |known| (table, known)));
        known.into_iter().any(|(table, (stem, known))| {
            let decision = self.state.decisions.get(&known.id);
            let is_to_convert = matches!(decision, Some(Decision::Convert | Decision::Made));
            let is_other = known.id != *id && is_to_convert && !known.is_leaving;
            is_other && choice::has_positions(&table.directory.path, stem, origin, self.limits)
        })
    }

    /// An SSTable of which nothing can be known. Whether that was written down.
    fn not_decided(&mut self, linked: &Linked, error: &Error, report: &mut Report<'_>) -> bool {
        if !is_of_data(error) {
            // It is looked at once more.
            self.forget(&linked.id);
            self.trouble(&subject_of(linked), error, report);
            return false;
        }
        self.fail(linked, error, report);
        true
    }

    /// What was there at first is decided.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn begun(&mut self) -> Result<()> {
        self.has_begun = true;
        let places: BTreeSet<&String> = self.tables.values().map(|table| &table.directory.place).collect();
        let is_settled = |place: &&String| self.of_place(place).all(|table| table.is_settled);
        let settled = places.into_iter().filter(is_settled);
        let new: Vec<String> = settled.filter(|place| !self.state.begun.contains(*place)).cloned().collect();
        if new.is_empty() {
            return Ok(());
        }
        self.state.begun.extend(new);
        self.save()
    }

    /// Whether there is one to convert now.
    pub(super) fn has_next(&self) -> bool {
        self.queue.iter().any(|item| !item.retry.is_waiting())
    }

    /// The next SSTable to convert.
    pub(super) fn next(&mut self, report: &mut Report<'_>) -> Option<Item> {
        while let Some(at) = self.queue.iter().position(|item| !item.retry.is_waiting())
            && let Some(item) = self.queue.remove(at)
        {
            // What was replaced meanwhile is in what replaced it.
            if self.keep == Keep::Current && !self.is_current(&item.linked.id) {
                self.waiting.remove(&item.linked.id);
                self.unlink(&item.linked, report);
                continue;
            }
            self.current = Some(item.linked.clone());
            self.count();
            return Some(item);
        }
        None
    }

    fn is_current(&self, id: &SstableId) -> bool {
        let mut known = self.of_place(&id.place).filter_map(|table| table.known.get(&id.stem));
        known.any(|known| known.id == *id && !known.is_leaving)
    }

    /// An SSTable is in a file.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be written down.
    pub(super) fn converted(&mut self, item: &Item, report: &mut Report<'_>) -> Result<()> {
        let id = &item.linked.id;
        self.current = None;
        self.waiting.remove(id);
        self.output.add(id);
        self.state.decisions.insert(id.clone(), Decision::Made);
        self.is_unsaved = true;
        // Of what is not written down when it is killed, the file is found.
        if !self.state.is_written || self.saved.elapsed() >= SAVE {
            self.state.is_written = true;
            self.save()?;
        }
        self.succeeded(&subject_of(&item.linked));
        self.unlink(&item.linked, report);
        self.replace(&item.linked.id.place, report);
        self.count();
        Ok(())
    }

    /// Writes down what was made since that was done.
    ///
    /// # Errors
    ///
    /// `Io`.
    pub(super) fn settle(&mut self) -> Result<()> {
        if self.is_unsaved { self.save() } else { Ok(()) }
    }

    /// An SSTable cannot be converted.
    ///
    /// # Errors
    ///
    /// `Io` if that cannot be written down.
    pub(super) fn failed(&mut self, item: Item, error: &Error, report: &mut Report<'_>) -> Result<()> {
        self.current = None;
        self.fail(&item.linked, error, report);
        if error.kind() == ErrorKind::Misuse {
            self.leave(item);
            return Ok(());
        }
        self.waiting.remove(&item.linked.id);
        self.uncover(&item.linked);
        self.save()?;
        self.count();
        Ok(())
    }

    /// What an SSTable has comes into no file: what is made of it must, so what was left out of its table is decided once more.
    fn uncover(&mut self, linked: &Linked) {
        let place = &linked.id.place;
        match Origin::of(linked, None, self.limits) {
            Ok(origin) => {
                let key = coverage_key(place, origin.host.as_deref());
                if let Some(covered) = self.state.covered.get_mut(&key) {
                    covered.remove(&origin.intervals);
                }
            }
            // Of what, nobody knows.
            Err(_) => self.state.covered.retain(|key, _| key.split('@').next() != Some(place)),
        }
        let is_skipped = |(id, decision): &(&SstableId, &Decision)| {
            id.place == *place && matches!(decision, Decision::Skip(_))
        };
        let skipped: Vec<SstableId> =
            self.state.decisions.iter().filter(is_skipped).map(|(id, _)| id.clone()).collect();
        for id in skipped {
            self.state.decisions.remove(&id);
            self.forget(&id);
            self.is_to_look_again = true;
        }
    }

    /// An SSTable waits for the next run. Its links stay.
    pub(super) fn leave(&mut self, item: Item) {
        self.current = None;
        self.left.push(item);
        self.count();
    }

    fn fail(&mut self, linked: &Linked, error: &Error, report: &mut Report<'_>) {
        self.counts.failed += 1;
        report(&WatchEvent::Failed { subject: &subject_of(linked), error, again: None });
        // A definition of another table: that may be mended, and then the SSTable is converted.
        if error.kind() != ErrorKind::Misuse {
            self.state.decisions.insert(linked.id.clone(), Decision::Failed(error.to_string()));
            self.held.insert(linked.id.clone(), linked.clone());
        }
    }

    /// An SSTable is to be tried again, after the others.
    pub(super) fn postponed(&mut self, item: Item) {
        self.current = None;
        self.queue.push_back(item);
        self.count();
    }

    /// An SSTable's conversion was cancelled: its links stay.
    pub(super) fn cancelled(&mut self, item: Item) {
        self.current = None;
        self.queue.push_front(item);
        self.count();
    }

    fn unlink(&mut self, linked: &Linked, report: &mut Report<'_>) {
        if let Err(error) = Links::remove(linked) {
            self.trouble(&linked.files.folder.display().to_string(), &error, report);
        }
    }

    /// Whether no disk is gone.
    pub(super) fn are_there(&self) -> bool {
        self.links.are_there()
    }

    /// Something that may pass.
    pub(super) fn trouble(&mut self, subject: &str, error: &Error, report: &mut Report<'_>) {
        self.is_to_look_again = true;
        self.counts.retries += 1;
        self.counts.unreachable = Some(error.clone());
        if self.is_new(subject, error) {
            report(&WatchEvent::Failed { subject, error, again: Some(AGAIN) });
        }
    }

    /// Whether this was not reported yet.
    pub(super) fn is_new(&mut self, subject: &str, error: &Error) -> bool {
        self.said.insert((subject.to_owned(), error.message().to_owned()))
    }

    /// What was wrong with something is no more: if it is again, that is reported again.
    pub(super) fn succeeded(&mut self, subject: &str) {
        self.said.retain(|(its, _)| its != subject);
    }

    /// A note about a table, once.
    pub(super) fn note(&mut self, table: &str, text: &str, report: &mut Report<'_>) {
        if self.said.insert((table.to_owned(), text.to_owned())) {
            report(&WatchEvent::Note(&format!("{table}: {text}")));
        }
    }

    /// Whether there is a table at a place, or anything that was linked of it.
    pub(super) fn has_place(&self, place: &str) -> bool {
        let mut linked = self.all_waiting().chain(self.held.values());
        self.of_place(place).next().is_some() || linked.any(|linked| linked.id.place == place)
    }

    fn forget(&mut self, id: &SstableId) {
        for table in self.tables.values_mut().filter(|table| table.directory.place == id.place) {
            table.known.retain(|_, known| known.id != *id);
            table.is_settled = false;
        }
    }

    /// Whether nothing is left to do with an SSTable: then it need not be linked.
    fn is_done_with(&self, id: &SstableId) -> bool {
        match self.state.decisions.get(id) {
            Some(Decision::Skip(_) | Decision::Made) => true,
            Some(Decision::Convert | Decision::Failed(_)) | None => false,
        }
    }

    /// Whether an SSTable became a file.
    fn is_made(&self, id: &SstableId) -> bool {
        self.state.decisions.get(id) == Some(&Decision::Made)
    }

    fn all_waiting(&self) -> impl Iterator<Item = &Linked> {
        let waiting = self.queue.iter().chain(&self.left).map(|item| &item.linked);
        waiting.chain(&self.current)
    }

    /// Releases what could not be converted, and is not part of its table any more.
    fn release(&mut self, report: &mut Report<'_>) {
        let is_settled = |id: &SstableId| {
            let mut its = self.of_place(&id.place).peekable();
            its.peek().is_some()
                && its.all(|table| table.is_settled && !table.incomplete.contains_key(&id.stem))
        };
        let gone = self.held.keys().filter(|id| is_settled(id) && !self.is_current(id));
        for id in gone.cloned().collect::<Vec<_>>() {
            if let Some(linked) = self.held.remove(&id) {
                self.unlink(&linked, report);
            }
        }
    }

    fn save(&mut self) -> Result<()> {
        // What is gone, and waits for nothing, need not be known any more.
        let mut tables: BTreeMap<&str, Vec<&Table>> = BTreeMap::new();
        for table in self.tables.values() {
            tables.entry(&table.directory.place).or_default().push(table);
        }
        // One that lacks a file for a moment is not gone.
        let is_its = |table: &&Table, id: &SstableId| {
            !table.is_settled
                || table.incomplete.contains_key(&id.stem)
                || table.known.get(&id.stem).is_some_and(|known| known.id == *id)
        };
        let is_there = |id: &SstableId| {
            tables.get(&*id.place).is_none_or(|its| its.iter().any(|table| is_its(table, id)))
        };
        let is_gone = |id: &&SstableId| {
            !is_there(id) && !self.waiting.contains_key(*id) && !self.held.contains_key(*id)
        };
        let gone: Vec<SstableId> = self.state.decisions.keys().filter(is_gone).cloned().collect();
        for id in &gone {
            self.state.decisions.remove(id);
        }
        self.state.save(&self.state_path)?;
        (self.saved, self.is_unsaved) = (Instant::now(), false);
        Ok(())
    }

    fn count(&mut self) {
        let waiting = self.queue.len() + self.left.len() + usize::from(self.current.is_some());
        let incomplete: usize = self.tables.values().map(|table| table.incomplete.len()).sum();
        self.counts.waiting = u64::try_from(waiting).unwrap_or(u64::MAX);
        self.counts.incomplete = u64::try_from(incomplete).unwrap_or(u64::MAX);
    }

    /// The directories of a table, by where its files are.
    pub(super) fn paths_of<'a>(&'a self, place: &'a str) -> impl Iterator<Item = &'a Path> {
        self.of_place(place).map(|table| &*table.directory.path)
    }
}

/// Whether an error is one of the SSTable, or of its definition: trying again changes nothing.
pub(super) fn is_of_data(error: &Error) -> bool {
    !matches!(error.kind(), ErrorKind::Io | ErrorKind::Refused | ErrorKind::Cancelled)
}

/// What an SSTable is called in messages: `ks.t nb-7-big`.
pub(super) fn subject_of(linked: &Linked) -> String {
    format!("{} {}", name_of_place(&linked.id.place), linked.id.stem)
}

/// Whether what an SSTable has is in files, or will be.
fn is_in_files(state: &State, place: &str, stem: &str) -> bool {
    let its = state.decisions.iter().filter(|(id, _)| id.place == place && id.stem == stem);
    let mut its = its.map(|(_, decision)| decision).peekable();
    its.peek().is_some() && its.all(|decision| !matches!(decision, Decision::Failed(_)))
}

/// Positions of different nodes are not comparable.
fn coverage_key(place: &str, host: Option<&str>) -> String {
    match host {
        Some(host) => format!("{place}@{host}"),
        None => place.to_owned(),
    }
}
