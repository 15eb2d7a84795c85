//! Sets the soname, by which programs that are linked against the library look for it when they start.

fn main() {
    let part = |name: &str| std::env::var(name).unwrap_or_default();
    let (major, minor) = (
        part("CARGO_PKG_VERSION_MAJOR"),
        part("CARGO_PKG_VERSION_MINOR"),
    );
    // Before 1.0 each minor version may change what the header says.
    println!("cargo:rustc-cdylib-link-arg=-Wl,-soname,librota.so.{major}.{minor}");
    println!("cargo:rerun-if-changed=build.rs");
}
