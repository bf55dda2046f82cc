//! A heap of inputs, whose order is known to whoever uses it.

use alloc::vec::Vec;

use marquetry_base::cast::usize_of_u32;

/// Numbers of inputs; the first one is the least.
#[derive(Debug, Default)]
pub(super) struct Heap {
    items: Vec<usize>,
}

impl Heap {
    pub(super) fn first(&self) -> Option<usize> {
        self.items.first().copied()
    }

    /// The least but one.
    pub(super) fn second(&self, less: impl Fn(usize, usize) -> bool) -> Option<usize> {
        match (self.items.get(1), self.items.get(2)) {
            (Some(left), Some(right)) if less(*right, *left) => Some(*right),
            (left, _) => left.copied(),
        }
    }

    /// Comparisons that adding or removing one may take.
    pub(super) fn comparisons(&self) -> usize {
        2 * usize_of_u32(usize::BITS - self.items.len().leading_zeros()).max(1)
    }

    pub(super) fn push(&mut self, item: usize, less: impl Fn(usize, usize) -> bool) {
        self.items.push(item);
        let mut at = self.items.len() - 1;
        while at > 0 {
            let parent = (at - 1) / 2;
            if !less(self.items[at], self.items[parent]) {
                break;
            }
            self.items.swap(at, parent);
            at = parent;
        }
    }

    pub(super) fn pop(&mut self, less: impl Fn(usize, usize) -> bool) -> Option<usize> {
        if self.items.is_empty() {
            return None;
        }
        let first = self.items.swap_remove(0);
        let mut at = 0;
        loop {
            let left = 2 * at + 1;
            let Some(child) = self.items.get(left) else { break };
            let is_right = self.items.get(left + 1).is_some_and(|right| less(*right, *child));
            let least = if is_right { left + 1 } else { left };
            if !less(self.items[least], self.items[at]) {
                break;
            }
            self.items.swap(at, least);
            at = least;
        }
        Some(first)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_least_comes_first() {
        let keys = [5, 3, 9, 1, 7, 3, 8, 0, 2];
        let less = |left: usize, right: usize| keys[left] < keys[right];
        let mut heap = Heap::default();
        for item in 0..keys.len() {
            heap.push(item, less);
        }
        let mut popped = Vec::new();
        loop {
            let second = heap.second(less);
            let Some(item) = heap.pop(less) else { break };
            popped.push(keys[item]);
            assert_eq!(second.map(|item| keys[item]), heap.first().map(|item| keys[item]));
        }
        assert_eq!(popped, [0, 1, 2, 3, 3, 5, 7, 8, 9]);
        assert_eq!(heap.first(), None);
    }
}
