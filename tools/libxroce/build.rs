// SPDX-License-Identifier: GPL-2.0
//! What tests and lints need of the environment that the Makefile makes for the plug-in in use.

fn main() {
    println!("cargo:rerun-if-env-changed=XROCE_REGISTER");
    println!("cargo:rerun-if-changed=build.rs");
    if std::env::var_os("XROCE_REGISTER").is_none() {
        println!("cargo:rustc-env=XROCE_REGISTER=verbs_register_driver_65");
    }
    println!("cargo:rustc-link-lib=dylib=ibverbs");
}
