//! How much of one document is read before it is cut or refused.

/// Bounds on one document. The defaults are for documents that people send each other; raise them for archives.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Size of the file, 50 MB. Past it the document is refused.
    pub bytes_max: usize,
    /// Pages, 2,000. Past it the document is refused.
    pub pages_max: usize,
    /// Glyphs on one page, 200,000. A page with more is a drawing, not text; the rest of it is left out.
    pub glyphs_per_page_max: usize,
    /// Drawing instructions on one page, counting each use of a form, 5,000,000. The rest is left out.
    pub operations_per_page_max: usize,
    /// Glyphs of the whole document, 3,000,000: about a thousand full pages. The rest is left out.
    pub glyphs_max: usize,
    /// Drawing instructions of the whole document, 50,000,000. The rest is left out.
    pub operations_max: usize,
    /// Straight strokes kept on one page, 20,000. Further ones are left out.
    pub rules_per_page_max: usize,
    /// Bytes that one stream may grow to when unpacked, 128 MB. A larger one is left out.
    pub stream_bytes_max: usize,
    /// Bytes unpacked for the whole document, 512 MB. Streams past it are left out.
    pub decoded_bytes_max: usize,
    /// Dots of a page that is drawn, 12,000,000: a sheet of letter paper at 300 to the inch, and a little more. A larger
    /// page is drawn more coarsely.
    pub pixels_max: usize,
    /// Embedded files read, 100. Further ones are left out.
    pub attachments_max: usize,
    /// Bytes of all embedded files together, 64 MB. Files past it are left out.
    pub attachment_bytes_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            bytes_max: 50 << 20,
            pages_max: 2_000,
            glyphs_per_page_max: 200_000,
            operations_per_page_max: 5_000_000,
            glyphs_max: 3_000_000,
            operations_max: 50_000_000,
            rules_per_page_max: 20_000,
            stream_bytes_max: 128 << 20,
            decoded_bytes_max: 512 << 20,
            pixels_max: 12_000_000,
            attachments_max: 100,
            attachment_bytes_max: 64 << 20,
        }
    }
}
