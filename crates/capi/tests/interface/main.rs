//! The C interface: called from Rust, and by programs in C and C++ that are compiled for it.

mod c;
mod common;
mod door;
mod fuzz;
mod header;
mod hosts;
mod misuse;
mod promises;
mod sstable;
