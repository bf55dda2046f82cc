//! Clients of stores, as the environment describes them.

use std::collections::BTreeMap;
use std::env;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use marquetry_base::{Detail, Error, Result};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::azure::{AzureConfigKey, MicrosoftAzureBuilder};
use object_store::gcp::{GoogleCloudStorageBuilder, GoogleConfigKey};
use object_store::http::HttpBuilder;
use object_store::path::Path as Key;
use object_store::{BackoffConfig, ClientOptions, CredentialProvider, ObjectStore, RetryConfig};

use super::address::{ObjectAddress, Scheme};
use super::allowance::Allowance;
use super::failure::{credentials, failed};
use super::profile::profile;
use super::runtime::{Cancelled, wait};

/// How long a connection may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long a server may be silent while it is read.
const SILENT_READING: Duration = Duration::from_secs(30);
/// How long a server may be silent while it is written: it answers when it has all of a part, however slow the network.
const SILENT_WRITING: Duration = Duration::from_secs(300);
/// How long credentials may take that a service of the cloud gives out.
const CREDENTIALS: Duration = Duration::from_secs(5);
/// Tries after the first, and how long they may take together.
const TRIES: usize = 5;
const TRYING: Duration = Duration::from_secs(60);
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// What a client is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Use {
    Reading,
    Writing,
}

/// Clients that are connected, one for each bucket and use.
#[derive(Debug, Default)]
pub(super) struct Clients {
    made: Mutex<BTreeMap<ClientId, Arc<dyn ObjectStore>>>,
    allowance: Allowance,
}

/// The kind of a store, the bucket, and what it is used for.
type ClientId = (Scheme, String, Use);

/// An object of a store that can be asked for it.
#[derive(Debug, Clone)]
pub(super) struct Remote {
    pub(super) address: ObjectAddress,
    pub(super) store: Arc<dyn ObjectStore>,
    pub(super) key: Key,
    pub(super) cancelled: Cancelled,
    /// What it shares with all other objects.
    pub(super) allowance: Allowance,
}

impl Clients {
    /// Connects to where an object is. No request is made, except one for credentials.
    ///
    /// # Errors
    ///
    /// `Misuse` for a key that the store's client refuses; `Io` without credentials, or settings that are wrong.
    pub(super) fn connect(
        &self,
        address: &ObjectAddress,
        its_use: Use,
        cancelled: &Cancelled,
    ) -> Result<Remote> {
        let (address, cancelled) = (address.clone(), cancelled.clone());
        let key = Key::parse(&address.key).map_err(|_| {
            let why = "a key with an empty name, '.' or '..' between slashes, or a control character";
            Error::misuse(why).at(|place| place.object = Some(address.name.clone()))
        })?;
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        let id = (address.scheme, address.container.clone(), its_use);
        let store = match made.get(&id) {
            Some(store) => Arc::clone(store),
            None => {
                // (The runtime is begun first, and with it what speaks TLS.)
                wait(&cancelled, async {})?;
                let store = client(&address, its_use, &cancelled)?;
                made.insert(id, Arc::clone(&store));
                store
            }
        };
        Ok(Remote { address, store, key, cancelled, allowance: self.allowance.clone() })
    }
}

impl Remote {
    /// The name of the object in messages.
    pub(super) fn name(&self) -> &str {
        &self.address.name
    }

    /// An error about this object.
    pub(super) fn about(&self, error: Error) -> Error {
        error.at(|place| place.object = Some(self.address.name.clone()))
    }

    /// Another object of the same bucket.
    pub(super) fn with_key(&self, key: Key) -> Remote {
        Remote { address: self.address.with_key(key.as_ref()), key, ..self.clone() }
    }
}

fn client(address: &ObjectAddress, its_use: Use, cancelled: &Cancelled) -> Result<Arc<dyn ObjectStore>> {
    let about = |error: object_store::Error| failed("reached", address, &error);
    let retry = RetryConfig {
        backoff: BackoffConfig {
            init_backoff: Duration::from_millis(100),
            max_backoff: PAUSE_MAX,
            base: 2.0,
        },
        max_retries: TRIES,
        retry_timeout: TRYING,
    };
    let silent = match its_use {
        Use::Reading => SILENT_READING,
        Use::Writing => SILENT_WRITING,
    };
    let options = |is_plain: bool| {
        ClientOptions::new()
            .with_connect_timeout(CONNECT)
            .with_timeout_disabled()
            .with_read_timeout(silent)
            .with_allow_http(is_plain)
    };
    // An endpoint without TLS is one whose address says so.
    let is_plain = |endpoint: Option<String>| endpoint.is_some_and(|it| it.starts_with("http://"));
    match address.scheme {
        Scheme::S3 => {
            let builder = with_profile(AmazonS3Builder::from_env());
            let endpoint = builder.get_config_value(&AmazonS3ConfigKey::S3Endpoint);
            let endpoint = endpoint.or_else(|| builder.get_config_value(&AmazonS3ConfigKey::Endpoint));
            let is_anonymous = is_true(builder.get_config_value(&AmazonS3ConfigKey::SkipSignature));
            let builder = builder.with_bucket_name(&address.container).with_retry(retry);
            let store = builder.with_client_options(options(is_plain(endpoint))).build().map_err(about)?;
            if !is_anonymous {
                if is_true(env::var("AWS_EC2_METADATA_DISABLED").ok()) && !has_aws_credentials() {
                    return Err(without_credentials(address));
                }
                check(store.credentials(), address, cancelled)?;
            }
            Ok(Arc::new(store))
        }
        Scheme::Azure => {
            let builder = MicrosoftAzureBuilder::from_env();
            let endpoint = builder.get_config_value(&AzureConfigKey::Endpoint);
            let is_anonymous = is_true(builder.get_config_value(&AzureConfigKey::SkipSignature));
            let is_emulated = is_true(builder.get_config_value(&AzureConfigKey::UseEmulator));
            if !is_emulated && builder.get_config_value(&AzureConfigKey::AccountName).is_none() {
                return Err(without_credentials(address));
            }
            let builder = builder.with_container_name(&address.container).with_retry(retry);
            let builder = builder.with_client_options(options(is_plain(endpoint)));
            let store = builder.build().map_err(about)?;
            if !is_anonymous {
                check(store.credentials(), address, cancelled)?;
            }
            Ok(Arc::new(store))
        }
        Scheme::Gcs => {
            let builder = GoogleCloudStorageBuilder::from_env();
            let is_anonymous = is_true(builder.get_config_value(&GoogleConfigKey::SkipSignature));
            let builder = builder.with_bucket_name(&address.container).with_retry(retry);
            let store = builder.with_client_options(options(false)).build().map_err(about)?;
            if !is_anonymous {
                check(store.credentials(), address, cancelled)?;
            }
            Ok(Arc::new(store))
        }
        Scheme::Http => {
            let builder = HttpBuilder::new().with_url(&address.container).with_retry(retry);
            let is_plain = address.name.to_ascii_lowercase().starts_with("http://");
            let store = builder.with_client_options(options(is_plain)).build().map_err(about)?;
            Ok(Arc::new(store))
        }
    }
}

/// Adds what the environment does not say and a profile does.
fn with_profile(mut builder: AmazonS3Builder) -> AmazonS3Builder {
    let profile = profile();
    let mut set = |key: AmazonS3ConfigKey, name: &str| {
        if let Some(value) = profile.get(name)
            && builder.get_config_value(&key).is_none()
        {
            builder = std::mem::take(&mut builder).with_config(key, value);
        }
    };
    set(AmazonS3ConfigKey::Region, "region");
    set(AmazonS3ConfigKey::Endpoint, "endpoint_url");
    // Keys belong together.
    let is_given = ["AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_WEB_IDENTITY_TOKEN_FILE"]
        .iter()
        .any(|name| env::var_os(name).is_some());
    if !is_given {
        set(AmazonS3ConfigKey::AccessKeyId, "aws_access_key_id");
        set(AmazonS3ConfigKey::SecretAccessKey, "aws_secret_access_key");
        set(AmazonS3ConfigKey::Token, "aws_session_token");
    }
    builder
}

/// Whether there are credentials that the instance's own service does not give out.
fn has_aws_credentials() -> bool {
    let names = [
        "AWS_ACCESS_KEY_ID",
        "AWS_WEB_IDENTITY_TOKEN_FILE",
        "AWS_CONTAINER_CREDENTIALS_RELATIVE_URI",
        "AWS_CONTAINER_CREDENTIALS_FULL_URI",
    ];
    names.iter().any(|name| env::var_os(name).is_some()) || profile().contains_key("aws_access_key_id")
}

/// Gets credentials, so that their lack is reported at once, and as that.
fn check<C: Send + Sync + 'static>(
    provider: &Arc<dyn CredentialProvider<Credential = C>>,
    address: &ObjectAddress,
    cancelled: &Cancelled,
) -> Result<()> {
    let provider = Arc::clone(provider);
    let got = wait(cancelled, async move {
        let got = tokio::time::timeout(CREDENTIALS, provider.get_credential()).await;
        got.is_ok_and(|credential| credential.is_ok())
    })?;
    if got { Ok(()) } else { Err(without_credentials(address)) }
}

fn without_credentials(address: &ObjectAddress) -> Error {
    let error = Error::io(format!("no credentials: {}", credentials(address.scheme)));
    error.with(Detail::PermissionDenied).at(|place| place.object = Some(address.name.clone()))
}

fn is_true(value: Option<String>) -> bool {
    value.is_some_and(|value| matches!(&*value.to_ascii_lowercase(), "true" | "1" | "yes" | "on"))
}
