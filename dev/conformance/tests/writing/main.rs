//! What is written is read back equal, by us and by others.

mod accepted;
mod bloom;
mod chosen;
mod contract;
mod corpus;
mod footers;
mod found;
mod geospatial;
mod given;
mod kept;
mod matrix;
mod others;
mod page_bloom;
mod pruned;
mod rewritten;
mod selected;
mod shredded;
mod sorting;
mod spark;
mod ways;
