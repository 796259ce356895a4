"""How long tests wait before what they wait for counts as hanging.

A limit is there for what never ends, not for what is slow: a loaded machine takes many times
longer.
"""

HANGS = 900  # seconds
