//! What is known of earlier runs, and whether this one may go on with it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use marquetry_base::{Error, Result};

use super::options::{WatchOptions, resolved};
use super::output::new_owner;
use super::state::{Decision, State, one_line};

/// What is known of earlier runs: of the same data directories, to which some may be added, and, once a file was written, of the same destination, made with
/// the same options. Nothing is saved yet.
///
/// # Errors
///
/// `Misuse` if it is not; `Io` if it cannot be read.
pub(super) fn begin(path: &Path, options: &WatchOptions) -> Result<State> {
    let destination = one_line(&options.destination.display().to_string());
    let destination = destination.trim_end_matches('/').to_owned();
    let (mapping, keep) = (options.mapping.name().to_owned(), options.keep.name().to_owned());
    let Some(mut state) = State::load(path)? else {
        return Ok(State { destination, mapping, keep, owner: new_owner(), ..State::default() });
    };
    if state.is_written {
        for (what, before, now) in [
            ("destination", &state.destination, &destination),
            ("mapping", &state.mapping, &mapping),
            ("--keep", &state.keep, &keep),
        ] {
            if before != now {
                let what = format!(
                    "this directory for work is that of the {what} {before}, not {now}: name another one (--work), and another destination"
                );
                return Err(wrong(path, what));
            }
        }
    }
    expect_directories(&state, path, options)?;
    if state.keep != keep {
        // What was decided was for other files.
        state.decisions.clear();
        state.begun.clear();
        state.covered.clear();
    }
    (state.destination, state.mapping, state.keep) = (destination, mapping, keep);
    if options.retry_failed {
        for decision in state.decisions.values_mut().filter(|it| matches!(it, Decision::Failed(_))) {
            *decision = Decision::Convert;
        }
    }
    Ok(state)
}

/// All data directories are still there that were watched together. The state is in the first one, unless a directory for work is named; then they
/// may be named in any order.
fn expect_directories(state: &State, path: &Path, options: &WatchOptions) -> Result<()> {
    if state.others.is_empty() {
        return Ok(());
    }
    let is_first_free = options.work.is_some();
    let all: BTreeMap<String, &PathBuf> =
        options.directories().skip(usize::from(!is_first_free)).map(|data| (name_of(data), data)).collect();
    let first = state.first.iter().filter(|_| is_first_free);
    for before in state.others.iter().chain(first) {
        let what = match all.get(before) {
            None => format!(
                "it was watched together with the data directory {before}: name that, too, or, if it is gone for good, remove the line that names it"
            ),
            Some(data) if !options.work_of(data).exists() => {
                format!(
                    "the data directory {before} has no directory for work any more: is its file system mounted?"
                )
            }
            Some(_) => continue,
        };
        return Err(wrong(path, what));
    }
    // Of a state that does not name the first one.
    if is_first_free && all.len() <= state.others.len() {
        let what =
            format!("{} data directories were watched together: name all of them", state.others.len() + 1);
        return Err(wrong(path, what));
    }
    Ok(())
}

/// Takes notice of all data directories.
pub(super) fn add_directories(state: &mut State, options: &WatchOptions) {
    if options.more_data.len() > state.others.len() {
        // What is in a new one was never looked at, so it counts as what is there at first.
        state.begun.clear();
    }
    state.first = Some(name_of(&options.data));
    state.others = options.more_data.iter().map(|data| name_of(data)).collect();
}

fn name_of(data: &Path) -> String {
    one_line(&resolved(data).display().to_string())
}

fn wrong(path: &Path, what: String) -> Error {
    Error::misuse(what).at(|place| place.object = Some(path.display().to_string()))
}
