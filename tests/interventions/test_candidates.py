"""Candidates: the rules on a small dictionary, the ranking against plain loops, a whole data set of
real glosses.
"""

import importlib
import json
import re
from collections import Counter
from dataclasses import replace
from functools import partial

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.config.as_json import resolve_run
from tests.config.copies import ROOT
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import parse_as
from workflow_scripts.config.catalogue import parse_run
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_intervention
from workflow_scripts.interventions.candidates import (
    Query,
    build,
    compute_polarities,
    find_queries,
    find_wordnet_synonyms,
    rank_candidates,
    read_candidates,
    split_words,
)
from workflow_scripts.interventions.settings import Options
from workflow_scripts.interventions.spacy_models import tag_tokens
from workflow_scripts.interventions.synonym_resources import (
    build_gloss_vectors,
    make_stand_in_resources,
)
from workflow_scripts.interventions.synonyms import perturb

SYNSET_WORDS = {
    "dog": {"domestic dog", "canis familiaris", "frump"},
    "car": {"auto", "motorcar", "machine"},
}


def test_words_and_the_punctuation_glued_to_them():
    words = split_words("  \"Dogs,  (it's) well-known ... U.S.")
    expected = [
        ('"', "Dogs", ","),
        ("(", "it's", ")"),
        ("", "well-known", ""),
        ("...", "", ""),
        ("", "U.S", "."),
    ]
    assert [word[:3] for word in words] == expected
    assert words[0].start == 3


def test_stop_words_short_words_and_other_parts_of_speech_are_left_alone(resources):
    content = 'The "dog", and dogs ran the big car ax .'
    expected = {
        1: ("dog", "n"),
        3: ("dogs", "n"),
        4: ("ran", "v"),
        6: ("big", "a"),
        7: ("car", "n"),
    }
    assert find_queries(content, resources, 3) == expected
    assert find_queries(content, resources, 2) == expected | {8: ("ax", "n")}
    assert find_queries("dog ran fast", resources, 3)[2] == Query("fast", "r")


def read_description(table):
    return json.loads(table.schema.metadata[b"candidates"])


def words_of(table):
    row = table.to_pylist()[0]
    return dict(zip(row["words"], map(set, row["candidates"]), strict=True))


def test_candidates_are_cleaned_words_of_the_synsets(resources):
    found = words_of(
        build(
            ["dog dogs car big pleasant bad axes animal"],
            resources,
            Options(),
        )
    )
    assert found == {
        "dog": SYNSET_WORDS["dog"],
        "dogs": SYNSET_WORDS["dog"] | {"dog"},
        "car": SYNSET_WORDS["car"],
        "big": {"large"},
        "pleasant": {"nice"},  # a satellite; `nice the` holds a stop word
        "bad": {"awful"},
        "axes": {"ax", "axis", "axe"},  # a word of `x axis` has one letter
        "animal": {"beast", "creature"},  # the fourth has more than two words
    }


def test_the_best_candidates_are_kept(resources):
    assert len(words_of(build(["dogs"], resources, Options(top=2)))["dogs"]) == 2


def test_ranking_is_that_of_plain_loops(resources):
    words = [
        ("awful", "a"),
        ("bad", "a"),
        ("car", "n"),
        ("dog", "n"),
        ("dogs", "n"),
        ("pleasant", "a"),
    ]
    queries = [Query(*word) for word in words]
    vectors = build_gloss_vectors(resources.lexicon)
    found = rank_candidates(queries, find_wordnet_synonyms(queries, resources), vectors, 0.6, 2)
    for query in queries:
        scored = []
        for text in (pair.text for pair in find_wordnet_synonyms([query], resources)):
            similarity = float(np.dot(vectors.embed([query.word])[0], vectors.embed([text])[0]))
            difference = abs(compute_polarities([query.word])[0] - compute_polarities([text])[0])
            scored.append((-round(0.6 * similarity + 0.4 * (1 - difference), 6), text))
        expected = sorted(scored)[:2]
        assert [text for text, _ in found[query]] == [text for _, text in expected]
        assert [-score for _, score in found[query]] == pytest.approx(
            [score for score, _ in expected], abs=2e-6
        )


def test_a_word_is_no_synonym_of_itself_in_another_spelling(resources):
    pairs = find_wordnet_synonyms([Query("motor-car", "n")], resources)
    assert [pair.text for pair in pairs] == ["auto", "car", "machine"]


def test_polarity_is_textblobs():
    textblob = pytest.importorskip("textblob")
    words = ["awful", "dog", "good", "nice"]
    assert compute_polarities(words).tolist() == [
        textblob.TextBlob(word).sentiment.polarity for word in words
    ]
    assert compute_polarities(words)[0] < 0 < compute_polarities(words)[2]


def test_gloss_vectors_are_latent_semantic_analysis_of_all_glosses_of_a_word(resources):
    """TF-IDF as scikit-learn defines it, by hand, and numpy's singular values. The glosses are of
    fewer dimensions.
    """
    glosses = {}
    for synset in resources.lexicon.synsets:
        for lemma in synset.lemmas:
            name = lemma.lower().replace("_", " ").replace("-", "")
            glosses[name] = [*glosses.get(name, []), *re.findall("[a-z]{2,}", synset.gloss)]
    words, terms = sorted(glosses), sorted({term for found in glosses.values() for term in found})
    counts = np.array([[glosses[word].count(term) for term in terms] for word in words])
    inverse = np.log((1 + len(words)) / (1 + (counts > 0).sum(0))) + 1
    weighted = np.where(counts, 1 + np.log(np.maximum(counts, 1)), 0) * inverse
    left, sizes, _ = np.linalg.svd(weighted / np.linalg.norm(weighted, axis=1, keepdims=True))
    rank = int((sizes > 1e-9).sum())
    assert rank < len(words) - 1
    near = left[:, :rank] * sizes[:rank]
    near /= np.linalg.norm(near, axis=1, keepdims=True)
    found = build_gloss_vectors(resources.lexicon).embed(words)
    assert found @ found.T == pytest.approx(near @ near.T, abs=1e-4)


def test_gloss_vectors_are_the_same_each_time_and_know_inflected_forms(resources):
    one, other = (
        build_gloss_vectors(resources.lexicon).embed(["dog", "dogs", "unheard"]) for _ in range(2)
    )
    assert np.array_equal(one, other)
    assert np.array_equal(one[0], one[1])
    assert np.linalg.norm(one, axis=1) == pytest.approx([1, 1, 0], abs=1e-6)


def test_the_file_says_what_it_was_made_from_and_is_the_same_each_time(resources, tmp_path):
    contents = ["dog car", "big animal", "dog car", "the"]
    files = [tmp_path / name for name in ("one.parquet", "other.parquet")]
    for file, order in zip(files, (1, -1), strict=True):
        pq.write_table(build(contents[::order], resources, Options()), file)
    assert files[0].read_bytes() == files[1].read_bytes()
    known = read_description(pq.read_table(files[0]))
    assert (known["contents"], known["words"], known["words_with_candidates"]) == (3, 5, 4)
    assert known["vectors"].startswith("WordNet glosses")
    found = read_candidates(files[0])
    assert list(found) == ["big animal", "dog car", "the"] and found["the"] == {}


def test_errors_are_one_line(resources, tmp_path):
    with pytest.raises(UserError, match=r"unknown key 'topp'; did you mean 'top'\?"):
        parse_as(Options, {"topp": 5}, "options")
    for name in ("no_such_model", "en_core_web_lg"):
        with pytest.raises(UserError, match="spacy_model"):
            parse_as(Options, {"spacy_model": name}, "options")
    with pytest.raises(UserError, match="words: spacy needs the parts of speech of tagger: spacy"):
        parse_as(Options, {"words": "spacy", "vectors": "spacy"}, "options")
    with pytest.raises(UserError, match="words: spacy needs the similarities of vectors: spacy"):
        parse_as(Options, {"words": "spacy", "tagger": "spacy"}, "options")
    with pytest.raises(UserError, match="resources: stand_in has no spaCy model"):
        parse_as(Options, {"resources": "stand_in", "tagger": "spacy"}, "options")
    with pytest.raises(UserError, match=r"nothing.parquet does not exist"):
        read_candidates(tmp_path / "nothing.parquet")
    table = build(["dog"], resources, Options())
    at = table.schema.get_field_index("positions")
    uneven = table.set_column(
        at, table.schema.field(at), pa.array([[0, 1]], table.schema.field(at).type)
    )
    pq.write_table(uneven, tmp_path / "uneven.parquet")
    (tmp_path / "broken.parquet").write_bytes(b"PAR1")
    for name in ("uneven", "broken"):
        with pytest.raises(
            UserError, match=rf"{name}.parquet: not a table of candidates; delete it and rerun"
        ):
            read_candidates(tmp_path / f"{name}.parquet")


@pytest.fixture(scope="module")
def pipeline():
    """A spaCy pipeline with vectors in two dimensions, so that every cosine is that of an angle
    chosen here.
    """
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    for word, angle in {"dog": 0, "frump": 200}.items():
        nlp.vocab.set_vector(
            word, np.array([np.cos(np.radians(angle)), np.sin(np.radians(angle))], dtype=np.float32)
        )
    return nlp


def test_a_pipeline_may_also_rank_wordnets_words(pipeline, resources):
    resources = replace(resources, pipeline=pipeline)
    row = build(["dog"], resources, Options(vectors="spacy")).to_pylist()[0]
    # `domestic` and `canis` have no vector; equal scores are sorted alphabetically, `frump` has a
    # negative cosine.
    assert row["candidates"][0][-1] == "frump"
    assert row["scores"][0][-1] == pytest.approx(0.6 * np.cos(np.radians(200)) + 0.4, abs=1e-5)


def test_a_pipeline_without_vectors_is_one_line(resources):
    spacy = pytest.importorskip("spacy")
    resources = replace(resources, pipeline=spacy.blank("en"))
    with pytest.raises(UserError, match="has no vectors; name one that has, such as en_core_web"):
        build(["dog"], resources, Options(vectors="spacy"))


def test_resources_without_a_pipeline_are_one_line(resources):
    with pytest.raises(UserError, match="these resources have no spaCy model; read them with one"):
        build(["dog"], resources, Options(vectors="spacy"))


@pytest.mark.slow
def test_a_whole_data_set_of_real_glosses(real, tmp_path):
    glosses = {
        re.sub(r"\([^)]*\)", "", synset.gloss).split(";")[0].strip()
        for synset in real.lexicon.synsets
    }
    glosses = sorted(" ".join(re.sub(r"[^\w\s]", "", gloss).split()) for gloss in glosses)
    glosses = [gloss for gloss in glosses if " " in gloss]
    contents = [
        glosses[i] for i in np.random.default_rng(0).choice(len(glosses), 500, replace=False)
    ]
    table = build(contents, real, Options())
    known, rows = read_description(table), table.to_pylist()
    assert 0.4 < known["words_with_candidates"] / known["words"] < 0.6
    seen = Counter(text for row in rows for texts in row["candidates"] for text in texts)
    assert all(re.fullmatch(r"[a-z]{2,}( [a-z]{2,})?", text) for text in seen)
    assert not real.stop_words & {word for text in seen for word in text.split(" ")}
    for row in rows:
        words = row["content"].lower().split(" ")
        assert [words[position] for position in row["positions"]] == row["words"]
        assert all(
            word not in texts for word, texts in zip(row["words"], row["candidates"], strict=True)
        )
        assert all(
            scores == sorted(scores, reverse=True) and len(scores) <= 5 for scores in row["scores"]
        )
    pq.write_table(table, tmp_path / "table.parquet")
    candidates = read_candidates(tmp_path / "table.parquet")
    for rate, least in ((0.25, 0.2), (0.4, 0.3)):
        texts, realised = perturb(contents, candidates, rate, 42)
        assert least < np.mean(realised) < rate + 0.05
        assert sum(
            text != content for text, content in zip(texts, contents, strict=True)
        ) > 0.95 * len(contents)


@pytest.mark.parametrize("task", ["idm", "sst"])
def test_the_demo_replaces_words_of_its_definitions_and_reviews(task, tmp_path):
    catalogue = load_catalogue(ROOT)
    wanted = resolve_intervention(
        catalogue, parse_run(catalogue, f"{task}/qwen-small/ft/seed-1"), "demo"
    )
    data = resolve_run(catalogue, f"{task}/qwen-small/ft/seed-1", "demo")["data"]
    contents = prepare_data(importlib.import_module(data["prepare"]), data["options"], {}).tables[
        "test"
    ]["content"]
    table = build(contents, make_stand_in_resources(), Options(**wanted.candidates))
    pq.write_table(table, tmp_path / "table.parquet")
    known = read_description(table)
    assert known["words_with_candidates"] > 0.15 * known["words"]
    for rate in wanted.rates:
        texts, realised = perturb(
            contents, read_candidates(tmp_path / "table.parquet"), rate, wanted.seeds[0]
        )
        assert rate / 3 < np.mean(realised) <= rate
        assert sum(
            text != content for text, content in zip(texts, contents, strict=True)
        ) > 0.6 * len(contents)


@pytest.fixture(scope="module")
def tagging_pipeline():
    """A blank English pipeline with vectors and a tagger, which has learnt that `car` is a verb and
    `big` a noun.
    """
    spacy = pytest.importorskip("spacy")
    from spacy.training import Example

    tags = {"the": "DT", "dogs": "NNS", "car": "VB", "big": "NN", "pleasant": "JJ"}
    nlp = spacy.blank("en")
    nlp.vocab.vectors = spacy.vectors.Vectors(shape=(20, 2))
    for number, word in enumerate([*tags, "auto", "large", "nice", "domestic", "dog"]):
        nlp.vocab.set_vector(word, np.array([1, number / 10], dtype=np.float32))
    tagger = nlp.add_pipe("tagger")
    for tag in sorted(set(tags.values())):
        tagger.add_label(tag)
    sentences = [
        list(tags),
        list(tags)[::-1],
        ["the", "big", "car"],
        ["pleasant", "dogs", "car", "the"],
    ]
    docs = [spacy.tokens.Doc(nlp.vocab, words=words) for words in sentences]
    examples = [
        Example.from_dict(doc, {"tags": [tags[token.text] for token in doc]}) for doc in docs
    ]
    spacy.util.fix_random_seed(0)
    optimiser = nlp.initialize(lambda: examples)
    for _ in range(40):
        nlp.update(examples, sgd=optimiser)
    return nlp


def test_a_pipeline_with_a_tagger_says_what_the_words_are(resources, tagging_pipeline):
    content = "the dogs, (car) big pleasant"
    by_spacy = {
        1: Query("dogs", "n"),
        2: Query("car", "v"),
        3: Query("big", "n"),
        4: Query("pleasant", "a"),
    }
    tagged = replace(
        resources, tag=partial(tag_tokens, tagging_pipeline), pipeline=tagging_pipeline
    )
    assert find_queries(content, tagged, 3) == by_spacy
    assert find_queries(content, resources, 3)[2] == Query("car", "n")
    table = build([content], tagged, Options(tagger="spacy", vectors="spacy"))
    assert read_description(table)["options"]["tagger"] == "spacy"
    # WordNet has no verb `car` and no noun `big`.
    assert table.to_pylist()[0]["words"] == ["dogs", "pleasant"]
    table = build([content], resources, Options())
    assert table.to_pylist()[0]["words"] == ["dogs", "car", "big", "pleasant"]


# Words of a vocabulary: their vectors are random, and the tagger knows nouns by `n`, verbs by `v`.
WORDS = ["nab", "nac", "nad", "nae", "vab", "vac", "vad", "vae", "nthe", "nrare", "n3", "Nbig", "n"]


@pytest.fixture(scope="module")
def vocabulary_resources():
    """A pipeline with a Vocab of random vectors, log probabilities, and a tagger by first letter."""
    spacy = pytest.importorskip("spacy")

    @spacy.Language.component("tag_by_letter")
    def tag_by_letter(doc):
        for token in doc:
            token.tag_ = {"n": "NN", "v": "VB"}.get(token.text[0], "DT")
        return doc

    nlp = spacy.blank("en")
    nlp.add_pipe("tag_by_letter")
    random = np.random.default_rng(5)
    # A common part, so that many cosines are above 0.6 and some are not.
    vectors = random.normal(size=(len(WORDS), 6)) + 1.0
    for word, vector in zip(WORDS, vectors, strict=True):
        nlp.vocab.set_vector(word, vector.astype(np.float32))
    probabilities = dict.fromkeys([*WORDS, "nnovector"], -10.0) | {"nrare": -15.0}
    small = make_stand_in_resources()
    return replace(
        small,
        stop_words=frozenset({"nthe"}),
        tag=partial(tag_tokens, nlp),
        pipeline=nlp,
        probabilities=probabilities,
    )


SPACY_WORDS = {"words": "spacy", "tagger": "spacy", "vectors": "spacy", "min_characters": 2}


@pytest.mark.parametrize("neighbours", [2, 4, 10])
def test_words_of_a_vocabulary_are_the_nearest_by_numpy(vocabulary_resources, neighbours):
    """Plain loops: cosine, common words alone, part of speech before score, polarity of all 0."""
    vocab = vocabulary_resources.pipeline.vocab
    common = [word for word in WORDS if word not in ("nthe", "nrare", "n3", "Nbig", "n")]
    options = Options(**SPACY_WORDS, neighbours=neighbours, top=3)
    row = build([" ".join(WORDS[:8])], vocabulary_resources, options).to_pylist()[0]
    found = dict(zip(row["words"], row["candidates"], strict=True))
    scores = dict(zip(row["words"], row["scores"], strict=True))
    used_other_pos = False
    for word in common:
        vector = vocab.get_vector(word).astype(float)
        cosines = {}
        for other in common:
            theirs = vocab.get_vector(other).astype(float)
            size = np.sqrt((vector**2).sum() * (theirs**2).sum())
            cosines[other] = float((vector * theirs).sum() / size)
        del cosines[word]
        near = sorted(cosines, key=lambda other: -cosines[other])[:neighbours]
        near = [other for other in near if cosines[other] > 0.6]
        near.sort(key=lambda other: (other[0] != word[0], -cosines[other]))
        assert found.get(word, []) == near[:3], word
        used_other_pos |= any(other[0] != word[0] for other in near[:3])
        expected = [0.6 * cosines[other] + 0.4 for other in near[:3]]
        assert scores.get(word, []) == pytest.approx(expected, abs=2e-6)
    assert used_other_pos
    assert any(len(texts) < 3 for texts in found.values())


def test_the_limit_of_log_probability_and_the_length_of_words(vocabulary_resources):
    rare = Options(**SPACY_WORDS, min_log_probability=-15.1, min_similarity=-1, top=12)
    row = build(["nab n"], vocabulary_resources, rare).to_pylist()[0]
    assert row["words"] == ["nab"]  # `n` has one character
    assert "nrare" in row["candidates"][0]
    common = Options(**SPACY_WORDS, min_similarity=-1, top=12)
    row = build(["nab n"], vocabulary_resources, common).to_pylist()[0]
    assert sorted(row["candidates"][0]) == sorted(set(WORDS[1:8]))
    with pytest.raises(UserError, match="no word of the spaCy model has a vector and a log prob"):
        build(["nab"], vocabulary_resources, Options(**SPACY_WORDS, min_log_probability=0))
