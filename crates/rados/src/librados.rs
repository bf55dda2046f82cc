//! The functions of librados that are used, loaded when they are first needed.
//!
//! Source: `rados/librados.h`, which Debian's librados-dev 16.2 has; the types of the functions below are those there.
#![allow(unsafe_code, reason = "librados is a library of C")]

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::ptr::{NonNull, null, null_mut};
use std::sync::{Arc, OnceLock};

use marquetry_base::cast::u64_of;
use marquetry_base::{Detail, Error, Result};

use crate::objects::{Objects, Pools, Stored};

/// The library, by the name that its soname has.
const LIBRARY: &CStr = c"librados.so.2";

/// A `rados_t`, `rados_ioctx_t`, `rados_read_op_t` or `rados_list_ctx_t`: pointers to what only librados knows.
type Handle = *mut c_void;

/// `-ENOENT`, `-ERANGE`, `-EOPNOTSUPP`, `-EOVERFLOW`, `-EPERM`, `-EEXIST`, as on every Linux.
const NO_ENTRY: c_int = -2;
const NOT_PERMITTED: c_int = -1;
const RANGE: c_int = -34;
const OVERFLOW: c_int = -75;
const NOT_SUPPORTED: c_int = -95;
const EXISTS: c_int = -17;
/// `-ENODATA`: no such attribute.
const NO_DATA: c_int = -61;
/// `-EINVAL`, `-EFBIG` and `-EBADMSG`, by which a method that writes says whose fault it is.
const INVALID: c_int = -22;
const TOO_LARGE: c_int = -27;
const BAD_MESSAGE: c_int = -74;

/// `LIBRADOS_CREATE_EXCLUSIVE` and `LIBRADOS_CREATE_IDEMPOTENT`.
const CREATE_EXCLUSIVE: c_int = 1;
const CREATE_IDEMPOTENT: c_int = 0;
/// `LIBRADOS_OP_FLAG_FAILOK`: what the step before returns does not matter.
const FAIL_OK: c_int = 2;

/// Declares the table of functions, and what fills it.
macro_rules! functions {
    ($($name:ident: fn($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            fn load() -> std::result::Result<Functions, String> {
                // SAFETY: the name ends with a NUL. What librados does when it is loaded is what every program has that links it.
                let library = unsafe { libc::dlopen(LIBRARY.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
                let library = NonNull::new(library).ok_or_else(why)?;
                Ok(Functions {
                    $($name: {
                        let name = concat!(stringify!($name), "\0");
                        // SAFETY: the library is loaded, and the name ends with a NUL.
                        let function = unsafe { libc::dlsym(library.as_ptr(), name.as_ptr().cast()) };
                        let function = NonNull::new(function).ok_or_else(why)?;
                        // SAFETY: it is the function of that name, whose type is the one of librados.h. It is never unloaded.
                        unsafe {
                            std::mem::transmute::<
                                *mut c_void,
                                unsafe extern "C" fn($($argument),*) $(-> $result)?,
                            >(function.as_ptr())
                        }
                    },)*
                })
            }
        }
    };
}

functions! {
    rados_create: fn(*mut Handle, *const c_char) -> c_int;
    rados_conf_read_file: fn(Handle, *const c_char) -> c_int;
    rados_connect: fn(Handle) -> c_int;
    rados_shutdown: fn(Handle);
    rados_ioctx_create: fn(Handle, *const c_char, *mut Handle) -> c_int;
    rados_ioctx_destroy: fn(Handle);
    rados_stat: fn(Handle, *const c_char, *mut u64, *mut libc::time_t) -> c_int;
    rados_read: fn(Handle, *const c_char, *mut c_char, usize, u64) -> c_int;
    rados_create_write_op: fn() -> Handle;
    rados_release_write_op: fn(Handle);
    rados_write_op_create: fn(Handle, c_int, *const c_char);
    rados_write_op_remove: fn(Handle);
    rados_write_op_set_flags: fn(Handle, c_int);
    rados_write_op_write_full: fn(Handle, *const c_char, usize);
    rados_write_op_assert_version: fn(Handle, u64);
    rados_write_op_exec: fn(
        Handle, *const c_char, *const c_char, *const c_char, usize, *mut c_int
    );
    rados_write_op_truncate: fn(Handle, u64);
    rados_write_op_operate: fn(Handle, Handle, *const c_char, *mut libc::time_t, c_int) -> c_int;
    rados_remove: fn(Handle, *const c_char) -> c_int;
    rados_setxattr: fn(Handle, *const c_char, *const c_char, *const c_char, usize) -> c_int;
    rados_getxattr: fn(Handle, *const c_char, *const c_char, *mut c_char, usize) -> c_int;
    rados_nobjects_list_open: fn(Handle, *mut Handle) -> c_int;
    rados_nobjects_list_next: fn(Handle, *mut *const c_char, *mut *const c_char, *mut *const c_char) -> c_int;
    rados_nobjects_list_close: fn(Handle);
    rados_create_read_op: fn() -> Handle;
    rados_release_read_op: fn(Handle);
    rados_read_op_assert_version: fn(Handle, u64);
    rados_read_op_exec: fn(
        Handle, *const c_char, *const c_char, *const c_char, usize, *mut *mut c_char, *mut usize, *mut c_int
    );
    rados_read_op_operate: fn(Handle, Handle, *const c_char, c_int) -> c_int;
    rados_get_last_version: fn(Handle) -> u64;
    rados_buffer_free: fn(*mut c_char);
}

/// What the loader says is wrong.
fn why() -> String {
    // SAFETY: it returns NULL or a text that ends with a NUL, and stays until the next call on this thread.
    let text = unsafe { libc::dlerror() };
    if text.is_null() {
        return "it is not there".to_owned();
    }
    // SAFETY: as above.
    unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned()
}

fn functions() -> Result<&'static Functions> {
    static FUNCTIONS: OnceLock<std::result::Result<Functions, String>> = OnceLock::new();
    let loaded = FUNCTIONS.get_or_init(Functions::load).as_ref();
    loaded.map_err(|why| {
        Error::unsupported(format!(
            "Ceph's client library cannot be loaded ({why}); on Debian: apt-get install librados2"
        ))
    })
}

/// A cluster that is connected to. Any number of threads may use it.
pub(crate) struct Cluster {
    functions: &'static Functions,
    handle: Handle,
}

// SAFETY: librados' handles of clusters may be used by any thread, and by several at a time.
unsafe impl Send for Cluster {}
// SAFETY: as above.
unsafe impl Sync for Cluster {}

impl Cluster {
    pub(crate) fn open(configuration: &str) -> Result<Cluster> {
        let functions = functions()?;
        let path = text(configuration)?;
        let mut cluster = Cluster { functions, handle: null_mut() };
        let named = || configuration.to_owned();
        // SAFETY: there is room for a handle; NULL stands for the name of the default user.
        let created = unsafe { (functions.rados_create)(&raw mut cluster.handle, null()) };
        check(created, "a cluster", named)?;
        // SAFETY: the cluster was created and is not connected; the text ends with a NUL.
        let read = unsafe { (functions.rados_conf_read_file)(cluster.handle, path.as_ptr()) };
        check(read, "the configuration", named)?;
        // SAFETY: the cluster is configured.
        check(unsafe { (functions.rados_connect)(cluster.handle) }, "the cluster", named)?;
        Ok(cluster)
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was created, and no context of it is left: each holds it.
            unsafe { (self.functions.rados_shutdown)(self.handle) };
        }
    }
}

impl Pools for Arc<Cluster> {
    fn open(&self, pool: &str) -> Result<Box<dyn Objects>> {
        Ok(Box::new(Context::open(self, pool)?))
    }
}

/// A pool of a cluster, for one thread at a time: it has the version that the last operation saw.
struct Context {
    functions: &'static Functions,
    io: Handle,
    /// Dropped after the context is destroyed.
    _cluster: Arc<Cluster>,
}

// SAFETY: librados' handles of pools may be used by any thread, and every use of one is by `&mut`.
unsafe impl Send for Context {}

impl Context {
    fn open(cluster: &Arc<Cluster>, pool: &str) -> Result<Context> {
        let functions = cluster.functions;
        let name = text(pool)?;
        let mut context = Context { functions, io: null_mut(), _cluster: Arc::clone(cluster) };
        // SAFETY: the cluster is connected; the text ends with a NUL, and there is room for a handle.
        let created =
            unsafe { (functions.rados_ioctx_create)(cluster.handle, name.as_ptr(), &raw mut context.io) };
        check(created, "the pool", || pool.to_owned())?;
        Ok(context)
    }

    /// The version of the object that the last operation read, or wrote.
    fn last_version(&mut self) -> u64 {
        // SAFETY: the context is open.
        unsafe { (self.functions.rados_get_last_version)(self.io) }
    }

    /// What a call of a method returned, and its answer.
    fn executed(
        &mut self,
        object: &str,
        (class, method): (&str, &str),
        request: &[u8],
        version: Option<u64>,
    ) -> Result<(c_int, Vec<u8>)> {
        let functions = self.functions;
        let (name, class_text, method_text) = (text(object)?, text(class)?, text(method)?);
        // SAFETY: it takes nothing. The operation is released below, by `ReadOperation`.
        let operation = ReadOperation { functions, handle: unsafe { (functions.rados_create_read_op)() } };
        let (mut answer, mut answered) = (Owned { functions, bytes: null_mut(), length: 0 }, 0);
        if let Some(version) = version {
            // SAFETY: the operation was created.
            unsafe { (functions.rados_read_op_assert_version)(operation.handle, version) };
        }
        // SAFETY: the operation was created; the texts end with a NUL and, with the request and the places for the answer, stay until it has
        // been carried out, below.
        unsafe {
            (functions.rados_read_op_exec)(
                operation.handle,
                class_text.as_ptr(),
                method_text.as_ptr(),
                request.as_ptr().cast(),
                request.len(),
                &raw mut answer.bytes,
                &raw mut answer.length,
                &raw mut answered,
            );
        }
        // SAFETY: the operation was created, and the context is open; the name ends with a NUL.
        let done = unsafe { (functions.rados_read_op_operate)(operation.handle, self.io, name.as_ptr(), 0) };
        Ok((if done < 0 { done } else { answered.min(0) }, answer.take()))
    }
}

impl Objects for Context {
    fn stat(&mut self, object: &str) -> Result<Stored> {
        let name = text(object)?;
        let mut bytes = 0;
        // SAFETY: the context is open; the name ends with a NUL; there is room for a number, and NULL stands for the time, which is not wanted.
        let found =
            unsafe { (self.functions.rados_stat)(self.io, name.as_ptr(), &raw mut bytes, null_mut()) };
        check(found, "the object", || object.to_owned())?;
        Ok(Stored { bytes, version: self.last_version() })
    }

    fn read(&mut self, object: &str, offset: u64, into: &mut [u8]) -> Result<(usize, u64)> {
        let name = text(object)?;
        // SAFETY: the context is open; the name ends with a NUL; there is room for as many bytes as are asked for.
        let read = unsafe {
            (self.functions.rados_read)(self.io, name.as_ptr(), into.as_mut_ptr().cast(), into.len(), offset)
        };
        check(read, "the object", || object.to_owned())?;
        let read = usize::try_from(read).map_err(|_| Error::internal("librados read fewer than no bytes"))?;
        Ok((read, self.last_version()))
    }

    fn write_full(&mut self, object: &str, bytes: &[u8], replaces: bool) -> Result<u64> {
        let (functions, name) = (self.functions, text(object)?);
        // SAFETY: it takes nothing. The operation is released by `WriteOperation`.
        let operation = WriteOperation { functions, handle: unsafe { (functions.rados_create_write_op)() } };
        if replaces {
            // SAFETY: the operation was created. The flag is of the step before: there need not be an object.
            unsafe {
                (functions.rados_write_op_remove)(operation.handle);
                (functions.rados_write_op_set_flags)(operation.handle, FAIL_OK);
            }
        }
        let how = if replaces { CREATE_IDEMPOTENT } else { CREATE_EXCLUSIVE };
        // SAFETY: the operation was created; NULL stands for a category, which is not used any more.
        unsafe { (functions.rados_write_op_create)(operation.handle, how, null()) };
        // SAFETY: the operation was created; the bytes are as many as is said, and stay until it has been carried out, below.
        unsafe {
            (functions.rados_write_op_write_full)(operation.handle, bytes.as_ptr().cast(), bytes.len());
        }
        // SAFETY: the operation was created, and the context is open; the name ends with a NUL; NULL stands for the time now.
        let written = unsafe {
            (functions.rados_write_op_operate)(operation.handle, self.io, name.as_ptr(), null_mut(), 0)
        };
        check(written, "the object", || object.to_owned())?;
        Ok(self.last_version())
    }

    fn remove_at(&mut self, object: &str, version: u64) -> Result<()> {
        let (functions, name) = (self.functions, text(object)?);
        // SAFETY: it takes nothing. The operation is released by `WriteOperation`.
        let operation = WriteOperation { functions, handle: unsafe { (functions.rados_create_write_op)() } };
        // SAFETY: the operation was created.
        unsafe {
            (functions.rados_write_op_assert_version)(operation.handle, version);
            (functions.rados_write_op_remove)(operation.handle);
        }
        // SAFETY: the operation was created, and the context is open; the name ends with a NUL; NULL stands for the time now.
        let removed = unsafe {
            (functions.rados_write_op_operate)(operation.handle, self.io, name.as_ptr(), null_mut(), 0)
        };
        check(removed, "the object", || object.to_owned())
    }

    fn remove(&mut self, object: &str) -> Result<()> {
        let name = text(object)?;
        // SAFETY: the context is open; the name ends with a NUL.
        check(unsafe { (self.functions.rados_remove)(self.io, name.as_ptr()) }, "the object", || {
            object.to_owned()
        })
    }

    fn set_attribute(&mut self, object: &str, attribute: &str, bytes: &[u8]) -> Result<()> {
        let (name, attribute) = (text(object)?, text(attribute)?);
        // SAFETY: the context is open; the texts end with a NUL; as many bytes are there.
        let set = unsafe {
            (self.functions.rados_setxattr)(
                self.io,
                name.as_ptr(),
                attribute.as_ptr(),
                bytes.as_ptr().cast(),
                bytes.len(),
            )
        };
        check(set, "the object", || object.to_owned())
    }

    fn attribute(&mut self, object: &str, attribute: &str, bytes_max: usize) -> Result<Option<Vec<u8>>> {
        let (name, attribute) = (text(object)?, text(attribute)?);
        let mut bytes = vec![0_u8; bytes_max];
        // SAFETY: the context is open; the texts end with a NUL; there is room for as many bytes.
        let got = unsafe {
            (self.functions.rados_getxattr)(
                self.io,
                name.as_ptr(),
                attribute.as_ptr(),
                bytes.as_mut_ptr().cast(),
                bytes.len(),
            )
        };
        if got == NO_DATA {
            return Ok(None);
        }
        check(got, "the object", || object.to_owned())?;
        bytes.truncate(usize::try_from(got).unwrap_or(0));
        Ok(Some(bytes))
    }

    fn list(&mut self, prefix: &str) -> Result<Vec<String>> {
        let mut list = List { functions: self.functions, handle: null_mut() };
        // SAFETY: the context is open; there is room for a handle.
        let opened = unsafe { (self.functions.rados_nobjects_list_open)(self.io, &raw mut list.handle) };
        check(opened, "the pool's objects", String::new)?;
        let mut names = Vec::new();
        loop {
            let mut name = null();
            // SAFETY: the list is open; there is room for a pointer, and NULL stands for what is not wanted.
            let next = unsafe {
                (self.functions.rados_nobjects_list_next)(list.handle, &raw mut name, null_mut(), null_mut())
            };
            if next == NO_ENTRY {
                names.sort_unstable();
                return Ok(names);
            }
            check(next, "the pool's objects", String::new)?;
            // SAFETY: after success it is a text that ends with a NUL, until the next call.
            let name = unsafe { CStr::from_ptr(name) };
            names.extend(name.to_str().ok().filter(|name| name.starts_with(prefix)).map(str::to_owned));
        }
    }

    fn execute(
        &mut self,
        object: &str,
        (class, method): (&str, &str),
        request: &[u8],
        version: Option<u64>,
    ) -> Result<(Vec<u8>, u64)> {
        let (done, answer) = self.executed(object, (class, method), request, version)?;
        let has = self.last_version();
        match done {
            RANGE | OVERFLOW if version.is_some() => {
                let changed = Error::io("it was changed while it was queried");
                Err(changed.at(|place| place.object = Some(object.to_owned())))
            }
            NOT_SUPPORTED | NOT_PERMITTED => Err(no_method(object, (class, method))),
            done => check(done, "the object", || object.to_owned()).map(|()| (answer, has)),
        }
    }

    fn step(&mut self, object: &str, (class, method): (&str, &str), request: &[u8]) -> Result<Vec<u8>> {
        let (done, answer) = self.executed(object, (class, method), request, None)?;
        check_change(done, object, (class, method), false).map(|()| answer)
    }

    // librados repeats what an OSD may not have got, and the OSD carries it out once.
    fn change(
        &mut self,
        object: &str,
        (class, method): (&str, &str),
        request: &[u8],
        (version, length): (Option<u64>, Option<u64>),
    ) -> Result<u64> {
        let functions = self.functions;
        let (name, class_text, method_text) = (text(object)?, text(class)?, text(method)?);
        // SAFETY: it takes nothing. The operation is released by `WriteOperation`.
        let operation = WriteOperation { functions, handle: unsafe { (functions.rados_create_write_op)() } };
        if let Some(version) = version {
            // SAFETY: the operation was created.
            unsafe { (functions.rados_write_op_assert_version)(operation.handle, version) };
        }
        let mut answered = 0;
        // SAFETY: the operation was created; the texts end with a NUL and, with the request and the place for the answer, stay until it has
        // been carried out, below.
        unsafe {
            (functions.rados_write_op_exec)(
                operation.handle,
                class_text.as_ptr(),
                method_text.as_ptr(),
                request.as_ptr().cast(),
                request.len(),
                &raw mut answered,
            );
        }
        if let Some(length) = length {
            // SAFETY: the operation was created.
            unsafe { (functions.rados_write_op_truncate)(operation.handle, length) };
        }
        // SAFETY: the operation was created, and the context is open; the name ends with a NUL; NULL stands for the time now.
        let done = unsafe {
            (functions.rados_write_op_operate)(operation.handle, self.io, name.as_ptr(), null_mut(), 0)
        };
        check_change(done, object, (class, method), version.is_some())?;
        Ok(self.last_version())
    }
}

/// An error for what a call returned that writes an object, perhaps of a certain version.
fn check_change(done: c_int, object: &str, (class, method): (&str, &str), has_version: bool) -> Result<()> {
    let refused = match done {
        RANGE | OVERFLOW if has_version => Error::io("it was changed meanwhile"),
        NOT_SUPPORTED | NOT_PERMITTED => return Err(no_method(object, (class, method))),
        INVALID => Error::misuse(format!("{method} was refused: it does not fit the object")),
        TOO_LARGE => Error::too_large(format!("{method} takes more than a call may, or an object may have")),
        BAD_MESSAGE => {
            Error::corrupt(format!("{method} was refused: the object, or what is added, is corrupt"))
        }
        done => return check(done, "the object", || object.to_owned()),
    };
    Err(refused.at(|place| place.object = Some(object.to_owned())))
}

fn no_method(object: &str, (class, method): (&str, &str)) -> Error {
    let message = format!(
        "the class {class} has no method {method} there (it is not installed in the object's OSD, or not allowed, or the pool is \
         erasure-coded), or it does not support this object or column"
    );
    Error::unsupported(message).at(|place| place.object = Some(object.to_owned()))
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.io.is_null() {
            // SAFETY: it was created, and is not used any more.
            unsafe { (self.functions.rados_ioctx_destroy)(self.io) };
        }
    }
}

struct List {
    functions: &'static Functions,
    handle: Handle,
}

impl Drop for List {
    fn drop(&mut self) {
        if !self.handle.is_null() {
            // SAFETY: it was opened, and is not used any more.
            unsafe { (self.functions.rados_nobjects_list_close)(self.handle) };
        }
    }
}

struct ReadOperation {
    functions: &'static Functions,
    handle: Handle,
}

impl Drop for ReadOperation {
    fn drop(&mut self) {
        // SAFETY: it was created, and has been carried out or never will be.
        unsafe { (self.functions.rados_release_read_op)(self.handle) };
    }
}

struct WriteOperation {
    functions: &'static Functions,
    handle: Handle,
}

impl Drop for WriteOperation {
    fn drop(&mut self) {
        // SAFETY: it was created, and has been carried out or never will be.
        unsafe { (self.functions.rados_release_write_op)(self.handle) };
    }
}

/// Bytes that librados allocated.
struct Owned {
    functions: &'static Functions,
    bytes: *mut c_char,
    length: usize,
}

impl Owned {
    fn take(self) -> Vec<u8> {
        if self.bytes.is_null() {
            return Vec::new();
        }
        // SAFETY: librados allocated as many bytes there and filled them.
        unsafe { std::slice::from_raw_parts(self.bytes.cast::<u8>(), self.length) }.to_vec()
    }
}

impl Drop for Owned {
    fn drop(&mut self) {
        if !self.bytes.is_null() {
            // SAFETY: librados allocated it, and this is its only owner.
            unsafe { (self.functions.rados_buffer_free)(self.bytes) };
        }
    }
}

fn text(text: &str) -> Result<CString> {
    CString::new(text).map_err(|_| Error::misuse("a name with a NUL in it"))
}

/// An error for a negative errno.
fn check(errno: c_int, what: &str, name: impl FnOnce() -> String) -> Result<()> {
    if errno >= 0 {
        return Ok(());
    }
    let reason = std::io::Error::from_raw_os_error(errno.saturating_neg());
    let error = Error::io(format!("{what} cannot be used: {reason}")).caused_by(reason);
    let error = match errno {
        NO_ENTRY => error.with(Detail::NotFound),
        EXISTS => error.with(Detail::AlreadyExists),
        NOT_PERMITTED => error.with(Detail::PermissionDenied),
        _ => error,
    };
    let name = name();
    Err(error.at(|place| place.object = Some(name).filter(|name| !name.is_empty())))
}

/// The most bytes of one read or write: librados returns how many in an int.
pub(crate) const BYTES_MAX: u64 = 1 << 30;

/// Whether so many bytes may be written at once.
pub(crate) fn fits(bytes: &[u8]) -> bool {
    u64_of(bytes.len()) <= BYTES_MAX
}
