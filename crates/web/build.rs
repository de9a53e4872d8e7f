//! Names the pages' assets by their content, so that a browser keeps them as long as they are the same.

use std::hash::{DefaultHasher, Hasher as _};

fn main() {
    let mut hash = DefaultHasher::new();
    for name in ["ode.css", "ode.js", "icon.svg"] {
        let path = format!("assets/{name}");
        println!("cargo::rerun-if-changed={path}");
        hash.write(&std::fs::read(&path).unwrap_or_default());
    }
    println!("cargo::rustc-env=ODE_ASSETS={:016x}", hash.finish());
}
