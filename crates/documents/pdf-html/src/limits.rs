//! How much one document may use up before a page is left as a picture or the document refused.

/// Bounds on one conversion, besides those on reading its text.
#[derive(Clone, Debug)]
pub struct Limits {
    /// Bounds on reading: size of the file, pages, glyphs, unpacked bytes.
    pub reading: ode_pdf::Limits,
    /// Drawing steps on one page, 3,000,000: past it the page is left as a picture.
    pub steps_per_page_max: u64,
    /// Bytes that the drawing of one page may take, 24 MB: past it the page is left as a picture.
    pub page_bytes_max: usize,
    /// What the result may be larger than the document by, as a factor, 64.
    pub output_factor_max: usize,
    /// What the result may be larger than that, in bytes, 16 MB.
    pub output_base_max: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            reading: ode_pdf::Limits::default(),
            steps_per_page_max: 3_000_000,
            page_bytes_max: 24 << 20,
            output_factor_max: 64,
            output_base_max: 16 << 20,
        }
    }
}

impl Limits {
    /// How many bytes the result of a document of this size may have.
    pub fn output_bytes_max(&self, input_bytes: usize) -> usize {
        input_bytes.saturating_mul(self.output_factor_max).saturating_add(self.output_base_max)
    }
}
