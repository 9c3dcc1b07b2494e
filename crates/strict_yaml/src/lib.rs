//! YAML and JSON documents read strictly, every error naming line and key.
