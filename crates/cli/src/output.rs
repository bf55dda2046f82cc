//! Standard output: large writes, whole units only, and an end when nobody reads.

use std::io::{self, Write};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use marquetry::io::store::Store;
use marquetry::tables::Cancel;

use crate::failure::{Exit, Failure, Outcome};

/// Bytes that are gathered before they are written. At 64 KiB the system calls cost less than one percent; more only
/// costs cache.
pub(crate) const WRITE_BYTES: usize = 128 << 10;

/// Gathers text and writes it when it is large. What is written is always everything up to the end of a *unit*: a
/// statement, a line. So whatever ends the program, the output ends after a whole one.
pub(crate) struct Output {
    gathered: Vec<u8>,
    interrupted: Interrupted,
}

impl Output {
    pub(crate) fn new(interrupted: Interrupted) -> Output {
        Output { gathered: Vec::with_capacity(2 * WRITE_BYTES), interrupted }
    }

    /// Where to append. Call [`Output::end_unit`] after each whole unit.
    pub(crate) fn text(&mut self) -> &mut Vec<u8> {
        &mut self.gathered
    }

    /// Whether the user asked to end.
    pub(crate) fn interrupted(&self) -> &Interrupted {
        &self.interrupted
    }

    /// What was gathered ends with a whole unit, and may be written.
    pub(crate) fn end_unit(&mut self) -> Outcome {
        if self.gathered.len() < WRITE_BYTES { Ok(()) } else { self.flush() }
    }

    /// Writes what was gathered, which must end with a whole unit.
    pub(crate) fn flush(&mut self) -> Outcome {
        if !self.gathered.is_empty() {
            let mut stdout = io::stdout().lock();
            stdout
                .write_all(&self.gathered)
                .and_then(|()| stdout.flush())
                .map_err(|error| Failure::output(&error))?;
            self.gathered.clear();
        }
        self.interrupted.check()
    }
}

/// Whether the user pressed Ctrl-C (or the system asked the program to end).
#[derive(Debug, Clone)]
pub(crate) struct Interrupted(Arc<AtomicBool>);

impl Interrupted {
    /// Listens for SIGINT and SIGTERM from now on. The first asks the program to end when it has written what is whole;
    /// the second ends it at once.
    pub(crate) fn listen() -> Outcome<Interrupted> {
        let asked = Arc::new(AtomicBool::new(false));
        for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
            // In this order: the first signal finds the flag unset, the second finds it set.
            signal_hook::flag::register_conditional_shutdown(
                signal,
                Exit::Interrupted as i32,
                Arc::clone(&asked),
            )
            .and_then(|_| signal_hook::flag::register(signal, Arc::clone(&asked)))
            .map_err(|error| Failure::unreachable(format!("signals: {error}")))?;
        }
        // A file beyond the limit of sizes (`ulimit -f`) is an error of who writes it then, as a full disk is: not a silent end.
        #[cfg(unix)]
        signal_hook::flag::register(signal_hook::consts::SIGXFSZ, Arc::default())
            .map_err(|error| Failure::unreachable(format!("signals: {error}")))?;
        Ok(Interrupted(asked))
    }

    /// The same wish, as what works for long looks at it.
    pub(crate) fn cancel(&self) -> Cancel {
        Cancel::of_flag(Arc::clone(&self.0))
    }

    /// Wherever an address can say that files are; what waits there ends when the program is asked to.
    pub(crate) fn stores(&self) -> Arc<dyn Store> {
        marquetry::stores(&self.cancel())
    }

    /// Whether it was asked to end.
    pub(crate) fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// [`Failure::Interrupted`] if so.
    pub(crate) fn check(&self) -> Outcome {
        if self.is_set() { Err(Failure::Interrupted) } else { Ok(()) }
    }
}
