//! Snapshots of every command: exit code, stdout, stderr.
