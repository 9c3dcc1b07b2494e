//! `query-hcs-capabilities`: what the Host Compute Service of this host supports.

fn main() -> std::process::ExitCode {
    tools::hcs::main()
}
