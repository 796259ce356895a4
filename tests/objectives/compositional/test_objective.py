"""CAT's losses: their equations by hand, where gradients stop, extreme cases, and the sum."""

from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.models.sections import parse_model
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.models.cat.model import CodeWeights
from workflow_scripts.objectives.compositional import objective as compositional
from workflow_scripts.objectives.compositional.objective import (
    compute_gap_entropy,
    compute_guided_decomposition,
    compute_nuance,
)
from workflow_scripts.tasks.masked_lm import model as pretraining
from workflow_scripts.tasks.masked_lm.batches import IGNORED, MaskedBatch
from workflow_scripts.tasks.masked_lm.model import MaskedLoss

SMALL = {
    "name": "cat",
    "family": "cat",
    "layers": 2,
    "heads": 2,
    "width": 8,
    "feed_forward": 16,
    "positions": 20,
}
SMALL |= {"codes": 5, "last_codes": 7, "dropout": 0.0}
REAL = torch.arange(5) < torch.tensor([5, 3])[:, None]


def states(count: int = 2) -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(2, 5, 8, dtype=torch.float64, requires_grad=True) for _ in range(count)]


def random_codes(codes: int = 7, seed: int = 0) -> CodeWeights:
    torch.manual_seed(seed)
    weights = torch.randn(2, 5, codes, dtype=torch.float64).relu()
    return CodeWeights(weights, -1.5 / (weights.norm(dim=-1, keepdim=True) + 1e-8))


def batch() -> MaskedBatch:
    """Two pairs. In the first the second word is one of two pieces; the third word has no sememes."""
    torch.manual_seed(1)
    ids = torch.tensor([[2, 7, 8, 9, 3], [2, 10, 3, 0, 0]])
    labels = torch.tensor(
        [[IGNORED, 7, IGNORED, 11, IGNORED], [IGNORED, 12, IGNORED, IGNORED, IGNORED]]
    )
    share = torch.tensor([[0, 0.5, 0.5, 0, 0], [0, 1, 0, 0, 0]])
    gold = torch.full((2, 5, 2), -1, dtype=torch.int32)
    gold[0, 1:3] = torch.tensor([1, 4])
    gold[1, 1, 0] = 6
    return MaskedBatch(
        ids, (torch.arange(5) > 2).long() * REAL, labels, REAL, torch.tensor([1, 0]), share, gold
    )


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 10**6), amount=st.floats(0.01, 10))
def test_guided_decomposition_is_zero_exactly_where_all_weight_is_on_sememes(seed, amount):
    codes, given = random_codes(seed=seed), batch()
    codes.weights[0, 1:3] *= torch.isin(torch.arange(7), torch.tensor([1, 4]))
    codes.weights[1, 1] *= torch.arange(7).eq(6)
    assert compute_guided_decomposition(codes, given.share, given.gold).abs() < 1e-12
    codes.weights[0, 2, 5] += amount  # a wrong code of the second piece
    assert compute_guided_decomposition(codes, given.share, given.gold) > 0


def test_nothing_to_decompose_and_sememes_that_are_all_codes_are_zero():
    codes, given = random_codes(), batch()
    nothing = replace(given, share=torch.zeros(2, 5), gold=given.gold[..., :0])
    assert compute_guided_decomposition(codes, nothing.share, nothing.gold) == 0
    every = torch.arange(7, dtype=torch.int32).expand(2, 5, 7)
    assert compute_guided_decomposition(codes, given.share, every).abs() < 1e-12


def compute_nuance_entropy(gaps: list[torch.Tensor], real: torch.Tensor) -> torch.Tensor:
    return compute_nuance([compute_gap_entropy(gap, real) for gap in gaps])


def test_entropy_of_equal_features_is_the_least_and_of_one_feature_the_most():
    constant = torch.full((2, 5, 768), 3.0, dtype=torch.float64)
    torch.testing.assert_close(compute_nuance_entropy([constant, -constant], REAL).item(), 1 / 768)
    one = torch.zeros(2, 5, 768)
    one[..., 5] = 1e4
    torch.testing.assert_close(compute_nuance_entropy([one], REAL).item(), 1.0)
    torch.testing.assert_close(
        compute_nuance_entropy([constant.float(), one], REAL).item(), (1 / 768 + 1) / 2
    )


def case(next_sentence: bool = True, **changes: object):
    torch.manual_seed(0)
    model = pretraining.build(parse_model(SMALL), 20)
    return model, compositional.build(compositional.Settings(**changes), MaskedLoss(next_sentence))


def test_the_loss_is_the_weighted_sum_of_its_terms():
    weights = {
        "mixed": 0.5,
        "contextual": 2.0,
        "compositional": 0.25,
        "consistency": 3.0,
        "nuance": 4.0,
    }
    weights |= {"decomposition": 5.0, "sparsity": 6.0}
    model, objective = case(**weights)
    loss, parts = objective(model, batch())
    states = ("mixed", "contextual", "compositional")
    task = {f"{kind}_{name}": weights[name] for kind in ("mlm", "nsp") for name in states}
    expected = sum(weights[name] * parts[name] for name in weights if name in parts)
    expected += (
        sum(weight * parts[name] for name, weight in task.items()) + 4 * parts["nuance_task"]
    )
    assert set(parts) == {
        *task,
        "consistency",
        "nuance",
        "nuance_task",
        "decomposition",
        "sparsity",
    }
    torch.testing.assert_close(loss, expected)


def test_decomposition_of_batches_without_sememes_is_refused():
    model, objective = case(decomposition=2.0)
    with pytest.raises(
        UserError,
        match=r"decomposition is 2.0, but the batches have no sememes; set problem.sememes",
    ):
        objective(model, replace(batch(), gold=torch.zeros(2, 8, 0, dtype=torch.int32)))


def test_terms_of_no_weight_are_not_computed_and_without_next_sentences_there_are_none():
    model, objective = case(
        consistency=0.0, nuance=0.0, decomposition=0.0, sparsity=0.0, next_sentence=False
    )
    loss, parts = objective(model, batch())
    assert set(parts) == {
        f"{k}_{n}" for k in ("mlm", "nsp") for n in ("mixed", "contextual", "compositional")
    }
    assert parts["nsp_mixed"] == 0
    torch.testing.assert_close(loss.detach(), sum(parts.values()))
    loss.backward()
    assert model.heads["next_sentence"].weight.grad is None


def test_every_parameter_learns():
    """Initial weights are as large as trained ones: with small ones all tokens are alike to the
    attention.
    """
    model = pretraining.build(parse_model(SMALL | {"deviation": 0.5}), 20)
    compositional.build(compositional.Settings(), MaskedLoss())(model, batch())[0].backward()
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None and parameter.grad.isfinite().all(), name
        # A softmax over keys is the same with another bias of the keys.
        assert parameter.grad.abs().max() > 1e-6 or name.endswith("self.key.bias"), name


TERMS = (
    "mixed",
    "contextual",
    "compositional",
    "consistency",
    "nuance",
    "decomposition",
    "sparsity",
)
BOTH, GAPS = {"contextual", "compositional"}, {"gap_0", "gap_1"}


def cut(model: pretraining.Pretraining) -> dict[str, torch.Tensor]:
    """The model's own output for `batch`, which its encoder returns from now on with each part cut
    from the others: a gradient is then that of a term with respect to this part alone.
    """
    given = batch()
    output = model.encoder(given.ids, given.real, given.types)

    def leaf(tensor: torch.Tensor) -> torch.Tensor:
        return tensor.detach().clone().requires_grad_()

    parts = {
        name: leaf(output[name]) for name in ("last_hidden_state", "contextual", "compositional")
    }
    gaps = [leaf(gap) for gap in output.gaps]
    codes = [CodeWeights(leaf(layer.weights), leaf(layer.scale)) for layer in output.codes]
    returned = replace(output, **parts, gaps=tuple(gaps), codes=tuple(codes))
    model.encoder.register_forward_hook(lambda *_: returned)
    parts |= {f"gap_{i}": gap for i, gap in enumerate(gaps)}
    parts |= {f"codes_{i}": layer.weights for i, layer in enumerate(codes)}
    return parts | {f"scale_{i}": layer.scale for i, layer in enumerate(codes)}


def both_tasks(
    model: pretraining.Pretraining, states: torch.Tensor
) -> tuple[torch.Tensor, torch.Tensor]:
    """MLM and NSP of `batch`, by hand."""
    words = model.heads["words"](states).log_softmax(-1)
    follows = model.heads["next_sentence"](states[:, 0]).log_softmax(-1)
    return -(words[0, 1, 7] + words[0, 3, 11] + words[1, 1, 12]) / 3, -(
        follows[0, 1] + follows[1, 0]
    ) / 2


def of_states(name: str):
    return lambda model, parts: sum(both_tasks(model, parts[name]))


def consistency(on_comp: float, on_cont: float):
    def term(model: pretraining.Pretraining, parts: dict[str, torch.Tensor]) -> torch.Tensor:
        cont, comp = parts["contextual"][REAL], parts["compositional"][REAL]
        return (
            on_comp * (comp - cont.detach()).square().mean()
            + on_cont * (cont - comp.detach()).square().mean()
        )

    return term


def nuance(together):
    def term(model: pretraining.Pretraining, parts: dict[str, torch.Tensor]) -> torch.Tensor:
        shares = [parts[f"gap_{i}"][REAL].softmax(-1) for i in range(2)]
        entropy = [torch.exp((share * share.log()).sum(-1).mean()) for share in shares]
        return sum(entropy) / 2 + together(*both_tasks(model, parts["gap_1"]))

    return term


def o(parts: dict[str, torch.Tensor], layer: int) -> torch.Tensor:
    """|O|: the weights of the codes are not negative."""
    return parts[f"codes_{layer}"] * parts[f"scale_{layer}"].abs()


def decomposition(over_wrong):
    def term(model: pretraining.Pretraining, parts: dict[str, torch.Tensor]) -> torch.Tensor:
        first = o(parts, 1)[0, 1:3].mean(0)
        return (over_wrong(first[[0, 2, 3, 5, 6]]) + over_wrong(o(parts, 1)[1, 1, :6])) / 2

    return term


def l1(model: pretraining.Pretraining, parts: dict[str, torch.Tensor]) -> torch.Tensor:
    return (o(parts, 0)[REAL].mean() + o(parts, 1)[REAL].mean()) / 2


@pytest.mark.parametrize(
    ("name", "options", "expected", "moved"),
    [
        ("mixed", {}, of_states("last_hidden_state"), {"last_hidden_state"}),
        ("contextual", {}, of_states("contextual"), {"contextual"}),
        ("compositional", {}, of_states("compositional"), {"compositional"}),
        ("consistency", {"beta": 0.3}, consistency(1, 0.3), BOTH),
        (
            "nuance",
            {},
            nuance(lambda words, follows: torch.exp(-words) + torch.exp(-follows)),
            GAPS,
        ),
        (
            "nuance",
            {"nuance_task": "sum"},
            nuance(lambda words, follows: torch.exp(-words - follows)),
            GAPS,
        ),
        ("decomposition", {}, decomposition(torch.mean), {"codes_1", "scale_1"}),
        ("sparsity", {}, l1, {"codes_0", "codes_1", "scale_0", "scale_1"}),
    ],
)
def test_a_term_of_the_trained_loss_has_its_value_and_moves_its_own_states(
    name, options, expected, moved
):
    """Each alone in the loss, with an odd weight, against the same by hand, for what the encoder
    itself returned.
    """
    model, objective = case(**dict.fromkeys(TERMS, 0.0) | {name: 3.7} | options)
    parts = cut(model.double())
    loss, _ = objective(model, batch())
    wanted = 3.7 * expected(model, parts)
    near = {"rtol": 1e-4, "atol": 1e-9, "check_dtype": False}  # likelihoods are in float32
    torch.testing.assert_close(loss, wanted, **near)
    found, by_hand = (
        dict(
            zip(
                parts,
                torch.autograd.grad(value, list(parts.values()), materialize_grads=True),
                strict=True,
            )
        )
        for value in (loss, wanted)
    )
    for part in parts:
        torch.testing.assert_close(
            found[part], by_hand[part], **near, msg=lambda text, part=part: f"{part}: {text}"
        )
        assert found[part].any() == (part in moved), part


def test_a_batch_without_a_masked_word_has_a_finite_loss():
    for objective in (compositional.build(compositional.Settings(), MaskedLoss()), MaskedLoss()):
        model, _ = case()
        loss, parts = objective(model, replace(batch(), labels=torch.full((2, 5), IGNORED)))
        loss.backward()
        assert loss.isfinite() and parts.get("mlm", parts.get("mlm_mixed")) == 0
        assert all(p.grad is None or p.grad.isfinite().all() for p in model.parameters())


@pytest.mark.parametrize(
    "given", [{"decomposition": -1.0}, {"beta": 1.0}, {"nuance_task": "three"}]
)
def test_wrong_settings_are_named(given):
    with pytest.raises(UserError, match=next(iter(given))):
        parse_as(compositional.Settings, given, "objective")
