"""Device, seeds and what run.json says about the machine."""

import random

import numpy as np
import pytest
import torch

from workflow_scripts.common.errors import UserError
from workflow_scripts.training.machine import (
    choose_device,
    compute_in_fp32,
    count_gpu_processes,
    describe_device,
    parse_gpu_processes,
    set_precision,
    set_seed_and_threads,
)


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
    assert (
        facts["device"] == "cpu"
        and facts["threads"] == 1
        and facts["cpu"] == facts["device_name"] != ""
    )
    assert facts["deterministic_algorithms"] and facts["driver"] is None


GPU = "GPU-907e85af-569a-c435-043f-cc178c7c612d"


@pytest.mark.parametrize(
    ("answer", "count"),
    [
        (f"{GPU}, 496, nvidia-cuda-mps-server\n{GPU}, 525, python3\n", 1),
        (
            f"{GPU}, 525, python3\nGPU-another, 9, python3\n{GPU}, 526, /a path, with a comma/python3\n",
            2,
        ),
        ("No running processes found\n", None),
        ("", None),
        (f"Warning: a driver says something\n{GPU}, [N/A], python3\n{GPU}, 7, [Not Found]\n", 1),
    ],
)
def test_processes_on_the_gpu_are_counted_without_the_server_of_mps(answer, count):
    assert parse_gpu_processes(answer, GPU.removeprefix("GPU-")) == count


def test_on_a_cpu_no_gpu_process_is_counted_and_tf32_is_refused_in_one_line():
    cpu = torch.device("cpu")
    assert torch.cuda.is_available() or count_gpu_processes() is None
    with pytest.raises(
        UserError, match=r"^precision tf32: a cpu device has no TF32; use precision: fp32$"
    ):
        set_precision("tf32", cpu)
    set_precision("bf16", cpu)
    assert torch.get_float32_matmul_precision() == "highest"


def test_fp32_is_exact_within_a_block_and_the_precision_returns_after_it():
    torch.set_float32_matmul_precision("high")
    try:
        with compute_in_fp32():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "high"
    finally:
        torch.set_float32_matmul_precision("highest")
