//! Systems without DirectX.

use gpu_lists::Api;
use visibility::Unfiltered;

use crate::arguments::Format;
use crate::failure::{Failure, OTHER};

pub(crate) fn program(_: Unfiltered, _: bool) -> Result<u32, Failure> {
    Err(only_on_windows())
}

pub(crate) fn check(_: Format) -> Result<u32, Failure> {
    Err(only_on_windows())
}

pub(crate) fn list(_: Api, _: &[i64]) -> Result<u32, Failure> {
    Err(only_on_windows())
}

fn only_on_windows() -> Failure {
    Failure::new(OTHER, "this program runs only on Windows", "run it in a container on Windows")
}
