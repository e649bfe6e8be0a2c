//! etcd's messages, generated from `proto/etcd.proto` by `cargo xtask gen etcd-protocol`.
#![expect(
    clippy::enum_variant_names,
    clippy::pedantic,
    unreachable_pub,
    reason = "generated code has its own style"
)]

include!("wire/etcdserverpb.rs");
