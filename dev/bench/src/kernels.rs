//! The kernels one by one, on made-up input of any size: what `bench-kernels` times beside a copy of as many bytes.
//!
//! A [`Case`] is a public function of `marquetry_kernels` with one shape of input. [`cases`] has all functions but those that
//! [`NOT_MEASURED`] names, which a test compares with the crate's source.

mod bitmaps;
mod byte_strings;
mod numbers;
mod pages;

use marquetry_kernels::cpu::Level;

/// What bounds a kernel at the level that has no form of its own.
const PORTABLE: &str = "a loop over values or words, as the compiler makes it";

/// A kernel, and what it is given.
pub struct Case {
    /// Its path in `marquetry_kernels`.
    pub kernel: &'static str,
    /// What its input is like.
    pub shape: String,
    /// What its speed is bounded by where everything is in the first-level cache, at the levels that it has a form for.
    bound: &'static str,
    /// True if there is a form for each level of instructions; else all levels run the same code.
    pub by_level: bool,
    make: Box<dyn Fn(usize) -> Work>,
}

/// A call of a kernel, on buffers that it owns.
pub struct Work {
    /// The values that a call handles; bytes, where it knows no values.
    pub values: usize,
    /// The bytes that it reads of its input.
    pub read: usize,
    /// The bytes that it writes.
    pub written: usize,
    call: Box<dyn FnMut() -> bool>,
}

impl Case {
    fn new(
        kernel: &'static str,
        shape: impl Into<String>,
        bound: &'static str,
        make: impl Fn(usize) -> Work + 'static,
    ) -> Case {
        Case { kernel, shape: shape.into(), bound, by_level: true, make: Box::new(make) }
    }

    /// The same, of a kernel that has one form.
    fn of_one_form(mut self) -> Case {
        self.by_level = false;
        self
    }

    /// What its speed is bounded by at a level, where everything is in the first-level cache.
    pub fn bound_at(&self, level: Level) -> &'static str {
        if self.by_level && level == Level::Portable { PORTABLE } else { self.bound }
    }

    /// The kernel, and its input where there is more than one.
    pub fn name(&self) -> String {
        if self.shape.is_empty() {
            self.kernel.to_owned()
        } else {
            format!("{}, {}", self.kernel, self.shape)
        }
    }

    /// Makes the buffers, of about so many bytes in all.
    pub fn make(&self, bytes: usize) -> Work {
        (self.make)(bytes)
    }
}

impl Work {
    fn new(values: usize, (read, written): (usize, usize), call: impl FnMut() -> bool + 'static) -> Work {
        Work { values, read, written, call: Box::new(call) }
    }

    /// Calls the kernel. False if it failed, which it does not.
    pub fn call(&mut self) -> bool {
        (self.call)()
    }
}

/// All cases, in the order of the crate's modules.
pub fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    numbers::add(&mut cases);
    byte_strings::add(&mut cases);
    bitmaps::add(&mut cases);
    pages::add(&mut cases);
    cases
}

/// Public functions that no case calls, and why.
pub const NOT_MEASURED: &[(&str, &str)] = &[
    ("bits::get", "one bit"),
    ("bits::set", "one bit"),
    ("bits::word", "one word"),
    ("bloom::block_of", "one product"),
    ("bloom::contains", "one block"),
    ("cpu::hold_to", "no kernel"),
    ("cpu::level", "no kernel"),
    ("cpu::levels", "no kernel"),
    ("lz::copy_back", "one match, within what runs do"),
    ("lz::lz4::token", "one byte"),
    ("lz::snappy::copy", "one element"),
    ("lz::snappy::first_copy", "one element"),
    ("lz::snappy::literal_tag", "one element"),
    ("marks::parity", "one word"),
    ("marks::zeros", "one word"),
    ("plain::as_bytes", "no code"),
    ("plain::as_bytes_mut", "no code"),
    ("plain::cast", "no code"),
    ("plain::cast_mut", "no code"),
    ("strings::view", "one view"),
    ("utf8::is_boundary", "one byte"),
];

/// xorshift64*: seeded, repeatable.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_f491_4f6c_dd1d)
    }

    fn below(&mut self, bound: u64) -> u64 {
        (self.next() >> 11) % bound
    }

    fn bytes(&mut self, count: usize) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count.div_ceil(8)).flat_map(|_| self.next().to_le_bytes()).collect();
        bytes.truncate(count);
        bytes
    }

    fn numbers(&mut self, count: usize) -> Vec<u64> {
        (0..count).map(|_| self.next()).collect()
    }
}

/// How many values there are in `bytes` if each takes so many bits of input and output together: complete blocks of 128.
fn count(bytes: usize, bits: usize) -> usize {
    (bytes * 8 / bits).max(128) & !127
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_kernels::cpu;
    use std::path::{Path, PathBuf};

    #[test]
    fn every_case_works_at_every_level() {
        for case in cases() {
            for level in cpu::levels() {
                cpu::hold_to(level);
                let mut work = case.make(10_000);
                let moved = work.read + work.written;
                let name = format!("{}, {level:?}", case.name());
                assert!(work.values > 0 && (3_000..40_000).contains(&moved), "{name}: {moved} bytes");
                // What works in place finds its own result the second time.
                assert!(work.call() && work.call(), "{name}");
            }
        }
    }

    #[test]
    fn every_public_function_is_a_case_or_named() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../crates/kernels/src");
        let mut files = Vec::new();
        list(&root, &mut files);
        let mut public: Vec<String> = Vec::new();
        for file in files {
            let text = std::fs::read_to_string(&file).unwrap();
            let path = file.strip_prefix(&root).unwrap().with_extension("");
            let module: Vec<&str> = path.iter().map(|part| part.to_str().unwrap()).collect();
            let module = module.join("::").replace("::mod", "").replace("strings::append", "strings");
            for line in text.lines() {
                if let Some(rest) = line.strip_prefix("pub fn ") {
                    let end = rest.find(|letter: char| letter != '_' && !letter.is_alphanumeric());
                    public.push(format!("{module}::{}", &rest[..end.unwrap()]));
                }
            }
        }
        // Those that a macro makes.
        public.extend(["i32", "i64", "f32", "f64"].map(|name| format!("within::{name}")));
        public.extend(["i32", "u32", "i64", "u64", "f32", "f64"].map(|name| format!("bounds::{name}")));
        let cases = cases();
        let is_case = |name: &str| cases.iter().any(|case| case.kernel == name);
        let is_named = |name: &str| NOT_MEASURED.iter().any(|(other, _)| *other == name);
        for name in &public {
            assert!(is_case(name) != is_named(name), "{name}");
        }
        for name in cases.iter().map(|case| case.kernel).chain(NOT_MEASURED.iter().map(|named| named.0)) {
            assert!(public.iter().any(|other| other == name), "{name} is no function");
        }
    }

    fn list(directory: &Path, files: &mut Vec<PathBuf>) {
        for entry in std::fs::read_dir(directory).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                list(&path, files);
            } else {
                files.push(path);
            }
        }
    }
}
