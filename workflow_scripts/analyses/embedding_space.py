"""Words in the space of source embeddings: t-SNE, codes and classes (figures 3, 4, 6 and 7).

Classes are syntactic: they are from the grammar (SCAN), or from the positions of words in logical
forms (COGS).
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

from workflow_scripts.analyses.options.embedding_space import ComparedWord, Options, WordClasses
from workflow_scripts.analyses.result import AnalysisResult
from workflow_scripts.analyses.trained_runs import TrainedRun, find_most_frequent, stack_tables
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.prepared import read_vocabularies
from workflow_scripts.data.token_ids import EOS, SPECIAL_TOKENS

END = SPECIAL_TOKENS[EOS]
UNTRAINED = [token for token in SPECIAL_TOKENS if token != END]  # not in any source sentence
SCAN_WORDS = {
    "verb": "walk look run jump turn",
    "direction": "left right",
    "preposition": "around opposite",
    "adverb": "twice thrice",
    "conjunction": "and after",
}
SCAN_CLASSES: dict[str, str] = {}
for _class, _words in SCAN_WORDS.items():
    SCAN_CLASSES |= dict.fromkeys(_words.split(), _class)
DIGITS = "0123456789"
COGS_DETERMINERS = ("a", "the")
OTHER = "function word"
VERB_FORMS = {"was": "verb, participle", "to": "verb, infinitive"}  # by the word before


def project_tsne(vectors: np.ndarray, seed: int) -> np.ndarray:
    """Project vectors [N, d] -> [N, 2] by t-SNE, with exact gradients and a PCA start.

    The perplexity is 30, or for few words a third of the others, at least 2. Raises UserError for
    fewer than 4 words.
    """
    if len(vectors) < 4:
        raise UserError(f"a map of {len(vectors)} words shows nothing; t-SNE needs at least 4")
    perplexity = min(30.0, max(2.0, (len(vectors) - 1) / 3))
    tsne = TSNE(perplexity=perplexity, method="exact", init="pca", random_state=seed)
    return tsne.fit_transform(vectors)


def assign_codes(model: Any, side: str, ids: Sequence[int]) -> list[int] | None:
    """Return the code of each id of a `side`, source or target; None if the model has no codes."""
    if not hasattr(model, "assign_codes"):
        return None
    with torch.no_grad():
        return model.assign_codes(side, torch.tensor(ids)).tolist()


def make_word_table(run: TrainedRun, classes: WordClasses) -> tuple[pandas.DataFrame, np.ndarray]:
    """Return (word, class and code of each source word, embeddings [N, d]).

    `classes` is `scan` (by the grammar) or `cogs` (by the training data). `</s>` is a class. The
    codes are missing if the model has none.
    """
    model, words = run.load()
    ids = [id_ for id_, word in enumerate(words) if word not in UNTRAINED]
    if classes == "scan":
        class_of = find_scan_classes(words)
    else:
        class_of = find_cogs_classes(run.read_pairs("train").itertuples(index=False))
    class_of[END] = END
    trained_words = [words[id_] for id_ in ids]
    codes = assign_codes(model, "source", ids) or [None] * len(ids)
    table = pandas.DataFrame(
        {
            "word": trained_words,
            "class": [class_of[word] for word in trained_words],
            "code": pandas.array(codes, "Int64"),
        }
    )
    return table, model.source_embedding.weight.detach()[ids].float().numpy()


def analyse(runs: Sequence[TrainedRun], options: Options) -> AnalysisResult:
    """Map the words of each run, and score how far embeddings and codes agree with the classes.

    Scores of the embeddings, without `</s>`: `silhouette`, the mean by class (Euclidean; -1 to 1; 0
    for a class of one word), and `<word>_silhouette` of the focus. Scores of models with codes:
        v_measure, adjusted_rand: agreement of codes with classes (1: the same partition).
        <word>_with_<name>: 1 if the focus and all of its peers have one code, else 0.
        <word>_alone: 1 if no other word has its code, else 0. Words that differ only in a number
            (jump, jump1) are one.
        <word>_with_any_<name>: 1 if any peer of the output has its code, else 0.
    """
    tables = []
    result = AnalysisResult()
    for run in runs:
        table, vectors = make_word_table(run, options.classes)
        table[["x", "y"]] = project_tsne(vectors, options.seed)
        tables.append(pandas.DataFrame({**run.columns, **table}))
        is_word = (table["word"] != END).to_numpy()
        words = table.loc[is_word].reset_index(drop=True)
        values = score_words(words, vectors[is_word], options.focus, run, result.notes)
        if options.output and has_codes(words):
            values |= score_output(run, options.output, result.notes)
        result.scores += run.make_scores(values)
    result.files["words"] = stack_tables(tables, ["word", "class", "code", "x", "y"])
    return result


def has_codes(words: pandas.DataFrame) -> bool:
    """Return whether every row of a word table has a code."""
    return bool(words["code"].notna().all())


def score_words(
    words: pandas.DataFrame,
    vectors: np.ndarray,
    focus: ComparedWord | None,
    run: TrainedRun,
    notes: list[str],
) -> dict[str, tuple[float, str, int]]:
    """Score embeddings [N, d] and codes of source words, and those of the focus; see `analyse`."""
    n = len(words)
    silhouettes = pandas.Series(silhouette_samples(vectors, words["class"]), words["word"])
    values = {"silhouette": (silhouettes.mean(), "index", n)}
    if has_codes(words):
        classes = words["class"]
        codes = words["code"].astype(int)
        values["v_measure"] = (v_measure_score(classes, codes), "index", n)
        values["adjusted_rand"] = (adjusted_rand_score(classes, codes), "index", n)
    if not focus or not _has_words(silhouettes, focus, run, notes):
        return values
    word = focus.word
    values[f"{word}_silhouette"] = (silhouettes[word], "index", 1)
    if has_codes(words):
        code_of = dict(zip(words["word"], words["code"], strict=True))
        for name, share in score_focus_code(code_of, focus).items():
            values[name] = (share, "share", 1)
    return values


def score_output(
    run: TrainedRun, output: ComparedWord, notes: list[str]
) -> dict[str, tuple[float, str, int]]:
    """Score whether a target word shares its code with any of its peers; see `analyse`."""
    words = read_vocabularies(run.data)["target"]
    model, _ = run.load()
    codes = assign_codes(model, "target", range(len(words)))
    assert codes is not None, "the source words have codes"
    code_of = dict(zip(words, codes, strict=True))
    if not _has_words(code_of, output, run, notes):
        return {}
    word = output.word
    codes_of_peers = [code_of[peer] for peer in output.peers]
    return {f"{word}_with_any_{output.name}": (code_of[word] in codes_of_peers, "share", 1)}


def _has_words(
    words: Container[str], compared: ComparedWord, run: TrainedRun, notes: list[str]
) -> bool:
    """Return whether `words` contain the compared word and its peers; add a note if not."""
    missing = [name for name in (compared.word, *compared.peers) if name not in words]
    if missing:
        notes.append(f"{run}: not in the training data: {', '.join(missing)}")
    return not missing


def score_focus_code(code_of: dict[str, int], focus: ComparedWord) -> dict[str, bool]:
    """Compute <word>_with_<name> and <word>_alone of `analyse` from the codes of source words."""
    word = focus.word
    code = code_of[word]
    sharing = {other.rstrip(DIGITS) for other in code_of if code_of[other] == code}
    with_peers = all(code_of[peer] == code for peer in focus.peers)
    return {f"{word}_with_{focus.name}": with_peers, f"{word}_alone": sharing == {word}}


def find_scan_classes(words: Iterable[str]) -> dict[str, str]:
    """Find the class (section 5.2) of each SCAN word but special tokens.

    Copies such as `walk12` have the class of `walk`. `turn` is a verb, because the grammar has no
    other class for it, although it always has a direction.
    """
    class_of = {}
    for word in words:
        if word in SPECIAL_TOKENS:
            continue
        original = word.rstrip(DIGITS)
        if original not in SCAN_CLASSES:
            raise UserError(
                f"'{word}' is no word of SCAN; "
                "set option classes in displays.yaml to that of the data"
            )
        class_of[word] = SCAN_CLASSES[original]
    return class_of


def find_cogs_classes(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Find the most frequent class of each COGS word in (sentence, logical form) pairs.

    In a logical form

    - `noun ( x _ i )` makes the word at position i a common noun, `verb . role ( x _ i , ...` a
      verb; an argument that is not a variable is a proper name, and `noun . nmod . P` makes P a
      preposition;
    - of a single word, `LAMBDA a . noun ( a )` is that of a common noun,
      `LAMBDA ... verb . role ( e , ... )` that of a verb, and the name itself that of a name.

    Verbs are infinitive (alone or after `to`), participle (after `was`), past (otherwise), or both
    ("helped"). Of the other words, a and the are determiners, the rest function words.
    """
    counts_of: dict[str, Counter[str]] = defaultdict(Counter)
    for sentence, form in pairs:
        words = sentence.split()
        if len(words) == 1:
            counts_of[words[0]][find_class_of_single_word(words[0], form)] += 1
        else:
            for word, class_ in zip(words, find_classes_of_words(words, form), strict=True):
                counts_of[word][class_] += 1
    for counts in counts_of.values():
        if counts["verb, past"] and counts["verb, participle"]:
            past = counts.pop("verb, past")
            participle = counts.pop("verb, participle")
            counts["verb, past or participle"] = past + participle
    return {word: find_most_frequent(counts) for word, counts in counts_of.items()}


def find_class_of_single_word(word: str, form: str) -> str:
    """Return the class of the only word of a sentence by its logical form."""
    if form == word:
        return "proper name"
    if re.fullmatch(r"LAMBDA a \. \w+ \( a \)", form):
        return "common noun"
    return "verb, infinitive"


def find_classes_of_words(words: Sequence[str], form: str) -> list[str]:
    """Return the class of each word of a sentence by its logical form."""
    nouns = {int(position) for position in re.findall(r"\w+ \( x _ (\d+) \)", form)}
    verbs = {int(position) for position in re.findall(r"\w+ \. \w+ \( x _ (\d+) ,", form)}
    names = set(re.findall(r", (\w+) \)", form))
    prepositions = set(re.findall(r"nmod \. (\w+)", form))
    classes = []
    before = ""
    for position, word in enumerate(words):
        if position in nouns:
            classes.append("common noun")
        elif position in verbs:
            classes.append(VERB_FORMS.get(before, "verb, past"))
        elif word in names:
            classes.append("proper name")
        elif word in prepositions:
            classes.append("preposition")
        elif word.lower() in COGS_DETERMINERS:
            classes.append("determiner")
        else:
            classes.append(OTHER)
        before = word
    return classes
