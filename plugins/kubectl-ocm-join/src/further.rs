//! The flags of the hubs that the agent turns to when the first one does not answer.

use std::sync::Arc;

use ocm_cli::Ui;
use ocm_core::gates::Gate;
use ocm_core::join::fallback::HubTimeout;
use ocm_core::{Failure, duration};
use ocm_flows::join::FallbackOptions;
use ocm_kube::{Connection, FallbackHubArgs, HubArgs, connect};

/// What was typed about further hubs, checked as far as it can be alone.
pub(crate) struct Further {
    hubs: FallbackHubArgs,
    removed: Vec<String>,
    timeout: Option<HubTimeout>,
}

impl Further {
    /// Checks what was typed.
    ///
    /// # Errors
    /// Flags that do not go together; a time that is too short.
    pub(crate) fn check(
        hubs: FallbackHubArgs,
        removed: Vec<String>,
        timeout: Option<&str>,
        gates: &[(&'static Gate, bool)],
    ) -> Result<Self, Failure> {
        let timeout = timeout.map(timeout_of).transpose()?;
        let further = Self { hubs, removed, timeout };
        if !further.is_empty() && gates.iter().any(|(gate, _)| gate.name == "MultipleHubs") {
            return Err(Failure::usage("--feature-gates MultipleHubs is set as the further hubs need it").hint(
                "leave it out beside --fallback-hub-context, --remove-fallback-hub and --hub-connection-timeout",
            ));
        }
        Ok(further)
    }

    fn is_empty(&self) -> bool {
        self.hubs.fallback_hub_context.is_empty() && self.removed.is_empty() && self.timeout.is_none()
    }

    /// Connects to the hubs that were named.
    ///
    /// # Errors
    /// Hubs beside a token; a context that is not there.
    pub(crate) async fn connect(
        self,
        hub: &HubArgs,
        plain: &Connection,
        has_hub_kubeconfig: bool,
        ui: &Arc<Ui>,
    ) -> Result<FallbackOptions, Failure> {
        let Self { hubs: named, removed, timeout } = self;
        if !named.fallback_hub_context.is_empty() && !has_hub_kubeconfig {
            return Err(Failure::usage("--fallback-hub-context does not go with a token: tokens of all hubs are made")
                .hint("with access to all clusters: --hub-context NAME or --hub-kubeconfig FILE"));
        }
        let mut hubs = Vec::new();
        for connection in named.connections(hub, plain) {
            hubs.push(connect(&connection, ui.clone()).await?);
        }
        Ok(FallbackOptions { hubs, removed, timeout })
    }
}

fn timeout_of(text: &str) -> Result<HubTimeout, Failure> {
    let wrong = |error: &dyn std::fmt::Display| Failure::usage(format!("--hub-connection-timeout: {error}"));
    let typed = duration::parse(text).map_err(|error| wrong(&error))?;
    let seconds = i32::try_from(typed.as_secs()).unwrap_or(i32::MAX);
    HubTimeout::seconds(seconds)
        .ok_or_else(|| wrong(&format_args!("an agent waits for {} seconds at least", HubTimeout::SHORTEST)))
}

#[cfg(test)]
mod tests {
    use ocm_core::join::gates::GATES;

    use super::*;

    #[test]
    fn a_time_is_long_enough_or_refused() {
        assert_eq!(timeout_of("3m").unwrap(), HubTimeout::seconds(180).unwrap());
        for (text, words) in [("179s", "180 seconds at least"), ("soon", "--hub-connection-timeout")] {
            let wrong = timeout_of(text).unwrap_err();
            assert!(wrong.to_string().contains(words), "{wrong}");
        }
    }

    #[test]
    fn the_gate_of_further_hubs_is_not_typed_beside_them() {
        let gate = GATES.iter().find(|gate| gate.name == "MultipleHubs").unwrap();
        let named = FallbackHubArgs { fallback_hub_context: vec!["b".to_owned()], fallback_hub_kubeconfig: None };
        assert!(Further::check(named.clone(), Vec::new(), None, &[]).is_ok());
        assert!(Further::check(named, Vec::new(), None, &[(gate, false)]).is_err());
        assert!(Further::check(FallbackHubArgs::default(), Vec::new(), None, &[(gate, true)]).is_ok());
    }
}
