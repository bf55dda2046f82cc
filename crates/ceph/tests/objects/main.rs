//! The class over objects in memory: queries, and where their calls end; what bounds them; objects of Arrow and of rows.

mod arrow;
mod bounds;
mod ends;
mod queries;
mod skyhook;

/// Numbers below a bound, the same ones for a seed.
fn random(mut seed: u64) -> impl FnMut(usize) -> usize {
    move |below| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        usize::try_from(seed >> 33).unwrap() % below
    }
}
