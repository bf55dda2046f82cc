//! The class over objects in memory: queries, and where their calls end; what bounds them; objects of Arrow and of rows.

mod arrow;
mod bounds;
mod ends;
mod queries;
mod skyhook;
