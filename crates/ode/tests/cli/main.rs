//! The command line as people and programs meet it: the real binary, its output, its exit codes.

#![expect(clippy::unwrap_used, reason = "in a test, a panic at the place is the report")]

mod bad_input;
mod convert;
mod doctor;
mod gateway;
mod harness;
mod html;
mod jobs;
mod mapping;
mod maps;
mod migrate;
mod ocr;
mod orders;
mod own_scripts;
mod places;
mod scripts;
mod serve;
mod service;
mod standin;
mod upload;
mod web;
mod words;
