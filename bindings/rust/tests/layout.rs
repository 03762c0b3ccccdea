// SPDX-License-Identifier: LGPL-2.1-or-later
//! What `src/sys.rs` says of the library's structures is what the headers say. CFLAGS says
//! where these are, if not where a compiler looks.

use std::collections::BTreeMap;
use std::env;
use std::path::Path;
use std::process::Command;

fn of_the_headers() -> BTreeMap<String, u64> {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layout");
    let flags = env::var("CFLAGS").unwrap_or_default();
    let built = Command::new("cc")
        // (Maybe a sanitizer, which is for this program only)
        .env_remove("LD_PRELOAD")
        .args(flags.split_whitespace())
        .arg("-o")
        .arg(&program)
        .arg(here.join("tests/layout.c"))
        .status();
    assert!(built.expect("there is a C compiler").success());

    let said = Command::new(&program).output().expect("it runs").stdout;
    let said = String::from_utf8(said).expect("it is text");
    said.lines()
        .map(|line| {
            let (name, number) = line.rsplit_once(' ').expect("a name and a number");
            (name.to_string(), number.parse().expect("a number"))
        })
        .collect()
}

#[test]
fn layout_is_that_of_the_headers() {
    let ours: BTreeMap<String, u64> =
        twheel::layout().into_iter().map(|(name, number)| (name.to_string(), number)).collect();
    assert!(ours.len() > 80);
    assert_eq!(ours, of_the_headers());
}
