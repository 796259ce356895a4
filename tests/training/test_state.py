"""The saved state: exact, refused where it does not belong, and readable whenever the process that
writes it dies.
"""

import hashlib
import json
import os
import random
import shutil
import signal
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import nn

from workflow_scripts.common.errors import UserError
from workflow_scripts.training.history import read_history, write_history
from workflow_scripts.training.settings import CHOSEN
from workflow_scripts.training.state import StateFolder, TrainingState

IDENTITY = {"spec_digest": "s", "data_digest": "d"}


def small_run(seed: int = 0) -> tuple[nn.Module, torch.optim.Optimizer]:
    """A model with dropout, a buffer and a tied weight, and its optimiser."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(4, 4), nn.Dropout(0.5), nn.BatchNorm1d(4), nn.Linear(4, 4))
    model[3].weight = model[0].weight
    return model, torch.optim.AdamW(model.parameters(), lr=0.1, fused=True)


def step(model: nn.Module, optimiser: torch.optim.Optimizer) -> float:
    """One update on random numbers from torch, numpy and python; returns the loss."""
    batch = torch.randn(3, 4) + float(np.random.rand()) + random.random()
    loss = model(batch).square().mean()
    loss.backward()
    optimiser.step()
    optimiser.zero_grad()
    return loss.item()


def saved_steps(
    folder: Path, count: int
) -> tuple[nn.Module, torch.optim.Optimizer, TrainingState, StateFolder]:
    """A run that has saved a state, and its best weights, after each of `count` steps."""
    model, optimiser = small_run()
    store, state = StateFolder(folder, IDENTITY), TrainingState()
    folder.mkdir(parents=True, exist_ok=True)
    for _ in range(count):
        save_step(model, optimiser, state, store)
    return model, optimiser, state, store


def save_step(
    model: nn.Module, optimiser: torch.optim.Optimizer, state: TrainingState, store: StateFolder
) -> None:
    loss = step(model, optimiser)
    state.step += 1
    state.history.append((state.step, "loss", loss))
    store.replace_best(state, model, CHOSEN, loss)
    store.save(state, model, optimiser)


@pytest.fixture(autouse=True)
def one_thread():
    torch.set_num_threads(1)


def test_a_resumed_run_goes_on_exactly_as_the_one_that_saved(tmp_path):
    model, optimiser, _, _ = saved_steps(tmp_path, 3)
    expected = [step(model, optimiser) for _ in range(5)]

    other_model, other_optimiser = small_run(seed=99)
    np.random.seed(5)
    random.seed(5)
    state = StateFolder(tmp_path, IDENTITY).load(other_model, other_optimiser)
    assert state.step == 3 and state.resumed == 1
    assert [step(other_model, other_optimiser) for _ in range(5)] == expected
    for name, tensor in model.state_dict().items():
        assert torch.equal(tensor, other_model.state_dict()[name]), name


def test_two_generations_and_their_best_weights_are_kept(tmp_path):
    saved_steps(tmp_path, 4)
    names = ["best-model-3.safetensors", "best-model-4.safetensors", "log.txt", "step-3", "step-4"]
    assert sorted(path.name for path in tmp_path.iterdir()) == names


def test_best_weights_on_a_further_split_are_kept_and_checked(tmp_path):
    model, optimiser, state, store = saved_steps(tmp_path, 1)
    for best in (True, False, True):  # after steps 1, 2 and 3
        if best:
            store.replace_best(state, model, "split", 1.0)
        save_step(model, optimiser, state, store)
    names = {path.name for path in tmp_path.glob("best-split-*")}
    assert names == {"best-split-1.safetensors", "best-split-3.safetensors"}
    (tmp_path / "best-split-3.safetensors").write_bytes(b"cut")
    found = StateFolder(tmp_path, IDENTITY).load(*small_run())
    assert found.step == 3 and found.best["split"].step == 1


def test_a_state_names_its_best_weights_in_json(tmp_path):
    model, optimiser, state, store = saved_steps(tmp_path, 1)
    store.replace_best(state, model, "split", None, tie=0.5)
    save_step(model, optimiser, state, store)
    best = json.loads((tmp_path / "step-2/state.json").read_text())["best"]
    _, _, chosen_loss = state.history[-1]
    digests = {
        name: hashlib.sha256((tmp_path / name).read_bytes()).hexdigest()
        for name in ("best-model-2.safetensors", "best-split-1.safetensors")
    }
    assert list(best["model"].items()) == [
        ("step", 2),
        ("value", chosen_loss),
        ("tie", 0.0),
        ("sha256", digests["best-model-2.safetensors"]),
    ]
    sha256 = digests["best-split-1.safetensors"]
    assert best["split"] == {"step": 1, "value": None, "tie": 0.5, "sha256": sha256}
    resumed = StateFolder(tmp_path, IDENTITY).load(*small_run())
    assert resumed.best == state.best


@pytest.mark.quick_faults
def test_a_process_killed_at_any_file_operation_of_a_save_leaves_a_readable_state(tmp_path):
    template = tmp_path / "template"
    reached = set()
    model, *_ = saved_steps(template, 2)
    step_2, step_3 = model[0].weight.detach().clone(), None
    for operation in range(1, 1000):
        folder = tmp_path / str(operation)
        shutil.copytree(template, folder)
        child = os.fork()
        if child == 0:
            left, store, resumed = operation, StateFolder(folder, IDENTITY), small_run()
            state = store.load(*resumed)

            def count_down(event: str, _arguments: tuple) -> None:
                nonlocal left
                if event.startswith(("os.", "shutil.")) or event == "open":
                    left -= 1
                    if left == 0:
                        os.kill(os.getpid(), signal.SIGKILL)

            sys.addaudithook(count_down)
            save_step(*resumed, state, store)
            os._exit(0)
        _, status = os.waitpid(child, 0)

        store, (found_model, found_optimiser) = StateFolder(folder, IDENTITY), small_run(seed=99)
        found = store.load(found_model, found_optimiser)
        reached.add(found.step)
        assert store.locate_best(CHOSEN, found.best[CHOSEN].step).exists()
        if found.step == 2:
            assert torch.equal(found_model[0].weight, step_2)
            save_step(found_model, found_optimiser, found, store)
        # Whether the child saved it or it is computed again: step 3 is the same.
        assert found.step == 3
        step_3 = found_model[0].weight.detach().clone() if step_3 is None else step_3
        assert torch.equal(found_model[0].weight, step_3)
        if os.WIFEXITED(status):
            assert os.WEXITSTATUS(status) == 0
            break
    assert reached == {2, 3} and operation > 10


@pytest.mark.parametrize(
    "name",
    [
        "tensors.safetensors",
        "state.json",
        "training.csv",
        "sha256sums",
        "../best-model-3.safetensors",
    ],
)
@pytest.mark.parametrize("damage", ["cut", "flip", "remove"])
@pytest.mark.quick_faults
def test_a_damaged_newest_state_falls_back_to_the_one_before(tmp_path, name, damage):
    saved_steps(tmp_path, 3)
    path = tmp_path / "step-3" / name
    content = bytearray(path.read_bytes())
    content[len(content) // 2] ^= 1
    if damage == "remove":
        path.unlink()
    else:
        path.write_bytes(content if damage == "flip" else content[: len(content) // 2])

    state = StateFolder(tmp_path, IDENTITY).load(*small_run())
    assert state.step == 2 and [row[0] for row in state.history] == [1, 2]
    assert "step-3 is damaged" in (tmp_path / "log.txt").read_text()


@pytest.mark.quick_faults
def test_when_no_state_can_be_read_the_run_starts_again(tmp_path):
    saved_steps(tmp_path, 2)
    for path in tmp_path.glob("step-*/state.json"):
        path.write_text("{")
    assert StateFolder(tmp_path, IDENTITY).load(*small_run()) == TrainingState()


@pytest.mark.parametrize("name", ["spec_digest", "data_digest"])
@pytest.mark.quick_faults
def test_a_state_of_another_spec_or_other_data_is_refused(tmp_path, name):
    saved_steps(tmp_path, 2)
    with pytest.raises(
        UserError, match=f"step-2/state.json was made with another {name[:4]}; delete {tmp_path}"
    ):
        StateFolder(tmp_path, {**IDENTITY, name: "else"}).load(*small_run())
    assert StateFolder(tmp_path, IDENTITY).load(*small_run()).step == 2


def test_a_state_of_code_that_kept_no_further_weights_is_refused_for_its_code_alone(tmp_path):
    saved_steps(tmp_path, 2)
    for generation in tmp_path.glob("step-*"):
        facts = json.loads((generation / "state.json").read_text())
        del facts["best"]
        (generation / "state.json").write_text(json.dumps(facts))
        lines = (generation / "sha256sums").read_text().splitlines()
        digest = hashlib.sha256((generation / "state.json").read_bytes()).hexdigest()
        lines = [
            f"{digest}  state.json" if line.endswith("  state.json") else line for line in lines
        ]
        (generation / "sha256sums").write_text("".join(f"{line}\n" for line in lines))
    with pytest.raises(UserError, match=r"step-2/state\.json was made with another spec"):
        StateFolder(tmp_path, IDENTITY | {"spec_digest": "other"}).load(*small_run())


def test_a_second_holder_of_the_lock_is_refused_until_the_first_is_done(tmp_path):
    first, second = StateFolder(tmp_path, IDENTITY), StateFolder(tmp_path, IDENTITY)
    with (
        first.lock(),
        pytest.raises(UserError, match=f"in use by process {os.getpid()}"),
        second.lock(),
    ):
        pass
    with second.lock():
        pass


def test_removing_the_state_leaves_the_files_of_others(tmp_path):
    for folder in ("mine", "shared"):
        _, _, _, store = saved_steps(tmp_path / folder, 3)
        if folder == "shared":
            (tmp_path / "shared/thesis.tex").touch()
        with store.lock():
            store.remove()
    assert [path.name for path in tmp_path.rglob("*")] == ["shared", "thesis.tex"]


def test_the_log_says_what_happened(tmp_path):
    _, _, _, store = saved_steps(tmp_path, 2)
    store.load(*small_run())
    lines = (tmp_path / "log.txt").read_text().splitlines()
    assert [line.split("] ")[1] for line in lines] == [
        "saved step-1",
        "saved step-2",
        "resumed from step-2",
    ]


def test_nothing_is_pickled(tmp_path):
    saved_steps(tmp_path, 1)
    suffixes = {path.suffix for path in tmp_path.rglob("*") if path.is_file()}
    assert suffixes == {".safetensors", ".json", ".csv", ".txt", ""}
    json.loads((tmp_path / "step-1/state.json").read_text())
    assert (tmp_path / "step-1/sha256sums").read_text().count("\n") == 3


def test_the_history_reads_back_exactly(tmp_path):
    history = [(1, "loss", 0.1 + 0.2), (1, "a,b", 1e-300), (20, "loss", 3.0)]
    write_history(tmp_path / "training.csv", history)
    assert read_history(tmp_path / "training.csv") == history
    assert (tmp_path / "training.csv").read_text().splitlines()[:2] == [
        "step,name,value",
        "1,loss,0.30000000000000004",
    ]
