//! How a document is to be converted: the types of jobs and forms of results that a page offers.

use crate::jobs::kind::Intake;

/// What can be chosen, and what is.
pub struct Choices {
    pub mappings: Vec<Choice>,
    pub outputs: Vec<Choice>,
}

pub struct Choice {
    pub name: String,
    pub label: String,
    pub about: String,
    pub is_chosen: bool,
}

impl Choices {
    /// What these pipelines offer, with these chosen.
    pub fn new(intakes: &[&Intake], mapping: &str, output: &str) -> Self {
        let mappings = intakes.iter().flat_map(|intake| &intake.offers).map(|offer| Choice {
            name: offer.name.clone(),
            label: offer.label.clone(),
            about: offer.about.clone(),
            is_chosen: offer.name == mapping,
        });
        let outputs =
            intakes.iter().flat_map(|intake| intake.outputs.iter().enumerate()).map(|(at, form)| {
                // The first form is what one gets without asking.
                let name = if at == 0 { "" } else { form.name };
                Choice {
                    name: name.into(),
                    label: form.label.into(),
                    about: String::new(),
                    is_chosen: name == output,
                }
            });
        Choices { mappings: mappings.collect(), outputs: outputs.collect() }
    }
}
