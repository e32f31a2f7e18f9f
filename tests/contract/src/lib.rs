//! Floors, schemas, docs agree with the code.
