use std::sync::Arc;

use object_store::memory::InMemory;
use object_store::path::Path as Key;
use object_store::{ObjectStore, ObjectStoreExt};

use super::super::address::ObjectAddress;
use super::super::allowance::Allowance;
use super::super::runtime::Cancelled;
use super::*;

/// An object in memory, of bytes that tell where they are.
fn object(length: usize) -> (Remote, Vec<u8>) {
    let bytes: Vec<u8> = (0..length).map(|at| u8::try_from(at % 251).unwrap()).collect();
    let store: Arc<dyn ObjectStore> = Arc::new(InMemory::new());
    let key = Key::from("a");
    put(&store, &key, &bytes);
    let address = ObjectAddress::parse(std::path::Path::new("s3://bucket/a")).unwrap().unwrap();
    let (cancelled, allowance) = (Cancelled::never(), Allowance::default());
    (Remote { address, store, key, cancelled, allowance }, bytes)
}

fn put(store: &Arc<dyn ObjectStore>, key: &Key, bytes: &[u8]) {
    let (store, key, bytes) = (Arc::clone(store), key.clone(), bytes.to_vec());
    wait(&Cancelled::never(), async move { store.put(&key, bytes.into()).await }).unwrap().unwrap();
}

fn open(remote: &Remote) -> Opened {
    opened(remote, &ask(remote).unwrap()).unwrap().unwrap()
}

fn source(remote: &Remote) -> RemoteSource {
    RemoteSource::new(remote.clone(), open(remote))
}

/// What fails is no end, however often it is read on.
#[test]
fn a_stream_that_fails_does_not_end() {
    let (remote, _) = object(10);
    let gone = object_store::Error::NotFound { path: "a".to_owned(), source: "gone".into() };
    let body = futures_util::stream::iter([Ok(Bytes::from_static(b"abc")), Err(gone)]).boxed();
    let mut stream = WholeStream { remote, body: Some(body), unread: Bytes::new(), error: None };
    let mut bytes = Vec::new();
    assert!(stream.read_to_end(&mut bytes).is_err());
    assert_eq!(bytes, b"abc");
    assert!(stream.read(&mut [0; 8]).is_err() && stream.read_to_end(&mut bytes).is_err());
}

#[test]
fn any_range_is_read_whatever_was_foreseen() {
    let (remote, bytes) = object(300_000);
    let source = source(&remote);
    source.will_read(&mut [0..10, 100_000..150_000, 20..30, 140_000..400_000].into_iter());
    for range in [0..300_000, 5..6, 99_999..150_001, 299_999..300_000, 235_000..236_000, 0..0] {
        let read = source.read(u64_of(range.start)..u64_of(range.end)).unwrap();
        assert!(read[..] == bytes[range.clone()], "{range:?}");
    }
    let error = source.read(299_999..300_001).unwrap_err();
    assert!(error.message().contains("it has 300000 bytes"), "{error}");
}

#[test]
fn an_object_that_changes_is_an_error_and_no_mixture() {
    let (remote, bytes) = object(300_000);
    let (before, again) = (source(&remote), source(&remote));
    assert_eq!(before.read(0..10).unwrap(), bytes[..10]);
    put(&remote.store, &remote.key, &vec![7; 300_000]);
    assert!(before.read(10..20).unwrap_err().message().contains("changed"));
    let again = RemoteSource::new(remote.clone(), Opened::again(again.version));
    assert!(again.read(10..20).unwrap_err().message().contains("changed"));
    assert_eq!(source(&remote).read(10..20).unwrap(), vec![7; 10]);
}

/// What one object may fetch ahead depends on what others hold. What is read at once does not.
#[test]
fn objects_share_an_allowance() {
    let (mut remote, bytes) = object(20 << 20);
    remote.allowance = Allowance::of(PIECE_BYTES + 1000, 2);
    let (one, other) = (source(&remote), source(&remote));
    let all = || std::iter::once(0..u64_of(bytes.len()));
    // (The last bytes came when it was opened.)
    let ahead = |of: &RemoteSource| of.fetches().pieces.len() - 1;
    one.will_read(&mut all());
    other.will_read(&mut all());
    assert_eq!((ahead(&one), ahead(&other)), (1, 0));
    assert!(other.read(5..10).unwrap() == bytes[5..10]);
    assert!(other.read(9 << 20..10 << 20).unwrap() == bytes[9 << 20..10 << 20]);
    // What they held is there for others.
    drop((one, other));
    let third = source(&remote);
    third.will_read(&mut all());
    assert_eq!(ahead(&third), 1);
}

#[test]
fn the_last_bytes_are_here_when_it_is_open() {
    let (remote, bytes) = object(300_000);
    let opened = open(&remote);
    let gone = Remote { store: Arc::new(InMemory::new()), ..remote };
    let source = RemoteSource::new(gone, opened);
    let tail = 300_000 - TAIL_BYTES..300_000;
    assert_eq!(source.read(tail).unwrap(), bytes[300_000 - 65_536..]);
    assert!(source.read(0..1).unwrap_err().message().starts_with("not found"));
}

#[test]
fn an_object_without_bytes_is_one() {
    let (remote, _) = object(0);
    let source = source(&remote);
    assert_eq!((source.length().unwrap(), source.read(0..0).unwrap().len()), (0, 0));
}

#[test]
fn what_is_read_ahead_is_bounded() {
    let (remote, _) = object(100 << 20);
    let source = source(&remote);
    source.will_read(&mut std::iter::once(0..100 << 20));
    {
        let fetches = source.fetches();
        assert!(fetches.held() <= AHEAD_BYTES && fetches.flying() <= REQUESTS);
        assert!(!fetches.pieces.is_empty());
    }
    for at in 0..100 {
        assert_eq!(source.read(at << 20..(at + 1) << 20).unwrap().len(), 1 << 20);
        assert!(source.fetches().held() <= AHEAD_BYTES + PIECE_BYTES);
    }
    assert_eq!(source.fetches().plan.len(), 0);
    // What was fetched ahead gives way.
    source.will_read(&mut std::iter::once(0..32 << 20));
    for at in [40_u64, 60, 80] {
        assert_eq!(source.read(at << 20..(at + 20) << 20).unwrap().len(), 20 << 20);
        assert!(source.fetches().held() <= HELD_BYTES);
    }
    assert_eq!(source.read(0..32 << 20).unwrap().len(), 32 << 20);
    assert_eq!(source.fetches().held(), 0);
}

/// What is needed first is requested first, whenever it was foreseen.
#[test]
fn the_latest_plan_comes_first() {
    let mut fetches = Fetches::default();
    let mut foresee = |ranges: &[Range<u64>]| {
        fetches.foresee(&mut ranges.iter().cloned(), 100);
        fetches.plan.iter().cloned().collect::<Vec<_>>()
    };
    assert_eq!(foresee(&[0..10, 10..20, 40..50, 90..200]), [0..20, 40..50, 90..100]);
    assert_eq!(foresee(&[45..60, 0..1]), [45..60, 0..1, 1..20, 40..45, 90..100]);
}

#[test]
fn streams_go_on_where_they_were() {
    let (remote, bytes) = object(21 << 20);
    let mut read = Vec::new();
    RemoteStream::new(source(&remote)).read_to_end(&mut read).unwrap();
    assert!(read == bytes);
    let mut whole = WholeStream::open(remote).unwrap();
    read.clear();
    whole.read_to_end(&mut read).unwrap();
    assert!(read == bytes);
}

#[test]
fn holes_are_what_is_left() {
    assert_eq!(holes(&(10..20), [0..5, 25..30].iter()), vec![10..20]);
    assert_eq!(holes(&(10..20), [18..30, 0..11, 13..14].iter()), vec![11..13, 14..18]);
    assert!(holes(&(10..20), [5..15, 15..20].iter()).is_empty());
}
