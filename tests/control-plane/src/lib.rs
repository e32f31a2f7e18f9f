//! Real Kubernetes clusters for tests and for the demo.
