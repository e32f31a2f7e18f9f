//! Vocabulary of Open Cluster Management.
