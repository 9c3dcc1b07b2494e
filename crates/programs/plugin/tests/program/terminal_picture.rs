//! The pictures `docs/terminal.svg` and `docs/terminal-narrow.svg`: what `simulate` and `doctor`
//! print on a terminal, drawn from their real output.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::harness::{outcome, program, recorded};

/// The width of a character in tenths of a pixel of the picture.
const CHARACTER: usize = 84;
/// The distance of lines, and the space around them, in pixels.
const LINE: usize = 19;
const MARGIN: usize = 16;

/// GitHub shows pictures of a repository in the colors of its reader's theme.
const STYLE: &str = r#"text{font:14px ui-monospace,SFMono-Regular,Menlo,Consolas,"DejaVu Sans Mono",monospace;fill:#1f2328}
.frame{fill:#f6f8fa;stroke:#d0d7de}.prompt{fill:#0969da}.bold{font-weight:600}.dim{fill:#59636e}.red{fill:#cf222e}.green{fill:#1a7f37}.yellow{fill:#9a6700}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.frame{fill:#151b23;stroke:#3d444d}.prompt{fill:#4493f8}.dim{fill:#9198a1}.red{fill:#f85149}.green{fill:#3fb950}.yellow{fill:#d29922}}
"#;

/// A command line, and what it prints on a terminal of this width.
fn session(width: usize, shown: &str, arguments: &[&str]) -> String {
    let mut program = program();
    program.env("COLUMNS", width.to_string()).env_remove("NO_COLOR").env("CLICOLOR_FORCE", "1");
    let (_, out, err) = outcome(&program.args(arguments).output().unwrap());
    assert_eq!(err, "");
    format!("\x1b[34m$\x1b[0m directx-device-plugin {shown}\n{out}")
}

/// The class of the picture's style for a code of a terminal's color or font; `None` for the end of
/// all of them.
fn class(code: &str) -> Option<&'static str> {
    match code {
        "0" => None,
        "1" => Some("bold"),
        "2" => Some("dim"),
        "31" => Some("red"),
        "32" => Some("green"),
        "33" => Some("yellow"),
        "34" => Some("prompt"),
        other => panic!("the picture has no class for the code {other}"),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}

/// The parts of a line with one style each, and without large gaps: the column at which each
/// begins, its classes, and its text. Fonts of the same size have different widths, and programs
/// treat spaces in different ways, so that each part has its own place in the picture.
fn parts(line: &str) -> Vec<(usize, String, &str)> {
    const GAP: &str = "  ";
    let mut parts = Vec::new();
    let mut column = 0;
    let mut classes = BTreeSet::new();
    for (n, styled) in line.split("\x1b[").enumerate() {
        let mut text = styled;
        if n > 0 {
            let (code, rest) = styled.split_once('m').unwrap();
            text = rest;
            match class(code) {
                Some(class) => drop(classes.insert(class)),
                None => classes.clear(),
            }
        }
        let mut start = column;
        for part in text.split(GAP) {
            let shown = part.trim_start();
            let names: Vec<&str> = classes.iter().copied().collect();
            if !shown.is_empty() {
                parts.push((start + part.len() - shown.len(), names.join(" "), shown.trim_end()));
            }
            start += part.chars().count() + GAP.len();
        }
        column += text.chars().count();
    }
    parts
}

/// The width of so many characters in pixels.
fn pixels(columns: usize) -> String {
    let tenths = columns * CHARACTER;
    format!("{}.{}", tenths / 10, tenths % 10)
}

/// The text as a terminal of this width shows it.
fn picture(title: &str, width: usize, text: &str) -> String {
    let wide = (width * CHARACTER).div_ceil(10) + 2 * MARGIN;
    let high = text.lines().count() * LINE + 2 * MARGIN;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{wide}\" height=\"{high}\" viewBox=\"0 0 {wide} \
         {high}\" role=\"img\" aria-labelledby=\"title\">\n<title id=\"title\">{title}</title>\n\
         <style>\n{STYLE}</style>\n<rect class=\"frame\" x=\".5\" y=\".5\" width=\"{}\" \
         height=\"{}\" rx=\"8\"/>\n<g transform=\"translate({MARGIN} {MARGIN})\">\n",
        wide - 1,
        high - 1
    );
    for (n, line) in text.lines().enumerate() {
        let y = n * LINE + 14;
        for (column, classes, text) in parts(line) {
            let columns = text.chars().count();
            assert!(column + columns <= width, "too long: {line}");
            let class = if classes.is_empty() { classes } else { format!(" class=\"{classes}\"") };
            let x = pixels(column);
            let length = pixels(columns);
            let text = escaped(text);
            writeln!(svg, r#"<text{class} x="{x}" y="{y}" textLength="{length}">{text}</text>"#)
                .unwrap();
        }
    }
    svg + "</g>\n</svg>\n"
}

#[test]
fn the_pictures_show_what_the_commands_print() {
    // In memory, the output has a note about it.
    if device_plugin::unix_sockets::skips_test() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("host.yaml");
    let host = std::fs::read_to_string(recorded("aws-t4-two.yaml")).unwrap();
    // Its second GPU has stopped.
    let (first, second) = host.rsplit_once("problemCode: 0").unwrap();
    std::fs::write(&path, format!("{first}problemCode: 43{second}")).unwrap();

    let gpus = ["simulate", "--gpu", "T4", "--gpu", "A10"];
    let simulation = |width| session(width, &gpus.join(" "), &gpus);
    let doctor = session(
        100,
        "doctor --inventory host.yaml",
        &["doctor", "--inventory", path.to_str().unwrap()],
    );
    let wide = format!("{}\n{doctor}", simulation(100));
    let title = "simulate shows which pods get a GPU and why; doctor finds a GPU that has stopped, and says how to fix it";
    doc_pages::assert_page("terminal.svg", &picture(title, 100, &wide));
    let title = "simulate shows which pods get a GPU, and why";
    doc_pages::assert_page("terminal-narrow.svg", &picture(title, 72, &simulation(72)));
    for class in ["red", "green", "yellow", "dim"] {
        let drawn = picture("", 100, &wide);
        assert!(drawn.contains(&format!("{class}\" x=")), "{class}: {drawn}");
    }
}

#[test]
fn each_part_of_a_line_has_its_column_and_its_classes() {
    let line = "a b  \x1b[1m\x1b[31mno \x1b[0m   c &  d";
    let part = |column, classes: &str, text| (column, classes.to_owned(), text);
    let expected =
        [part(0, "", "a b"), part(5, "bold red", "no"), part(11, "", "c &"), part(16, "", "d")];
    assert_eq!(parts(line), expected);
    assert_eq!(escaped("<&>"), "&lt;&amp;&gt;");
}
