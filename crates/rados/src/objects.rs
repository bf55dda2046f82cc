//! The objects of a pool, as the rest of the crate uses them, one operation after the other: those of a cluster, which librados reaches, or of tests.

use marquetry_base::Result;

/// What is known of an object without reading it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stored {
    /// Its length in bytes.
    pub bytes: u64,
    /// Its version, which each write changes.
    pub version: u64,
}

/// What opens pools: a cluster that is connected to.
pub(crate) trait Pools: Send + Sync {
    /// The objects of a pool, by a handle of its own: who uses it does not wait for others.
    fn open(&self, pool: &str) -> Result<Box<dyn Objects>>;
}

/// The objects of a pool. What is wrong with one of them is `Io`, with its name; one that is not there is `NotFound`.
pub(crate) trait Objects: Send {
    /// What is known of an object without reading it.
    fn stat(&mut self, object: &str) -> Result<Stored>;

    /// Reads bytes from `offset` on into `into`: how many, fewer only at the object's end; and the object's version.
    fn read(&mut self, object: &str, offset: u64, into: &mut [u8]) -> Result<(usize, u64)>;

    /// Writes all of an object, in place of one that is there if it `replaces`: of that, nothing is left, neither its omap nor its attributes,
    /// which writing all bytes of it would keep. An index in the omap would be of rows that are not there any more. The version that it has then.
    fn write_full(&mut self, object: &str, bytes: &[u8], replaces: bool) -> Result<u64>;

    /// Removes an object, if it has that version.
    fn remove_at(&mut self, object: &str, version: u64) -> Result<()>;

    /// Removes an object.
    fn remove(&mut self, object: &str) -> Result<()>;

    /// Sets an extended attribute of an object.
    fn set_attribute(&mut self, object: &str, attribute: &str, bytes: &[u8]) -> Result<()>;

    /// An extended attribute of an object, of so many bytes at most; `None` if it has none of that name.
    fn attribute(&mut self, object: &str, attribute: &str, bytes_max: usize) -> Result<Option<Vec<u8>>>;

    /// The names of all objects of the pool that begin so, sorted; those that are not UTF-8 are left out.
    fn list(&mut self, prefix: &str) -> Result<Vec<String>>;

    /// Calls a method of a class on an object, if it still has that version: the answer, and the version that it has.
    fn execute(
        &mut self,
        object: &str,
        method: (&str, &str),
        request: &[u8],
        version: Option<u64>,
    ) -> Result<(Vec<u8>, u64)>;

    /// Calls a method of a class that may write the object: an OSD sends no answer of a call that did.
    fn step(&mut self, object: &str, method: (&str, &str), request: &[u8]) -> Result<Vec<u8>>;

    /// Calls a method of a class that writes an object, if the object has that version. The version that it has then. If a length is given, the
    /// object is cut to it afterwards, in the same operation.
    fn change(
        &mut self,
        object: &str,
        method: (&str, &str),
        request: &[u8],
        version_and_length: (Option<u64>, Option<u64>),
    ) -> Result<u64>;
}
