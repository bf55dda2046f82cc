//! What is allocated, and what is released, by an allocator that counts for each thread.

mod planning;
mod reading;
mod release;

use marquetry_testing::memory::Counting;

#[global_allocator]
static COUNTING: Counting = Counting;
