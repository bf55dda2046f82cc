//! The class over objects in memory: queries, and where their calls end; what bounds them; objects of rows.

mod bounds;
mod ends;
mod queries;
mod skyhook;
