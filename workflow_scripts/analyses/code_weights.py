"""Codes of CAT's states: the sememes of single words, and how many codes of a layer are used."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas
import torch
from tokenizers import Tokenizer
from torch.nn.utils.rnn import pad_sequence

from workflow_scripts.analyses.options.code_weights import Options
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.files import read_json
from workflow_scripts.common.result_folders import DataFolder
from workflow_scripts.models.cat.model import CatModel
from workflow_scripts.models.encoder.model import PAD, extract_vocabulary
from workflow_scripts.models.hugging_face import load_tokenizer
from workflow_scripts.models.importing import import_model
from workflow_scripts.tasks.masked_lm.batches import read_sentence_ids
from workflow_scripts.tasks.masked_lm.sememe_lexicon import NONE, SememeLexicon, read_sememe_lexicon
from workflow_scripts.tasks.run_spec import parse_named_settings

BATCH = 64  # sentences
COLUMNS = {"words": ["word", "rank", "sememe", "share", "gold"], "gold": ["word", "sememe"]}


class TokenCodes(NamedTuple):
    """ids [B, S]; words [B, S], false on special tokens; codes: |O| [B, S, K] of each layer."""

    ids: np.ndarray
    words: np.ndarray
    codes: list[np.ndarray]


@dataclass(frozen=True)
class LoadedRun:
    """A CAT model with what its codes mean.

    lexicon: the gold sememes of words. sememe_names: by number. continues [V] bool: True for pieces
    that do not begin a word.
    """

    model: CatModel
    tokenizer: Tokenizer
    lexicon: SememeLexicon
    sememe_names: list[str]
    continues: np.ndarray


class WeightsOfWords(NamedTuple):
    """Weights [W, K] of the codes of each word, and whether the sememe is one of its gold ones."""

    weights: np.ndarray
    gold: np.ndarray


@dataclass(frozen=True)
class CodeUses:
    """What codes the tokens of some texts use.

    by_layer [K] each: in how many tokens a code of the layer has a weight. tokens: their number.
    words: the weights of the last layer of words with gold sememes.
    """

    by_layer: list[np.ndarray]
    tokens: int
    words: WeightsOfWords


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Describe the weights O of the codes in the state of each token, for pre-trained CAT models.

    words.csv has the sememes of the last layer for single words, with their share of the weights
    (percent, mean over pieces) and whether they are gold; gold.csv has all gold sememes.

    Scores of each layer: `active_codes` of a token; `used_codes`, percent of the layer's codes that
    any token uses. Scores of the last layer, the one that has sememes, over words with gold
    sememes, in percent: `gold_weight` on gold sememes, the mean of words; `gold_first`, words whose
    largest weight is on a gold sememe; `zero_words`, words without any code, which the other scores
    leave out. What `gold_weight` would be if all words had the same weights:
    `gold_weight_mean_word`, the mean weights of all words; `gold_weight_uniform`, equal ones on all
    sememes; `gold_weight_one_sememe`, all on the one sememe that most words have. A `gold_weight`
    that is not above all of these does not say that words attend to their own sememes.
    """
    split = options.split
    tables: dict[str, list[pandas.DataFrame]] = {name: [] for name in COLUMNS}
    scores = []
    for run in runs:
        loaded = load_run_with_lexicon(run)
        unknown = set(options.without) - set(loaded.sememe_names)
        if unknown:
            raise UserError(
                f"displays.yaml: {run.data} has no sememe '{min(unknown)}'; correct `without`"
            )
        for word_tables in describe_words(loaded, options.words, options.top):
            for name, table in word_tables.items():
                tables[name].append(table.assign(**run.columns))

        uses = observe_codes(loaded, sample_sentences(run, options))
        tokens = uses.tokens
        for layer, used in enumerate(uses.by_layer, start=1):
            values = {
                "active_codes": (used.sum() / tokens, "codes", tokens),
                "used_codes": (100 * (used > 0).mean(), "percent", len(used)),
            }
            scores += run.make_scores(values, split=split, layer=layer)
        weights, gold = uses.words
        left_out = [loaded.sememe_names.index(name) for name in options.without]
        kept = ~gold[:, left_out].any(1)
        gold_scores = compute_gold_scores(weights[kept], gold[kept])
        scores += run.make_scores(gold_scores, split=split)
    files = {name: stack_tables(tables[name], columns) for name, columns in COLUMNS.items()}
    return AnalysisResult(scores, files)


def load_run_with_lexicon(run: TrainedRun) -> LoadedRun:
    """Load the model of a run and the sememes of its data. Raises UserError if they disagree."""
    model, tokenizer = load_cat_model(run)
    lexicon, sememe_count = read_sememe_lexicon(run.data, tokenizer)
    if model.config.last_codes != sememe_count:
        raise UserError(
            f"{run} has {model.config.last_codes} codes in its last layer, "
            f"its data {sememe_count} sememes"
        )
    data = DataFolder(run.data)
    vocabulary = extract_vocabulary(tokenizer, data.tokenizer)
    sememe_names = read_json(data.sememe_names)
    return LoadedRun(model, tokenizer, lexicon, sememe_names, vocabulary.continues)


def load_cat_model(run: TrainedRun) -> tuple[CatModel, Tokenizer]:
    """Load the CatModel of a run in eval mode, and its tokenizer.

    Raises UserError for a run of another model.
    """
    manifest = run.files.manifest
    section = parse_named_settings(read_json(manifest)["spec"]["model"], "model", manifest)
    module = import_model(section.name)
    folder = run.files.checkpoint
    model: Any = None
    if hasattr(module, "load_model"):  # that of an encoder
        model = module.load_model(folder, section.settings).eval()
    if not hasattr(model, "codebooks"):
        raise UserError(
            f"displays.yaml: {run} has no codes to analyse; take it out of the analysis's runs"
        )
    return model, load_tokenizer(folder)


def describe_words(
    loaded: LoadedRun, words: Sequence[str], top: int
) -> Iterator[dict[str, pandas.DataFrame]]:
    """Yield the tables `words` and `gold` of each word, which is read alone.

    Raises UserError for a text that is not one word for the tokenizer.
    """
    encodings = loaded.tokenizer.encode_batch(words, add_special_tokens=False)
    texts = []
    for word, encoding in zip(words, encodings, strict=True):
        ids = np.array(encoding.ids, np.int64)
        count = int((~loaded.continues[ids]).sum())
        if count != 1:
            raise UserError(
                f"displays.yaml: '{word}' is {count} words for the tokenizer of the model; take "
                "another word"
            )
        texts.append(ids)
    remaining = iter(words)
    for batch in read_codes(loaded.model, loaded.tokenizer, texts):
        _, _, sememes = loaded.lexicon.look_up(batch.ids, batch.words, loaded.continues)
        for codes, pieces, row in zip(batch.codes[-1], batch.words, sememes, strict=True):
            weights = codes[pieces].mean(0)
            gold = row[row != NONE]
            yield make_word_tables(next(remaining), weights, gold, loaded.sememe_names, top)


def sample_sentences(run: TrainedRun, options: Options) -> list[np.ndarray]:
    """Draw first sentences of a split: the ids of at most `longest` pieces of each."""
    first, _ = read_sentence_ids(run.data, options.split)
    order = np.random.default_rng(options.seed).permutation(len(first.length))
    sample = np.sort(order[: options.sentences])
    texts = []
    for row in sample:
        start = first.start[row]
        length = min(first.length[row], options.longest)
        texts.append(first.ids[start : start + length])
    return texts


def observe_codes(loaded: LoadedRun, texts: Sequence[np.ndarray]) -> CodeUses:
    """Read texts, each the ids [S] of its pieces, and collect the uses of codes."""
    codebooks = [codebook.get_parameter("codebook") for codebook in loaded.model.codebooks]
    by_layer = [np.zeros(len(codebook)) for codebook in codebooks]
    tokens = 0
    batches: list[WeightsOfWords] = []
    for batch in read_codes(loaded.model, loaded.tokenizer, texts):
        tokens += int(batch.words.sum())
        for layer, weights in enumerate(batch.codes):
            by_layer[layer] += (weights[batch.words] > 0).sum(0)
        sememes = loaded.lexicon.look_up(batch.ids, batch.words, loaded.continues)
        batches.append(select_word_weights(batch, *sememes))
    weights = np.concatenate([batch.weights for batch in batches])
    gold = np.concatenate([batch.gold for batch in batches])
    return CodeUses(by_layer, tokens, WeightsOfWords(weights, gold))


@torch.no_grad()
def read_codes(
    model: CatModel, tokenizer: Tokenizer, texts: Sequence[np.ndarray]
) -> Iterator[TokenCodes]:
    """Compute the weights for texts, each the ids [S] of its pieces; yield them in batches."""
    cls = torch.tensor([tokenizer.token_to_id("[CLS]")])
    sep = torch.tensor([tokenizer.token_to_id("[SEP]")])
    for start in range(0, len(texts), BATCH):
        rows = []
        for text in texts[start : start + BATCH]:
            rows.append(torch.cat([cls, torch.from_numpy(text.astype(np.int64)), sep]))
        ids = pad_sequence(rows, batch_first=True, padding_value=PAD)
        length = torch.tensor([len(row) for row in rows])[:, None]
        column = torch.arange(ids.shape[1])
        mask = (column < length).long()
        output = model(input_ids=ids, attention_mask=mask, token_type_ids=torch.zeros_like(ids))
        words = (column > 0) & (column < length - 1)
        weights = [codes.normalise().abs().numpy() for codes in output.codes]
        yield TokenCodes(ids.numpy(), words.numpy(), weights)


def make_word_tables(
    word: str, weights: np.ndarray, gold: np.ndarray, sememe_names: Sequence[str], top: int
) -> dict[str, pandas.DataFrame]:
    """Make the tables `words` and `gold` of a word.

    weights [K]: of the codes. gold: the numbers of its gold sememes.
    """
    order = np.argsort(-weights, kind="stable")[:top]
    order = order[weights[order] > 0]
    total = max(weights.sum(), np.finfo(float).tiny)
    top_sememes = {
        "word": word,
        "rank": np.arange(len(order)) + 1,
        "sememe": [sememe_names[number] for number in order],
        "share": 100 * weights[order] / total,
        "gold": np.isin(order, gold),
    }
    gold_sememes = {"word": word, "sememe": [sememe_names[number] for number in gold]}
    return {
        "words": pandas.DataFrame(top_sememes),
        "gold": pandas.DataFrame(gold_sememes, columns=COLUMNS["gold"]),
    }


def select_word_weights(
    batch: TokenCodes, number: np.ndarray, pieces: np.ndarray, sememes: np.ndarray
) -> WeightsOfWords:
    """Return |O| of the last layer for the words with gold sememes.

    |O| is the mean over a word's pieces; the other arguments are what `SememeLexicon.look_up`
    returns.
    """
    weights = np.zeros((len(pieces), batch.codes[-1].shape[-1]))
    np.add.at(weights, number, batch.codes[-1][batch.words])
    weights /= pieces[:, None]
    gold = np.zeros(weights.shape, bool)
    word, place = np.nonzero(sememes != NONE)
    gold[word, sememes[word, place]] = True
    has_gold = gold.any(1)
    return WeightsOfWords(weights[has_gold], gold[has_gold])


def compute_gold_scores(weights: np.ndarray, gold: np.ndarray) -> dict[str, tuple[float, str, int]]:
    """Return metric -> (value, "percent", number of words) of words with gold sememes.

    weights, gold [W, K]: see `WeightsOfWords`. The scores: see `analyse`.
    """
    has_codes = weights.sum(1) > 0
    by_word = {"zero_words": ~has_codes}
    if has_codes.any():
        weights = weights[has_codes]
        gold = gold[has_codes]
        totals = weights.sum(1)
        shares = weights / weights.sum(1, keepdims=True)
        most_frequent = gold.sum(0).argmax()
        by_word["gold_weight"] = (weights * gold).sum(1) / totals
        by_word["gold_weight_mean_word"] = gold @ shares.mean(0)
        by_word["gold_weight_uniform"] = gold.mean(1)
        by_word["gold_weight_one_sememe"] = gold[:, most_frequent]
        by_word["gold_first"] = gold[np.arange(len(weights)), weights.argmax(1)]
    scores = {}
    for metric, values in by_word.items():
        if len(values):
            scores[metric] = (100 * float(values.mean()), "percent", len(values))
    return scores
