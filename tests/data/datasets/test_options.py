"""Wrong options of the data sets are refused in one line that names the key."""

import pytest

from tests.data.datasets.test_pretraining_text import SMALL as TEXT
from tests.data.datasets.test_wmt import OPTIONS as WMT
from tests.data.preparing import prepare_data
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import (
    cfq,
    cognition,
    cogs,
    inverse_dictionary,
    paws,
    pretraining_pairs,
    pretraining_text,
    scan,
    squad,
    sst,
    sst2,
    sts,
    wikipedia_bookcorpus,
    wmt,
)


@pytest.mark.parametrize(
    ("module", "options", "message"),
    [
        (cfq, {"split": "mcd1"}, "needs the source cfq/cfq.tar.gz"),
        (cfq, {}, "key 'split' is missing"),
        (cfq, {"split": "mcd4"}, "key 'split' is 'mcd4'"),
        (
            cfq,
            {"split": "mcd1", "preprocessing": "official", "inverse": True},
            "'inverse' means nothing",
        ),
        (cognition, {}, r"needs the source cognition/processed_code"),
        (cognition, {"trainig": "upstream"}, "did you mean 'training'?"),
        (
            cognition,
            {"from": "stand_in", "training": "valid_and_test", "held_out": 60},
            "below half of 120 pairs",
        ),
        (cogs, {}, "needs the source cogs/train.tsv"),
        (cogs, {"from": "grammar"}, "key 'from' is 'grammar'"),
        (
            cogs,
            {"from": "stand_in", "limit": {"gen": 3}},
            "no split gen to limit here; known: train, test, dev",
        ),
        (inverse_dictionary, {}, "needs the source wordnet/wordnet-3.0-dict.tar.xz; "),
        (inverse_dictionary, {"split_by": "gloss"}, "key 'split_by' is 'gloss'"),
        (inverse_dictionary, {"definienda": 0}, "key 'definienda' is 0"),
        (paws, {"from": "stand_in", "validation": 500}, "key 'validation' is 500; "),
        (
            pretraining_pairs,
            {"vocabulary_size": 400},
            "needs the source wordnet/wordnet-3.0-dict.tar.xz",
        ),
        (pretraining_text, {}, "key 'tokenizer' is missing"),
        (pretraining_text, TEXT | {"tokenizer": "words"}, "key 'tokenizer' is 'words'"),
        (pretraining_text, TEXT | {"vocabulary_size": 256}, "key 'vocabulary_size' is 256"),
        (
            pretraining_text,
            TEXT | {"from": "upstream"},
            "needs the source wordnet/wordnet-3.0-dict.tar.xz; ",
        ),
        (scan, {"set": "add_jmup"}, "key 'set' is 'add_jmup'"),
        (scan, {"set": "add_jump", "validation_fraction": 1.5}, "less than 1"),
        (scan, {"set": "add_jump", "multiple": 2}, "'multiple' means nothing for set add_jump"),
        (
            scan,
            {"set": "complexity", "multiple": 1, "atomic_copies": 5},
            "'atomic_copies' means nothing for set",
        ),
        (scan, {"set": "complexity"}, "needs the key 'multiple'"),
        (scan, {"set": "add_jump", "limit": {"tset": 5}}, "no split tset"),
        (
            scan,
            {"set": "add_jump", "from": "upstream"},
            "needs the source scan/tasks_test_addprim_jump.txt",
        ),
        (
            squad,
            {"from": "stand_in", "validation": 300},
            "'validation' is 300; it leaves no question for training",
        ),
        (sst, {}, "needs the source sst/trainDevTestTrees_PTB.zip"),
        (sst, {"from": "grammar"}, "key 'from' is 'grammar'"),
        (
            sst2,
            {"from": "stand_in", "test": 700},
            "key 'test' is 700; the training set has 700 phrases",
        ),
        (
            sts,
            {"from": "stand_in", "test": "MSRvd"},
            "key 'test' is 'MSRvd'; did you mean 'MSRvid'?",
        ),
        (wikipedia_bookcorpus, {}, "needs the source bookcorpus/bookcorpus.tar.bz2"),
        (wikipedia_bookcorpus, {"validation_every": 1}, "key 'validation_every' is 1"),
        (wmt, WMT, "needs the source wmt/news.tgz"),
        (wmt, WMT | {"target": "de"}, "wmt/news.tgz has no file for the language 'de'"),
        (wmt, WMT | {"target": "zh"}, "key 'target' is 'zh'"),
        (wmt, WMT | {"validation_every": 1}, "key 'validation_every' is 1"),
    ],
)
def test_wrong_options_are_refused_in_one_line(module, options, message):
    with pytest.raises(UserError) as caught:
        prepare_data(module, options, {})
    assert message in str(caught.value).splitlines()[0]
