//! The command on files: what it prints, what it writes, what it refuses. (`live` is beside a real database, `stores` beside stores of
//! objects.)

#[path = "../common/mod.rs"]
mod common;
mod convert;
mod copy_file;
mod copy_sorted;
mod cql;
mod diff;
mod errors;
mod find;
mod manners;
mod many;
mod new_sstables;
mod output;
mod picture;
mod pipes;
mod sample;
mod show;
mod show_any;
mod show_columns;
mod sstables;
mod text;
mod text_headers;
mod text_out;
mod threads;
