//! What containers log.

use std::path::Path;

use control_plane::Cluster;

/// Lines of all container logs of a node that contain some words.
pub fn log_lines(cluster: &Cluster, words: &str) -> Vec<String> {
    fn walk(folder: &Path, words: &str, lines: &mut Vec<String>) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let path = entry.path();
            if path.is_dir() {
                walk(&path, words, lines);
            } else if let Ok(text) = std::fs::read_to_string(&path) {
                lines.extend(text.lines().filter(|line| line.contains(words)).map(str::to_owned));
            }
        }
    }
    let mut lines = Vec::new();
    walk(&cluster.pod_logs(), words, &mut lines);
    lines
}
