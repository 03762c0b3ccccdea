// SPDX-License-Identifier: LGPL-2.1-or-later
//! Where libtwheel is: TWHEEL_LIB_DIR says it, or pkg-config does, or the linker knows.

use std::{env, path::Path, process::Command};

fn main() {
    println!("cargo:rerun-if-env-changed=TWHEEL_LIB_DIR");
    println!("cargo:rustc-link-lib=twheel");
    if let Ok(dir) = env::var("TWHEEL_LIB_DIR") {
        assert!(
            ["libtwheel.so", "libtwheel.a"].iter().any(|name| Path::new(&dir).join(name).exists()),
            "there is no libtwheel in TWHEEL_LIB_DIR={}; make lib puts it into build/userlib",
            dir
        );
        println!("cargo:rustc-link-search=native={}", dir);
        return;
    }
    let found = Command::new("pkg-config").args(["--libs-only-L", "twheel"]).output();
    if !matches!(&found, Ok(output) if output.status.success()) {
        println!(
            "cargo:warning=pkg-config does not know libtwheel. If it is not installed, \
             TWHEEL_LIB_DIR=FOLDER says where it is; make lib puts it into build/userlib"
        );
    }
    if let Ok(output) = found {
        let said = String::from_utf8_lossy(&output.stdout).into_owned();
        for dir in said.split_whitespace().filter_map(|word| word.strip_prefix("-L")) {
            println!("cargo:rustc-link-search=native={}", dir);
        }
    }
}
