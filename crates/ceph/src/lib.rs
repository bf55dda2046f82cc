//! The engine of `cls_marquetry`, an object class that Ceph's object storage daemons (OSDs) load: Parquet objects are
//! described and queried where they are stored, and only the answer travels.
//!
//! [`call`] is one call of a method: it reads ranges of one object, works for its [share](request::Share), and answers.
//! An OSD runs calls on the threads that serve everybody else, so a call ends after its share, with a cursor where there
//! is more: the next call goes on there. Nothing is kept in between, so nothing is lost if another OSD is asked then.
//! `docs/ceph.md` has the methods and the encoding of requests and answers; [`ffi`] is what the shim in C++ links.
//!
//! ```text
//! request ──► Query ──► RowFinder ──► rows of a row group ──► BatchReader ──► ToArrow ──► Arrow IPC ─┐
//!   cursor ───────────► where to begin                        or aggregates ─────────────────────────┴──► answer, cursor
//! ```
#![deny(unsafe_code)]

mod aggregate;
mod answer;
mod asked;
mod compact;
mod compress;
mod cursor;
mod describe;
mod ends;
mod failure;
#[allow(unsafe_code, reason = "the door to C++: each place has its proof")]
pub mod ffi;
mod groups;
mod host;
mod index;
mod ipc;
mod kept;
mod keys;
mod located;
mod merge;
mod moves;
mod note;
mod output;
mod page;
mod parquet_rows;
mod parts;
mod query;
pub mod request;
mod rows;
mod split;
mod states;
mod stats;

use marquetry_base::Result;

pub use answer::{ANSWER, AnswerField};
pub use host::RadosObject;
pub use request::{Format, REQUEST, RequestField, Step};

use answer::Answer;
use host::Host;
use request::Request;

/// A method of the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Method {
    /// What an object has: rows, row groups, schema.
    Describe,
    /// Rows, or aggregates of them.
    Query,
    /// What the footer says of each column chunk.
    Stats,
    /// Rows of a Parquet file are added to the object's. It writes: see [`change`].
    Merge,
    /// The object's pages are compressed in another way, bit by bit. It writes.
    Compress,
    /// Some row groups as a file of their own.
    Split,
    /// Values of a column are indexed, bit by bit. It writes.
    Index,
    /// All rows, or some, in another form: of objects of rows, too.
    Transform,
}

impl Method {
    /// The method of that name.
    pub fn of(name: &str) -> Option<Method> {
        match name {
            "describe" => Some(Method::Describe),
            "query" => Some(Method::Query),
            "stats" => Some(Method::Stats),
            "merge" => Some(Method::Merge),
            "compress" => Some(Method::Compress),
            "split" => Some(Method::Split),
            "index" => Some(Method::Index),
            "transform" => Some(Method::Transform),
            _ => None,
        }
    }
}

/// Answers a call. What is wrong with the request or the object is in the answer, as the field
/// `error`: an answer that has one has nothing else.
pub fn call(method: Method, object: &mut dyn RadosObject, request: &[u8]) -> Vec<u8> {
    match answered(method, object, request) {
        Ok(answer) => answer.into_bytes(),
        Err(error) => Answer::of_error(&error),
    }
}

/// The same, in two parts, one after the other: the second is what the answer has of rows.
fn call_in_parts(method: Method, object: &mut dyn RadosObject, request: &[u8]) -> (Vec<u8>, Vec<u8>) {
    match answered(method, object, request) {
        Ok(answer) => answer.into_parts(),
        Err(error) => (Answer::of_error(&error), Vec::new()),
    }
}

/// Carries out a call that writes: what it answers. Nothing is written if it fails, for which an OSD has an errno and no answer.
///
/// # Errors
///
/// What is wrong with the request or the object.
pub fn change(method: Method, object: &mut dyn RadosObject, request: &[u8]) -> Result<Vec<u8>> {
    answered(method, object, request).map(Answer::into_bytes)
}

fn answered(method: Method, object: &mut dyn RadosObject, request: &[u8]) -> Result<Answer> {
    let request = Request::parse(request)?;
    let mut host = Host::new(object, request.share);
    let mut answer = match method {
        Method::Describe => describe::describe(&mut host)?,
        Method::Query => query::query(&mut host, &request, false)?,
        Method::Transform => query::query(&mut host, &request, true)?,
        Method::Stats => stats::stats(&mut host, &request)?,
        Method::Merge => merge::merge(&mut host, &request)?,
        Method::Compress => compress::compress(&mut host, &request)?,
        Method::Split => split::split(&mut host, &request)?,
        Method::Index => index::build(&mut host, &request)?,
    };
    answer.work = host.work();
    Ok(answer)
}
