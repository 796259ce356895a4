"""Codes that CAT's states are composed of: the sememes of single words, and how many codes of each layer are used."""

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from torch.nn.utils.rnn import pad_sequence

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.models.encoder.model import PAD, extract_vocabulary
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.masked_lm.batches import read_sentence_ids
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, read_sememe_lexicon
from workflow_scripts.tasks.run_spec import parse_named_settings

BATCH = 64  # sentences
COLUMNS = {"words": ["word", "rank", "sememe", "share", "gold"], "gold": ["word", "sememe"]}


class TokenCodes(NamedTuple):
    """ids [B, S]; words [B, S], false on special tokens; codes: |O| [B, S, K] of each layer."""

    ids: np.ndarray
    words: np.ndarray
    codes: list[np.ndarray]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Describe the weights O of the codes in the state of each token, for pre-trained CAT models.

    options:
        words: each is read alone, as `[CLS] word [SEP]`. words.csv has the `top` sememes of the last layer, with their
            share of the weights (percent, mean over pieces) and whether they are gold; gold.csv has all gold sememes.
        split, sentences, seed, longest: scores are of the first `longest` tokens of `sentences` random first sentences.
        without: names of sememes; scores of the last layer leave out words that have one of them.
    Scores of each layer: `active_codes` of a token; `used_codes`, percent of the layer's codes that any token uses.
    Scores of the last layer, the one that has sememes, over words with gold sememes, in percent: `gold_weight` on gold
    sememes, the mean of words; `gold_first`, words whose largest weight is on a gold sememe; `zero_words`, words
    without any code, which the other scores leave out. What `gold_weight` would be if all words had the same weights:
    `gold_weight_mean_word`, the mean weights of all words; `gold_weight_uniform`, equal ones on all sememes;
    `gold_weight_one_sememe`, all on the one sememe that most words have. A `gold_weight` that is not above all of these
    does not say that words attend to their own sememes.
    """
    given = merge_options(
        options, words=[], top=5, split="valid", sentences=500, seed=0, longest=64, without=[]
    )
    tables: dict[str, list[pandas.DataFrame]] = {name: [] for name in COLUMNS}
    scores = []
    for run in runs:
        model, tokenizer = load_cat_model(run)
        lexicon, count = read_sememe_lexicon(run.data, tokenizer)
        continues = extract_vocabulary(tokenizer, run.data / "tokenizer.json").continues
        if model.config.last_codes != count:
            raise UserError(
                f"{run} has {model.config.last_codes} codes in its last layer, its data {count} sememes"
            )
        names = read_json(run.data / "sememe_names.json")
        if unknown := set(given["without"]) - set(names):
            raise UserError(
                f"displays.yaml: {run.data} has no sememe '{min(unknown)}'; correct `without`"
            )
        encoded = tokenizer.encode_batch(given["words"], add_special_tokens=False)
        found = []
        for batch in read_codes(model, tokenizer, [np.array(row.ids) for row in encoded]):
            _, _, gold = lexicon.look_up(batch.ids, batch.words, continues)
            rows = zip(batch.codes[-1], batch.words, gold, strict=True)
            found += [(codes[words].mean(0), own[own != NONE]) for codes, words, own in rows]
        for word, (weights, gold) in zip(given["words"], found, strict=True):
            for name, table in make_word_tables(word, weights, gold, names, given["top"]).items():
                tables[name].append(table.assign(**run.columns))
        first, _ = read_sentence_ids(run.data, given["split"])
        drawn = np.sort(
            np.random.default_rng(given["seed"]).permutation(len(first.length))[
                : given["sentences"]
            ]
        )
        texts = [
            first.ids[first.start[i] : first.start[i] + min(first.length[i], given["longest"])]
            for i in drawn
        ]
        uses = [np.zeros(codebook.codebook.shape[0]) for codebook in model.codebooks]
        words, tokens = [], 0
        for batch in read_codes(model, tokenizer, texts):
            tokens += int(batch.words.sum())
            for layer, weights in enumerate(batch.codes):
                uses[layer] += (weights[batch.words] > 0).sum(0)
            words.append(
                select_word_weights(batch, *lexicon.look_up(batch.ids, batch.words, continues))
            )
        for layer, used in enumerate(uses, start=1):
            codes = {"active_codes": (used.sum() / tokens, "codes", tokens)}
            codes["used_codes"] = 100 * (used > 0).mean(), "percent", len(used)
            scores += run.make_scores(codes, split=given["split"], layer=layer)
        weights, gold = map(np.concatenate, zip(*words, strict=True))
        kept = ~gold[:, [names.index(name) for name in given["without"]]].any(1)
        scores += run.make_scores(
            compute_gold_scores(weights[kept], gold[kept]), split=given["split"]
        )
    return AnalysisResult(
        scores, {name: stack_tables(tables[name], columns) for name, columns in COLUMNS.items()}
    )


def load_cat_model(run: TrainedRun):
    """Load the CatModel of a run in eval mode, and its tokenizer. Raises UserError for a run of another model."""
    manifest = run.folder / "run.json"
    section = parse_named_settings(read_json(manifest)["spec"]["model"], "model", manifest)
    folder = run.folder / "checkpoint"
    model = import_model(section.name).load_model(folder, section.settings).eval()
    if not hasattr(model, "codebooks"):
        raise UserError(
            f"displays.yaml: {run} has no codes to analyse; take it out of the analysis's runs"
        )
    return model, load_tokenizer(folder)


@torch.no_grad()
def read_codes(model, tokenizer, texts: Sequence[np.ndarray]) -> Iterator[TokenCodes]:
    """Compute the weights for texts, each the ids [S] of its pieces; yield them in batches."""
    cls, sep = (torch.tensor([tokenizer.token_to_id(name)]) for name in ("[CLS]", "[SEP]"))
    for start in range(0, len(texts), BATCH):
        rows = [
            torch.cat([cls, torch.from_numpy(text.astype(np.int64)), sep])
            for text in texts[start : start + BATCH]
        ]
        ids = pad_sequence(rows, batch_first=True, padding_value=PAD)
        length = torch.tensor([len(row) for row in rows])[:, None]
        column = torch.arange(ids.shape[1])
        mask = (column < length).long()
        output = model(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids))
        words = (column > 0) & (column < length - 1)
        yield TokenCodes(
            ids.numpy(), words.numpy(), [codes.normalise().abs().numpy() for codes in output.codes]
        )


def make_word_tables(
    word: str, weights: np.ndarray, gold: np.ndarray, names: Sequence[str], top: int
) -> dict[str, pandas.DataFrame]:
    """Make the tables `words` and `gold` of a word from its weights [K] and the numbers of its gold sememes."""
    order = np.argsort(-weights, kind="stable")[:top]
    order = order[weights[order] > 0]
    found = {"word": word, "rank": np.arange(len(order)) + 1, "sememe": [names[i] for i in order]}
    share = 100 * weights[order] / max(weights.sum(), np.finfo(float).tiny)
    found |= {"share": share, "gold": np.isin(order, gold)}
    own = {"word": word, "sememe": [names[i] for i in gold]}
    return {
        "words": pandas.DataFrame(found),
        "gold": pandas.DataFrame(own, columns=COLUMNS["gold"]),
    }


def select_word_weights(
    batch: TokenCodes, number: np.ndarray, pieces: np.ndarray, sememes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Return (|O| of the last layer, whether the sememe is gold), both [W, K], for the words with gold sememes.

    |O| is the mean over a word's pieces; the other arguments are what `SememeLexicon.look_up` returns.
    """
    weights = np.zeros((len(pieces), batch.codes[-1].shape[-1]))
    np.add.at(weights, number, batch.codes[-1][batch.words])
    weights /= pieces[:, None]
    gold = np.zeros(weights.shape, bool)
    word, place = np.nonzero(sememes != NONE)
    gold[word, sememes[word, place]] = True
    known = gold.any(1)
    return weights[known], gold[known]


def compute_gold_scores(weights: np.ndarray, gold: np.ndarray) -> dict[str, tuple[float, str, int]]:
    """Return metric -> (value, "percent", number of words) from weights and gold sememes [W, K]; see `analyse`."""
    some = weights.sum(1) > 0
    found = {"zero_words": (~some, len(some))}
    if some.any():
        weights, gold = weights[some], gold[some]
        n, shares = len(weights), weights / weights.sum(1, keepdims=True)
        found["gold_weight"] = (weights * gold).sum(1) / weights.sum(1), n
        found["gold_weight_mean_word"] = gold @ shares.mean(0), n
        found["gold_weight_uniform"] = gold.mean(1), n
        found["gold_weight_one_sememe"] = gold[:, gold.sum(0).argmax()], n
        found["gold_first"] = gold[np.arange(n), weights.argmax(1)], n
    return {
        metric: (100 * float(values.mean()), "percent", n)
        for metric, (values, n) in found.items()
        if n
    }
