//! Addresses in messages.

/// A path or an address for messages: without the query of an HTTP URL, which may be a signature, and without users and passwords,
/// which stores of objects do not take in addresses. Other addresses are returned as they are.
///
/// ```
/// use marquetry_io::store::shown;
///
/// assert_eq!(shown("https://host/a.csv?X-Amz-Signature=1f"), "https://host/a.csv?…");
/// assert_eq!(shown("https://me:secret@host/a.csv"), "https://***@host/a.csv");
/// assert_eq!(shown("s3://bucket/why?.csv"), "s3://bucket/why?.csv");
/// assert_eq!(shown("a@b.csv"), "a@b.csv");
/// ```
pub fn shown(address: &str) -> String {
    let Some((scheme, rest)) = address.split_once("://") else { return address.to_owned() };
    let is_of = |schemes: &[&str]| schemes.iter().any(|known| scheme.eq_ignore_ascii_case(known));
    let is_http = is_of(&["http", "https"]);
    if !is_http && !is_of(&["s3", "gs", "az"]) {
        return address.to_owned();
    }
    let (rest, query) = match rest.find(['?', '#']) {
        Some(at) if is_http => (&rest[..at], "?…"),
        _ => (rest, ""),
    };
    let host_end = rest.find('/').unwrap_or(rest.len());
    match rest[..host_end].rfind('@') {
        Some(at) => format!("{scheme}://***{}{query}", &rest[at..]),
        None => format!("{scheme}://{rest}{query}"),
    }
}
