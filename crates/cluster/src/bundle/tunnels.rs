//! Ways to nodes that are behind an SNI proxy.
//!
//! The driver puts a node's IP address into the TLS handshake, and nothing else. So it connects to ports of loopback, each of which stands for a
//! node: what arrives there is passed on to the proxy, encrypted, under the node's name.

use std::collections::HashMap;
use std::future::Future;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};

use marquetry_base::Error;
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use scylla::errors::TranslationError;
use scylla::policies::address_translator::{AddressTranslator, UntranslatedPeer};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsConnector;

use crate::tls;

/// The tunnels to a database's nodes. They end with the runtime that they were made on.
///
/// Any process of this machine can connect to a port of loopback: it gets as far as the login, as whoever has the bundle does.
pub(crate) struct Tunnels {
    way: Arc<Way>,
    /// By the node's host ID.
    ports: tokio::sync::Mutex<HashMap<String, SocketAddr>>,
}

/// What all tunnels share.
struct Way {
    connector: TlsConnector,
    proxy: (String, u16),
    /// Why the last connection could not be made. The driver only sees that one is closed.
    failure: Mutex<Option<Error>>,
}

impl Tunnels {
    pub(crate) fn new(config: Arc<ClientConfig>, proxy: (String, u16)) -> Tunnels {
        let way = Way { connector: TlsConnector::from(config), proxy, failure: Mutex::default() };
        Tunnels { way: Arc::new(way), ports: tokio::sync::Mutex::default() }
    }

    /// Where a node is reached.
    ///
    /// # Errors
    ///
    /// Those of the system, if it has no port.
    pub(crate) async fn to(&self, node: &str) -> io::Result<SocketAddr> {
        let mut ports = self.ports.lock().await;
        if let Some(address) = ports.get(node) {
            return Ok(*address);
        }
        let name = ServerName::try_from(node.to_owned()).map_err(io::Error::other)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
        let address = listener.local_addr()?;
        tokio::spawn(serve(listener, Arc::clone(&self.way), name));
        ports.insert(node.to_owned(), address);
        Ok(address)
    }

    /// Why the last connection to a node could not be made.
    pub(crate) fn failure(&self) -> Option<Error> {
        self.way.failure.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Passes on what arrives.
async fn serve(listener: TcpListener, way: Arc<Way>, name: ServerName<'static>) {
    loop {
        match listener.accept().await {
            Ok((arrived, _)) => drop(tokio::spawn(pass_on(arrived, Arc::clone(&way), name.clone()))),
            // Such as too many open files: the next may be possible.
            Err(_) => tokio::time::sleep(std::time::Duration::from_millis(100)).await,
        }
    }
}

async fn pass_on(mut arrived: TcpStream, way: Arc<Way>, name: ServerName<'static>) {
    let connected = async {
        let (host, port) = &way.proxy;
        let stream = TcpStream::connect((host.as_str(), *port)).await?;
        // The driver's requests are complete when it sends them.
        stream.set_nodelay(true)?;
        arrived.set_nodelay(true)?;
        way.connector.connect(name, stream).await
    };
    match connected.await {
        // How it ends is the driver's to see: its connection is closed.
        Ok(mut node) => drop(tokio::io::copy_bidirectional(&mut arrived, &mut node).await),
        Err(error) => {
            let (host, port) = &way.proxy;
            let said =
                format!("no connection to a node by way of the bundle's proxy, {host}:{port}: {error}");
            let said = match tls::distrust(&error) {
                Some(_) => Error::refused(said),
                None => Error::io(said),
            };
            *way.failure.lock().unwrap_or_else(PoisonError::into_inner) = Some(said);
        }
    }
}

impl AddressTranslator for Tunnels {
    // (An asynchronous function, as the trait's macro writes it.)
    fn translate_address<'it, 'peer, 'both>(
        &'it self,
        peer: &'peer UntranslatedPeer,
    ) -> Pin<Box<dyn Future<Output = Result<SocketAddr, TranslationError>> + Send + 'both>>
    where
        'it: 'both,
        'peer: 'both,
        Self: 'both,
    {
        let node = peer.host_id().to_string();
        Box::pin(
            async move { self.to(&node).await.map_err(|error| TranslationError::IoError(Arc::new(error))) },
        )
    }
}
