//! A snapshot as a document: its format, its time, and what both sides showed then.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use ocm_api::member::Member;
use serde::Serialize;

use super::hub::HubSide;
use super::managed::ManagedSide;
use super::wire::Probe;

/// The format of a snapshot that this code writes and reads.
pub const FORMAT: u32 = 1;

/// What was observed at one moment.
#[derive(Clone, Debug, PartialEq, Serialize, Member)]
#[serde(rename_all = "camelCase")]
pub struct Snapshot {
    /// [`FORMAT`] of whoever wrote it.
    pub format: u32,
    /// When: checks go by this time and not by that of their own run.
    pub observed: Time,
    /// What told that time, in words for people, where no clock of a cluster was asked: of a dump.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<String>,
    /// The clusters that were asked about; empty: all.
    #[serde(default)]
    pub clusters: Vec<String>,
    /// Whether nobody named them: they are those that the managed cluster registers, at whatever hub.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub unnamed: bool,
    /// The hub; none: nobody looked at one.
    #[serde(default)]
    pub hub: Option<HubSide>,
    /// The managed cluster; none: nobody looked at one.
    #[serde(default)]
    pub managed: Option<ManagedSide>,
    /// What the hub answered to the credentials of the agents.
    #[serde(default)]
    pub probes: Vec<Probe>,
    /// The same, as seen from pods beside the agents; empty: nobody asked for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_cluster: Vec<Probe>,
}
