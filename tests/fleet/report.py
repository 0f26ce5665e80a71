"""A report of a play: rows of figures, some of them with a verdict."""


class Report:
    """Rows that a play adds. It passes if no row was wrong."""

    def __init__(self, title):
        self.title, self.rows, self.faults = title, [], []

    def row(self, what, value):
        self.rows.append(f"  {what:<52} {value}")

    def must(self, what, is_right, value):
        """A row that decides about the play."""
        self.row(what, f"{value}{'' if is_right else '   WRONG'}")
        if not is_right:
            self.faults.append(f"{what}: {value}")

    def all_right(self, what, callers):
        """No request of these callers may have been lost, refused or answered wrongly."""
        self.must(what, callers.are_right(), callers.told())
        self.faults += [] if callers.are_right() else callers.faults

    def text(self):
        return "\n".join([self.title, *self.rows])

    def check(self):
        print(f"\n{self.text()}")
        assert not self.faults, self.faults
