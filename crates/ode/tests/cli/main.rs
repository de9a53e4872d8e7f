//! The command line as people and programs meet it: the real binary, its output, its exit codes.

mod bad_input;
mod doctor;
mod harness;
mod jobs;
mod migrate;
mod places;
mod serve;
mod words;
