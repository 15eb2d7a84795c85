//! A directed graph, to be sorted, or to give a cycle that shows why it cannot be.

use std::collections::VecDeque;

/// Starting points tried for a short cycle. A graph from which everything sortable has been taken away is often a
/// single cycle, and a violation needs one example, not the best of all.
const STARTS: usize = 2000;

/// A graph, as the successors of each node.
#[derive(Debug)]
pub(crate) struct Graph {
    /// The beginnings of the successors of each node in `successors`.
    begin: Vec<usize>,
    successors: Vec<u32>,
}

impl Graph {
    /// A graph of `nodes` nodes, whose edges `walk` gives, the same in each call.
    pub fn new(nodes: usize, walk: impl Fn(&mut dyn FnMut(u32, u32))) -> Self {
        let mut begin = vec![0; nodes + 2];
        walk(&mut |from, _| begin[from as usize + 2] += 1);
        for node in 2..begin.len() {
            begin[node] += begin[node - 1];
        }
        let mut successors = vec![0; begin[nodes + 1]];
        walk(&mut |from, to| {
            let place = &mut begin[from as usize + 1];
            successors[*place] = to;
            *place += 1;
        });
        Self { begin, successors }
    }

    fn nodes(&self) -> usize {
        self.begin.len() - 2
    }

    fn successors(&self, node: u32) -> &[u32] {
        &self.successors[self.begin[node as usize]..self.begin[node as usize + 1]]
    }

    /// A cycle, as short as could be found; `None` if the graph has none.
    pub fn cycle(&self) -> Option<Vec<u32>> {
        let left = self.unsortable();
        let starts = (0..).zip(&left).filter(|(_, left)| **left);
        let mut best: Option<Vec<u32>> = None;
        let mut from = vec![u32::MAX; self.nodes()];
        for (start, _) in starts.take(STARTS) {
            let limit = best.as_ref().map_or(usize::MAX, Vec::len);
            if let Some(cycle) = self.cycle_through(start, &left, limit, &mut from) {
                best = Some(cycle);
            }
        }
        best
    }

    /// The nodes that stay when nodes without predecessors are taken away again and again (Kahn), and then, in the same
    /// way, those without successors: all stay that are on a cycle, or between two.
    fn unsortable(&self) -> Vec<bool> {
        let mut left = vec![true; self.nodes()];
        self.peel(&mut left);
        if left.contains(&true) {
            let back = |edge: &mut dyn FnMut(u32, u32)| {
                for node in 0..self.nodes() as u32 {
                    self.successors(node).iter().for_each(|to| edge(*to, node));
                }
            };
            Self::new(self.nodes(), back).peel(&mut left);
        }
        left
    }

    /// Takes away, again and again, the nodes without predecessors among those that are left.
    fn peel(&self, left: &mut [bool]) {
        let mut predecessors = vec![0_u32; self.nodes()];
        let nodes = || 0..self.nodes() as u32;
        for node in nodes().filter(|node| left[*node as usize]) {
            for next in self.successors(node) {
                predecessors[*next as usize] += 1;
            }
        }
        let is_free = |node: &u32| left[*node as usize] && predecessors[*node as usize] == 0;
        let mut free: Vec<u32> = nodes().filter(is_free).collect();
        while let Some(node) = free.pop() {
            left[node as usize] = false;
            for next in self.successors(node) {
                predecessors[*next as usize] -= 1;
                if left[*next as usize] && predecessors[*next as usize] == 0 {
                    free.push(*next);
                }
            }
        }
    }

    /// The shortest cycle through a node if it has fewer nodes than `limit`. `from` is scratch, full of
    /// `u32::MAX` before and after.
    fn cycle_through(
        &self,
        start: u32,
        left: &[bool],
        limit: usize,
        from: &mut [u32],
    ) -> Option<Vec<u32>> {
        let mut queue = VecDeque::from([(start, 1)]);
        let mut touched = Vec::new();
        let mut last = None;
        while let Some((node, length)) = queue.pop_front() {
            if length >= limit || last.is_some() {
                break;
            }
            for next in self.successors(node) {
                if *next == start {
                    last = Some(node);
                    break;
                }
                if left[*next as usize] && from[*next as usize] == u32::MAX {
                    from[*next as usize] = node;
                    touched.push(*next);
                    queue.push_back((*next, length + 1));
                }
            }
        }
        let cycle = last.map(|last| {
            let back = |node: &u32| (*node != start).then(|| from[*node as usize]);
            let mut cycle: Vec<u32> = std::iter::successors(Some(last), back).collect();
            cycle.reverse();
            cycle
        });
        touched
            .iter()
            .for_each(|node| from[*node as usize] = u32::MAX);
        cycle
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cycle(nodes: usize, edges: &[(u32, u32)]) -> Option<Vec<u32>> {
        let walk = |edge: &mut dyn FnMut(u32, u32)| edges.iter().for_each(|(a, b)| edge(*a, *b));
        Graph::new(nodes, walk).cycle()
    }

    #[test]
    fn the_shortest_cycle_is_found_among_longer_ones_and_what_follows_them() {
        let long = [(0, 1), (1, 2), (2, 3), (3, 0), (3, 4), (4, 5)];
        assert_eq!(cycle(6, &long), Some(vec![0, 1, 2, 3]));
        let with_short = [&long[..], &[(2, 1)]].concat();
        assert_eq!(cycle(6, &with_short), Some(vec![1, 2]));
        assert_eq!(cycle(6, &long[1..]), None);
        assert_eq!(cycle(2, &[(0, 1), (1, 1)]), Some(vec![1]));
        assert_eq!(cycle(0, &[]), None);
    }
}
