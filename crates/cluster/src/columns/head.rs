//! Which version is current: one cell, which is text.

use marquetry_base::{Error, Result};

use super::part::Version;

/// The layout's format. Of later ones this version reads nothing.
pub(super) const FORMAT: u32 = 1;
/// What the text begins with, before the format's number.
const MAGIC: &str = "marquetry-columns ";
/// The bytes of a map that are taken: of some tens of millions of parts.
const MAP_BYTES_MAX: u64 = 256 << 20;

/// What is current.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) version: Version,
    pub(super) file_bytes: u64,
    pub(super) map_bytes: u64,
}

impl Head {
    /// As text; lines may be added without another format.
    pub(super) fn text(&self) -> String {
        let Head { version, file_bytes, map_bytes } = self;
        format!("{MAGIC}{FORMAT}\nversion {version}\nfile_bytes {file_bytes}\nmap_bytes {map_bytes}\n")
    }

    /// Reads the text.
    ///
    /// # Errors
    ///
    /// `Unsupported` for a later format, `Corrupt` for what is none.
    pub(super) fn parse(bytes: &[u8]) -> Result<Head> {
        let wrong = || Error::corrupt("what says which version of the file is current is damaged");
        let text = std::str::from_utf8(bytes).map_err(|_| wrong())?;
        let mut lines = text.lines();
        let format = lines.next().and_then(|line| line.strip_prefix(MAGIC)).ok_or_else(wrong)?;
        match format.parse::<u32>() {
            Ok(FORMAT) => {}
            Ok(format) if format > FORMAT => {
                let what = format!(
                    "the table has format {format} of the layout columns, and this version of Marquetry reads and writes format {FORMAT}"
                );
                return Err(Error::unsupported(what));
            }
            _ => return Err(wrong()),
        }
        let value = |name: &str| {
            let mut lines = lines.clone();
            lines.find_map(|line| line.strip_prefix(name)?.strip_prefix(' ')).ok_or_else(wrong)
        };
        let number = |name: &str| value(name)?.parse::<u64>().map_err(|_| wrong());
        let version = Version::parse(value("version")?).filter(|version| *version != Version::NONE);
        let (version, file_bytes) = (version.ok_or_else(wrong)?, number("file_bytes")?);
        let map_bytes = number("map_bytes")?;
        // Offsets are `bigint`.
        if i64::try_from(file_bytes).is_err() || map_bytes > MAP_BYTES_MAX {
            return Err(wrong());
        }
        Ok(Head { version, file_bytes, map_bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use marquetry_base::ErrorKind;

    #[test]
    fn a_head_is_read_as_it_was_written() {
        let head = Head { version: Version::random(), file_bytes: 1 << 40, map_bytes: 77 };
        let text = head.text();
        assert_eq!(Head::parse(text.as_bytes()), Ok(head));
        assert_eq!(Head::parse(format!("{text}more lines\n").as_bytes()), Ok(head));
    }

    #[test]
    fn later_formats_are_refused_and_damage_is_said() {
        let text = Head { version: Version::random(), file_bytes: 9, map_bytes: 7 }.text();
        let kind = |text: &str| Head::parse(text.as_bytes()).unwrap_err().kind();
        assert_eq!(kind(&text.replace("columns 1", "columns 2")), ErrorKind::Unsupported);
        for wrong in [
            "",
            "x",
            &text.replace("columns 1", "columns 0"),
            &text.replace("file_bytes 9", "file_bytes -9"),
            &text.replace("file_bytes 9", "file_bytes 18446744073709551615"),
            &text.replace("map_bytes 7", "map_bytes 99999999999"),
            &text.replace("map_bytes", "map"),
            &text.replace("version ", "version 0"),
        ] {
            assert_eq!(kind(wrong), ErrorKind::Corrupt, "{wrong}");
        }
        assert_eq!(Head::parse(b"\xff").unwrap_err().kind(), ErrorKind::Corrupt);
        let none = Head { version: Version::NONE, file_bytes: 9, map_bytes: 7 }.text();
        assert_eq!(kind(&none), ErrorKind::Corrupt);
    }
}
