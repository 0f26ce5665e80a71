//! Decides which instances may execute, and in which order. It is pure: no thread, lock or clock.
//!
//! An instance that has something to execute is *staged*. The staged instance with the smallest key goes first, as soon as
//! all its resources are free; the key is its number of executions times its priority. No instance takes resources that
//! an earlier one waits for, so an instance that needs many gets its turn. An instance whose resources no earlier one
//! waits for does not wait for the others.

use std::collections::{BTreeMap, BTreeSet};

use super::supply::{Demand, Pool, ResourceSupply, SupplyError, supply};

/// The largest lag of an instance behind those that share its resources, in executions of priority 1. An instance that was
/// idle for long, or is new, goes first at most this often before the others have their turn again.
pub(super) const MAX_CREDIT: u64 = 1000;

/// An instance, by the number of its queue and its number in that queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct MemberId {
    pub queue: u64,
    pub index: usize,
}

/// All instances that share the resources of the server.
#[derive(Debug, Default)]
pub(super) struct PermitLedger {
    provided: Vec<ResourceSupply>,
    supply: Demand,
    allocated: Demand,
    members: BTreeMap<MemberId, Member>,
    /// The number of the next staged instance.
    next_turn: u64,
}

#[derive(Debug)]
struct Member {
    demand: Demand,
    priority: u64,
    key: u64,
    state: MemberState,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum MemberState {
    /// It does not work at present.
    Absent,
    /// It looks for something to execute.
    Idle,
    /// It waits for its turn. The number orders instances with equal keys.
    Staged(u64),
    /// It holds its resources and has not begun.
    Granted,
    Executing,
}

impl MemberState {
    fn holds(self) -> bool {
        matches!(self, Self::Granted | Self::Executing)
    }
}

/// The answer to a claim: if the instance may begin, and which others may.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct PermitGrant {
    pub others: Vec<MemberId>,
    pub may_begin: bool,
}

impl PermitLedger {
    pub fn new(provided: Vec<ResourceSupply>) -> Self {
        Self { provided, ..Self::default() }
    }

    /// Adds an instance that does not work yet. Returns those that may begin, because the supply may have grown.
    pub fn add(
        &mut self,
        id: MemberId,
        demand: Demand,
        priority: u32,
    ) -> Result<Vec<MemberId>, SupplyError> {
        let demands = self.members.values().map(|m| &m.demand).chain([&demand]);
        self.supply = supply(&self.provided, demands)?;
        let priority = u64::from(priority.max(1));
        let state = MemberState::Absent;
        self.members.insert(id, Member { demand, priority, key: 0, state });
        Ok(self.grant())
    }

    /// Removes an instance with all it holds. Returns those that may begin.
    pub fn remove(&mut self, id: MemberId) -> Vec<MemberId> {
        self.set(id, MemberState::Absent);
        if self.members.remove(&id).is_some() {
            let demands = self.members.values().map(|m| &m.demand);
            // The demand only shrinks, so a supply that was enough still is.
            if let Ok(supply) = supply(&self.provided, demands) {
                self.supply = supply;
            }
        }
        self.grant()
    }

    /// Frees the resources of an instance that ended its execution and looks for the next. No other gets them before it has
    /// said if it needs them again ([`PermitLedger::claim`], [`PermitLedger::rest`]).
    pub fn looks_for_work(&mut self, id: MemberId) {
        let Some(member) = self.members.get_mut(&id) else { return };
        match member.state {
            MemberState::Executing => {
                member.key = member.key.saturating_add(member.priority);
                self.set(id, MemberState::Idle);
            }
            MemberState::Absent => member.state = MemberState::Idle,
            MemberState::Idle | MemberState::Staged(_) | MemberState::Granted => {}
        }
    }

    /// Claims a permit for work in the instance's queue. `waiting` is the number of requests for any of its instances, of which
    /// the best idle one is staged; `None` is work for this instance alone. Returns if it may begin, and which others may.
    pub fn claim(&mut self, id: MemberId, waiting: Option<usize>) -> PermitGrant {
        if self.is_granted(id) {
            self.set(id, MemberState::Executing);
            return PermitGrant { others: Vec::new(), may_begin: true };
        }
        let next = match waiting {
            Some(waiting) if self.turns_of(id.queue) >= waiting => None,
            Some(_) => self.best_idle(id),
            None => self.is_idle(id).then_some(id),
        };
        if let Some(next) = next {
            self.stage(next);
        }
        let mut others = self.grant();
        others.retain(|&other| other != id);
        // If others are woken, the instance asks again before it begins.
        let may_begin = self.is_granted(id) && others.is_empty();
        if may_begin {
            self.set(id, MemberState::Executing);
        }
        PermitGrant { others, may_begin }
    }

    /// Ends the claim of an instance that has nothing to execute. Returns those that may begin.
    pub fn rest(&mut self, id: MemberId) -> Vec<MemberId> {
        if self.members.get(&id).is_some_and(|m| m.state != MemberState::Absent) {
            self.set(id, MemberState::Idle);
        }
        self.grant()
    }

    /// Stops an instance until it looks for work again. Returns those that may begin.
    pub fn leave(&mut self, id: MemberId) -> Vec<MemberId> {
        self.set(id, MemberState::Absent);
        self.grant()
    }

    fn is_idle(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|member| member.state == MemberState::Idle)
    }

    pub fn is_granted(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|member| member.state == MemberState::Granted)
    }

    /// Changes the state, and frees resources that the new state does not hold.
    fn set(&mut self, id: MemberId, state: MemberState) {
        let Some(member) = self.members.get_mut(&id) else { return };
        if member.state.holds() && !state.holds() {
            for (pool, count) in &member.demand {
                if let Some(allocated) = self.allocated.get_mut(pool) {
                    *allocated -= count;
                }
            }
            self.allocated.retain(|_, allocated| *allocated > 0);
        }
        member.state = state;
    }

    /// Returns the number of instances of a queue that should execute and have not begun.
    fn turns_of(&self, queue: u64) -> usize {
        let has_turn = |member: &&Member| {
            matches!(member.state, MemberState::Staged(_) | MemberState::Granted)
        };
        self.of_queue(queue).map(|(_, member)| member).filter(has_turn).count()
    }

    /// Returns the idle instance of the queue with the smallest key. Among equals, the one that asks comes first.
    fn best_idle(&self, asking: MemberId) -> Option<MemberId> {
        let idle = self.of_queue(asking.queue).filter(|(_, m)| m.state == MemberState::Idle);
        idle.min_by_key(|&(id, member)| (member.key, *id != asking)).map(|(id, _)| *id)
    }

    fn of_queue(&self, queue: u64) -> impl Iterator<Item = (&MemberId, &Member)> {
        let all = MemberId { queue, index: 0 }..=MemberId { queue, index: usize::MAX };
        self.members.range(all)
    }

    fn stage(&mut self, id: MemberId) {
        let Some(member) = self.members.get(&id) else { return };
        let leader = self.competitors(id, member).map(|other| other.key).max().unwrap_or(0);
        let turn = self.next_turn;
        self.next_turn += 1;
        if let Some(member) = self.members.get_mut(&id) {
            member.key = member.key.max(leader.saturating_sub(MAX_CREDIT));
            member.state = MemberState::Staged(turn);
        }
    }

    /// Returns the instances that work, or are about to, and use some of the same pools.
    fn competitors<'a>(
        &'a self,
        id: MemberId,
        member: &'a Member,
    ) -> impl Iterator<Item = &'a Member> {
        let is_at_work = |m: &Member| !matches!(m.state, MemberState::Absent | MemberState::Idle);
        let others = self.members.iter().filter(move |(other, _)| **other != id);
        let others = others.map(|(_, other)| other).filter(move |other| is_at_work(other));
        others.filter(|other| other.demand.keys().any(|pool| member.demand.contains_key(pool)))
    }

    /// Gives free resources to the staged instances in the order of their keys.
    fn grant(&mut self) -> Vec<MemberId> {
        let mut staged: Vec<(u64, u64, MemberId)> = Vec::new();
        for (&id, member) in &self.members {
            if let MemberState::Staged(turn) = member.state {
                staged.push((member.key, turn, id));
            }
        }
        staged.sort_unstable();
        let mut awaited: BTreeSet<&Pool> = BTreeSet::new();
        let mut granted = Vec::new();
        for (_, _, id) in staged {
            let Some(member) = self.members.get(&id) else { continue };
            let is_free = |(pool, count): (&Pool, &u64)| {
                let taken = self.allocated.get(pool).copied().unwrap_or(0);
                let all = self.supply.get(pool).copied().unwrap_or(0);
                !awaited.contains(pool) && taken.checked_add(*count).is_some_and(|sum| sum <= all)
            };
            if member.demand.iter().all(is_free) {
                for (pool, count) in &member.demand {
                    *self.allocated.entry(pool.clone()).or_default() += count;
                }
                granted.push(id);
            } else {
                awaited.extend(member.demand.keys());
            }
        }
        granted.iter().for_each(|&id| self.set(id, MemberState::Granted));
        granted
    }

    /// Returns the held and the available copies of each pool.
    #[cfg(test)]
    pub fn balance(&self) -> Vec<(u64, u64)> {
        let all = |pool: &Pool| self.supply.get(pool).copied().unwrap_or(0);
        self.allocated.iter().map(|(pool, &taken)| (taken, all(pool))).collect()
    }

    #[cfg(test)]
    pub fn is_executing(&self, id: MemberId) -> bool {
        self.members.get(&id).is_some_and(|member| member.state == MemberState::Executing)
    }
}
