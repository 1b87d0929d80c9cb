// SPDX-License-Identifier: GPL-2.0
//! A program of the build: prints what `abi.rs` says of the header as assertions of C, which
//! `assertions.c` includes.

#[path = "../abi.rs"]
mod abi;

fn main() {
    for (expression, value) in abi::CLAIMS.concat() {
        println!(
            "_Static_assert({expression} == {value}ULL, \"{expression}: {value} in abi.rs\");"
        );
    }
}
