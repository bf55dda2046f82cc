//! The command beside a real database: tables that are loaded and unloaded, and a node's flushes.

#[path = "../common/mod.rs"]
mod common;
mod copy;
mod every_type;
mod layouts;
mod memory;
mod nodes;
mod unload;
mod watch;
mod writes;

use std::sync::{Mutex, MutexGuard, PoisonError};

/// Held by the long tests that start servers, and by those that measure: they run one after the other.
fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
