//! Layers, schemas, docs agree with the code.
