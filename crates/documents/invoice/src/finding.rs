//! The names of findings: what a person may be told about a result, and where that is explained.

use std::fmt;

/// Makes [`FindingCode`] from one line per code, so that nothing about a code can be forgotten.
/// A code also needs its page, `docs/findings/<CODE>.md`; without it the crate does not compile.
macro_rules! finding_codes {
    ($($variant:ident $name:literal $sentence:literal;)*) => {
        /// The name of a finding, as written into results and looked up with `ode explain`. Names are kept for
        /// good: they are in files and in the scripts of others.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum FindingCode {
            $(
                #[doc = concat!("`", $name, "`: ", $sentence, ".")]
                $variant,
            )*
        }

        impl FindingCode {
            /// Every code, in the order of the table.
            pub const ALL: &[Self] = &[$(Self::$variant),*];

            /// The code as it is written, such as `TOTAL_MISMATCH`.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// What it says, in general. Without a full stop, since it may stand in a table.
            #[must_use]
            pub const fn sentence(self) -> &'static str {
                match self { $(Self::$variant => $sentence),* }
            }

            /// The code's page from `docs/findings`, in Markdown: what it means and what to do.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self {
                    $(Self::$variant => {
                        include_str!(concat!("../../../../docs/findings/", $name, ".md"))
                    })*
                }
            }
        }
    };
}

finding_codes! {
    FieldMissing          "FIELD_MISSING"           "Something that the document must say was not found on it";
    CheckFailed           "CHECK_FAILED"            "The printed figures do not satisfy a check of the mapping";
    LinesMismatch         "LINES_MISMATCH"          "The lines do not add up to a stated total";
    LineMismatch          "LINE_MISMATCH"           "Quantity times price is not the total of the line";
    TotalMismatch         "TOTAL_MISMATCH"          "Net and tax do not add up to the gross total";
    TaxMismatch           "TAX_MISMATCH"            "The tax table does not add up to the stated tax";
    TaxBasisMismatch      "TAX_BASIS_MISMATCH"      "What is taxed by the tax table is not the net total";
    TaxRateMismatch       "TAX_RATE_MISMATCH"       "A tax amount is not its rate of what is taxed";
    PayableMismatch       "PAYABLE_MISMATCH"        "The amount to pay does not follow from the total";
    DueBeforeIssue        "DUE_BEFORE_ISSUE"        "The invoice was due before it was issued";
    DateAmbiguous         "DATE_AMBIGUOUS"          "A day is printed so that day and month may be taken for each other";
    PeriodReversed        "PERIOD_REVERSED"         "A period ends before it starts";
    IbanCheck             "IBAN_CHECK"              "An account number fails its check digits";
    TaxNumberCheck        "TAX_NUMBER_CHECK"        "A tax number fails its check digits";
    PageXmlDiffer         "PAGE_XML_DIFFER"         "The page and the invoice inside the PDF say different things";
    PageXmlRowsDiffer     "PAGE_XML_ROWS_DIFFER"    "The page and the invoice inside the PDF have different numbers of rows";
    EmbeddedXmlUnreadable "EMBEDDED_XML_UNREADABLE" "An attachment should have been an invoice and was not used";
    EmbeddedXmlCut        "EMBEDDED_XML_CUT"        "The invoice inside the PDF has more rows than are read";
    EmbeddedSecondInvoice "EMBEDDED_SECOND_INVOICE" "The PDF carries two invoices, of which one was used";
    Derived               "DERIVED"                 "A value that the standard demands was worked out from others";
    DemandedTermMissing   "DEMANDED_TERM_MISSING"   "A value that the standard demands is not known and was written empty";
    TermNotConformant     "TERM_NOT_CONFORMANT"     "A value is not in the form that the standard demands and was written as printed";
    PageReadByOcr         "PAGE_READ_BY_OCR"        "A page is a scan and was read by OCR, which makes mistakes";
    PageNotRead           "PAGE_NOT_READ"           "A page is a scan and was not read, so what it says is not in the result";
    PageWithoutText       "PAGE_WITHOUT_TEXT"       "A page is a picture in which OCR found no text";
    MappingDoubtful       "MAPPING_DOUBTFUL"        "The mapping that was asked for does not look made for this document";
    PageNotCompared       "PAGE_NOT_COMPARED"       "The page was not compared with the invoice inside the PDF";
    SeveralInvoices       "SEVERAL_INVOICES"        "The document seems to hold several invoices, of which one was read";
    NotAnInvoice          "NOT_AN_INVOICE"          "Too little was found for this to be an invoice";
    CreditNegative        "CREDIT_NEGATIVE"         "A credit note states amounts with a minus";
    NegativeTotal         "NEGATIVE_TOTAL"          "The total is negative, and the document does not call itself a credit note";
    SignMismatch          "SIGN_MISMATCH"           "Net and tax have different signs";
    DocumentDamaged       "DOCUMENT_DAMAGED"        "Part of the PDF could not be read and is not in the result";
}

impl fmt::Display for FindingCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;
    use std::path::Path;

    #[test]
    fn every_code_has_a_page_and_every_page_a_code() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../docs/findings");
        let entries = std::fs::read_dir(folder).expect("the pages are there");
        let pages: BTreeSet<String> = entries
            .map(|entry| entry.expect("it can be listed").file_name().to_string_lossy().into_owned())
            .collect();
        let expected: BTreeSet<String> = FindingCode::ALL.iter().map(|code| format!("{code}.md")).collect();
        assert_eq!(pages, expected);
    }

    #[test]
    fn every_page_says_what_the_code_says_and_what_to_do() {
        for &code in FindingCode::ALL {
            let page = code.page();
            let head = format!("# {code}\n\n> {}\n\n## What it means\n\n", code.sentence());
            assert!(page.starts_with(&head), "{code} begins otherwise than\n{head}");
            let advice = page.split_once("\n## What to do\n\n").map(|(_, advice)| advice);
            assert!(advice.is_some_and(|advice| advice.starts_with("- ")), "{code} does not say what to do");
            assert!(!code.sentence().ends_with('.'), "{code}");
        }
    }
}
