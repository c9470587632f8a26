//! The committed code is what the `.proto` files say. Run with `INRUSH_UPDATE=1` to write it anew.

use std::{env, fs, path::Path};

#[test]
fn committed_code_is_generated_from_the_proto_files() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let protos = ["plan", "stats", "fleet", "control", "enrollment"]
        .map(|name| root.join(format!("proto/inrush/v1/{name}.proto")));
    let files = protox::compile(&protos, [root.join("proto")]).expect("proto files compile");
    let out = tempfile::tempdir().expect("temporary directory");
    tonic_prost_build::configure()
        .build_transport(true)
        .btree_map(".")
        .bytes(".")
        .out_dir(out.path())
        .compile_fds(files)
        .expect("code is generated");
    let fresh = fs::read_to_string(out.path().join("inrush.v1.rs")).expect("generated file");
    let committed = root.join("src/gen/inrush.v1.rs");
    if env::var_os("INRUSH_UPDATE").is_some() {
        fs::write(&committed, &fresh).expect("generated file is written");
    }
    let known = fs::read_to_string(&committed).unwrap_or_default();
    assert!(
        fresh == known,
        "proto/src/gen is stale: run `INRUSH_UPDATE=1 cargo test -p inrush-proto` and commit the result"
    );
}
