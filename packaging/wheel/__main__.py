"""`python -m galatea`: the program with the same arguments."""

import galatea

galatea.run()
