VALUE = "of the sibling"
