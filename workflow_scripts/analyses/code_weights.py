"""Which codes CAT's states are composed of: the sememes of single words, and how many codes of each layer are used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas
import torch
from torch.nn.utils.rnn import pad_sequence

from workflow_scripts.analyses.trained_runs import AnalysisResult, TrainedRun, make_score_row, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.options import drop_name, merge_options
from workflow_scripts.models.encoder.model import PAD
from workflow_scripts.models.encoder.vocabulary import extract_vocabulary
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.masked_lm.batches import read_sentence_ids
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, read_sememe_lexicon

BATCH = 64  # sentences
COLUMNS = {
    "words": ["word", "rank", "sememe", "share", "gold"],
    "gold": ["word", "sememe"],
    "usage": ["layer", "part", "share"],
}


@dataclass(frozen=True)
class CodeWeights:
    """ids [B, S]; words [B, S], true on what is no special token; codes: of each layer |O| [B, S, K]."""

    ids: np.ndarray
    words: np.ndarray
    codes: list[np.ndarray]


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """The weights O of the codes in the state of each token, of pre-trained CAT models.

    options:
        words: each read alone, `[CLS] word [SEP]`; words.csv has the `top` sememes of the last layer with their share
            of the weights (percent, mean over pieces) and whether the word has them, gold.csv all that it has.
        split, sentences, seed: at most so many first sentences of the split, drawn at random, for the scores; their
            first `longest` tokens.
        parts: usage.csv has for each layer the share (percent) of tokens that use a code, the mean over each of so
            many equal parts of the codes, the most used ones first; fewer where a layer has fewer codes.
    Scores by layer: `active_codes` of a token; `used_codes`, percent of the layer's codes that any token uses. Of the
    last layer, over the words that have sememes: `gold_weight`, percent of the weights that lie on them;
    `gold_weight_mean_word`, the same with the mean weights of all words in place of its own, so what is had without
    telling words apart; `gold_first`, percent of words whose largest weight lies on one; `zero_words`, percent without
    any code.
    """
    given = merge_options(options, words=[], top=5, split="valid", sentences=500, seed=0, longest=64, parts=40)
    tables: dict[str, list[pandas.DataFrame]] = {name: [] for name in COLUMNS}
    scores = []
    for run in runs:
        model, tokenizer = load_cat_model(run)
        lexicon, count = read_sememe_lexicon(run.data, tokenizer)
        continues = extract_vocabulary(tokenizer, run.data / "tokenizer.json").continues
        if model.config.last_codes != count:
            raise UserError(f"{run} has {model.config.last_codes} codes in its last layer, its data {count} sememes")
        names = read_json(run.data / "sememe_names.json")
        encoded = tokenizer.encode_batch(given["words"], add_special_tokens=False)
        alone = [np.array(row.ids) for row in encoded]
        for words, batch in zip(chunks(given["words"]), read_codes(model, tokenizer, alone), strict=True):
            _, _, gold = lexicon.look_up(batch.ids, batch.words, continues)
            of_word = [mean[batch.words[i]].mean(0) for i, mean in enumerate(batch.codes[-1])]
            for word, weights, own in zip(words, of_word, gold, strict=True):
                found = make_word_tables(word, weights, own[own != NONE], names, given["top"])
                for name, table in found.items():
                    tables[name].append(table.assign(**run.columns))
        first, _ = read_sentence_ids(run.data, given["split"])
        drawn = np.sort(np.random.default_rng(given["seed"]).permutation(len(first.length))[: given["sentences"]])
        texts = [first.ids[first.start[i] : first.start[i] + min(first.length[i], given["longest"])] for i in drawn]
        used = [np.zeros(codebook.codebook.shape[0]) for codebook in model.codebooks]
        parts = min(given["parts"], *map(len, used))
        words, tokens = [], 0
        for batch in read_codes(model, tokenizer, texts):
            tokens += int(batch.words.sum())
            for layer, weights in enumerate(batch.codes):
                used[layer] += (weights[batch.words] > 0).sum(0)
            words.append(select_word_weights(batch, *lexicon.look_up(batch.ids, batch.words, continues)))
        for layer, uses in enumerate(used, start=1):
            where = {"split": given["split"], "layer": layer}
            scores.append(make_score_row(run, "active_codes", uses.sum() / tokens, "codes", tokens, **where))
            scores.append(make_score_row(run, "used_codes", 100 * (uses > 0).mean(), "percent", len(uses), **where))
            share = [100 * part.mean() / tokens for part in np.array_split(np.sort(uses)[::-1], parts)]
            table = pandas.DataFrame({"layer": layer, "part": np.arange(len(share)) + 1, "share": share})
            tables["usage"].append(table.assign(**run.columns))
        for metric, (value, n) in compute_gold_scores(*map(np.concatenate, zip(*words, strict=True))).items():
            scores.append(make_score_row(run, metric, value, "percent", n, split=given["split"]))
    return AnalysisResult(scores, {name: stack_tables(tables[name], columns) for name, columns in COLUMNS.items()})


def load_cat_model(run: TrainedRun):
    """(the CatModel of a run in eval mode, its tokenizer). Raises UserError for a run of another model."""
    settings = read_json(run.folder / "run.json")["spec"]["model"]
    folder = run.folder / "checkpoint"
    model = import_model(settings).load_model(folder, drop_name(settings)).eval()
    if not hasattr(model, "codebooks"):
        raise UserError(f"displays.yaml: {run} has no codes to analyse; take it out of the analysis' runs")
    return model, load_tokenizer(folder)


@torch.no_grad()
def read_codes(model, tokenizer, texts: Sequence[np.ndarray]) -> Iterator[CodeWeights]:
    """The weights of texts, each the ids [S] of its pieces, BATCH at a time."""
    cls, sep = (torch.tensor([tokenizer.token_to_id(name)]) for name in ("[CLS]", "[SEP]"))
    for part in chunks(texts):
        rows = [torch.cat([cls, torch.from_numpy(text.astype(np.int64)), sep]) for text in part]
        ids = pad_sequence(rows, batch_first=True, padding_value=PAD)
        length = torch.tensor([len(row) for row in rows])[:, None]
        column = torch.arange(ids.shape[1])
        real = column < length
        output = model(input_ids=ids, attention_mask=real.long(), token_type_ids=torch.zeros_like(ids))
        words = (column > 0) & (column < length - 1)
        yield CodeWeights(ids.numpy(), words.numpy(), [codes.normalise().abs().numpy() for codes in output.codes])


def chunks(items: Sequence) -> Iterator[Sequence]:
    """BATCH items at a time."""
    for start in range(0, len(items), BATCH):
        yield items[start : start + BATCH]


def make_word_tables(
    word: str, weights: np.ndarray, gold: np.ndarray, names: Sequence[str], top: int
) -> dict[str, pandas.DataFrame]:
    """Tables `words` and `gold` of one word, from its weights [K] and the numbers of its sememes."""
    order = np.argsort(-weights, kind="stable")[:top]
    order = order[weights[order] > 0]
    found = {
        "word": word,
        "rank": np.arange(len(order)) + 1,
        "sememe": [names[i] for i in order],
        "share": 100 * weights[order] / max(weights.sum(), np.finfo(float).tiny),
        "gold": np.isin(order, gold),
    }
    own = {"word": word, "sememe": [names[i] for i in gold]}
    return {"words": pandas.DataFrame(found), "gold": pandas.DataFrame(own, columns=COLUMNS["gold"])}


def select_word_weights(
    batch: CodeWeights, number: np.ndarray, pieces: np.ndarray, sememes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """(O of the last layer, is it gold) of the words that have sememes: both [W, K], O the mean over a word's pieces.

    number, pieces, sememes: as `SememeLexicon.look_up` gives them.
    """
    weights = np.zeros((len(pieces), batch.codes[-1].shape[-1]))
    np.add.at(weights, number, batch.codes[-1][batch.words])
    weights /= pieces[:, None]
    gold = np.zeros(weights.shape, bool)
    word, place = np.nonzero(sememes != NONE)
    gold[word, sememes[word, place]] = True
    known = gold.any(1)
    return weights[known], gold[known]


def compute_gold_scores(weights: np.ndarray, gold: np.ndarray) -> dict[str, tuple[float, int]]:
    """Metric -> (percent, words), from the weights and the sememes [W, K] of words; see `analyse`."""
    total = weights.sum(1)
    found = {"zero_words": (100 * float((total == 0).mean()), len(total))} if len(total) else {}
    some = total > 0
    if some.any():
        weights, gold, total = weights[some], gold[some], total[some]
        n, mean = len(total), (weights / total[:, None]).mean(0)
        found["gold_weight"] = (100 * float(((weights * gold).sum(1) / total).mean()), n)
        found["gold_weight_mean_word"] = (100 * float((gold @ mean).mean()), n)
        found["gold_first"] = (100 * float(gold[np.arange(n), weights.argmax(1)].mean()), n)
    return found
