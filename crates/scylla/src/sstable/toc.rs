//! The files of an SSTable: their names, and TOC.txt, which lists them.

use alloc::string::{String, ToString};
use alloc::vec::Vec;

use marquetry_base::{Error, Result};

use super::version::Version;

/// A component of an SSTable, by the end of its file's name.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Component {
    /// `Data.db`: the rows.
    Data,
    /// `CompressionInfo.db`: where the chunks of compressed data begin.
    CompressionInfo,
    /// `Statistics.db`: the columns, and what is known of the rows.
    Statistics,
    /// `Index.db`: where partitions begin.
    Index,
    /// `Summary.db`: a sample of that.
    Summary,
    /// `Partitions.db`: where partitions begin, as a trie.
    Partitions,
    /// `Rows.db`: where blocks of rows begin, as tries.
    Rows,
    /// `Filter.db`: the Bloom filter of the partition keys.
    Filter,
    /// `CRC.db`: checksums of uncompressed data.
    Crc,
    /// `Digest.crc32`: the checksum of Data.db.
    Digest,
    /// `TOC.txt`: this list.
    Toc,
    /// `Scylla.db`: what ScyllaDB adds.
    Scylla,
    /// Another one, such as a secondary index.
    Other(String),
}

const NAMES: &[(Component, &str)] = &[
    (Component::Data, "Data.db"),
    (Component::CompressionInfo, "CompressionInfo.db"),
    (Component::Statistics, "Statistics.db"),
    (Component::Index, "Index.db"),
    (Component::Summary, "Summary.db"),
    (Component::Partitions, "Partitions.db"),
    (Component::Rows, "Rows.db"),
    (Component::Filter, "Filter.db"),
    (Component::Crc, "CRC.db"),
    (Component::Digest, "Digest.crc32"),
    (Component::Toc, "TOC.txt"),
    (Component::Scylla, "Scylla.db"),
];

impl Component {
    /// The component that the end of a file's name says.
    pub fn parse(name: &str) -> Component {
        match NAMES.iter().find(|(_, known)| *known == name) {
            Some((component, _)) => component.clone(),
            None => Component::Other(name.to_string()),
        }
    }

    /// The end of the file's name.
    pub fn name(&self) -> &str {
        match self {
            Component::Other(name) => name,
            known => NAMES.iter().find(|(component, _)| component == known).map_or("", |(_, name)| name),
        }
    }
}

/// What the name of an SSTable's file says: `nb-1-big-Data.db`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FileName {
    /// The version of the format.
    pub version: Version,
    /// What tells it from others of the table: a number, or an identifier.
    pub id: String,
    /// The index's format: `big` or `bti`.
    pub format: String,
    /// The component.
    pub component: Component,
}

impl FileName {
    /// Parses a file's name, without its folder. `None` if it is not one of an SSTable.
    ///
    /// # Errors
    ///
    /// [`ErrorKind::Unsupported`](marquetry_base::ErrorKind::Unsupported) if it is one of an SSTable, of a version that is not known.
    pub fn parse(name: &str) -> Result<Option<FileName>> {
        let mut parts = name.splitn(4, '-');
        let (Some(version), Some(id), Some(format), Some(component)) =
            (parts.next(), parts.next(), parts.next(), parts.next())
        else {
            return Ok(None);
        };
        let is_version = version.len() == 2 && version.bytes().all(|letter| letter.is_ascii_lowercase());
        if !is_version || id.is_empty() || !matches!(format, "big" | "bti") {
            return Ok(None);
        }
        Ok(Some(FileName {
            version: Version::parse(version)?,
            id: id.to_string(),
            format: format.to_string(),
            component: Component::parse(component),
        }))
    }

    /// What the names of all files of the SSTable begin with: `nb-1-big`.
    pub fn stem(&self) -> String {
        alloc::format!("{}-{}-{}", self.version, self.id, self.format)
    }

    /// The name of another component's file.
    pub fn of(&self, component: &Component) -> String {
        alloc::format!("{}-{}-{}-{}", self.version, self.id, self.format, component.name())
    }
}

/// The components that TOC.txt lists, one a line.
///
/// # Errors
///
/// [`ErrorKind::Corrupt`](marquetry_base::ErrorKind::Corrupt) for text that is not UTF-8, or names no data.
pub fn parse_toc(text: &[u8]) -> Result<Vec<Component>> {
    let fault = |message: &'static str| {
        Error::corrupt(message).at(|place| place.object = Some(Component::Toc.name().to_string()))
    };
    let text = core::str::from_utf8(text).map_err(|_| fault("a table of contents that is not text"))?;
    let components: Vec<Component> =
        text.lines().map(str::trim).filter(|line| !line.is_empty()).map(Component::parse).collect();
    if components.contains(&Component::Data) {
        Ok(components)
    } else {
        Err(fault("a table of contents that does not list Data.db"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files() {
        let name = FileName::parse("nb-12-big-CompressionInfo.db").unwrap().unwrap();
        assert_eq!((name.version.name(), name.id.as_str()), ("nb", "12"));
        assert_eq!(name.component, Component::CompressionInfo);
        assert_eq!(
            (name.of(&Component::Data), name.stem()),
            ("nb-12-big-Data.db".into(), "nb-12-big".into())
        );
        let name = FileName::parse("me-3gfd_0asg_5vc1s2lzq4i0l5t5u3-big-Data.db").unwrap().unwrap();
        assert_eq!(name.id, "3gfd_0asg_5vc1s2lzq4i0l5t5u3");
        let name = FileName::parse("da-1-bti-SAI+aa+Meta.db").unwrap().unwrap();
        assert_eq!(name.component, Component::Other("SAI+aa+Meta.db".to_string()));
        assert!(FileName::parse("zz-1-big-Data.db").is_err());
        for other in ["manifest.json", "schema.cql", "a-b-c-d", "nb-1-other-Data.db", "nb-1-big"] {
            assert_eq!(FileName::parse(other), Ok(None), "{other}");
        }
    }

    #[test]
    fn tables_of_contents() {
        let toc = parse_toc(b"Data.db\nTOC.txt\r\n\nMine.db\n").unwrap();
        assert_eq!(toc, [Component::Data, Component::Toc, Component::Other("Mine.db".to_string())]);
        assert!(parse_toc(b"Index.db\n").is_err());
        assert!(parse_toc(b"Data.db\n\xff").is_err());
        for (component, name) in NAMES {
            assert_eq!((Component::parse(name), component.name()), (component.clone(), *name));
        }
    }
}
