//! Reads that wait for somebody, but not beyond their cancellation.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

/// How what is not a regular file is waited for.
pub(super) struct Waiting {
    is_cancelled: Box<dyn Fn() -> bool + Send>,
    /// Reading without bytes to read fails instead of waiting: so it was opened.
    can_try: bool,
    /// Bytes, or the end, must be waited for before it is read.
    must_wait: bool,
}

impl Waiting {
    /// Of what was [opened](open) here. A named pipe that nobody writes to yet looks as if it had ended: the first read
    /// must wait.
    pub(super) fn of_new(is_cancelled: impl Fn() -> bool + Send + 'static) -> Waiting {
        Waiting { is_cancelled: Box::new(is_cancelled), can_try: cfg!(target_os = "linux"), must_wait: true }
    }

    /// Of what others have open, too: whether their reads wait is not changed.
    pub(super) fn of_shared(is_cancelled: impl Fn() -> bool + Send + 'static) -> Waiting {
        Waiting { is_cancelled: Box::new(is_cancelled), can_try: false, must_wait: true }
    }

    pub(super) fn read(&mut self, file: &mut File, bytes: &mut [u8]) -> io::Result<usize> {
        loop {
            if self.must_wait {
                self.wait(file)?;
            }
            match file.read(bytes) {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => self.must_wait = true,
                read => {
                    // Where trying is possible, it finds an end that waiting misses: that of a named pipe whose
                    // writer was gone before it was opened here.
                    self.must_wait = !self.can_try;
                    return read;
                }
            }
        }
    }

    /// Waits until there is something to read, or the end.
    ///
    /// # Errors
    ///
    /// The system's; and once the reading is cancelled.
    #[cfg(unix)]
    fn wait(&self, file: &File) -> io::Result<()> {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};

        /// How often the cancellation is looked at. A signal that this thread handles ends the waiting at once; one
        /// that another handles does not.
        const PERIOD: Timespec = Timespec { tv_sec: 0, tv_nsec: 50_000_000 };

        loop {
            if (self.is_cancelled)() {
                return Err(io::Error::other("cancelled"));
            }
            match poll(&mut [PollFd::new(file, PollFlags::IN)], Some(&PERIOD)) {
                Ok(0) | Err(rustix::io::Errno::INTR) => {}
                Ok(_) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }

    #[cfg(not(unix))]
    fn wait(&self, _: &File) -> io::Result<()> {
        if (self.is_cancelled)() { Err(io::Error::other("cancelled")) } else { Ok(()) }
    }
}

/// Opens a pipe without waiting for a writer.
#[cfg(target_os = "linux")]
pub(super) fn open(path: &Path) -> io::Result<File> {
    use rustix::fs::{Mode, OFlags};

    let flags = OFlags::RDONLY | OFlags::CLOEXEC | OFlags::NOCTTY | OFlags::NONBLOCK;
    Ok(File::from(rustix::fs::open(path, flags, Mode::empty())?))
}

/// Opens a pipe. Elsewhere than on Linux, polling one that has no writer may report its end, so a writer is waited for.
#[cfg(not(target_os = "linux"))]
pub(super) fn open(path: &Path) -> io::Result<File> {
    File::open(path)
}

/// Standard input without the standard library's buffer, in which bytes cannot be waited for.
#[cfg(unix)]
pub(super) fn stdin() -> io::Result<File> {
    use std::os::fd::AsFd;
    Ok(File::from(io::stdin().as_fd().try_clone_to_owned()?))
}

#[cfg(windows)]
pub(super) fn stdin() -> io::Result<File> {
    use std::os::windows::io::AsHandle;
    Ok(File::from(io::stdin().as_handle().try_clone_to_owned()?))
}
