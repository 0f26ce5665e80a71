PART = "of the package"
