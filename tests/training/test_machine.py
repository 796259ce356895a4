"""Device, seeds and what run.json says about the machine."""

import random

import numpy as np
import pytest
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.training.machine import choose_device, describe_device, set_seed_and_threads


def test_a_gpu_that_is_not_there_is_refused_in_one_line():
    if torch.cuda.is_available():
        pytest.skip("this machine has a GPU")
    with pytest.raises(UserError, match="torch finds no GPU"):
        choose_device("cuda")
    assert choose_device("auto") == choose_device("cpu") == torch.device("cpu")


def test_a_seed_fixes_every_generator():
    def drawn(seed: int) -> tuple:
        set_seed_and_threads(seed, 1, torch.device("cpu"))
        return random.random(), np.random.rand(), torch.rand(1).item()

    assert drawn(5) == drawn(5)
    assert not set(drawn(5)) & set(drawn(6))


def test_the_description_names_the_processor_and_the_threads():
    set_seed_and_threads(1, 1, torch.device("cpu"))
    facts = describe_device(torch.device("cpu"))
    assert facts["device"] == "cpu" and facts["threads"] == 1 and facts["cpu"] == facts["device_name"] != ""
    assert facts["deterministic_algorithms"] and facts["driver"] is None
