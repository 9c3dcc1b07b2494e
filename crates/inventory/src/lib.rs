//! Recorded inventories of a host, read and written.
