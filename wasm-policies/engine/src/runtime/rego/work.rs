//! What a built-in function may use while it works, beside its values.

/// The fuel of a call whose work is known only while it is done. It is taken before each part of the work.
#[derive(Debug)]
pub(crate) struct Work {
    left: u64,
    spent: u64,
}

impl Work {
    /// Work for at most so much fuel.
    pub(crate) fn new(fuel: u64) -> Self {
        Self { left: fuel, spent: 0 }
    }

    /// Takes fuel.
    ///
    /// # Errors
    /// There is not as much.
    pub(super) fn charge(&mut self, fuel: u64) -> Result<(), String> {
        match self.left.checked_sub(fuel) {
            Some(left) => {
                self.left = left;
                self.spent = self.spent.saturating_add(fuel);
                Ok(())
            }
            None => {
                self.spent = u64::MAX;
                Err("it needs more fuel than there is".to_owned())
            }
        }
    }

    /// The fuel that was taken. More than there was if there was not enough: whoever takes it from its guest ends that.
    pub(crate) fn spent(&self) -> u64 {
        self.spent
    }
}
