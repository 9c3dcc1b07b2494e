//! The help.

pub(crate) const TEXT: &str = "\
Runs a program that sees only the DirectX devices of its container

Usage: directx-visible [--require] [--verbose] -- COMMAND [ARGUMENT]...
       directx-visible [--require] [--verbose] --command-line <LINE> [-- ARGUMENT...]
       directx-visible command [--require] [--with-args] [--patch <KIND/NAME/CONTAINER>]
                               [FILE]
       directx-visible --check [--output <text|json>]
       directx-visible --install <FOLDER>
       directx-visible --wait

The program and its child processes see the devices that the device plugin names in
DIRECTX_VISIBLE_DEVICES_* and DIRECTX_VISIBLE_DEVICES, and software adapters. This
prevents mistakes; it is not isolation.

Options:
      --require  Do not run the program, or a child process, that would see all devices
      --verbose  Report child processes that see all devices, too
      --command-line <LINE>
                 Start the program with this command line as it is written; a space and
                 the arguments follow it
      --check    Compare the devices that each GPU API lists with and without the filter
                 with those of the container
      --output <text|json>
                 Output format of --check; default `text`
      --install <FOLDER>
                 Copy this program and its filters to the folder, and compare the copies
      --wait     Run until the container or the system is shut down

`directx-visible command` runs on any system. It reads the configuration of an image for
Windows, as crane, skopeo and docker print it, from FILE or from standard input. It prints
the `command` and `args` with which a container in a manifest starts the program of the
image with directx-visible:
      --require  Start it with --require
      --with-args
                 The container has `args`, which replace the CMD of the image
      --patch <KIND/NAME/CONTAINER>
                 Print a patch for kustomize, as in Deployment/app/server

  -h, --help     Print help
  -V, --version  Print version

Exit codes: the exit code of the program, or
    1  --check found a difference
    2  wrong usage
  120  the variables do not name the container's devices
  121  the container's devices no longer exist
  122  the filter cannot be used (with --require or --check)
  123  the program would see all devices (with --require)
  125  another failure of directx-visible
  126  Windows cannot run the program
  127  the program was not found
";

#[cfg(test)]
mod tests {
    #[test]
    fn the_page_of_tools_has_the_help() {
        let begin = "<!-- generated from crates/containers/directx_visible/src/help.rs by cargo \
                     xtask update -->\n";
        let help = format!("```text\n{}```\n", super::TEXT);
        doc_pages::assert_part("reference/tools.md", begin, &help);
    }
}
