//! Connections in turn: accounts one after the other, and the Connections of each account in turn.

use std::collections::{HashMap, VecDeque};

use domain::{ConnectionName, Id};

#[derive(Default)]
pub(super) struct Ring {
    accounts: VecDeque<Id>,
    connections: HashMap<Id, VecDeque<ConnectionName>>,
    len: usize,
}

impl Ring {
    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Adds a Connection at the end of its account's queue. The account's turn comes after all other waiting
    /// accounts.
    pub(super) fn push(&mut self, account: Id, connection: ConnectionName) {
        let connections = self.connections.entry(account).or_default();
        if connections.is_empty() {
            self.accounts.push_back(account);
        }
        connections.push_back(connection);
        self.len += 1;
    }

    pub(super) fn pop(&mut self) -> Option<(Id, ConnectionName)> {
        self.pop_of(|_| true)
    }

    /// Same as [`Self::pop`], of the first account that is admitted. The others keep their turns.
    pub(super) fn pop_of(&mut self, admits: impl Fn(Id) -> bool) -> Option<(Id, ConnectionName)> {
        let at = self.accounts.iter().position(|account| admits(*account))?;
        let account = self.accounts.remove(at)?;
        let connections = self.connections.get_mut(&account)?;
        let connection = connections.pop_front()?;
        if connections.is_empty() {
            self.connections.remove(&account);
        } else {
            self.accounts.push_back(account);
        }
        self.len -= 1;
        Some((account, connection))
    }
}

#[cfg(test)]
mod tests {
    use domain::{ConnectionName, Id};

    use super::Ring;

    #[test]
    fn accounts_take_turns() {
        let mut ring = Ring::default();
        let connection = || ConnectionName {
            namespace: Id::generate(),
            connection: Id::generate(),
        };
        let (large, small) = (Id::generate(), Id::generate());
        let many: Vec<_> = (0..3).map(|_| connection()).collect();
        let one = connection();
        for name in &many {
            ring.push(large, *name);
        }
        ring.push(small, one);
        let mut order = Vec::new();
        while let Some((account, name)) = ring.pop() {
            order.push((account == small, name));
        }
        assert_eq!(
            order,
            [
                (false, many[0]),
                (true, one),
                (false, many[1]),
                (false, many[2])
            ]
        );
        assert_eq!(ring.len(), 0);
    }
}
