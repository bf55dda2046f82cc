//! Batches and files as Arrow arrays, both ways, beside parquet-rs and pyarrow.

mod common;
mod corpus;
mod incoming;
mod requested;
mod stored;
mod types;
