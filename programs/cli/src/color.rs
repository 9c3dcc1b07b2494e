//! Whether a program prints colors.
//!
//! A Windows console prints escape sequences as text until virtual terminal processing is
//! enabled, which consoles before Windows 10 1511 cannot do. So a console gets colors only after
//! it was enabled.

use std::io::{self, IsTerminal};

use clap::ColorChoice;

/// Whether a stream gets colors.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Color {
    /// With escape sequences.
    Shown,
    /// Without.
    Plain,
}

impl Color {
    /// For standard output. On Windows this enables the colors of the console.
    #[must_use]
    pub fn of_stdout() -> Color {
        Color::of(&io::stdout())
    }

    /// For standard error. On Windows this enables the colors of the console.
    #[must_use]
    pub fn of_stderr() -> Color {
        Color::of(&io::stderr())
    }

    fn of(stream: &impl IsTerminal) -> Color {
        decide(Wish::of_environment(), Kind::of(stream), enable)
    }
}

/// Whether clap may color help and usage errors; it then decides for each stream itself. It needs
/// this, because it also prints escape sequences to a console that did not enable them if the
/// variable `TERM` is set.
#[must_use]
pub fn color_choice() -> ColorChoice {
    choice([Kind::of(&io::stdout()), Kind::of(&io::stderr())], enable)
}

/// What the environment asks for: `NO_COLOR` (no-color.org), `CLICOLOR` and `CLICOLOR_FORCE`
/// (bixense.com/clicolors), and `TERM`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Wish {
    Never,
    /// On terminals.
    Terminals,
    /// Also in files and pipes.
    Always,
}

/// What a stream leads to.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    Terminal,
    Other,
}

/// The answer of [`enable`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Console {
    /// It interprets escape sequences.
    Enabled,
    /// It prints them as text.
    Unsupported,
}

impl Wish {
    fn of_environment() -> Wish {
        if anstyle_query::no_color() {
            Wish::Never
        } else if anstyle_query::clicolor_force() {
            Wish::Always
        } else if anstyle_query::clicolor() == Some(false) || !anstyle_query::term_supports_color()
        {
            Wish::Never
        } else {
            Wish::Terminals
        }
    }
}

impl Kind {
    fn of(stream: &impl IsTerminal) -> Kind {
        if stream.is_terminal() { Kind::Terminal } else { Kind::Other }
    }
}

/// Enables virtual terminal processing for the console of this process. The function it calls
/// handles both streams and fails unless both are consoles. So on Windows a terminal has no colors
/// while the other stream is redirected, rather than escape sequences as text.
fn enable() -> Console {
    match anstyle_query::windows::enable_ansi_colors() {
        Some(false) => Console::Unsupported,
        // Terminals of other systems need nothing.
        Some(true) | None => Console::Enabled,
    }
}

fn decide(wish: Wish, kind: Kind, enable: impl FnOnce() -> Console) -> Color {
    let shown = match (wish, kind) {
        (Wish::Never, _) | (Wish::Terminals, Kind::Other) => false,
        (Wish::Terminals | Wish::Always, Kind::Terminal) => enable() == Console::Enabled,
        (Wish::Always, Kind::Other) => true,
    };
    if shown { Color::Shown } else { Color::Plain }
}

fn choice(streams: [Kind; 2], enable: impl FnOnce() -> Console) -> ColorChoice {
    if streams.contains(&Kind::Terminal) && enable() == Console::Unsupported {
        ColorChoice::Never
    } else {
        ColorChoice::Auto
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn unchanged() -> Console {
        panic!("the console was changed")
    }

    #[test]
    fn a_terminal_shows_colors_only_after_they_were_enabled() {
        for wish in [Wish::Terminals, Wish::Always] {
            let color = |console| decide(wish, Kind::Terminal, || console);
            assert_eq!(color(Console::Enabled), Color::Shown);
            assert_eq!(color(Console::Unsupported), Color::Plain);
        }
    }

    #[test]
    fn other_streams_are_plain_unless_forced_and_leave_the_console_as_it_is() {
        assert_eq!(decide(Wish::Terminals, Kind::Other, unchanged), Color::Plain);
        assert_eq!(decide(Wish::Always, Kind::Other, unchanged), Color::Shown);
    }

    #[test]
    fn a_user_who_wants_no_colors_gets_none() {
        for kind in [Kind::Terminal, Kind::Other] {
            assert_eq!(decide(Wish::Never, kind, unchanged), Color::Plain);
        }
    }

    #[test]
    fn clap_prints_no_colors_to_a_console_that_cannot_show_them() {
        let (terminal, other) = (Kind::Terminal, Kind::Other);
        for streams in [[terminal, terminal], [terminal, other], [other, terminal]] {
            assert_eq!(choice(streams, || Console::Unsupported), ColorChoice::Never);
            assert_eq!(choice(streams, || Console::Enabled), ColorChoice::Auto);
        }
        assert_eq!(choice([other, other], unchanged), ColorChoice::Auto);
    }
}
