//! The program `configurator`. Everything is in the library.

fn main() -> std::process::ExitCode {
    configurator_host::cli::main()
}
