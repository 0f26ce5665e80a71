//! A Redis server for the tests of the response cache: `target/peers/redis`.

use anyhow::Result;

use super::steps;

/// Installs `usr/bin/redis-server` and `usr/bin/redis-cli` with their libraries; no service of the machine is started.
pub fn server() -> Result<()> {
    let packages = [
        "redis-server",
        "redis-tools",
        "libhiredis0.14",
        "libjemalloc2",
        "liblua5.1-0",
        "liblzf1",
        "lua-bitop",
        "lua-cjson",
    ];
    steps::step("redis", &packages.join(" "), || {
        steps::unpack_debian(&packages, &steps::dir().join("redis"))
    })
}
