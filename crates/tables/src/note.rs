//! What is said of a table.

/// What is to be known of a table before it is read.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Note {
    /// The note.
    pub text: String,
    /// The option of the library's that changes what it says.
    pub option: Option<&'static str>,
}

impl Note {
    /// One that no option changes.
    pub fn of(text: impl Into<String>) -> Note {
        Note { text: text.into(), option: None }
    }
}
