//! The inputs and outputs of a model in the form of `torch.export`: a tree of tuples, lists and dictionaries in JSON
//! (PyTorch's `treespec_dumps`, protocol 1), whose leaves are tensors.

use serde::Deserialize;

/// Names of the inputs and outputs in the order of the compiled code. Empty if the tree does not have them: a model was
/// exported with arguments that are not tensors.
#[derive(Debug, Default, PartialEq)]
pub(super) struct CallSpec {
    /// Names such as `ARGS[0]`, `ARGS[1][key]`, `KWARGS[mask]`.
    pub inputs: Vec<String>,
    /// Names such as `RESULT`, `RESULT[0]`, `RESULT[key]`.
    pub outputs: Vec<String>,
}

impl CallSpec {
    /// Reads both trees. `inputs` and `outputs` are the code's numbers: a tree with another number of leaves is not used.
    pub fn read(takes: &str, returns: &str, inputs: usize, outputs: usize) -> Self {
        let fitting = |names: Option<Vec<String>>, count| {
            names.filter(|names| names.len() == count).unwrap_or_default()
        };
        Self {
            inputs: fitting(parse(takes).and_then(|tree| input_names(&tree)), inputs),
            outputs: fitting(parse(returns).map(|tree| names(&tree, "RESULT")), outputs),
        }
    }
}

#[derive(Deserialize)]
struct Node {
    /// Kind of the node. `None`: a leaf.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// JSON as text: the keys of a dictionary.
    context: Option<String>,
    #[serde(default)]
    children_spec: Vec<Node>,
}

fn parse(text: &str) -> Option<Node> {
    let (_protocol, tree): (u32, Node) = serde_json::from_str(text).ok()?;
    Some(tree)
}

/// Returns the names of arguments by position, then those by name.
fn input_names(tree: &Node) -> Option<Vec<String>> {
    let [by_position, by_name] = tree.children_spec.as_slice() else { return None };
    let mut all = names(by_position, "ARGS");
    all.extend(names(by_name, "KWARGS"));
    Some(all)
}

fn names(node: &Node, prefix: &str) -> Vec<String> {
    let mut all = Vec::new();
    collect(node, prefix.to_owned(), &mut all);
    all
}

fn collect(node: &Node, name: String, all: &mut Vec<String>) {
    if node.kind.is_none() {
        all.push(name);
        return;
    }
    let keys = keys(node);
    for (index, child) in node.children_spec.iter().enumerate() {
        let key = keys.as_ref().and_then(|keys| keys.get(index).cloned());
        collect(child, format!("{name}[{}]", key.unwrap_or_else(|| index.to_string())), all);
    }
}

/// Returns the keys of a node with a key per child: dictionaries, ordered ones, some classes.
fn keys(node: &Node) -> Option<Vec<String>> {
    let keys: Vec<String> = serde_json::from_str(node.context.as_deref()?).ok()?;
    (keys.len() == node.children_spec.len()).then_some(keys)
}

/// Reads the inputs and outputs that a model declares: for fuzzing.
#[doc(hidden)]
pub fn read_call_spec(text: &str) {
    CallSpec::read(text, text, 1, 1);
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAF: &str = r#"{"type": null, "context": null, "children_spec": []}"#;

    fn node(kind: &str, keys: &str, children: &[&str]) -> String {
        let context = serde_json::to_string(keys).expect("text");
        let children = children.join(", ");
        format!(
            r#"{{"type": "builtins.{kind}", "context": {context}, "children_spec": [{children}]}}"#
        )
    }

    fn read(takes: &str, returns: &str, counts: (usize, usize)) -> CallSpec {
        CallSpec::read(&format!("[1, {takes}]"), &format!("[1, {returns}]"), counts.0, counts.1)
    }

    #[test]
    fn arguments_and_results_are_named_by_their_paths() {
        let list = node("list", "null", &[LEAF, LEAF]);
        let dict = node("dict", r#"["a", "b"]"#, &[LEAF, &list]);
        let args = node("tuple", "null", &[LEAF, &dict]);
        let kwargs = node("dict", r#"["mask"]"#, &[LEAF]);
        let takes = node("tuple", "null", &[&args, &kwargs]);
        let spec = read(&takes, LEAF, (5, 1));
        assert_eq!(
            spec.inputs,
            ["ARGS[0]", "ARGS[1][a]", "ARGS[1][b][0]", "ARGS[1][b][1]", "KWARGS[mask]"]
        );
        assert_eq!(spec.outputs, ["RESULT"]);
        assert_eq!(
            read(&takes, &dict, (5, 3)).outputs,
            ["RESULT[a]", "RESULT[b][0]", "RESULT[b][1]"]
        );
        assert_eq!(read(&takes, &list, (5, 2)).outputs, ["RESULT[0]", "RESULT[1]"]);
    }

    #[test]
    fn a_call_spec_that_does_not_match_the_code_is_ignored() {
        let list = node("list", "null", &[LEAF]);
        let takes = node("tuple", "null", &[&list, &node("dict", "[]", &[])]);
        assert_eq!(read(&takes, LEAF, (1, 1)).inputs, ["ARGS[0]"]);
        assert_eq!(read(&takes, LEAF, (2, 3)), CallSpec::default());
        for text in ["", "[]", "[1]", "{}", "[1, 2]", "[1, {\"type\": 3}]"] {
            assert_eq!(CallSpec::read(text, text, 1, 1), CallSpec::default(), "{text}");
        }
    }
}
