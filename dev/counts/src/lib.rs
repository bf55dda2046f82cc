//! Counts of instructions: kernels, whole reads, whole writes, on fixed data, held to baselines of ± 2 %.
//!
//! Times need a quiet machine; counts do not. They come from valgrind's callgrind, which counts the same each time. It
//! knows no AVX-512, so the kernels are held to AVX2. `dev/counts.sh` runs everything:
//!
//! | part | does |
//! |---|---|
//! | [`cases`] | what is counted |
//! | [`callgrind`] | runs this program under valgrind, and reads what it counted |
//! | [`baselines`] | the file of baselines, by compiler and level, and the comparison |
//!
//! gungraun was considered. It wants a runner of exactly its version to be installed beside the crate, keeps its
//! baselines below `target`, and starts valgrind once per case. Here one process counts all cases within seconds, and
//! the baselines are a file whose differences are reviewed.
#![forbid(unsafe_code)]

pub mod baselines;
pub mod callgrind;
pub mod cases;
