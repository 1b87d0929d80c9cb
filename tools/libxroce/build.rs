// SPDX-License-Identifier: GPL-2.0
//! Finds the private ABI number of the libibverbs that is installed.
//!
//! libibverbs puts the number into the names of its providers
//! (`librxe-rdmav65.so`) and of its registration function
//! (`verbs_register_driver_65`). `XROCE_RDMAV` overrides what is found.

use std::path::Path;

const DEFAULT: u32 = 65;

fn number_of(file: &str) -> Option<u32> {
    let rest = file.split_once("-rdmav")?.1;
    rest.strip_suffix(".so")?.parse().ok()
}

fn numbers_in(dir: &Path) -> Vec<u32> {
    let Ok(entries) = std::fs::read_dir(dir) else {
        return Vec::new();
    };
    entries
        .flatten()
        .filter_map(|e| number_of(e.file_name().to_str()?))
        .collect()
}

fn installed() -> Option<u32> {
    let mut found = numbers_in(Path::new("/usr/lib64/libibverbs"));
    found.extend(numbers_in(Path::new("/usr/lib/libibverbs")));
    if let Ok(triplets) = std::fs::read_dir("/usr/lib") {
        for t in triplets.flatten() {
            found.extend(numbers_in(&t.path().join("libibverbs")));
        }
    }
    found.into_iter().max()
}

fn main() {
    println!("cargo:rerun-if-env-changed=XROCE_RDMAV");
    println!("cargo:rerun-if-changed=build.rs");
    let number = match std::env::var("XROCE_RDMAV") {
        Ok(s) => s.parse().expect("XROCE_RDMAV must be a number"),
        Err(_) => installed().unwrap_or(DEFAULT),
    };
    println!("cargo:rustc-env=XROCE_REGISTER=verbs_register_driver_{number}");
    println!("cargo:rustc-link-lib=dylib=ibverbs");
}
