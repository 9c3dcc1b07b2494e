//! `gpu-probe`: uses every GPU API for a moment and reports what works.

fn main() -> std::process::ExitCode {
    gpu_probe::main()
}
