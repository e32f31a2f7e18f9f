//! What one decision may use.

use ocm_policy_abi::LimitsAsked;
use serde::{Deserialize, Serialize};

/// What a policy may use for one decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Limits {
    /// Fuel: about one unit for each WebAssembly instruction. The same request uses the same fuel everywhere.
    pub fuel: u64,
    /// Ticks of [`crate::Engine::tick`], usually milliseconds, after which the decision is ended. Behind fuel, for what
    /// fuel does not see; generous, because a busy machine may let a thread wait for long.
    pub ticks: u64,
    /// Bytes of linear memory.
    pub memory_bytes: u64,
    /// Elements of tables.
    pub table_elements: u64,
    /// Bytes that the host may have to allocate for what the policy returns or passes to host calls.
    pub host_bytes: u64,
}

/// What an administrator lets policies use, and what they get when they do not ask.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Ceiling {
    /// What a policy gets that does not ask.
    pub usual: Limits,
    /// What no policy gets more of.
    pub most: Limits,
}

impl Default for Ceiling {
    fn default() -> Self {
        let usual = Limits {
            fuel: 20_000_000,
            ticks: 500,
            memory_bytes: 16 << 20,
            table_elements: 10_000,
            host_bytes: 1 << 20,
        };
        let most = Limits {
            fuel: 500_000_000,
            ticks: 2_000,
            memory_bytes: 64 << 20,
            table_elements: 100_000,
            host_bytes: 4 << 20,
        };
        Self { usual, most }
    }
}

impl Ceiling {
    /// The same, or what an administrator names for one policy where that is lower.
    #[must_use]
    pub fn lowered(mut self, to: &LimitsAsked) -> Self {
        if let Some(fuel) = to.fuel {
            self.most.fuel = self.most.fuel.min(fuel);
        }
        if let Some(bytes) = to.memory_bytes {
            self.most.memory_bytes = self.most.memory_bytes.min(bytes);
        }
        self.usual.fuel = self.usual.fuel.min(self.most.fuel);
        self.usual.memory_bytes = self.usual.memory_bytes.min(self.most.memory_bytes);
        self
    }

    /// What a policy that asks for this gets.
    pub fn grant(&self, asked: &LimitsAsked) -> Limits {
        let Self { usual, most } = self;
        Limits {
            fuel: asked.fuel.unwrap_or(usual.fuel).clamp(1, most.fuel),
            // Whoever computes longer needs more time: a tick is worth well over a hundred thousand units of fuel.
            ticks: asked.fuel.map_or(usual.ticks, |fuel| fuel / 100_000).clamp(usual.ticks.min(most.ticks), most.ticks),
            memory_bytes: asked.memory_bytes.unwrap_or(usual.memory_bytes).clamp(1 << 16, most.memory_bytes),
            table_elements: usual.table_elements.min(most.table_elements),
            host_bytes: usual.host_bytes.min(most.host_bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use ocm_api::policy;

    use super::*;

    #[test]
    fn the_ceiling_is_what_a_hub_policy_may_name() {
        let most = Ceiling::default().most;
        assert_eq!((most.fuel, most.memory_bytes), (policy::MAX_FUEL, policy::MAX_MEMORY_BYTES));
        let least = Ceiling::default().grant(&LimitsAsked { fuel: Some(1), memory_bytes: Some(0) });
        assert_eq!(least.memory_bytes, policy::MIN_MEMORY_BYTES);
    }

    #[test]
    fn an_administrator_lowers_the_ceiling_and_never_raises_it() {
        let usual = Ceiling::default();
        assert_eq!(usual.lowered(&LimitsAsked::default()), usual);
        assert_eq!(usual.lowered(&LimitsAsked { fuel: Some(u64::MAX), memory_bytes: Some(u64::MAX) }), usual);
        let low = usual.lowered(&LimitsAsked { fuel: Some(1000), memory_bytes: Some(1 << 16) });
        assert_eq!((low.most.fuel, low.usual.fuel), (1000, 1000));
        assert_eq!((low.most.memory_bytes, low.usual.memory_bytes), (1 << 16, 1 << 16));
    }

    #[test]
    fn nobody_gets_more_than_the_ceiling() {
        let ceiling = Ceiling::default();
        assert_eq!(ceiling.grant(&LimitsAsked::default()), ceiling.usual);
        let greedy = ceiling.grant(&LimitsAsked { fuel: Some(u64::MAX), memory_bytes: Some(u64::MAX) });
        assert_eq!((greedy.fuel, greedy.memory_bytes, greedy.ticks), (500_000_000, 64 << 20, 2_000));
        let modest = ceiling.grant(&LimitsAsked { fuel: Some(1_000), memory_bytes: Some(1) });
        assert_eq!((modest.fuel, modest.memory_bytes, modest.ticks), (1_000, 1 << 16, 500));
    }
}
