//! The kubelet device plugin API, registration and supervision.
