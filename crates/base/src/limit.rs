//! The names of limits.

/// A field of [`Limits`](crate::Limits), as errors name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Limit {
    /// [`Limits::footer_bytes`](crate::Limits::footer_bytes).
    FooterBytes,
    /// [`Limits::page_header_bytes`](crate::Limits::page_header_bytes).
    PageHeaderBytes,
    /// [`Limits::structure_bytes`](crate::Limits::structure_bytes).
    StructureBytes,
    /// [`Limits::page_index_bytes`](crate::Limits::page_index_bytes).
    PageIndexBytes,
    /// [`Limits::page_bytes`](crate::Limits::page_bytes).
    PageBytes,
    /// [`Limits::dictionary_bytes`](crate::Limits::dictionary_bytes).
    DictionaryBytes,
    /// [`Limits::value_bytes`](crate::Limits::value_bytes).
    ValueBytes,
    /// [`Limits::window_bytes`](crate::Limits::window_bytes).
    WindowBytes,
    /// [`Limits::nesting`](crate::Limits::nesting).
    Nesting,
    /// [`Limits::total_bytes`](crate::Limits::total_bytes).
    TotalBytes,
    /// [`Limits::expansion`](crate::Limits::expansion): errors say the bytes that it allows for the file.
    Expansion,
}

impl Limit {
    /// The field's name.
    pub const fn name(self) -> &'static str {
        match self {
            Limit::FooterBytes => "footer_bytes",
            Limit::PageHeaderBytes => "page_header_bytes",
            Limit::StructureBytes => "structure_bytes",
            Limit::PageIndexBytes => "page_index_bytes",
            Limit::PageBytes => "page_bytes",
            Limit::DictionaryBytes => "dictionary_bytes",
            Limit::ValueBytes => "value_bytes",
            Limit::WindowBytes => "window_bytes",
            Limit::Nesting => "nesting",
            Limit::TotalBytes => "total_bytes",
            Limit::Expansion => "expansion",
        }
    }
}
