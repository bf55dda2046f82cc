//! Gives the shared library the soname that `dev/capi.sh` asks for. Tests link the library where it was built, without one.
#![forbid(unsafe_code)]

fn main() {
    println!("cargo:rerun-if-env-changed=MARQUETRY_SONAME");
    println!("cargo:rerun-if-changed=build.rs");
    if let Ok(name) = std::env::var("MARQUETRY_SONAME") {
        println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,{name}");
    }
}
