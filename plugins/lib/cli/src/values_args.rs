//! A file with a part of the spec of a ClusterManager or a Klusterlet.

use std::path::PathBuf;

use clap::Args;
use ocm_core::Failure;
use ocm_core::values::{Kind, Values, Wrong};

use crate::image_args::value;

/// `--values`.
#[derive(Args, Clone, Debug, Default)]
pub struct ValuesArgs {
    /// File with a part of the spec, as YAML or JSON, below what other flags say
    ///
    /// Fields that the CustomResourceDefinition does not have are refused. Feature gates are merged by name;
    /// registration drivers and other lists are replaced by those in the file. A driver keeps settings that the file
    /// does not name.
    #[arg(long, value_name = "FILE", help_heading = "Values")]
    pub values: Option<PathBuf>,
}

impl ValuesArgs {
    /// What the file says; nothing, where there is none.
    ///
    /// # Errors
    /// A usage failure that names the first field which cannot be.
    pub async fn read(&self, kind: Kind) -> Result<Values, Failure> {
        let Self { values: Some(path) } = self else { return Ok(Values::default()) };
        Values::read(value(path, "--values").await?, kind).map_err(|error| {
            let failure =
                Failure::usage(format!("{}, the file of --values, cannot be used", path.display())).because(&error);
            match error.why {
                Wrong::Unknown { near: Some(near), .. } | Wrong::Gate { near: Some(near) } => {
                    failure.hint(format!("did you mean {near}?"))
                }
                Wrong::Unknown { of_object: true, .. } => failure.hint("give what stands below spec, and nothing else"),
                _ => failure,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: &str) -> Result<Values, Failure> {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("values.yaml");
        std::fs::write(&path, text).unwrap();
        ValuesArgs { values: Some(path) }.read(Kind::Klusterlet).await
    }

    #[tokio::test]
    async fn what_cannot_be_is_told_with_its_path() {
        assert!(read("priorityClassName: agents").await.is_ok());
        let unknown = read("registrationConfiguration: {featureGate: []}").await.unwrap_err();
        let told = "--values, cannot be used: registrationConfiguration.featureGate: there is no such field";
        assert!(unknown.to_string().ends_with(told), "{unknown}");
        assert_eq!(unknown.hints, ["did you mean featureGates?"]);
        let whole = read("kind: Klusterlet\nspec: {}").await.unwrap_err();
        assert_eq!(whole.hints, ["give what stands below spec, and nothing else"]);
        assert!(ValuesArgs::default().read(Kind::ClusterManager).await.unwrap().is_empty());
    }
}
