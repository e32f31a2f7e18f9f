//! Budgets that peers share: where one is short, whoever holds most gives way to whoever holds less.
//!
//! An API server does not say who it is, so whoever reaches the port may hold something. What is held is counted by address.
//! One address may hold all of a budget while nobody else wants any of it, as API servers do that come from one address. When
//! the budget is spent, an address gets room from the one that holds most, as long as that one holds more than the asking one
//! would then, with all of what it has begun. So what others hold keeps nobody from an equal share, but for the last whole thing.

use std::collections::{BTreeMap, HashMap};
use std::net::{IpAddr, Ipv6Addr};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Notify;

/// Who has connected, as far as an address tells: one of IPv4, or a network of 64 bits of IPv6, of which a machine may take as
/// many addresses as it likes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Peer(IpAddr);

impl Peer {
    /// Whose address this is.
    pub(super) fn of(address: IpAddr) -> Self {
        Self(match address.to_canonical() {
            IpAddr::V6(address) => {
                let [a, b, c, d, ..] = address.segments();
                IpAddr::V6(Ipv6Addr::new(a, b, c, d, 0, 0, 0, 0))
            }
            address @ IpAddr::V4(_) => address,
        })
    }
}

/// Something of which there is only so much. Nothing is kept of a peer that holds no permit.
pub(super) struct Budget {
    most: usize,
    held: Mutex<Held>,
}

#[derive(Default)]
struct Held {
    all: usize,
    /// The number of the next permit.
    next: u64,
    peers: HashMap<Peer, Holdings>,
}

/// What one peer holds, the oldest first.
#[derive(Default)]
struct Holdings {
    amount: usize,
    granted: BTreeMap<u64, Granted>,
}

struct Granted {
    amount: usize,
    state: Arc<State>,
}

/// What the budget and whoever holds a permit tell each other.
#[derive(Default)]
struct State {
    busy: AtomicBool,
    taken_back: Notify,
}

/// A part of a budget, until it is dropped or taken back.
pub(super) struct Permit {
    budget: Arc<Budget>,
    peer: Peer,
    number: u64,
    state: Arc<State>,
}

impl Budget {
    /// So much of something.
    pub(super) fn new(most: usize) -> Arc<Self> {
        Arc::new(Self { most, held: Mutex::default() })
    }

    /// A permit for nothing yet.
    pub(super) fn open(self: &Arc<Self>, peer: Peer) -> Permit {
        let state = Arc::<State>::default();
        let granted = Granted { amount: 0, state: state.clone() };
        let mut held = self.held();
        let number = held.next;
        held.next += 1;
        held.peers.entry(peer).or_default().granted.insert(number, granted);
        drop(held);
        Permit { budget: self.clone(), peer, number, state }
    }

    /// A permit for so much; none if there is no room.
    pub(super) fn take(self: &Arc<Self>, peer: Peer, amount: usize) -> Option<Permit> {
        let permit = self.open(peer);
        permit.more(amount, amount).then_some(permit)
    }

    /// Takes back a permit that is at rest from whoever holds most, if there is one.
    pub(super) fn give_one_up(&self) {
        let mut held = self.held();
        let Some(most) = held.most(None) else { return };
        let number = held.peers.get(&most).and_then(Holdings::at_rest);
        if let Some(number) = number {
            held.revoke(most, number);
        }
    }

    fn held(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Held {
    /// Grants so much more to a permit, unless it was taken back.
    fn grant(&mut self, peer: Peer, number: u64, amount: usize) -> bool {
        let Some(holdings) = self.peers.get_mut(&peer) else { return false };
        let Some(granted) = holdings.granted.get_mut(&number) else { return false };
        granted.amount += amount;
        holdings.amount += amount;
        self.all += amount;
        true
    }

    /// Takes a permit back from the peer that holds most, for one that would then hold so much. Whether there was one.
    fn take_back(&mut self, by: Peer, wanted: usize) -> bool {
        let Some(most) = self.most(Some(by)) else { return false };
        let holdings = self.peers.get(&most).filter(|holdings| holdings.amount > wanted);
        let number = holdings.and_then(Holdings::next_to_go);
        number.is_some_and(|number| self.revoke(most, number))
    }

    /// Who holds most, of all or of all but one.
    fn most(&self, but: Option<Peer>) -> Option<Peer> {
        let others = self.peers.iter().filter(|(peer, _)| Some(**peer) != but);
        others.max_by_key(|(_, holdings)| holdings.amount).map(|(peer, _)| *peer)
    }

    /// Takes a permit back and tells whoever holds it. Whether there was one.
    fn revoke(&mut self, peer: Peer, number: u64) -> bool {
        let Some(granted) = self.remove(peer, number) else { return false };
        granted.state.taken_back.notify_one();
        true
    }

    fn remove(&mut self, peer: Peer, number: u64) -> Option<Granted> {
        let holdings = self.peers.get_mut(&peer)?;
        let granted = holdings.granted.remove(&number)?;
        holdings.amount -= granted.amount;
        let is_empty = holdings.granted.is_empty();
        self.all -= granted.amount;
        if is_empty {
            self.peers.remove(&peer);
        }
        Some(granted)
    }
}

impl Holdings {
    /// The permit by which least is lost: the oldest one that is at rest, or else the newest one.
    fn next_to_go(&self) -> Option<u64> {
        let newest = || self.granted.iter().rev().find(|(_, granted)| granted.amount > 0).map(|(number, _)| *number);
        self.at_rest().or_else(newest)
    }

    /// The oldest permit that is at rest.
    fn at_rest(&self) -> Option<u64> {
        let mut at_rest = self.granted.iter().filter(|(_, granted)| !granted.state.busy.load(Ordering::Relaxed));
        at_rest.find(|(_, granted)| granted.amount > 0).map(|(number, _)| *number)
    }
}

impl Permit {
    /// Whose it is.
    pub(super) fn peer(&self) -> Peer {
        self.peer
    }

    /// Takes so much more, of so much that is still to come. Whether there was room, and it was not taken back.
    ///
    /// Others give way to the whole, as they lose the whole of what they hold: compared by its parts, each one would look small,
    /// and of two that hold about the same each would take from the other without end.
    pub(super) fn more(&self, amount: usize, rest: usize) -> bool {
        let most = self.budget.most;
        let mut held = self.budget.held();
        let Some(holdings) = held.peers.get(&self.peer) else { return false };
        // What was taken back itself takes nothing from others.
        if !holdings.granted.contains_key(&self.number) {
            return false;
        }
        let wanted = holdings.amount.saturating_add(amount.max(rest));
        while held.all.saturating_add(amount) > most {
            // Nobody gives way for what cannot be had anyway.
            if wanted > most || !held.take_back(self.peer, wanted) {
                return false;
            }
        }
        held.grant(self.peer, self.number, amount)
    }

    /// Whether it is in the middle of something that would be lost with it.
    pub(super) fn set_busy(&self, busy: bool) {
        self.state.busy.store(busy, Ordering::Relaxed);
    }

    /// Comes to an end when somebody else needs it more: then it is worth nothing any more.
    pub(super) async fn taken_back(&self) {
        self.state.taken_back.notified().await;
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        self.budget.held().remove(self.peer, self.number);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn peer(number: u8) -> Peer {
        Peer::of(IpAddr::from([10, 0, 0, number]))
    }

    /// What a peer holds, and whether the sums are right.
    fn amount(budget: &Budget, peer: Peer) -> usize {
        let held = budget.held();
        for holdings in held.peers.values() {
            assert_eq!(holdings.amount, holdings.granted.values().map(|granted| granted.amount).sum::<usize>());
        }
        assert_eq!(held.all, held.peers.values().map(|holdings| holdings.amount).sum::<usize>());
        assert!(held.all <= budget.most);
        held.peers.get(&peer).map_or(0, |holdings| holdings.amount)
    }

    async fn is_taken_back(permit: &Permit) -> bool {
        tokio::time::timeout(Duration::from_millis(20), permit.taken_back()).await.is_ok()
    }

    #[test]
    fn one_address_may_hold_everything_while_nobody_else_wants_any_of_it() {
        let budget = Budget::new(10);
        let mut all: Vec<Permit> = (0..10).map(|_| budget.take(peer(1), 1).unwrap()).collect();
        assert!(budget.take(peer(1), 1).is_none());
        assert_eq!(amount(&budget, peer(1)), 10);
        all.pop();
        assert!(budget.take(peer(1), 1).is_some());
    }

    #[tokio::test]
    async fn whoever_holds_nothing_gets_room_from_whoever_holds_most() {
        let budget = Budget::new(10);
        let much: Vec<Permit> = (0..8).map(|_| budget.take(peer(1), 1).unwrap()).collect();
        let little: Vec<Permit> = (0..2).map(|_| budget.take(peer(2), 1).unwrap()).collect();
        let new = budget.take(peer(3), 1).unwrap();
        assert_eq!([1, 2, 3].map(|number| amount(&budget, peer(number))), [7, 2, 1]);
        assert!(is_taken_back(&much[0]).await, "the oldest one that is at rest");
        assert!(!is_taken_back(&much[1]).await && !is_taken_back(&little[0]).await && !is_taken_back(&new).await);
        // What was taken back is worth nothing, and gives nothing back.
        assert!(!much[0].more(1, 1));
        drop(much);
        assert_eq!([1, 2, 3].map(|number| amount(&budget, peer(number))), [0, 2, 1]);
    }

    #[test]
    fn nobody_is_pushed_below_an_equal_share() {
        let budget = Budget::new(10);
        let _much: Vec<Permit> = (0..10).map(|_| budget.take(peer(1), 1).unwrap()).collect();
        let half: Vec<Permit> = (0..10).map_while(|_| budget.take(peer(2), 1)).collect();
        assert_eq!((half.len(), amount(&budget, peer(1))), (5, 5));
        assert!(budget.take(peer(1), 1).is_none() && budget.take(peer(2), 1).is_none());
        // However many come who take what they can: an address that holds less than they do is served.
        let others: Vec<Permit> = (10..110).filter_map(|number| budget.take(peer(number), 1)).collect();
        assert_eq!((others.len(), amount(&budget, peer(2))), (8, 1));
    }

    #[test]
    fn what_cannot_be_had_takes_nothing_from_anybody() {
        let budget = Budget::new(100);
        let _one = budget.take(peer(1), 90).unwrap();
        assert!(budget.take(peer(2), 101).is_none());
        assert!(budget.take(peer(2), 95).is_none(), "more than the other one holds");
        assert_eq!(amount(&budget, peer(1)), 90);
        let grows = budget.open(peer(2));
        assert!(grows.more(10, 60) && grows.more(50, 50));
        assert_eq!((amount(&budget, peer(1)), amount(&budget, peer(2))), (0, 60));
    }

    #[test]
    fn what_was_taken_back_takes_nothing_from_others() {
        let budget = Budget::new(10);
        let gone = budget.take(peer(1), 5).unwrap();
        let stays = budget.take(peer(1), 1).unwrap();
        let _others = [(2, 4), (3, 1), (4, 4)].map(|(number, amount)| budget.take(peer(number), amount).unwrap());
        let amounts = || [1, 2, 3, 4].map(|number| amount(&budget, peer(number)));
        assert_eq!(amounts(), [1, 4, 1, 4]);
        assert!(!gone.more(1, 1));
        assert_eq!(amounts(), [1, 4, 1, 4]);
        // Nor does it where its peer holds nothing any more.
        drop(stays);
        assert!(!gone.more(2, 2));
        assert_eq!(amounts(), [0, 4, 1, 4]);
    }

    /// Something whole that comes in parts of one, if there is room for all of them.
    fn in_parts(budget: &Arc<Budget>, peer: Peer, whole: usize) -> Option<Permit> {
        let permit = budget.open(peer);
        (1..=whole).rev().all(|rest| permit.more(1, rest)).then_some(permit)
    }

    #[test]
    fn what_comes_in_parts_takes_from_others_as_the_whole_that_it_comes_to() {
        let budget = Budget::new(64);
        let _five: Vec<Permit> = (0..5).map(|_| in_parts(&budget, peer(1), 7).unwrap()).collect();
        let _four: Vec<Permit> = (0..4).map(|_| in_parts(&budget, peer(2), 7).unwrap()).collect();
        for _ in 0..10 {
            // 35 and 28 of 64: whoever gets one more has as much as the other one, or more.
            assert!(in_parts(&budget, peer(2), 7).is_none() && in_parts(&budget, peer(1), 7).is_none());
            assert_eq!([1, 2].map(|number| amount(&budget, peer(number))), [35, 28]);
        }
        // What is free is for everybody, and whoever holds less than an equal share gets one.
        assert!(in_parts(&budget, peer(2), 1).is_some());
        let third: Vec<Permit> = (0..5).map_while(|_| in_parts(&budget, peer(3), 7)).collect();
        assert_eq!((third.len(), [1, 2, 3].map(|number| amount(&budget, peer(number)))), (3, [21, 21, 21]));
    }

    #[test]
    fn one_at_rest_of_whoever_holds_most_can_be_given_up() {
        let budget = Budget::new(10);
        budget.give_one_up();
        let much: Vec<Permit> = (0..3).map(|_| budget.take(peer(1), 1).unwrap()).collect();
        let _little: Vec<Permit> = (0..2).map(|_| budget.take(peer(2), 1).unwrap()).collect();
        budget.give_one_up();
        assert_eq!([1, 2].map(|number| amount(&budget, peer(number))), [2, 2]);
        much.iter().for_each(|permit| permit.set_busy(true));
        let one_more = budget.take(peer(1), 1).unwrap();
        one_more.set_busy(true);
        budget.give_one_up();
        assert_eq!([1, 2].map(|number| amount(&budget, peer(number))), [3, 2], "nothing of it is at rest");
    }

    #[tokio::test]
    async fn what_is_at_rest_goes_before_what_is_in_the_middle_of_something() {
        let budget = Budget::new(4);
        let all: Vec<Permit> = (0..4).map(|_| budget.take(peer(1), 1).unwrap()).collect();
        let announced = budget.open(peer(1));
        [0, 1, 3].iter().for_each(|at: &usize| all[*at].set_busy(true));
        let _first = budget.take(peer(2), 1).unwrap();
        assert!(is_taken_back(&all[2]).await);
        let _second = budget.take(peer(3), 1).unwrap();
        assert!(is_taken_back(&all[3]).await, "the newest one, where none is at rest");
        assert!(!is_taken_back(&all[0]).await && !is_taken_back(&all[1]).await);
        assert!(!is_taken_back(&announced).await, "nothing comes of taking back what holds nothing");
    }

    #[test]
    fn nothing_is_kept_of_an_address_that_holds_nothing() {
        let budget = Budget::new(10);
        let all: Vec<Permit> = (0..100).map(|number| budget.open(peer(number))).collect();
        assert_eq!(all.iter().filter(|permit| permit.more(1, 1)).count(), 10);
        assert!(budget.take(peer(200), 1).is_none());
        drop(all);
        // The last one of a peer that is taken back is the last that is known of it as well.
        let one = budget.take(peer(1), 10).unwrap();
        let other = budget.take(peer(2), 5).unwrap();
        assert_eq!(budget.held().peers.len(), 1);
        drop((one, other));
        assert!(budget.held().peers.is_empty() && budget.held().all == 0);
    }

    #[test]
    fn a_network_of_64_bits_is_one_peer_and_a_mapped_address_is_what_it_maps() {
        let of = |text: &str| Peer::of(text.parse().unwrap());
        assert_eq!(of("fd00:1:2:3::1"), of("fd00:1:2:3:ffff::2"));
        assert_ne!(of("fd00:1:2:3::1"), of("fd00:1:2:4::1"));
        assert_eq!(of("::ffff:10.0.0.1"), of("10.0.0.1"));
        assert_ne!(of("10.0.0.1"), of("10.0.0.2"));
    }
}
