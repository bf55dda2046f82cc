//! What is written is read back equal, by us and by others.

mod contract;
mod corpus;
mod footers;
mod given;
mod others;
mod rewritten;
mod sorting;
