//! The DirectX device plugin for Kubernetes.
