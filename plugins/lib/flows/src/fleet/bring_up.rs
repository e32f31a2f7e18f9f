//! The hub and all clusters at once.

use std::sync::Arc;

use futures::future::FutureExt as _;
use futures::stream::{self, StreamExt as _};
use ocm_core::Narrator;
use ocm_core::order;

use super::hub;
use super::member::Run;
use super::outcome::{BroughtUp, Installation, Row};
use super::request::{Fleet, Request};
use crate::join::Coming;

/// Brings up a hub and its clusters, or does with their plans what the request says.
pub async fn bring_up(fleet: &Fleet, request: &Request, narrator: Arc<dyn Narrator>) -> BroughtUp {
    let coming = fleet.install.as_ref().map(|_| Coming::default());
    let installation: Option<Installation<'_>> = fleet.install.as_ref().map(|options| {
        let narrator = narrator.clone();
        let coming = coming.clone().unwrap_or_default();
        hub::install(&fleet.hub, options, request, coming, narrator).boxed_local().shared()
    });
    let run = Run::new(fleet, *request, coming, installation.clone(), narrator);
    let at_once = request.at_once.max(1);
    let each = fleet.members.iter().enumerate().map(|(index, member)| {
        let run = &run;
        async move { (index, run.member(fleet.first() + index, member).await) }
    });
    let clusters = async {
        run.inspect().await;
        stream::iter(each).buffer_unordered(at_once).collect::<Vec<(usize, Row)>>().await
    };
    let hub = async {
        match installation {
            Some(installation) => Some(installation.await),
            None => None,
        }
    };
    let (hub, mut clusters) = futures::join!(hub, clusters);
    order::sort_by_key(&mut clusters, |(index, _)| *index);
    BroughtUp { hub, clusters: clusters.into_iter().map(|(_, row)| row).collect() }
}
