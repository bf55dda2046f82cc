//! Drivers with machines made for them, from memory, from files and from sources with faults.

mod concurrent;
mod concurrent_write;
mod drive;
mod toy;
mod write;
