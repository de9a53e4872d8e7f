//! Documents to values to XML: mappings on pages made by hand and on the corpus, and what the writers make of records.

mod corpus;
mod derived;
mod generic;
mod hostile_pages;
mod hostile_xml;
mod indonesian;
mod invoices;
mod mappings;
mod paper;
mod reading;
mod round_trip;
mod sample;
mod scripts;
mod truth;
mod writers;
