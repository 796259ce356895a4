import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas
import pytest
import torch
from safetensors.torch import load_file, save_file
from sklearn.metrics import (
    adjusted_rand_score,
    silhouette_samples,
    silhouette_score,
    v_measure_score,
)

from tests.data.preparing import prepare_data
from tests.training.toy import record_files
from workflow_scripts.analyses import embedding_space
from workflow_scripts.analyses.options.embedding_space import ComparedWord, Options
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.data.datasets import cogs
from workflow_scripts.data.prepared import read_vocabularies

FOCUS = ComparedWord(word="jump", peers=["walk", "look", "run"], name="verbs")


def clusters(size: int, seed: int = 0) -> np.ndarray:
    """Three clouds of `size` points each, far apart in 10 dimensions."""
    generator = np.random.default_rng(seed)
    centres = 20 * np.eye(10)[:3].repeat(size, axis=0)
    return centres + generator.standard_normal((3 * size, 10))


@pytest.mark.parametrize("size", [5, 20])
def test_clusters_stay_apart_in_the_map(size: int) -> None:
    points = embedding_space.project_tsne(clusters(size), 0)
    assert np.array_equal(
        points, embedding_space.project_tsne(clusters(size), 0)
    ) and points.shape == (3 * size, 2)
    labels = np.repeat([0, 1, 2], size)
    distance = np.linalg.norm(points[:, None] - points[None], axis=-1)
    np.fill_diagonal(distance, np.inf)
    assert (labels[distance.argmin(1)] == labels).all()


def test_a_map_of_three_words_is_refused() -> None:
    with pytest.raises(UserError, match="at least 4"):
        embedding_space.project_tsne(np.eye(3), 0)


@pytest.mark.parametrize(
    ("codes", "with_verbs", "alone"),
    [
        ({"jump": 1, "walk": 1, "look": 1, "run": 1, "left": 2}, True, False),
        ({"jump": 1, "walk": 1, "look": 1, "run": 2, "left": 2}, False, False),
        ({"jump": 1, "walk": 2, "look": 2, "run": 2, "left": 1}, False, False),
        ({"jump": 1, "walk": 2, "look": 2, "run": 2, "left": 3}, False, True),
        ({"jump": 1, "jump1": 1, "jump2": 1, "walk": 2, "look": 2, "run": 2}, False, True),
        (
            {"jump": 1, "jump1": 2, "jump2": 3, "walk": 2, "look": 2, "run": 2, "walk1": 1},
            False,
            False,
        ),
    ],
)
def test_where_the_code_of_jump_is(codes: dict[str, int], with_verbs: bool, alone: bool) -> None:
    assert embedding_space.score_focus_code(codes, FOCUS) == {
        "jump_with_verbs": with_verbs,
        "jump_alone": alone,
    }


@pytest.mark.parametrize("code", [1, 2, 3])
def test_an_output_word_has_the_code_of_a_peer(sal, tmp_path: Path, code: int) -> None:
    """With embeddings that are the vectors of the codes 1, 2 and 3, as the model scales them."""
    code_of = {"I_WALK": code, "<s>": 1, "</s>": 2, "<unk>": 3}
    run = replace(sal, folder=shutil.copytree(sal.folder, tmp_path / "run"))
    file = run.files.checkpoint / "model.safetensors"
    weights = load_file(file)
    codebook = weights["target_quantiser.codebook"]
    words = read_vocabularies(run.data)["target"]
    for word, chosen in code_of.items():
        embedding = weights["target_embedding.weight"]
        embedding[words.index(word)] = codebook[chosen] / embedding.size(1) ** 0.5
    save_file(weights, file)
    record_files(run.folder)
    output = ComparedWord(word="I_WALK", peers=["<s>", "</s>"], name="end")
    scores = {
        row.metric: row.value
        for row in embedding_space.analyse([run], Options(output=output)).scores
    }
    assert scores["I_WALK_with_any_end"] == (code < 3)


def test_a_table_has_every_word_but_those_that_no_sentence_holds(sal) -> None:
    words, vectors = embedding_space.make_word_table(sal, "scan")
    in_data = {word for sentence in sal.read_pairs("train")["source"] for word in sentence.split()}
    assert set(words["word"]) == in_data | {"</s>"} and len(words) == len(vectors)
    assert words.set_index("word").loc[["jump", "left", "</s>"], "class"].tolist() == [
        "verb",
        "direction",
        "</s>",
    ]
    model, vocabulary = sal.load()
    row = words.index[words["word"] == "jump"][0]
    weight = model.source_embedding.weight[vocabulary.index("jump")].detach().numpy()
    assert np.array_equal(vectors[row], weight)
    # The code is that of the embedding as the model sees it: scaled by the root of its width.
    codebook = model.source_quantiser.codebook.detach().numpy()[: model.source_quantiser.n_codes]
    distance = ((weight * len(weight) ** 0.5 - codebook) ** 2).sum(-1)
    assert words.loc[row, "code"] == distance.argmin()


def test_target_codes_are_the_nearest_of_the_embeddings(sal) -> None:
    model, _ = sal.load()
    vectors, codebook = (
        model.target_embedding.weight.detach(),
        model.target_quantiser.codebook.detach(),
    )
    nearest = torch.cdist(vectors * vectors.size(1) ** 0.5, codebook).argmin(-1).tolist()
    codes = embedding_space.assign_codes(model, "target", range(len(vectors)))
    assert codes[1:] == nearest[1:] and len(set(codes)) > 1  # padding is never embedded


def test_scores_of_a_model_with_codes_and_of_one_without(plain, sal) -> None:
    output = ComparedWord(word="I_WALK", peers=["</s>"], name="end")
    options = Options(classes="scan", focus=FOCUS, output=output)
    found = embedding_space.analyse([plain, sal], options)
    unstructured, structured = (
        {row.metric: row.value for row in found.scores if row.method == run.method}
        for run in (plain, sal)
    )
    assert unstructured.keys() == {"silhouette", "jump_silhouette"}
    of_codes = {
        "v_measure",
        "adjusted_rand",
        "jump_with_verbs",
        "jump_alone",
        "I_WALK_with_any_end",
    }
    assert structured.keys() - unstructured.keys() == of_codes
    words, vectors = embedding_space.make_word_table(plain, "scan")
    real = (words["word"] != "</s>").to_numpy()
    expected = silhouette_score(vectors[real], words.loc[real, "class"])
    assert unstructured["silhouette"] == pytest.approx(expected, rel=1e-5)
    table = found.files["words"]
    words, vectors = embedding_space.make_word_table(sal, "scan")
    real = (words["word"] != "</s>").to_numpy()
    words, by_word = words[real], silhouette_samples(vectors[real], words.loc[real, "class"])
    assert structured["jump_silhouette"] == pytest.approx(by_word[words["word"] == "jump"].item())
    labels = words["class"].tolist(), words["code"].tolist()
    assert structured["adjusted_rand"] == pytest.approx(adjusted_rand_score(*labels))
    assert structured["v_measure"] == pytest.approx(v_measure_score(*labels))
    assert table.loc[table["method"] == "transformer", "code"].isna().all()


def test_a_focus_that_the_data_lack_is_noted(sal) -> None:
    output = ComparedWord(word="I_HOP", peers=["</s>"], name="end")
    focus = FOCUS.model_copy(update={"word": "jump9"})
    options = Options(classes="scan", focus=focus, output=output)
    found = embedding_space.analyse([sal], options)
    assert found.notes == [
        f"{sal}: not in the training data: {name}" for name in ("jump9", "I_HOP")
    ]
    assert "v_measure" in {row.metric for row in found.scores}


def test_unknown_classes_are_refused() -> None:
    with pytest.raises(UserError, match="key 'classes' is 'wordnet'; input should be 'cogs' or"):
        parse_as(Options, {"classes": "wordnet"}, "displays.yaml")


def test_every_scan_word_has_the_class_that_the_paper_names() -> None:
    expected = dict.fromkeys(["walk", "look", "run", "jump", "turn", "walk17", "jump200"], "verb")
    expected |= dict.fromkeys(["left", "right"], "direction") | dict.fromkeys(
        ["around", "opposite"], "preposition"
    )
    expected |= dict.fromkeys(["twice", "thrice"], "adverb") | dict.fromkeys(
        ["and", "after"], "conjunction"
    )
    assert (
        embedding_space.find_scan_classes([*expected, "<pad>", "<s>", "</s>", "<unk>"]) == expected
    )


def test_a_word_outside_the_grammar_is_an_error() -> None:
    with pytest.raises(UserError, match="'skip' is no word of SCAN"):
        embedding_space.find_scan_classes(["skip"])


SENTENCES = [
    (
        "A rose was helped by a dog .",
        "rose ( x _ 1 ) AND help . theme ( x _ 3 , x _ 1 ) AND help . agent ( x _ 3 , x _ 6 ) AND dog ( x _ 6 )",
    ),
    (
        "Emma helped the dog .",
        "* dog ( x _ 3 ) ; help . agent ( x _ 1 , Emma ) AND help . theme ( x _ 1 , x _ 3 )",
    ),
    (
        "Liam ate a cake on a table .",
        "eat . agent ( x _ 1 , Liam ) AND eat . theme ( x _ 1 , x _ 3 ) AND cake ( x _ 3 ) "
        "AND cake . nmod . on ( x _ 3 , x _ 6 ) AND table ( x _ 6 )",
    ),
    (
        "A cake was eaten by Emma .",
        "cake ( x _ 1 ) AND eat . theme ( x _ 3 , x _ 1 ) AND eat . agent ( x _ 3 , Emma )",
    ),
    (
        "Emma hoped that Liam wanted to run .",
        "hope . agent ( x _ 1 , Emma ) AND hope . ccomp ( x _ 1 , x _ 4 ) AND want . agent ( x _ 4 , Liam ) "
        "AND want . xcomp ( x _ 4 , x _ 6 ) AND run . agent ( x _ 6 , Liam )",
    ),
    ("shark", "LAMBDA a . shark ( a )"),
    ("crawl", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
    ("Paula", "Paula"),
]


def test_cogs_classes_come_from_the_logical_forms() -> None:
    assert embedding_space.find_cogs_classes(SENTENCES) == {
        **dict.fromkeys(["rose", "dog", "cake", "table", "shark"], "common noun"),
        **dict.fromkeys(["Emma", "Liam", "Paula"], "proper name"),
        **dict.fromkeys(["ate", "hoped", "wanted"], "verb, past"),
        "eaten": "verb, participle",
        "helped": "verb, past or participle",
        **dict.fromkeys(["run", "crawl"], "verb, infinitive"),
        "on": "preposition",
        **dict.fromkeys(["A", "a", "the"], "determiner"),
        **dict.fromkeys(["was", "by", "that", "to", "."], "function word"),
    }


def test_a_word_has_the_class_that_it_shows_most_often() -> None:
    noun, verb = (
        ("saw", "LAMBDA a . saw ( a )"),
        ("saw", "LAMBDA a . LAMBDA e . saw . agent ( e , a )"),
    )
    assert embedding_space.find_cogs_classes([noun, verb, verb]) == {"saw": "verb, infinitive"}
    assert embedding_space.find_cogs_classes([noun, noun, verb]) == {"saw": "common noun"}


def test_the_stand_in_for_cogs_is_classified_whole() -> None:
    prepared = prepare_data(cogs, {"from": "stand_in", "limit": {"train": 600, "test": 100}}, {})
    pairs = [(example.source, example.target) for example in prepared.splits["train"]]
    classes = embedding_space.find_cogs_classes(pairs)
    assert classes.keys() == {word for sentence, _ in pairs for word in sentence.split()}
    assert {"common noun", "proper name", "verb, past", "preposition", "determiner"} <= set(
        classes.values()
    )
    assert {word for word, name in classes.items() if name == "function word"} <= {
        "was",
        "by",
        "to",
        "that",
        ".",
    }


def test_the_words_of_cogs(mirror: Path) -> None:
    table = pandas.read_csv(mirror / "cogs/train.tsv", sep="\t", names=["sentence", "form", "kind"])
    classes = embedding_space.find_cogs_classes(table[["sentence", "form"]].itertuples(index=False))
    counts = pandas.Series(classes).value_counts()
    assert counts.sum() == 743
    names = ["proper name", "common noun", "preposition", "determiner"]
    assert counts[names].tolist() == [103, 406, 3, 4]
    # The paper's appendix C.2: in COGS "can" is a noun only.
    assert (classes["can"], classes["gave"], classes["given"]) == (
        "common noun",
        "verb, past",
        "verb, participle",
    )
