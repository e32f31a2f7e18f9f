//! How much of a command is only tried.

/// Whether a command changes anything.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum DryRun {
    /// For real.
    #[default]
    No,
    /// Everything is decided here; nothing but reads is sent.
    Client,
    /// The server checks and defaults everything and stores nothing.
    Server,
}

impl DryRun {
    /// kubectl's remark behind every line of a dry run.
    pub const fn remark(self) -> &'static str {
        match self {
            Self::No => "",
            Self::Client => " (dry run)",
            Self::Server => " (server dry run)",
        }
    }

    /// kubectl's word, as `--dry-run` takes it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::No => "none",
            Self::Client => "client",
            Self::Server => "server",
        }
    }
}
