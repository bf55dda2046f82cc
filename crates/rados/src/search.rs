//! Searches of many objects at a time, whose results come object by object.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use marquetry_base::{Error, ErrorKind, Result};
use marquetry_io::shown;
use marquetry_io::store::{
    FoundRows, IsCancelled, Search, Searched, SearchedAggregates, SearchedObject, Searching,
};

use crate::asked::Asked;
use crate::query::{Answer, Execute, Query};

/// Objects that are searched at a time: each waits for an OSD most of the time.
const OBJECTS_AT_A_TIME: usize = 8;
/// Answers of an object that wait for those of objects before it, at most.
const ANSWERS_WAITING: usize = 2;
/// How long to wait for an answer before checking whether anybody still wants it.
const LOOK_UP_AFTER: Duration = Duration::from_millis(100);

/// Begins a search: `reach` is what calls the class on an object.
///
/// # Errors
///
/// `Io` if no thread can be started.
pub fn search<E: Execute + 'static>(
    search: Search,
    is_cancelled: IsCancelled,
    reach: impl Fn(&SearchedObject) -> Result<E> + Send + Sync + 'static,
) -> Result<Box<dyn Searching>> {
    let Search { objects, predicate, aggregates, limit } = search;
    let mut asked = predicate.map_or_else(Asked::new, |predicate| Asked::new().predicate(predicate));
    let is_aggregated = aggregates.is_some();
    if let Some(SearchedAggregates { functions, groups }) = aggregates {
        asked = functions.into_iter().fold(asked.as_parquet(), Asked::aggregate);
        asked = groups.into_iter().fold(asked, Asked::group_by);
    }
    if let Some(rows) = limit {
        asked = asked.limit(rows);
    }
    let (mut waiting, mut lanes) = (VecDeque::new(), VecDeque::new());
    let threads = OBJECTS_AT_A_TIME.min(objects.len());
    for object in objects {
        let (sender, receiver) = sync_channel(ANSWERS_WAITING);
        let name = shown(&object.path.to_string_lossy());
        waiting.push_back((object, sender));
        lanes.push_back(Lane { name, receiver });
    }
    let waiting = Arc::new(Mutex::new(waiting));
    let work: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        while let Some((object, sender)) = take(&waiting) {
            if !answers(&object, &asked, &reach, &sender) {
                return;
            }
        }
    });
    for _ in 0..threads {
        let work = Arc::clone(&work);
        let spawned = thread::Builder::new().name("marquetry-rados".to_owned()).spawn(move || work());
        spawned.map_err(|error| Error::io("a thread cannot be started").caused_by(error))?;
    }
    Ok(Box::new(InOrder { lanes, at: 0, is_aggregated, is_cancelled }))
}

/// What comes of an object: answers, then `None`, or an error.
type Answers = SyncSender<Result<Option<Answer>>>;
type Waiting = Mutex<VecDeque<(SearchedObject, Answers)>>;

/// The next object that nobody has taken.
fn take(waiting: &Waiting) -> Option<(SearchedObject, Answers)> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
}

/// Sends the answers of an object. False once nobody wants them.
fn answers<E: Execute>(
    object: &SearchedObject,
    asked: &Asked,
    reach: &impl Fn(&SearchedObject) -> Result<E>,
    sender: &Answers,
) -> bool {
    let asked = object.leaves.iter().fold(asked.clone(), |asked, names| asked.leaf(names));
    let asked = match object.leaves.is_empty() {
        true if asked.is_aggregated() => asked,
        true => asked.counted(),
        false => asked.as_parquet(),
    };
    let version = object.version.tag().parse();
    let version = version.map_err(|_| Error::internal("a version that is not one of RADOS"));
    let query = version.and_then(|version| Ok(Query::new(reach(object)?, &asked).of_version(version)));
    let query = match query {
        Ok(query) => query,
        Err(error) => return sender.send(Err(error)).is_ok(),
    };
    for answer in query {
        let is_error = answer.is_err();
        if sender.send(answer.map(Some)).is_err() {
            return false;
        }
        if is_error {
            // Nobody looks for an end.
            return true;
        }
    }
    sender.send(Ok(None)).is_ok()
}

/// The answers of an object.
struct Lane {
    name: String,
    receiver: Receiver<Result<Option<Answer>>>,
}

/// Answers in the order of their objects.
struct InOrder {
    lanes: VecDeque<Lane>,
    /// The place of the first of the lanes in the search.
    at: usize,
    is_aggregated: bool,
    is_cancelled: IsCancelled,
}

impl Searching for InOrder {
    fn next(&mut self) -> Result<Option<Searched>> {
        loop {
            let Some(Lane { name, receiver }) = self.lanes.front() else { return Ok(None) };
            let object = self.at;
            match receiver.recv_timeout(LOOK_UP_AFTER) {
                Ok(Ok(Some(answer))) => {
                    let Answer { rows, first_row, data: file, report, .. } = answer;
                    return Ok(Some(Searched::Found(FoundRows { object, rows, first_row, file, report })));
                }
                Ok(Ok(None)) => self.next_lane(),
                // What an OSD may not do, or does not know, its client does.
                Ok(Err(reason)) if is_declined(&reason, self.is_aggregated) => {
                    self.next_lane();
                    return Ok(Some(Searched::Declined { object, reason }));
                }
                Ok(Err(error)) => {
                    let error = error.at(|place| place.object = Some(name.clone()));
                    self.lanes.clear();
                    return Err(error);
                }
                Err(RecvTimeoutError::Timeout) if (self.is_cancelled)() => {
                    self.lanes.clear();
                    return Err(Error::cancelled());
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => {
                    self.lanes.clear();
                    return Err(Error::internal("a thread that searches objects died"));
                }
            }
        }
    }
}

impl InOrder {
    fn next_lane(&mut self) {
        self.lanes.pop_front();
        self.at += 1;
    }
}

/// Whether an error says that an object is not searched where it is, or takes more than a call may. Aggregates are computed of Arrow's values
/// there, which are fewer than a file may have: whoever reads the file finds out what is wrong with it, if anything is.
fn is_declined(error: &Error, is_aggregated: bool) -> bool {
    match error.kind() {
        ErrorKind::Unsupported | ErrorKind::LimitExceeded => true,
        ErrorKind::Conversion | ErrorKind::Corrupt => is_aggregated,
        _ => false,
    }
}
