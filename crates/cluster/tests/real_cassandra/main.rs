//! Tables made and rows loaded into a real Cassandra, and read back by plain CQL; and tables read as a source.
//!
//! All of it is one test, because it has one server: that of `MARQUETRY_CASSANDRA=HOST:PORT`, or one that it starts. But for what needs a
//! server that is set up otherwise, and for `login`, which needs none.

mod all_types;
mod bundled;
mod cassandra;
mod columns;
mod encrypted;
mod expected;
mod into;
mod laid;
mod laid_values;
mod loading;
mod login;
mod made;
mod nested;
mod rejected;
mod resumed;
mod server;
mod sharded;
mod stamped;
mod unloading;

/// With a server of its own, as encryption and passwords are for all of one.
#[test]
fn encrypted_on_a_real_cassandra() {
    let yaml = encrypted::yaml();
    let options = ["--yaml".as_ref(), yaml.as_os_str(), "--java".as_ref(), encrypted::AT_ONCE.as_ref()];
    if let Some(cassandra) = cassandra::Cassandra::start("encrypted", &options) {
        encrypted::all(&cassandra.at);
    }
}

#[test]
fn on_a_real_cassandra() {
    let Some(cassandra) = cassandra::Cassandra::find_or_start() else {
        return;
    };
    let server = server::Server::connect(&cassandra.at);
    into::all(&server);
    stamped::all(&server);
    rejected::all(&server);
    resumed::all(&server);
    all_types::all(&server);
    nested::all(&server);
    loading::all(&server);
    unloading::all(&server);
    columns::all(&server);
    laid::all(&server);
    laid_values::all(&server);
    sharded::all(&server);
}
