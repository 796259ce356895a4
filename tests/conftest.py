"""What all tests share."""

import os

# Before torch is imported anywhere: the tensors of the tests are tiny, and more threads only get in each other's way.
os.environ.setdefault("OMP_NUM_THREADS", "1")
