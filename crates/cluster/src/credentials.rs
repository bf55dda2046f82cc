//! Who logs in: the user and password of the address, the options, a file or the environment.

use std::env::{self, VarError};
use std::fmt;
use std::fs;

use marquetry_base::{Error, Result};

use crate::address::CqlAddress;
use crate::options::ConnectOptions;

/// A user and a password.
pub(crate) struct Credentials {
    pub(crate) user: String,
    pub(crate) password: String,
}

impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Credentials").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Credentials {
    /// Finds them. `None` if no user is named: then nobody logs in. The file that the address names is this cluster's own, and comes before the
    /// one of the options.
    ///
    /// # Errors
    ///
    /// `Misuse` for a password without a user, for two passwords, and for a password that is empty or not UTF-8; `Io`
    /// for a file that cannot be read. None of them holds a password.
    pub(crate) fn find(address: &CqlAddress, options: &ConnectOptions) -> Result<Option<Credentials>> {
        let wrong = |what: String| Error::option("password_file", what);
        let file = address.password_file().or(options.password_file.as_deref());
        let Some(user) = options.user.as_deref().or(address.user()) else {
            let without = "it needs a user: in the address (cql://USER@HOST/…), or the option user";
            return match (file, &options.password) {
                (Some(_), _) => Err(wrong(without.to_owned())),
                (None, Some(_)) => Err(Error::option("password", without)),
                (None, None) => Ok(None),
            };
        };
        let given = options.password.as_deref().or(address.password());
        let password = match (file, &options.password_variable, given) {
            (Some(_), _, Some(_)) => {
                return Err(wrong(
                    "there are two passwords, another one beside it; leave one out".to_owned(),
                ));
            }
            (Some(path), _, None) => {
                let name = path.display().to_string();
                let text =
                    fs::read_to_string(path).map_err(|cause| marquetry_io::failed("read", &name, cause))?;
                match text.lines().next() {
                    Some(line) if !line.is_empty() => line.to_owned(),
                    _ => return Err(wrong(format!("{name}: the first line, the password, is empty"))),
                }
            }
            (None, _, Some(password)) => password.to_owned(),
            (None, Some(variable), None) => match env::var(variable) {
                Ok(password) => password,
                Err(VarError::NotPresent) => String::new(),
                Err(VarError::NotUnicode(_)) => {
                    return Err(Error::misuse(format!("the environment variable {variable} is not UTF-8")));
                }
            },
            (None, None, None) => String::new(),
        };
        Ok(Some(Credentials { user: user.to_owned(), password }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::{Detail, ErrorKind};

    fn find(address: &str, options: &ConnectOptions) -> Result<Option<(String, String)>> {
        let found = Credentials::find(&address.parse().unwrap(), options)?;
        Ok(found.map(|it| (it.user, it.password)))
    }

    #[test]
    fn one_password_is_found() {
        let pair = |user: &str, password: &str| Some((user.to_owned(), password.to_owned()));
        let options = ConnectOptions::default();
        assert_eq!(find("cql://h/k.t", &options).unwrap(), None);
        assert_eq!(find("cql://me@h/k.t", &options).unwrap(), pair("me", ""));
        assert_eq!(find("cql://me:tiger@h/k.t", &options).unwrap(), pair("me", "tiger"));
        let mut other = options.clone();
        (other.user, other.password) = (Some("you".to_owned()), Some("lion".to_owned()));
        assert_eq!(find("cql://me:tiger@h/k.t", &other).unwrap(), pair("you", "lion"));
        // A variable that every process has; it is not looked at where there is a password.
        let mut variable = options.clone();
        variable.password_variable = Some("PATH".to_owned());
        assert_eq!(find("cql://me:tiger@h/k.t", &variable).unwrap(), pair("me", "tiger"));
        assert_eq!(find("cql://me@h/k.t", &variable).unwrap(), pair("me", &env::var("PATH").unwrap()));
        variable.password_variable = Some("MARQUETRY_NO_SUCH_VARIABLE".to_owned());
        assert_eq!(find("cql://me@h/k.t", &variable).unwrap(), pair("me", ""));
    }

    #[test]
    fn files_have_passwords() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("password");
        let mut options = ConnectOptions { password_file: Some(path.clone()), ..ConnectOptions::default() };
        let refused = |address: &str, options: &ConnectOptions| find(address, options).unwrap_err();
        assert_eq!(refused("cql://me@h/k.t", &options).kind(), ErrorKind::Io);
        fs::write(&path, "\nmore\n").unwrap();
        let empty = refused("cql://me@h/k.t", &options);
        assert_eq!(
            (empty.kind(), empty.detail()),
            (ErrorKind::Misuse, Some(Detail::Option("password_file")))
        );
        fs::write(&path, "tiger\nmore\n").unwrap();
        assert_eq!(find("cql://me@h/k.t", &options).unwrap(), Some(("me".to_owned(), "tiger".to_owned())));
        for (address, why) in [("cql://h/k.t", "the option user"), ("cql://me:lion@h/k.t", "two passwords")] {
            let error = refused(address, &options).to_string();
            assert!(error.contains(why) && !error.contains("lion"), "{error}");
        }
        // The address's own comes first.
        let own = folder.path().join("own");
        fs::write(&own, "lynx\n").unwrap();
        let address = format!("cql://me@h/k.t?password_file={}", own.display());
        assert_eq!(find(&address, &options).unwrap(), Some(("me".to_owned(), "lynx".to_owned())));
        let both = format!("cql://me:lion@h/k.t?password_file={}", own.display());
        for (address, why) in [(address.replace("me@", ""), "the option user"), (both, "two passwords")] {
            let error = refused(&address, &ConnectOptions::default()).to_string();
            assert!(error.contains(why) && !error.contains("lion"), "{error}");
        }
        options.password = Some("wolf".to_owned());
        let nobody = ConnectOptions { password_file: None, ..options.clone() };
        assert_eq!(refused("cql://h/k.t", &nobody).detail(), Some(Detail::Option("password")));
        let error = refused("cql://me@h/k.t", &options).to_string();
        assert!(error.contains("two passwords") && !error.contains("wolf"), "{error}");
        assert!(
            !format!("{:?}", Credentials { user: "me".into(), password: "tiger".into() }).contains("tiger")
        );
    }
}
