//! The child-process protocol, supervisor and sandbox. It has never heard of a job.
