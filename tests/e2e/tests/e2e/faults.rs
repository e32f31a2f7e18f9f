//! The likely ones of the faults that `troubleshoot` has to find. `cargo soak --parts faults` makes the others.

use e2e_tests::faults::matrix;

#[test]
fn likely_faults_are_found_and_gone_when_they_are_undone() {
    matrix(|fault| fault.is_likely);
}
