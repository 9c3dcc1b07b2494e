//! Writes a program's result to standard output.

use std::io::{self, ErrorKind, Write};

use anstream::AutoStream;
use anyhow::anyhow;

use crate::failure::Failure;

/// Writes `text` to standard output. A closed pipe (`| head`) is not an error; a full disk
/// is.
pub fn print(text: &str) -> Result<(), Failure> {
    write_to(&mut io::stdout().lock(), text).map_err(failure)
}

/// Writes `text` as [`print()`] does, without its colors where no terminal shows them.
pub(crate) fn print_colored(text: &str) -> Result<(), Failure> {
    write_to(&mut AutoStream::auto(io::stdout().lock()), text).map_err(failure)
}

fn failure(error: io::Error) -> Failure {
    Failure::runtime(anyhow!(error).context("cannot write to standard output"))
}

fn write_to(out: &mut impl Write, text: &str) -> io::Result<()> {
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(e) if e.kind() == ErrorKind::BrokenPipe => Ok(()),
        result => result,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    struct FailingWriter(ErrorKind);

    impl Write for FailingWriter {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_not_an_error_and_a_full_disk_is() {
        assert!(write_to(&mut FailingWriter(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut FailingWriter(ErrorKind::StorageFull), "x").is_err());
    }
}
