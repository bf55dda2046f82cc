//! Searches of many objects at a time, whose results come object by object.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use std::{iter, mem, thread};

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
/// Bytes of an answer from which on the next one is worth a thread: an OSD works for it while rows are decoded here. Of fewer bytes, to wake
/// another thread takes about as long as to decode them.
const AHEAD_BYTES: usize = 64 << 10;
/// How long small answers of one object wait for those after them, about, while others are asked for: to decode several in a row takes a fraction
/// of what each takes between two calls, after which neither code nor data are in a cache.
const GATHERED_FOR: Duration = Duration::from_millis(20);

/// Begins a search: `reach` is what calls the class on an object.
///
/// Of one object, whoever takes the results also asks for them, as long as they are small, some at a time; so a call that is under way is waited
/// for, even if the search was cancelled. Threads ask for all others.
///
/// # Errors
///
/// `Io` if no thread can be started.
pub fn search<E: Execute + Send + 'static>(
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
    if let [object] = objects.as_slice() {
        let source = Source::Here(queried(object, &asked, &reach));
        let lanes = VecDeque::from([Lane::of(object, source)]);
        return Ok(Box::new(InOrder { lanes, at: 0, is_aggregated, is_cancelled }));
    }
    let (mut waiting, mut lanes) = (VecDeque::new(), VecDeque::new());
    let threads = OBJECTS_AT_A_TIME.min(objects.len());
    for object in objects {
        let (sender, receiver) = sync_channel(ANSWERS_WAITING);
        lanes.push_back(Lane::of(&object, Source::Ahead(receiver)));
        waiting.push_back((object, sender));
    }
    let waiting = Arc::new(Mutex::new(waiting));
    let work: Arc<dyn Fn() + Send + Sync> = Arc::new(move || {
        while let Some((object, sender)) = take(&waiting) {
            if !send_all(queried(&object, &asked, &reach), &sender) {
                return;
            }
        }
    });
    for _ in 0..threads {
        let work = Arc::clone(&work);
        spawned(move || work())?;
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

/// The answers of an object, one call after the other. After an error nothing more comes.
type Queried = Box<dyn Iterator<Item = Result<Answer>> + Send>;

/// The answers of an object; an error if it cannot be asked.
fn queried<E: Execute + Send + 'static>(
    object: &SearchedObject,
    asked: &Asked,
    reach: &impl Fn(&SearchedObject) -> Result<E>,
) -> Queried {
    let asked = object.leaves.iter().fold(asked.clone(), |asked, names| asked.leaf(names));
    let asked = match object.leaves.is_empty() {
        true if asked.is_aggregated() => asked,
        true => asked.counted(),
        false => asked.as_parquet(),
    };
    let version = object.version.tag().parse();
    let version = version.map_err(|_| Error::internal("a version that is not one of RADOS"));
    match version.and_then(|version| Ok(Query::new(reach(object)?, &asked).of_version(version))) {
        Ok(query) => Box::new(query),
        Err(error) => Box::new(iter::once(Err(error))),
    }
}

/// Sends the answers of an object. False once nobody wants them.
fn send_all(queried: Queried, sender: &Answers) -> bool {
    for answer in queried {
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

/// Starts a thread.
fn spawned(work: impl FnOnce() + Send + 'static) -> Result<()> {
    let spawned = thread::Builder::new().name("marquetry-rados".to_owned()).spawn(work);
    spawned.map(drop).map_err(|error| Error::io("a thread cannot be started").caused_by(error))
}

/// An object, and where its answers come from.
struct Lane {
    name: String,
    source: Source,
    /// What has come, and was not taken.
    gathered: VecDeque<Result<Option<Answer>>>,
}

enum Source {
    /// Whoever takes answers asks for them.
    Here(Queried),
    /// A thread asks, ahead of who takes them.
    Ahead(Receiver<Result<Option<Answer>>>),
}

impl Lane {
    fn of(object: &SearchedObject, source: Source) -> Lane {
        Lane { name: shown(&object.path.to_string_lossy()), source, gathered: VecDeque::new() }
    }

    /// What comes next of the object, or what is wrong with it. An error in place of that ends the search.
    fn next(&mut self, is_cancelled: &IsCancelled) -> Result<Result<Option<Answer>>> {
        if self.gathered.is_empty() {
            self.gather(is_cancelled)?;
        }
        self.gathered.pop_front().ok_or_else(|| Error::internal("an object of which nothing comes"))
    }

    fn gather(&mut self, is_cancelled: &IsCancelled) -> Result<()> {
        let (begun, mut bytes) = (Instant::now(), 0);
        loop {
            let next = match &mut self.source {
                Source::Here(_) if is_cancelled() => return Err(Error::cancelled()),
                Source::Here(queried) => queried.next().transpose(),
                Source::Ahead(receiver) => {
                    let next = received(receiver, is_cancelled)?;
                    self.gathered.push_back(next);
                    return Ok(());
                }
            };
            let some = match &next {
                Ok(Some(answer)) => Some(answer.data.len()),
                _ => None,
            };
            self.gathered.push_back(next);
            // Nothing comes after an error, or the end.
            let Some(some) = some else { return Ok(()) };
            bytes += some;
            if some >= AHEAD_BYTES {
                return self.ask_ahead();
            }
            if bytes >= AHEAD_BYTES || begun.elapsed() >= GATHERED_FOR {
                return Ok(());
            }
        }
    }

    /// From now on, a thread asks.
    fn ask_ahead(&mut self) -> Result<()> {
        let (sender, receiver) = sync_channel(ANSWERS_WAITING);
        if let Source::Here(queried) = mem::replace(&mut self.source, Source::Ahead(receiver)) {
            spawned(move || {
                send_all(queried, &sender);
            })?;
        }
        Ok(())
    }
}

/// What a thread sends next.
fn received(
    receiver: &Receiver<Result<Option<Answer>>>,
    is_cancelled: &IsCancelled,
) -> Result<Result<Option<Answer>>> {
    loop {
        match receiver.recv_timeout(LOOK_UP_AFTER) {
            Ok(next) => return Ok(next),
            Err(RecvTimeoutError::Timeout) if is_cancelled() => return Err(Error::cancelled()),
            Err(RecvTimeoutError::Timeout) => {}
            Err(RecvTimeoutError::Disconnected) => {
                return Err(Error::internal("a thread that searches objects died"));
            }
        }
    }
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
            let Some(lane) = self.lanes.front_mut() else { return Ok(None) };
            let object = self.at;
            match lane.next(&self.is_cancelled) {
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
                    let error = error.at(|place| place.object = Some(lane.name.clone()));
                    self.lanes.clear();
                    return Err(error);
                }
                Err(error) => {
                    self.lanes.clear();
                    return Err(error);
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

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicBool, Ordering};
    use std::thread::ThreadId;

    use marquetry_base::Frame;
    use marquetry_io::ObjectVersion;

    use super::*;
    use crate::query::ANSWER;

    /// Objects whose answers have so many bytes each, and the threads that asked for them.
    #[derive(Clone)]
    struct Answering {
        bytes: VecDeque<usize>,
        asked_by: Arc<Mutex<Vec<ThreadId>>>,
        /// Set by the first call, if there is one.
        cancels: Option<Arc<AtomicBool>>,
    }

    impl Answering {
        fn of(bytes: &[usize]) -> Answering {
            Answering { bytes: bytes.iter().copied().collect(), asked_by: Arc::default(), cancels: None }
        }

        fn asked_by(&self) -> Vec<ThreadId> {
            self.asked_by.lock().unwrap().clone()
        }

        /// Searches so many of them, until it is cancelled.
        fn search(&self, objects: usize, is_cancelled: &Arc<AtomicBool>) -> Box<dyn Searching> {
            let version = ObjectVersion::new(1000, "7");
            let leaves = vec![vec!["id".to_owned()]];
            let object = |number| SearchedObject {
                path: format!("object {number}").into(),
                version: version.clone(),
                leaves: leaves.clone(),
            };
            let objects = (0..objects).map(object).collect();
            let wanted = Search { objects, predicate: None, aggregates: None, limit: None };
            let (of, is_cancelled) = (self.clone(), Arc::clone(is_cancelled));
            let is_cancelled: IsCancelled = Arc::new(move || is_cancelled.load(Ordering::Relaxed));
            search(wanted, is_cancelled, move |_| Ok(of.clone())).unwrap()
        }
    }

    impl Execute for Answering {
        fn execute(&mut self, _: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
            assert_eq!(version, Some(7));
            self.asked_by.lock().unwrap().push(thread::current().id());
            if let Some(cancels) = &self.cancels {
                cancels.store(true, Ordering::Relaxed);
            }
            let mut frame = Frame::new(ANSWER);
            let bytes = self.bytes.pop_front().unwrap();
            if !self.bytes.is_empty() {
                frame.push(2, &[u8::try_from(self.bytes.len()).unwrap()]);
            }
            frame.push_u64(3, 1);
            frame.push(1, &vec![7; bytes]);
            Ok((frame.into_bytes(), 7))
        }
    }

    /// The bytes of all answers, and their objects.
    fn found(results: &mut dyn Searching) -> Vec<(usize, usize)> {
        let mut found = Vec::new();
        while let Some(next) = results.next().unwrap() {
            let Searched::Found(rows) = next else { panic!("{next:?}") };
            found.push((rows.object, rows.file.len()));
        }
        found
    }

    #[test]
    fn one_object_is_asked_by_who_takes_its_answers_as_long_as_they_are_small() {
        let cancel = Arc::default();
        let here = thread::current().id();
        let small = Answering::of(&[10, AHEAD_BYTES - 1, 30]);
        assert_eq!(found(&mut *small.search(1, &cancel)), [(0, 10), (0, AHEAD_BYTES - 1), (0, 30)]);
        assert_eq!(small.asked_by(), [here; 3]);
        // Rows that take their time to be decoded: the next ones are asked for meanwhile.
        let large = Answering::of(&[10, AHEAD_BYTES, 30, 40]);
        assert_eq!(found(&mut *large.search(1, &cancel)), [(0, 10), (0, AHEAD_BYTES), (0, 30), (0, 40)]);
        let asked_by = large.asked_by();
        assert_eq!((&asked_by[..2], asked_by.len()), (&[here; 2][..], 4));
        assert!(asked_by[2] != here && asked_by[3] == asked_by[2]);
        // Several objects are asked at a time.
        let several = Answering::of(&[10, 20]);
        assert_eq!(found(&mut *several.search(2, &cancel)), [(0, 10), (0, 20), (1, 10), (1, 20)]);
        assert!(!several.asked_by().contains(&here));
    }

    #[test]
    fn nobody_is_asked_once_a_search_is_cancelled() {
        let cancel: Arc<AtomicBool> = Arc::default();
        let object = Answering { cancels: Some(Arc::clone(&cancel)), ..Answering::of(&[10, 20, 30]) };
        let mut results = object.search(1, &cancel);
        assert_eq!(results.next().unwrap_err().kind(), ErrorKind::Cancelled);
        // And nothing more comes.
        assert!(matches!(results.next(), Ok(None)));
        assert_eq!(object.asked_by().len(), 1);
    }

    #[test]
    fn what_came_before_an_error_is_handed_out() {
        let failing = Failing(Answering::of(&[10, 20]));
        let object = SearchedObject {
            path: "object".into(),
            version: ObjectVersion::new(1000, "7"),
            leaves: vec![vec!["id".to_owned()]],
        };
        let wanted = Search { objects: vec![object], predicate: None, aggregates: None, limit: None };
        let mut results = search(wanted, Arc::new(|| false), move |_| Ok(failing.clone())).unwrap();
        assert!(matches!(results.next(), Ok(Some(Searched::Found(rows))) if rows.file.len() == 10));
        let Ok(Some(Searched::Declined { object, reason })) = results.next() else { panic!("not declined") };
        assert_eq!((object, reason.kind()), (0, ErrorKind::LimitExceeded));
        assert!(matches!(results.next(), Ok(None)));
    }

    /// One whose last call is refused.
    #[derive(Clone)]
    struct Failing(Answering);

    impl Execute for Failing {
        fn execute(&mut self, request: &[u8], version: Option<u64>) -> Result<(Vec<u8>, u64)> {
            if self.0.bytes.len() == 1 {
                return Err(Error::too_large("a page"));
            }
            self.0.execute(request, version)
        }
    }
}
