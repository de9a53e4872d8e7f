//! Documents for tests: a small writer of PDF files, so that each test can say in a few lines what its document holds, and
//! damaged copies of real ones. Nothing but tests uses it, so it knows none of our crates and is part of no program.

pub mod damage;

/// A document under construction: numbered objects and the page tree.
pub struct Builder {
    objects: Vec<Vec<u8>>,
    pages: Vec<usize>,
    catalog: String,
    trailer: String,
}

impl Default for Builder {
    fn default() -> Self {
        Self::new()
    }
}

impl Builder {
    /// A document without pages. Object 1 is the catalog, object 2 the page tree, object 3 Helvetica.
    pub fn new() -> Self {
        let font = b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>".to_vec();
        Self {
            objects: vec![Vec::new(), Vec::new(), font],
            pages: Vec::new(),
            catalog: String::new(),
            trailer: String::new(),
        }
    }

    /// Adds an object and gives its number.
    pub fn object(&mut self, body: impl Into<Vec<u8>>) -> usize {
        self.objects.push(body.into());
        self.objects.len()
    }

    /// Adds a stream and gives its number; `entries` is what its dictionary holds besides its length.
    pub fn stream(&mut self, entries: &str, data: &[u8]) -> usize {
        let mut body = format!("<<{entries}/Length {}>>\nstream\n", data.len()).into_bytes();
        body.extend_from_slice(data);
        body.extend_from_slice(b"\nendstream");
        self.object(body)
    }

    /// Adds a page of 400 by 300 points with Helvetica as `/F1`; `entries` goes into the page's dictionary.
    pub fn page(&mut self, entries: &str, content: &str) -> &mut Self {
        self.page_with_fonts(entries, "", content)
    }

    /// The same with further fonts, such as `/F2 9 0 R`.
    pub fn page_with_fonts(&mut self, entries: &str, fonts: &str, content: &str) -> &mut Self {
        let content = self.stream("", content.as_bytes());
        let media = if entries.contains("MediaBox") { "" } else { "/MediaBox[0 0 400 300]" };
        let resources = format!("/Resources<</Font<</F1 3 0 R{fonts}>>>>");
        let resources = if entries.contains("/Resources") { String::new() } else { resources };
        let page = format!("<</Type/Page/Parent 2 0 R{media}{resources}/Contents {content} 0 R{entries}>>");
        let page = self.object(page);
        self.pages.push(page);
        self
    }

    /// Adds entries to the catalog.
    pub fn catalog(&mut self, entries: &str) -> &mut Self {
        self.catalog.push_str(entries);
        self
    }

    /// Adds entries to the trailer.
    pub fn trailer(&mut self, entries: &str) -> &mut Self {
        self.trailer.push_str(entries);
        self
    }

    pub fn bytes(&self) -> Vec<u8> {
        let kids: String = self.pages.iter().map(|page| format!("{page} 0 R ")).collect();
        let mut objects = self.objects.clone();
        objects[0] = format!("<</Type/Catalog/Pages 2 0 R{}>>", self.catalog).into_bytes();
        objects[1] = format!("<</Type/Pages/Kids[{kids}]/Count {}>>", self.pages.len()).into_bytes();
        let mut file = b"%PDF-1.7\n".to_vec();
        let mut table = format!("xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1);
        for (index, body) in objects.iter().enumerate() {
            table.push_str(&format!("{:010} 00000 n \n", file.len()));
            file.extend_from_slice(format!("{} 0 obj\n", index + 1).as_bytes());
            file.extend_from_slice(body);
            file.extend_from_slice(b"\nendobj\n");
        }
        let start = file.len();
        file.extend_from_slice(table.as_bytes());
        let (size, entries) = (objects.len() + 1, &self.trailer);
        let trailer = format!("trailer\n<</Size {size}/Root 1 0 R{entries}>>\nstartxref\n{start}\n%%EOF\n");
        file.extend_from_slice(trailer.as_bytes());
        file
    }
}

/// A document of one page with this content.
pub fn one_page(content: &str) -> Vec<u8> {
    Builder::new().page("", content).bytes()
}
