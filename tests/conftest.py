"""What all tests share."""

import os

# Before torch is imported anywhere: the tensors of the tests are tiny, and more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")

from hypothesis import settings

# How long an example takes says more about what else the machine does than about the code.
settings.register_profile("recompose", deadline=None)
settings.load_profile("recompose")
