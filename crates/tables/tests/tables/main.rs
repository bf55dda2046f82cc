//! Sources and destinations, and what copies and compares their rows.

mod aggregate;
mod cancellable;
mod copy;
mod copy_names;
mod cores;
mod diff;
mod faulty;
mod map;
mod new_sstables;
mod open_files;
mod plain_rows;
mod reading;
mod rows;
mod some_columns;
mod sstables;
mod store;
mod watch;
