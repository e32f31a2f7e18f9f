//! The faults that `troubleshoot` has to find, but those of `cargo verify`: `cargo soak --parts faults`.

fn main() {
    e2e_tests::faults::matrix(|fault| !fault.is_likely);
}
