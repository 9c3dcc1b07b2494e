//! Command-line tools around DirectX device discovery.
