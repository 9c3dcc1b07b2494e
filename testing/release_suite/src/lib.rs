//! Tests of a release; `tests` contains them.
