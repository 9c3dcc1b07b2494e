//! Quotes arguments so that PowerShell and cmd both read them unchanged.
//!
//! Each argument is enclosed in double quotes. Inside them cmd interprets only `%`;
//! PowerShell interprets `$`, the backtick, and every double quote, including
//! typographic ones. The started program then splits its command line (Microsoft,
//! "Parsing C command-line arguments"), where a backslash before the closing quote
//! would escape it. Windows PowerShell drops empty arguments and passes inner quotes on
//! unescaped. An argument with any of these cannot be written for both shells, and is
//! rejected.

use anyhow::anyhow;
use command_line::Failure;

/// The arguments as one line.
pub(super) fn line<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<String, Failure> {
    let quoted: Result<Vec<String>, _> = arguments.into_iter().map(quoted).collect();
    Ok(quoted?.join(" "))
}

/// The arguments as one line for display only; shells may read it differently.
pub(super) fn display<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let quoted: Vec<String> =
        arguments.into_iter().map(|a| quoted(a).unwrap_or_else(|_| format!("{a:?}"))).collect();
    quoted.join(" ")
}

/// Whether PowerShell or cmd may interpret the character even in double quotes.
fn is_special(c: char) -> bool {
    matches!(c, '%' | '$' | '`' | '"' | '“' | '”' | '„') || c.is_control()
}

fn quoted(argument: &str) -> Result<String, Failure> {
    if argument.is_empty() || argument.ends_with('\\') || argument.contains(is_special) {
        let error = anyhow!("`{argument}` cannot be quoted for both PowerShell and cmd");
        return Err(
            Failure::runtime(error).hint("use `--output json` or `--run`, which need no quoting")
        );
    }
    Ok(format!("\"{argument}\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_argument_is_in_double_quotes() {
        let path = r"src=C:\Program Files & more\it's; 100€\{a}[b]@!^~=+\x.dll,dst=C:\x.dll";
        assert_eq!(line(["--mount", path]).unwrap(), format!("\"--mount\" \"{path}\""));
    }

    #[test]
    fn arguments_that_the_shells_read_differently_are_rejected() {
        for bad in ["%PATH%", "100%", "$HOME", "a`b", "a\"b", "“a”", "a„b", r"C:\", "", "a\nb"]
        {
            let failure = line([bad]).unwrap_err();
            assert!(failure.chain().starts_with(&format!("`{bad}` cannot be quoted")));
        }
        assert_eq!(display(["a b", "%PATH%"]), r#""a b" "%PATH%""#);
    }
}
