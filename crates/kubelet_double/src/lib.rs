//! An in-process kubelet that behaves as the real one, odd parts included.
