//! The places of a text's parts, for mistakes that are found after it was read.

use super::scalar;
use crate::{FieldPath, Position, Step};

use super::lexer::{Token, TokenKind};

/// Most parts that are remembered; a later part gets the place of the part around it.
const MOST: usize = 1 << 17;

/// A tree of the values in a text.
#[derive(Default)]
pub(crate) struct PlaceTree<'a> {
    nodes: Vec<Node<'a>>,
    /// The message that is being read; `None` for the outermost.
    current: Option<usize>,
    is_kept: bool,
}

/// The start of a value: the name of its field, and whether it is in a list.
#[derive(Clone, Copy)]
pub(crate) struct ValueSeparator<'a> {
    /// The name of its field.
    pub name: Token<'a>,
    /// The value is in brackets, with others.
    pub is_listed: bool,
}

struct Node<'a> {
    parent: Option<usize>,
    introduction: ValueSeparator<'a>,
    /// The first token of the value; the bracket of an empty list.
    value: Token<'a>,
}

impl<'a> PlaceTree<'a> {
    /// Makes a tree that remembers values; the default one forgets them at once.
    pub fn kept() -> Self {
        Self { is_kept: true, ..Self::default() }
    }

    /// Begins a value. Returns the argument of [`PlaceTree::leave`] at its end.
    pub fn enter(&mut self, introduction: ValueSeparator<'a>, value: Token<'a>) -> Option<usize> {
        let outer = self.current;
        if self.is_kept && self.nodes.len() < MOST {
            self.current = Some(self.nodes.len());
            self.nodes.push(Node { parent: outer, introduction, value });
        }
        outer
    }

    /// Ends the value.
    pub fn leave(&mut self, outer: Option<usize>) {
        self.current = outer;
    }

    /// Returns the position of a field: its value, or its name for a message or a list. When the text lacks the field, it is the
    /// closest part around it. For a path without a list index, the first element that has the rest.
    pub fn find(&self, path: &FieldPath) -> Option<Position> {
        let mut steps = path.steps().iter().peekable();
        let mut found = None;
        let mut parents = vec![None];
        while let Some(step) = steps.next() {
            let Step::Field(name) = step else { continue };
            let values = self.values(&parents, name);
            let element = steps.next_if(|step| !matches!(step, Step::Field(_)));
            let wanted = match element {
                Some(Step::Index(index)) => self.element(&values, *index).into_iter().collect(),
                Some(Step::Named(name)) => self.named(&values, name).into_iter().collect(),
                Some(Step::Field(_)) | None => values.clone(),
            };
            let Some(&first) = wanted.first() else {
                // The list exists, the element does not.
                return values.first().map(|&node| self.position(node, false)).or(found);
            };
            found = Some(self.position(first, element.is_some()));
            parents = wanted.into_iter().map(Some).collect();
        }
        found
    }

    /// Returns the values of a field of messages, in their order. `parents` must be ordered too.
    fn values(&self, parents: &[Option<usize>], field: &str) -> Vec<usize> {
        let is_value = |node: &Node<'_>| {
            node.introduction.name.text == field && parents.binary_search(&node.parent).is_ok()
        };
        let nodes = self.nodes.iter().enumerate();
        nodes.filter(|(_, node)| is_value(node)).map(|(index, _)| index).collect()
    }

    fn element(&self, values: &[usize], index: usize) -> Option<usize> {
        let is_empty_list = |&node: &usize| self.nodes.get(node).is_some_and(|n| n.value.is("["));
        values.iter().copied().filter(|node| !is_empty_list(node)).nth(index)
    }

    /// Returns the entry of a map with this key, or the message with this name.
    fn named(&self, values: &[usize], name: &str) -> Option<usize> {
        let names = |node: &&Node<'_>| {
            matches!(node.introduction.name.text, "key" | "name") && says(&node.value, name)
        };
        let mut parents = self.nodes.iter().filter(names).filter_map(|node| node.parent);
        parents.find(|parent| values.binary_search(parent).is_ok())
    }

    fn position(&self, node: usize, is_element: bool) -> Position {
        let start = Position { line: 1, column: 1 };
        let Some(Node { introduction, value, .. }) = self.nodes.get(node) else { return start };
        let is_message = value.is("{") || value.is("<") || value.is("[");
        match (introduction.is_listed, is_message) {
            (true, _) if is_element => value.position,
            (false, false) => value.position,
            _ => introduction.name.position,
        }
    }
}

fn says(value: &Token<'_>, name: &str) -> bool {
    match value.kind {
        TokenKind::Quoted => scalar::parse_literal(value).is_ok_and(|text| text == name.as_bytes()),
        _ => value.text == name,
    }
}
