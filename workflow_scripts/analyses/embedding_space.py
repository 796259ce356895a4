"""Words in the space of source embeddings: t-SNE, codes and syntactic classes (figures 3, 4, 6 and 7).

Classes are from the grammar (SCAN), or from the positions of words in logical forms (COGS).
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from typing import Any

import numpy as np
import pandas
import torch
from sklearn.manifold import TSNE
from sklearn.metrics import adjusted_rand_score, silhouette_samples, v_measure_score
from torch import nn

from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.common.plug_ins import merge_options
from workflow_scripts.data.prepared import SPECIAL_TOKENS, read_vocabularies
from workflow_scripts.tasks.batching import EOS

END = SPECIAL_TOKENS[EOS]
UNTRAINED = [token for token in SPECIAL_TOKENS if token != END]  # not in any source sentence
SCAN_WORDS = {
    "verb": "walk look run jump turn",
    "direction": "left right",
    "preposition": "around opposite",
}
SCAN_WORDS |= {"adverb": "twice thrice", "conjunction": "and after"}
SCAN_CLASSES = {word: name for name, words in SCAN_WORDS.items() for word in words.split()}
COGS_DETERMINERS = ("a", "the")
OTHER = "function word"
VERB_FORMS = {"was": "verb, participle", "to": "verb, infinitive"}  # by the word before


def project_tsne(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Project vectors [N, d] -> [N, 2] by t-SNE, with exact gradients and a PCA start.

    The perplexity is 30, or for few words a third of the others, at least 2. Raises UserError for fewer than 4 words.
    """
    if len(vectors) < 4:
        raise UserError(f"a map of {len(vectors)} words shows nothing; t-SNE needs at least 4")
    perplexity = min(30.0, max(2.0, (len(vectors) - 1) / 3))
    return TSNE(perplexity=perplexity, method="exact", init="pca", random_state=seed).fit_transform(
        vectors
    )


def assign_codes(model: nn.Module, side: str, ids: Sequence[int]) -> list[int] | None:
    """Return the code of each id of a `side`, source or target; None if the model has no codes."""
    if not hasattr(model, "assign_codes"):
        return None
    with torch.no_grad():
        return model.assign_codes(side, torch.tensor(ids)).tolist()


def make_word_table(run: TrainedRun, classes: str) -> tuple[pandas.DataFrame, np.ndarray]:
    """Return (word, class and code of each source word, embeddings [N, d]); `</s>` is a class; codes may be empty.

    `classes` is `scan` (by the grammar) or `cogs` (by the training data).
    """
    model, words = run.load()
    ids = [id_ for id_, word in enumerate(words) if word not in UNTRAINED]
    if classes == "scan":
        by_word = find_scan_classes(words)
    elif classes == "cogs":
        by_word = find_cogs_classes(run.read_pairs("train").itertuples(index=False))
    else:
        raise UserError(f"displays.yaml: option classes is {classes!r}; known: cogs, scan")
    by_word |= {END: END}
    table = pandas.DataFrame(
        {"word": [words[id_] for id_ in ids], "class": [by_word[words[id_]] for id_ in ids]}
    )
    codes = assign_codes(model, "source", ids)
    table["code"] = pandas.array(codes if codes else [None] * len(ids), "Int64")
    return table, model.source_embedding.weight.detach()[ids].float().numpy()


def analyse(runs: Sequence[TrainedRun], options: dict[str, Any]) -> AnalysisResult:
    """Map the words of each run, and score how far embeddings and codes agree with the syntactic classes.

    options:
        classes: `scan` or `cogs`; seed: of t-SNE.
        focus: {word, peers, name}: also compare the code of a source word with its peers, e.g. jump with the verbs.
        output: {word, peers, name}: the same for a target word, e.g. I_JUMP.
    Scores of the embeddings, without `</s>`: `silhouette`, the mean by class (Euclidean; -1 to 1; 0 for a class of one
    word), and `<word>_silhouette` of the focus. Scores of models with codes:
        v_measure, adjusted_rand: agreement of codes with classes (1: the same partition).
        <word>_with_<name>: 1 if the focus and all of its peers have one code, else 0.
        <word>_alone: 1 if no other word has its code, else 0. Words that differ only in a number (jump, jump1) are one.
        <word>_with_any_<name>: 1 if any peer of the output has its code, else 0.
    """
    given = merge_options(options, classes="scan", seed=0, focus=None, output=None)
    tables, scores, notes = [], [], []
    for run in runs:
        table, vectors = make_word_table(run, given["classes"])
        table[["x", "y"]] = project_tsne(vectors, given["seed"])
        tables.append(pandas.DataFrame({**run.columns, **table}))
        has_codes = table["code"].notna().all()
        real = (table["word"] != END).to_numpy()
        table, vectors = table[real].reset_index(drop=True), vectors[real]
        silhouettes = pandas.Series(silhouette_samples(vectors, table["class"]), table["word"])
        values = {"silhouette": (silhouettes.mean(), "index", len(table))}
        if has_codes:
            labels = (table["class"], table["code"].astype(int))
            values["v_measure"] = v_measure_score(*labels), "index", len(table)
            values["adjusted_rand"] = adjusted_rand_score(*labels), "index", len(table)
        if given["focus"] and _has_words(silhouettes, given["focus"], run, notes):
            word = given["focus"]["word"]
            values[f"{word}_silhouette"] = silhouettes[word], "index", 1
            if has_codes:
                codes = dict(zip(table["word"], table["code"], strict=True))
                shares = score_focus_code(codes, **given["focus"])
                values |= {name: (share, "share", 1) for name, share in shares.items()}
        if given["output"] and has_codes:
            target, wanted = read_vocabularies(run.data)["target"], given["output"]
            codes = dict(
                zip(target, assign_codes(run.load()[0], "target", range(len(target))), strict=True)
            )
            if _has_words(codes, wanted, run, notes):
                shared = codes[wanted["word"]] in [codes[peer] for peer in wanted["peers"]]
                values[f"{wanted['word']}_with_any_{wanted['name']}"] = shared, "share", 1
        scores += run.make_scores(values)
    return AnalysisResult(
        scores, {"words": stack_tables(tables, ["word", "class", "code", "x", "y"])}, notes
    )


def _has_words(
    words: Container[str], wanted: dict[str, Any], run: TrainedRun, notes: list[str]
) -> bool:
    """Return whether `words` contain a word and its peers; add a note if not."""
    missing = [name for name in (wanted["word"], *wanted["peers"]) if name not in words]
    if missing:
        notes.append(f"{run}: not in the training data: {', '.join(missing)}")
    return not missing


def score_focus_code(
    codes: dict[str, int], word: str, peers: Sequence[str], name: str
) -> dict[str, bool]:
    """Compute <word>_with_<name> and <word>_alone of `analyse` from the code of each source word."""
    sharing = {other.rstrip("0123456789") for other, code in codes.items() if code == codes[word]}
    with_peers = all(codes[peer] == codes[word] for peer in peers)
    return {f"{word}_with_{name}": with_peers, f"{word}_alone": sharing == {word}}


def find_scan_classes(words: Iterable[str]) -> dict[str, str]:
    """Find the class (section 5.2) of each SCAN word but special tokens; copies such as `walk12` have that of `walk`.

    `turn` is a verb, because the grammar has no other class for it, although it always has a direction.
    """
    originals = {word: word.rstrip("0123456789") for word in words if word not in SPECIAL_TOKENS}
    for word, original in originals.items():
        if original not in SCAN_CLASSES:
            raise UserError(
                f"'{word}' is no word of SCAN; set option classes in displays.yaml to that of the data"
            )
    return {word: SCAN_CLASSES[original] for word, original in originals.items()}


def find_cogs_classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Find the most frequent class of each COGS word in (sentence, logical form) pairs.

    In a logical form `noun ( x _ i )` makes the word at position i a common noun, `verb . role ( x _ i , ...` a verb;
    an argument that is not a variable is a proper name, and `noun . nmod . P` makes P a preposition. The logical form
    of a single word is `LAMBDA a . noun ( a )`, `LAMBDA ... verb . role ( e , ... )`, or the name itself. Verbs are
    infinitive (alone or after `to`), participle (after `was`), past (otherwise), or both ("helped"). Of the other
    words, a and the are determiners, the rest function words.
    """
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence, form in pairs:
        words = sentence.split()
        if len(words) == 1:
            alone = (
                "common noun"
                if re.fullmatch(r"LAMBDA a \. \w+ \( a \)", form)
                else "verb, infinitive"
            )
            seen[words[0]]["proper name" if form == words[0] else alone] += 1
            continue
        nouns = {int(position) for position in re.findall(r"\w+ \( x _ (\d+) \)", form)}
        verbs = {int(position) for position in re.findall(r"\w+ \. \w+ \( x _ (\d+) ,", form)}
        names = set(re.findall(r", (\w+) \)", form))
        prepositions = set(re.findall(r"nmod \. (\w+)", form))
        for position, word in enumerate(words):
            if position in nouns:
                seen[word]["common noun"] += 1
            elif position in verbs:
                seen[word][
                    VERB_FORMS.get(words[position - 1] if position else "", "verb, past")
                ] += 1
            elif word in names:
                seen[word]["proper name"] += 1
            elif word in prepositions:
                seen[word]["preposition"] += 1
            else:
                seen[word]["determiner" if word.lower() in COGS_DETERMINERS else OTHER] += 1
    for counts in seen.values():
        if counts["verb, past"] and counts["verb, participle"]:
            counts["verb, past or participle"] = counts.pop("verb, past") + counts.pop(
                "verb, participle"
            )
    # Ties alphabetically.
    return {
        word: min(counts, key=lambda name: (-counts[name], name)) for word, counts in seen.items()
    }
