//! `gpu-probe`: tests every GPU API and reports what works.

fn main() -> std::process::ExitCode {
    gpu_probe::main()
}
