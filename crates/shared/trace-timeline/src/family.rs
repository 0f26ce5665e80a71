//! Parents and children among requests.

use crate::request::Request;

/// The children of each request.
#[derive(Debug, Default)]
pub struct Family {
    /// Index in `members` of the first child of each request; one more entry ends the last ones.
    first: Vec<u32>,
    /// Children, those of one request together and in the order of their beginning.
    members: Vec<u32>,
}

/// A request of a tree.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relative {
    /// Index of the request.
    pub request: u32,
    /// Number of requests above it.
    pub depth: u32,
}

impl Family {
    /// Sorts requests into trees. A request that is its own ancestor loses its parent.
    pub fn of(requests: &mut [Request]) -> Self {
        cut_circles(requests);
        let mut first = vec![0; requests.len() + 1];
        for request in requests.iter() {
            if let Some(parent) = request.parent {
                first[parent as usize + 1] += 1;
            }
        }
        for index in 1..first.len() {
            first[index] += first[index - 1];
        }
        let mut next = first.clone();
        let mut members = vec![0; first.last().copied().unwrap_or_default() as usize];
        for (index, request) in requests.iter().enumerate() {
            if let Some(parent) = request.parent {
                let place = &mut next[parent as usize];
                members[*place as usize] = index as u32;
                *place += 1;
            }
        }
        let begin = |index: &u32| requests[*index as usize].extent().map(|extent| extent.from);
        for bounds in first.windows(2) {
            members[bounds[0] as usize..bounds[1] as usize].sort_by_key(begin);
        }
        Self { first, members }
    }

    /// Returns the children of a request.
    pub fn children(&self, request: u32) -> &[u32] {
        let at = request as usize;
        &self.members[self.first[at] as usize..self.first[at + 1] as usize]
    }

    /// Returns the request and all below it, each followed by its own children.
    pub fn tree(&self, root: u32) -> impl Iterator<Item = Relative> {
        let mut open = vec![Relative { request: root, depth: 0 }];
        std::iter::from_fn(move || {
            let next = open.pop()?;
            let below = |&request| Relative { request, depth: next.depth + 1 };
            open.extend(self.children(next.request).iter().rev().map(below));
            Some(next)
        })
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Mark {
    New,
    OnPath,
    Checked,
}

/// Removes the parent of one request in each circle, which only a broken file has.
fn cut_circles(requests: &mut [Request]) {
    let mut marks = vec![Mark::New; requests.len()];
    let mut path = Vec::new();
    for start in 0..requests.len() {
        let mut at = start;
        while marks[at] == Mark::New {
            marks[at] = Mark::OnPath;
            path.push(at);
            let Some(parent) = requests[at].parent else { break };
            if marks[parent as usize] == Mark::OnPath {
                requests[at].parent = None;
                break;
            }
            at = parent as usize;
        }
        path.drain(..).for_each(|index| marks[index] = Mark::Checked);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(parents: &[Option<u32>]) -> Vec<Request> {
        let request = |parent: &Option<u32>| {
            let mut request = Request::new(0);
            request.parent = *parent;
            request
        };
        parents.iter().map(request).collect()
    }

    #[test]
    fn trees_have_every_request_once() {
        let mut requests = requests(&[Some(2), None, None, Some(0), Some(2)]);
        let family = Family::of(&mut requests);
        let tree: Vec<_> = family.tree(2).map(|one| (one.request, one.depth)).collect();
        assert_eq!(tree, [(2, 0), (0, 1), (3, 2), (4, 1)]);
        assert_eq!(family.tree(1).count(), 1);
    }

    #[test]
    fn circles_are_cut() {
        let circles =
            [vec![Some(0)], vec![Some(1), Some(0)], vec![Some(1), Some(2), Some(1), Some(0)]];
        for parents in circles {
            let mut requests = requests(&parents);
            let family = Family::of(&mut requests);
            let roots: Vec<_> =
                (0..).zip(&requests).filter(|(_, request)| request.parent.is_none()).collect();
            assert_eq!(roots.len(), 1);
            assert_eq!(family.tree(roots[0].0).count(), requests.len());
        }
    }
}
