//! Compiles the policy that comes on stdin: the process that `Compiler::Process` starts, for tests.

fn main() -> std::io::Result<()> {
    ocm_policy_engine::serve(std::io::stdin().lock(), std::io::stdout().lock())
}
