//! How the programs end that run the daemon from outside.

use std::process::ExitCode;

use anyhow::Result;

/// Does the work of a program whose command line is `request`. The status is 0 for success, 1
/// for a failure and 2 for wrong usage; errors are printed to standard error.
pub fn run<R>(usage: &str, request: Result<R>, work: impl FnOnce(&R) -> Result<()>) -> ExitCode {
    let request = match request {
        Ok(request) => request,
        Err(error) => {
            eprintln!("error: {error:#}\n{usage}");
            return ExitCode::from(2);
        }
    };
    match work(&request) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use anyhow::anyhow;

    #[test]
    fn the_status_distinguishes_failure_from_wrong_usage() {
        let status = |request, result: fn(&()) -> Result<()>| {
            format!("{:?}", run("usage: x", request, result))
        };
        let code = |code: u8| format!("{:?}", ExitCode::from(code));
        assert_eq!(status(Ok(()), |()| Ok(())), code(0));
        assert_eq!(status(Ok(()), |()| Err(anyhow!("failed"))), code(1));
        assert_eq!(status(Err(anyhow!("wrong")), |()| unreachable!()), code(2));
    }
}
