//! Where a table is: `cql://[user[:password]@][HOST[:PORT][,HOST[:PORT]…]]/KEYSPACE.TABLE[?tls=yes][&password_file=FILE]`.

use std::fmt::{self, Write};
use std::path::Path;
use std::str::FromStr;

use marquetry_scylla::cql::identifier::{NameError, TableName};

/// The port that ScyllaDB and Cassandra serve CQL on.
pub const PORT_DEFAULT: u16 = 9042;

/// A table of a live cluster.
///
/// A user and a password are percent-encoded where they hold one of `@ / : %`. IPv6 addresses stand in brackets. The
/// path is CQL, percent-encoded or plain: bare names are folded to lower case, names in double quotes are kept. `?tls=yes` after it
/// encrypts connections, and `?password_file=FILE`, percent-encoded or plain, names the file whose first line is this user's password; `&` stands
/// between the two. Without a host (`cql:///KEYSPACE.TABLE`), it is a table of the database that a
/// [bundle](crate::ConnectOptions::bundle) leads to.
///
/// `Display` prints an address that parses to the same one but for the password, which neither `Display` nor
/// `Debug` ever shows.
#[derive(Clone, PartialEq, Eq)]
pub struct CqlAddress {
    user: Option<String>,
    password: Option<String>,
    hosts: Vec<Host>,
    table: TableName,
    wants_tls: Option<bool>,
    password_file: Option<String>,
}

/// A node to make contact with.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Host {
    /// A name or an address; an IPv6 address without its brackets.
    pub name: String,
    /// The port that serves CQL.
    pub port: u16,
}

impl CqlAddress {
    /// The user to log in as.
    pub fn user(&self) -> Option<&str> {
        self.user.as_deref()
    }

    /// The user's password.
    pub fn password(&self) -> Option<&str> {
        self.password.as_deref()
    }

    /// The nodes to make first contact with; the cluster tells the others. None: they are behind what a
    /// [bundle](crate::ConnectOptions::bundle) leads to.
    pub fn hosts(&self) -> &[Host] {
        &self.hosts
    }

    /// The table, with its keyspace.
    pub fn table(&self) -> &TableName {
        &self.table
    }

    /// Whether connections are encrypted, if it says so: it ends in `?tls=yes` or `?tls=no`.
    pub fn wants_tls(&self) -> Option<bool> {
        self.wants_tls
    }

    /// The file whose first line is the user's password, if it names one.
    pub fn password_file(&self) -> Option<&Path> {
        self.password_file.as_deref().map(Path::new)
    }

    /// The keyspace's name.
    pub fn keyspace(&self) -> &str {
        // `parse` refuses a path without one.
        self.table.keyspace.as_ref().map_or("", |keyspace| keyspace.as_str())
    }
}

impl FromStr for CqlAddress {
    type Err = CqlAddressError;

    /// Parses an address.
    ///
    /// # Errors
    ///
    /// A [`CqlAddressError`], which never holds what may be a part of a password.
    fn from_str(text: &str) -> Result<CqlAddress, CqlAddressError> {
        let (scheme, rest) = text.split_once("://").ok_or(CqlAddressError::Scheme)?;
        if !scheme.eq_ignore_ascii_case("cql") {
            return Err(CqlAddressError::Scheme);
        }
        let (authority, path) = rest.split_once('/').ok_or(CqlAddressError::NoTable)?;
        // A keyspace or a table cannot hold an `@`, so a `/` before it belongs to a user or a password; the name of a file can.
        let (name, query) = path.split_once('?').unwrap_or((path, ""));
        let is_query = ["tls=", "password_file="].iter().any(|option| query.starts_with(option));
        if name.contains('@') || !is_query && query.contains('@') {
            return Err(CqlAddressError::Unescaped);
        }
        let (login, hosts) = match authority.rsplit_once('@') {
            Some((login, hosts)) => (Some(login), hosts),
            None => (None, authority),
        };
        let (user, password) = match login.map(parse_login).transpose()? {
            Some((user, password)) => (Some(user), password),
            None => (None, None),
        };
        let hosts = match hosts {
            "" => Vec::new(),
            some => some.split(',').map(Host::parse).collect::<Result<_, _>>()?,
        };
        // No name has a question mark.
        let (path, (wants_tls, password_file)) = match path.split_once('?') {
            None => (path, (None, None)),
            Some((path, query)) => (path, parse_query(query)?),
        };
        let path = percent_decode(path).ok_or(CqlAddressError::Percent { part: "path" })?;
        if path.is_empty() {
            return Err(CqlAddressError::NoTable);
        }
        let table = TableName::parse(&path).map_err(CqlAddressError::Table)?;
        if table.keyspace.is_none() {
            return Err(CqlAddressError::NoKeyspace);
        }
        Ok(CqlAddress { user, password, hosts, table, wants_tls, password_file })
    }
}

impl fmt::Display for CqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("cql://")?;
        if let Some(user) = &self.user {
            percent_encode(f, user, b"-._~")?;
            f.write_char('@')?;
        }
        for (nth, host) in self.hosts.iter().enumerate() {
            let comma = if nth == 0 { "" } else { "," };
            write!(f, "{comma}{host}")?;
        }
        let tls = match self.wants_tls {
            None => "",
            Some(true) => "?tls=yes",
            Some(false) => "?tls=no",
        };
        write!(f, "/{}{tls}", self.table)?;
        if let Some(file) = &self.password_file {
            write!(f, "{}password_file=", if tls.is_empty() { '?' } else { '&' })?;
            percent_encode(f, file, b"-._~/")?;
        }
        Ok(())
    }
}

impl fmt::Debug for CqlAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CqlAddress({self})")
    }
}

impl Host {
    /// Parses `HOST[:PORT]`.
    ///
    /// # Errors
    ///
    /// [`CqlAddressError::NoHost`], [`CqlAddressError::Host`] and [`CqlAddressError::Port`].
    pub fn parse(text: &str) -> Result<Host, CqlAddressError> {
        let (name, port) = match text.strip_prefix('[') {
            Some(inner) => {
                let (name, port) = inner.split_once(']').ok_or(CqlAddressError::Brackets)?;
                name.parse::<std::net::Ipv6Addr>().map_err(|_| CqlAddressError::Brackets)?;
                match port.strip_prefix(':') {
                    Some(port) => (name, Some(port)),
                    None if port.is_empty() => (name, None),
                    None => return Err(CqlAddressError::Brackets),
                }
            }
            None => match text.split_once(':') {
                Some((_, port)) if port.contains(':') => return Err(CqlAddressError::Brackets),
                Some((name, port)) => (name, Some(port)),
                None => (text, None),
            },
        };
        if name.is_empty() {
            return Err(CqlAddressError::NoHost);
        }
        if let Some(found) = name.chars().find(|c| !c.is_ascii_alphanumeric() && !"-._:".contains(*c)) {
            return Err(CqlAddressError::Host { found });
        }
        let port = match port {
            // The text is not told: without its `@HOST`, `user:password` reads as a host and its port.
            Some(port) => port.parse().ok().filter(|port| *port != 0).ok_or(CqlAddressError::Port)?,
            None => PORT_DEFAULT,
        };
        Ok(Host { name: name.to_owned(), port })
    }
}

impl fmt::Display for Host {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.name.contains(':') {
            write!(f, "[{}]:{}", self.name, self.port)
        } else {
            write!(f, "{}:{}", self.name, self.port)
        }
    }
}

/// Why a text is not a [`CqlAddress`]. None of them holds any part of a user or a password.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum CqlAddressError {
    /// It does not start with `cql://`.
    Scheme,
    /// There is no `/KEYSPACE.TABLE`.
    NoTable,
    /// The table has no keyspace.
    NoKeyspace,
    /// The keyspace or the table is no name.
    Table(NameError),
    /// A `/` stands before the `@`: a user or a password has one that is not percent-encoded.
    Unescaped,
    /// A `%` is not followed by two hexadecimal digits, or what is encoded is not UTF-8.
    Percent {
        /// The part of the address.
        part: &'static str,
    },
    /// There is an `@` without a user before it.
    NoUser,
    /// A host is empty.
    NoHost,
    /// A host has a character that no host has.
    Host {
        /// The character.
        found: char,
    },
    /// An IPv6 address without brackets, or brackets around something else.
    Brackets,
    /// A port is not a number from 1 to 65535.
    Port,
    /// What follows the table is neither `?tls=yes` nor `?tls=no`, nor `?password_file=FILE`, nor two of them.
    Query,
}

impl fmt::Display for CqlAddressError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CqlAddressError::Scheme => f.write_str("an address of a cluster starts with cql://"),
            CqlAddressError::NoTable => f.write_str("the address ends without /KEYSPACE.TABLE"),
            CqlAddressError::NoKeyspace => {
                f.write_str("the address names a table without its keyspace: /KEYSPACE.TABLE")
            }
            CqlAddressError::Table(error) => write!(f, "the address names no table: {error}"),
            CqlAddressError::Unescaped => f.write_str(
                "the user or the password has a / or an @: write %2F for /, %40 for @ and %25 for %",
            ),
            CqlAddressError::Percent { part } => {
                write!(f, "the {part} has a % that two hexadecimal digits should follow: write %25 for %")
            }
            CqlAddressError::NoUser => f.write_str("there is no user before the @"),
            CqlAddressError::NoHost => f.write_str("a host of the address is empty"),
            CqlAddressError::Host { found } => write!(f, "a host of the address has a {found:?}"),
            CqlAddressError::Brackets => {
                f.write_str("an IPv6 address, and nothing else, stands in [brackets]")
            }
            CqlAddressError::Port => f.write_str("a port of the address is not a number from 1 to 65535"),
            CqlAddressError::Query => {
                f.write_str("after the table, an address has ?tls=yes, ?tls=no, ?password_file=FILE, two of them with & between, or nothing")
            }
        }
    }
}

impl std::error::Error for CqlAddressError {}

fn parse_login(login: &str) -> Result<(String, Option<String>), CqlAddressError> {
    let (user, password) = match login.split_once(':') {
        Some((user, password)) => (user, Some(password)),
        None => (login, None),
    };
    if user.is_empty() {
        return Err(CqlAddressError::NoUser);
    }
    let user = percent_decode(user).ok_or(CqlAddressError::Percent { part: "user" })?;
    let password = password
        .map(|password| percent_decode(password).ok_or(CqlAddressError::Percent { part: "password" }))
        .transpose()?;
    Ok((user, password))
}

/// Whether connections are encrypted, and the file of the password: each once at most.
fn parse_query(query: &str) -> Result<(Option<bool>, Option<String>), CqlAddressError> {
    let (mut wants_tls, mut password_file) = (None, None);
    for part in query.split('&') {
        match part.split_once('=') {
            Some(("tls", "yes")) if wants_tls.is_none() => wants_tls = Some(true),
            Some(("tls", "no")) if wants_tls.is_none() => wants_tls = Some(false),
            Some(("password_file", file)) if password_file.is_none() && !file.is_empty() => {
                let wrong = CqlAddressError::Percent { part: "password_file" };
                password_file = Some(percent_decode(file).ok_or(wrong)?);
            }
            _ => return Err(CqlAddressError::Query),
        }
    }
    Ok((wants_tls, password_file))
}

fn percent_decode(text: &str) -> Option<String> {
    let mut decoded = Vec::with_capacity(text.len());
    let mut parts = text.split('%');
    decoded.extend_from_slice(parts.next()?.as_bytes());
    for part in parts {
        let digits = part.get(..2).filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()))?;
        decoded.push(u8::from_str_radix(digits, 16).ok()?);
        decoded.extend_from_slice(&part.as_bytes()[2..]);
    }
    String::from_utf8(decoded).ok()
}

fn percent_encode(f: &mut fmt::Formatter<'_>, text: &str, plain: &[u8]) -> fmt::Result {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || plain.contains(&byte) {
            f.write_char(char::from(byte))?;
        } else {
            write!(f, "%{byte:02X}")?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> CqlAddress {
        text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
    }

    #[test]
    fn everything_an_address_can_have() {
        let address =
            parse("cql://a%40b:p%3a%2Fw@one.example,10.0.0.1:9043,[::1]:19042,[2001:db8::1]/Ks.\"T\"");
        assert_eq!(address.user(), Some("a@b"));
        assert_eq!(address.password(), Some("p:/w"));
        let host = |name: &str, port| Host { name: name.to_owned(), port };
        assert_eq!(
            address.hosts(),
            [
                host("one.example", 9042),
                host("10.0.0.1", 9043),
                host("::1", 19042),
                host("2001:db8::1", 9042)
            ]
        );
        assert_eq!(address.keyspace(), "ks");
        assert_eq!(address.table().table.as_str(), "T");
        assert_eq!(
            address.to_string(),
            "cql://a%40b@one.example:9042,10.0.0.1:9043,[::1]:19042,[2001:db8::1]:9042/ks.\"T\""
        );
        assert_eq!(parse("CQL://h/k.t"), parse("cql://h/k.t"));
        let behind_a_bundle = parse("cql://token:tiger@/k.t");
        assert_eq!((behind_a_bundle.hosts(), &*behind_a_bundle.to_string()), (&[][..], "cql://token@/k.t"));
        assert!(parse("cql:///k.t").hosts().is_empty());
        let encrypted = parse("cql://h/k.t?tls=yes");
        assert!(encrypted.wants_tls() == Some(true) && encrypted.to_string() == "cql://h:9042/k.t?tls=yes");
        let plain = parse("cql://h/k.t?tls=no");
        assert!(plain.wants_tls() == Some(false) && plain.to_string() == "cql://h:9042/k.t?tls=no");
        assert_eq!(parse("cql://h/k.t").wants_tls(), None);
        for (query, wants_tls, shown) in [
            ("password_file=/etc/a%40b", None, "password_file=/etc/a%40b"),
            ("password_file=/etc/a@b", None, "password_file=/etc/a%40b"),
            ("password_file=%2Fetc%2Fa%40b&tls=no", Some(false), "tls=no&password_file=/etc/a%40b"),
        ] {
            let address = parse(&format!("cql://me@h/k.t?{query}"));
            assert_eq!(
                (address.password_file(), address.wants_tls()),
                (Some(Path::new("/etc/a@b")), wants_tls)
            );
            assert_eq!(address.to_string(), format!("cql://me@h:9042/k.t?{shown}"));
            assert_eq!(parse(&address.to_string()), address);
        }
        assert_eq!(parse("cql://h/k.t?tls=no").password_file(), None);
    }

    #[test]
    fn the_password_is_never_shown() {
        let address = parse("cql://scott:tiger@h/k.t");
        for shown in [address.to_string(), format!("{address:?}"), format!("{address:#?}")] {
            assert!(!shown.contains("tiger") && shown.contains("scott@h"), "{shown}");
        }
        assert_eq!(address.to_string().parse::<CqlAddress>().unwrap().password(), None);
        // A password may hold a colon; and it may be empty, which is not the same as none.
        assert_eq!(parse("cql://u:a:b@h/k.t").password(), Some("a:b"));
        assert_eq!(parse("cql://u:@h/k.t").password(), Some(""));
        assert_eq!(parse("cql://u@h/k.t").password(), None);
        assert_eq!(parse("cql://u:a@b@h/k.t").password(), Some("a@b"));
    }

    #[test]
    fn what_is_refused_and_no_secret_in_the_reason() {
        for (text, expected) in [
            ("h/k.t", CqlAddressError::Scheme),
            ("cql:/u:tiger@h/k.t", CqlAddressError::Scheme),
            ("cql://h", CqlAddressError::NoTable),
            ("cql://h/", CqlAddressError::NoTable),
            ("cql://h/t", CqlAddressError::NoKeyspace),
            ("cql://h/k.", CqlAddressError::Table(NameError::Empty)),
            ("cql://h/k.t?tls=maybe", CqlAddressError::Query),
            ("cql://h/k.t?password=tiger", CqlAddressError::Query),
            ("cql://h/k.t?tls=yes&tls=no", CqlAddressError::Query),
            ("cql://h/k.t?password_file=", CqlAddressError::Query),
            ("cql://h/k.t?password_file=%g", CqlAddressError::Percent { part: "password_file" }),
            ("cql://h/k.?tls=yes", CqlAddressError::Table(NameError::Empty)),
            ("cql://h/k.\"t", CqlAddressError::Table(NameError::OpenQuote)),
            ("cql://u:ti/ger@h/k.t", CqlAddressError::Unescaped),
            ("cql://u:tiger%@h/k.t", CqlAddressError::Percent { part: "password" }),
            ("cql://u:%ff@h/k.t", CqlAddressError::Percent { part: "password" }),
            ("cql://%+1:tiger@h/k.t", CqlAddressError::Percent { part: "user" }),
            ("cql://h/k.%é", CqlAddressError::Percent { part: "path" }),
            ("cql://:tiger@h/k.t", CqlAddressError::NoUser),
            ("cql://,/k.t", CqlAddressError::NoHost),
            ("cql://a,,b/k.t", CqlAddressError::NoHost),
            ("cql://u:tiger@:9042/k.t", CqlAddressError::NoHost),
            ("cql://a b/k.t", CqlAddressError::Host { found: ' ' }),
            ("cql://::1/k.t", CqlAddressError::Brackets),
            ("cql://[::1]x/k.t", CqlAddressError::Brackets),
            ("cql://[host]/k.t", CqlAddressError::Brackets),
            ("cql://h:0/k.t", CqlAddressError::Port),
            ("cql://h:65536/k.t", CqlAddressError::Port),
            // The host was forgotten.
            ("cql://u:tiger/k.t", CqlAddressError::Port),
        ] {
            let error = text.parse::<CqlAddress>().expect_err(text);
            assert_eq!(error, expected, "{text}");
            assert!(!error.to_string().contains("ger") && !format!("{error:?}").contains("ger"), "{text}");
        }
    }
}
