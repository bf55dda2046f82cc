//! What stores report, as errors of one line that hold no secret.

use std::error::Error as Cause;

use marquetry_base::{Detail, Error};
use object_store::client::{HttpError, HttpErrorKind};

use super::address::{ObjectAddress, Scheme};
use crate::shown::shown;
use crate::source::CHANGED;

/// The most characters of what a server says.
const SAID_MAX: usize = 200;

/// What a store reports about an object: what could not be done with it (`read`, `written`), and why. The store's own
/// error is not kept as the cause: its texts may hold URLs with signatures.
pub(super) fn failed(done: &str, address: &ObjectAddress, error: &object_store::Error) -> Error {
    use object_store::Error as Store;
    let texts: Vec<String> = causes(error).map(ToString::to_string).collect();
    let message = texts.iter().find_map(|text| message(text));
    let with = |what: &str| match &message {
        Some(message) => format!("{what}: {message}"),
        None => what.to_owned(),
    };
    let error = match error {
        Store::NotFound { .. } => Error::io(with("not found")).with(Detail::NotFound),
        Store::AlreadyExists { .. } => Error::io("it already exists").with(Detail::AlreadyExists),
        Store::PermissionDenied { .. } | Store::Unauthenticated { .. } => {
            let what = format!("{}; {}", with("access denied"), credentials(address.scheme));
            Error::io(what).with(Detail::PermissionDenied)
        }
        Store::Precondition { .. } => Error::io(CHANGED),
        _ => match (http(error), message) {
            (Some(HttpErrorKind::Connect), _) => {
                Error::io(format!("no connection to the server: {}", first(&texts)))
            }
            (Some(HttpErrorKind::Timeout), _) => Error::io("the server did not answer in time"),
            (_, Some(message)) => Error::io(format!("it could not be {done}: {message}")),
            (_, None) => Error::io(format!("it could not be {done}: {}", first(&texts))),
        },
    };
    error.at(|place| place.object = Some(address.name.clone()))
}

/// Whether a server answered, even if only to refuse.
pub(super) fn is_answered(error: &object_store::Error) -> bool {
    http(error).is_none()
}

/// How a store's credentials are given.
pub(super) fn credentials(scheme: Scheme) -> &'static str {
    match scheme {
        Scheme::S3 => {
            "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE, or, for public data, \
             AWS_SKIP_SIGNATURE=true"
        }
        Scheme::Gcs => "set GOOGLE_APPLICATION_CREDENTIALS, or, for public data, GOOGLE_SKIP_SIGNATURE=true",
        Scheme::Azure => {
            "set AZURE_STORAGE_ACCOUNT_NAME and AZURE_STORAGE_ACCOUNT_KEY, or, for public data, \
             AZURE_SKIP_SIGNATURE=true with the name"
        }
        Scheme::Http => "URLs are read without credentials, except those in their queries",
    }
}

/// What went wrong below HTTP, if that is what failed.
fn http(error: &object_store::Error) -> Option<HttpErrorKind> {
    causes(error).find_map(|cause| cause.downcast_ref::<HttpError>()).map(HttpError::kind)
}

/// An error and what caused it.
fn causes<'a>(error: &'a (dyn Cause + 'static)) -> impl Iterator<Item = &'a (dyn Cause + 'static)> {
    let mut next = Some(error);
    std::iter::from_fn(move || {
        let error = next?;
        next = error.source();
        Some(error)
    })
}

/// What a server says, in the XML of S3, Google and Azure. Beside the message it may repeat what was signed.
fn message(text: &str) -> Option<String> {
    let (_, rest) = text.split_once("<Message>")?;
    let (message, _) = rest.split_once("</Message>")?;
    Some(line(message)).filter(|line| !line.is_empty())
}

/// What failed first. A page of HTML is cut off.
fn first(texts: &[String]) -> String {
    let text = texts.last().map_or("", String::as_str);
    let text = text.strip_prefix("Server returned non-2xx status code: ").unwrap_or(text);
    line(text.split(['<', '{']).next().unwrap_or_default())
}

/// The first line of a text, without secrets.
fn line(text: &str) -> String {
    let line = text.lines().next().unwrap_or_default().trim().trim_end_matches(['.', ':']);
    let words = line.split(' ').map(scrubbed).collect::<Vec<_>>().join(" ");
    words.chars().take(SAID_MAX).filter(|character| !character.is_control()).collect()
}

/// A word, without the query of a URL.
fn scrubbed(word: &str) -> String {
    match word.find("http://").or_else(|| word.find("https://")) {
        Some(at) => format!("{}{}", &word[..at], shown(&word[at..])),
        None => word.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn of(error: object_store::Error) -> Error {
        let address = ObjectAddress::parse(Path::new("s3://bucket/a.parquet")).unwrap().unwrap();
        failed("read", &address, &error)
    }

    #[test]
    fn servers_are_quoted_and_secrets_are_not() {
        let body = "Server returned non-2xx status code: 403 Forbidden: <?xml version=\"1.0\"?><Error>\
            <Code>SignatureDoesNotMatch</Code><Message>The signature does not match.</Message>\
            <StringToSign>AWS4-HMAC-SHA256 hidden</StringToSign></Error>";
        let error = of(object_store::Error::PermissionDenied { path: "a".into(), source: body.into() });
        assert_eq!(error.detail(), Some(Detail::PermissionDenied));
        let message = error.message();
        assert!(message.starts_with("access denied: The signature does not match; "), "{message}");
        assert!(!format!("{error:?}").contains("hidden"));
    }

    #[test]
    fn queries_are_cut_off() {
        let source = "error sending request for url (https://host/a?sig=SECRET) after 3 tries".into();
        let error = of(object_store::Error::Generic { store: "S3", source });
        assert_eq!(
            error.message(),
            "it could not be read: error sending request for url (https://host/a?… after 3 tries"
        );
        assert_eq!(error.place().object.as_deref(), Some("s3://bucket/a.parquet"));
    }

    #[test]
    fn pages_are_not_messages() {
        let source = "Server returned non-2xx status code: 502 Bad Gateway: <html>\n<body>".into();
        let error = of(object_store::Error::Generic { store: "S3", source });
        assert_eq!(error.message(), "it could not be read: 502 Bad Gateway");
    }
}
