//! Addresses in messages.

/// Parameters of queries that give access to whoever has them: signatures of S3, Google and Azure, and tokens.
const SECRETS: [&str; 9] = [
    "sig",
    "signature",
    "x-amz-signature",
    "x-amz-credential",
    "x-amz-security-token",
    "x-goog-signature",
    "x-goog-credential",
    "token",
    "access_token",
];

/// A path or an address for messages: without the query of an HTTP URL, which may be a signature, and without users and passwords,
/// which stores of objects do not take in addresses. Of other addresses, and of paths, a query is left out if it has a
/// parameter that is a secret by its name. All else stays as it is.
///
/// ```
/// use marquetry_io::shown;
///
/// assert_eq!(shown("https://host/a.csv?X-Amz-Signature=1f"), "https://host/a.csv?…");
/// assert_eq!(shown("https://me:secret@host/a.csv"), "https://***@host/a.csv");
/// assert_eq!(shown("az://box/a.csv?sv=2024&sig=1f"), "az://box/a.csv?…");
/// assert_eq!(shown("s3://bucket/why?.csv"), "s3://bucket/why?.csv");
/// assert_eq!(shown("a@b.csv"), "a@b.csv");
/// ```
pub fn shown(address: &str) -> String {
    let (scheme, rest) = address.split_once("://").unwrap_or(("", address));
    let is_of = |schemes: &[&str]| schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let is_http = is_of(&["http", "https"]);
    let (rest, query) = match rest.find(['?', '#']) {
        Some(at) if is_http || has_secret(&rest[at + 1..]) => (&rest[..at], "?…"),
        _ => (rest, ""),
    };
    let start = if scheme.is_empty() { String::new() } else { format!("{scheme}://") };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@').filter(|_| is_http || is_of(&["s3", "gs", "az"])) {
        Some(at) => format!("{start}***{}{query}", &rest[at..]),
        None => format!("{start}{rest}{query}"),
    }
}

/// Whether a query has a parameter that nobody may see.
fn has_secret(query: &str) -> bool {
    query.split(['&', '?', '#', ';']).any(|parameter| {
        let name = parameter.split_once('=').map_or("", |(name, _)| name);
        SECRETS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_are_left_out_wherever_they_are() {
        for (address, said) in [
            ("https:/host/a.csv?x=1&X-Amz-Signature=1f", "https:/host/a.csv?…"),
            ("host/a.csv?sig=1f", "host/a.csv?…"),
            ("abfss://box@host/a?SIG=1f", "abfss://box@host/a?…"),
            ("s3://bucket/a?b?X-Amz-Security-Token=1f", "s3://bucket/a?…"),
            ("gs://me:secret@bucket/a?X-Goog-Signature=1f", "gs://***@bucket/a?…"),
            ("(https://host/a?sig=1f):", "(https://host/a?…"),
            ("part-?.csv", "part-?.csv"),
            ("s3://bucket/a?design=1", "s3://bucket/a?design=1"),
        ] {
            assert_eq!(shown(address), said);
        }
    }
}
