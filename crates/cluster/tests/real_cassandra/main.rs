//! Tables made and rows loaded into a real Cassandra, and read back by plain CQL; and tables read as a source.
//!
//! All of it is one test, because it has one server: that of `MARQUETRY_CASSANDRA=HOST:PORT`, or one that it starts.

mod all_types;
mod cassandra;
mod expected;
mod loading;
mod made;
mod nested;
mod server;
mod unloading;

#[test]
fn on_a_real_cassandra() {
    let Some(cassandra) = cassandra::Cassandra::find_or_start() else {
        return;
    };
    let server = server::Server::connect(&cassandra.at);
    all_types::all(&server);
    nested::all(&server);
    loading::all(&server);
    unloading::all(&server);
}
