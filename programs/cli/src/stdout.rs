//! Writing a program's result.

use std::io::{self, ErrorKind, Write};

use anyhow::anyhow;

use crate::Failure;

/// Writes `text` to standard output. A reader that has seen enough and closed the
/// pipe (`| head`) is no failure; a full disk is.
pub fn print(text: &str) -> Result<(), Failure> {
    write_to(&mut io::stdout().lock(), text)
        .map_err(|e| Failure::at_work(anyhow!(e).context("cannot write to standard output")))
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

    struct Fails(ErrorKind);

    impl Write for Fails {
        fn write(&mut self, _: &[u8]) -> io::Result<usize> {
            Err(self.0.into())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_closed_pipe_is_fine_and_a_full_disk_is_not() {
        assert!(write_to(&mut Fails(ErrorKind::BrokenPipe), "x").is_ok());
        assert!(write_to(&mut Fails(ErrorKind::StorageFull), "x").is_err());
    }
}
