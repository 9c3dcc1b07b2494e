//! The DirectX adapters of the Windows host this runs on.
