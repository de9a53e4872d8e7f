//! How a document is to be converted: the mappings and forms that a page offers.

use crate::App;
use crate::service::request;

/// What can be chosen, and what is.
pub(super) struct Choices {
    pub(super) mappings: Vec<Choice>,
    pub(super) outputs: Vec<Choice>,
}

pub(super) struct Choice {
    pub(super) name: String,
    pub(super) label: String,
    pub(super) about: String,
    pub(super) is_chosen: bool,
}

/// The forms, as a form sends and a person reads them. The first is what one gets without asking.
const OUTPUTS: [(&str, &str); 3] = [
    ("", "ODE XML, all that was read"),
    ("ubl", "UBL 2.1 invoice"),
    ("cii", "CII invoice (Factur-X, ZUGFeRD)"),
];

impl Choices {
    /// Those of this site, with these chosen.
    pub(super) fn new(app: &App, mapping: &str, output: &str) -> Self {
        let mappings = app.settings.mappings.iter().map(|(name, about)| Choice {
            label: label(app, name),
            about: about.clone(),
            is_chosen: name == mapping,
            name: name.clone(),
        });
        let outputs = OUTPUTS.into_iter().map(|(name, label)| Choice {
            name: name.into(),
            label: label.into(),
            about: String::new(),
            is_chosen: name == output,
        });
        Choices { mappings: mappings.collect(), outputs: outputs.collect() }
    }

    /// The same, and a page to look at. Where the mappings are not known, names are written, and this one too.
    pub(super) fn or_page(mut self) -> Self {
        if !self.mappings.is_empty() {
            self.mappings.push(Choice {
                name: request::KIND.into(),
                label: "A page to look at (HTML)".into(),
                about: "The document as a web page, with its fonts and pictures".into(),
                is_chosen: false,
            });
        }
        self
    }
}

/// A mapping as people call it, with its name beside it. What one is about begins with what it is for, up to a colon.
pub(super) fn label(app: &App, name: &str) -> String {
    if name == "auto" {
        return "Whichever fits (auto)".into();
    }
    let about =
        app.settings.mappings.iter().find(|(known, _)| known == name).map(|(_, about)| about.as_str());
    let title = about.and_then(|about| about.split([':', ';', ',']).next()).map(str::trim);
    match title.filter(|title| !title.is_empty()) {
        Some(title) => format!("{title} ({name})"),
        None => name.to_owned(),
    }
}
