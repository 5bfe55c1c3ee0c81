//! Parses the command line, runs it, and exits with its code.

fn main() -> std::process::ExitCode {
    edgewright::main()
}
