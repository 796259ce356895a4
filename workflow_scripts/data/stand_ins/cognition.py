"""Stand-in data for CoGnition: some words of its compounds, in contexts.

Compounds and contexts are translated word by word. No compound of the test set occurs in the other
files, but all its words do.
"""

import random
from collections.abc import Iterable
from pathlib import Path

from workflow_scripts.data.sources.task_sources import write_text_lines

DETERMINERS = {"the": "", "every": "每只", "any": "任何", "another": "另一只", "each": "每只"}
ADJECTIVES = {"": "", "small": "小", "red": "红", "dirty": "脏", "large": "大"}
NOUNS = {
    "dog": "狗",
    "doctor": "医生",
    "girl": "女孩",
    "car": "车",
    "bee": "蜜蜂",
    "waiter": "服务员",
}
MODIFIERS = {
    "": "",
    "he liked": "他喜欢的",
    "at the store": "商店里 的",
    "on the floor": "地板上 的",
}
VERBS = {"saw": "看到 了", "found": "发现 了", "took": "带走 了", "asked": "问 了", "liked": "喜欢"}
PREPOSITIONS = {"near": "附近", "under": "下面", "behind": "后面", "inside": "里面"}
CONTEXTS = {
    "NP": {
        "{} was very tired .": "{} 很 累 。",
        "all day long , {} made noise .": "一整天 ， {} 都 吵闹 。",
        "taylor thought {} would come .": "泰勒 以为 {} 会 来 。",
        "{} ate too much cake .": "{} 吃 了 太多 蛋糕 。",
        "when it rained , {} went home .": "下雨 时 ， {} 回家 了 。",
        "then {} fell asleep .": "然后 {} 睡着 了 。",
    },
    "VP": {
        "taylor {} .": "泰勒 {} 。",
        "yesterday she {} after school .": "昨天 放学 后 她 {} 。",
        "his mother {} again .": "他 妈妈 又 {} 。",
        "my friends {} in the morning .": "我 的 朋友 早上 {} 。",
        "we {} and went home .": "我们 {} ， 就 回家 了 。",
    },
    "PP": {
        "she was singing {} .": "她 在 {} 唱歌 。",
        "the boys slept {} .": "男孩们 睡 在 {} 。",
        "we could not see anything {} .": "我们 在 {} 什么 都 看不见 。",
        "taylor waited {} for an hour .": "泰勒 在 {} 等 了 一小时 。",
        "there was a party {} !": "{} 有 一个 聚会 ！",
    },
}
# Entries of the lexicon that differ from the words above.
TRANSLATIONS = {"the": "/", "every": "每/所有", "liked": "喜欢/"}
TRANSLATIONS |= {"mod0": "他喜欢的", "mod1": "店里/商店", "mod2": "地上/地板上"}
ROWS = {"train": 700, "valid": 60, "test": 60}
COMPOUNDS = 12  # new compounds of each phrase type
DIVIDED = ["服务员", "蛋糕"]  # words that the byte-pair encoding splits

Pair = tuple[str, str]


def write_cognition(folder: Path, seed: int) -> dict[str, Path]:
    """Write all files; no English sentence is repeated in train, valid and test.

    Returns the paths by source name.
    """
    rng = random.Random(f"{seed}/cognition stand-in")
    test_pairs, compounds = generate_test_set(rng)
    pairs = {"cg-test_cg-test": test_pairs, **generate_usual_sets(rng, set(compounds))}
    files: dict[str, Iterable[str]] = {"cg-test_cg-test.compound": compounds}
    for file, of_file in pairs.items():
        files[f"{file}.en"] = [english for english, _chinese in of_file]
        files[f"{file}.zh"] = [chinese for _english, chinese in of_file]
    lexicon = make_lexicon()
    files["eval_lexicon"] = [f"{word}\t{translations}" for word, translations in lexicon.items()]
    files["processed_code"] = ["#version: 0.2", *list_merges(files["train.zh"])]
    return write_text_lines(folder, {f"cognition/{name}": lines for name, lines in files.items()})


def generate_test_set(rng: random.Random) -> tuple[list[Pair], list[str]]:
    """Generate the pairs of the new compounds, each in five contexts.

    Also returns the compound of each pair.
    """
    phrases_of: dict[str, dict[str, str]] = {}
    for kind in CONTEXTS:
        phrases: dict[str, str] = {}
        while len(phrases) < COMPOUNDS:
            english, chinese = generate_phrase(rng, kind)
            phrases[english] = chinese
        phrases_of[kind] = phrases
    pairs = []
    compounds = []
    for kind, phrases in phrases_of.items():
        for english, chinese in phrases.items():
            for context in rng.sample(sorted(CONTEXTS[kind]), 5):
                translation = CONTEXTS[kind][context].format(chinese)
                pairs.append((context.format(english), translation.replace(" ", "")))
                compounds.append(english)
    return pairs, compounds


def generate_usual_sets(rng: random.Random, compounds: set[str]) -> dict[str, list[Pair]]:
    """Generate the pairs of train, valid and test, in which none of the compounds occurs."""
    seen: set[str] = set()
    pairs: dict[str, list[Pair]] = {}
    for file, rows in ROWS.items():
        pairs[file] = []
        while len(pairs[file]) < rows:
            kind = rng.choice(sorted(CONTEXTS))
            context = rng.choice(sorted(CONTEXTS[kind]))
            english, chinese = generate_phrase(rng, kind)
            sentence = context.format(english)
            if sentence in seen:
                continue
            if any(f" {compound} " in f" {sentence} " for compound in compounds):
                continue
            seen.add(sentence)
            translation = CONTEXTS[kind][context].format(chinese)
            pairs[file].append((sentence, " ".join(translation.split())))
    return pairs


def make_lexicon() -> dict[str, str]:
    """Return the translations of each word of the compounds, separated by `/`."""
    lexicon = dict(TRANSLATIONS)
    for words in (DETERMINERS, ADJECTIVES, NOUNS, VERBS, PREPOSITIONS):
        for word, text in words.items():
            if word:
                lexicon.setdefault(word, text.split(" ")[0])
    return lexicon


def list_merges(sentences: Iterable[str]) -> list[str]:
    """Return merges that build each word of the sentences, but for DIVIDED, sign by sign."""
    words: set[str] = set()
    for sentence in sentences:
        words.update(sentence.split(" "))
    merges = []
    for word in sorted(words - set(DIVIDED)):
        signs = [*word[:-1], f"{word[-1]}</w>"]
        for end in range(1, len(signs)):
            merges.append("".join(signs[:end]) + f" {signs[end]}")
    return list(dict.fromkeys(merges))


def generate_phrase(rng: random.Random, kind: str) -> Pair:
    """Generate a phrase of a kind, NP, VP or PP, and its translation.

    A VP has a verb before the noun phrase, a PP a preposition; in Chinese the preposition is last.
    """
    determiner = rng.choice(sorted(DETERMINERS))
    adjective = rng.choice(sorted(ADJECTIVES))
    noun = rng.choice(sorted(NOUNS))
    modifier = rng.choice(sorted(MODIFIERS))
    words = [determiner, adjective, noun, modifier]
    translations = [
        MODIFIERS[modifier],
        DETERMINERS[determiner],
        ADJECTIVES[adjective],
        NOUNS[noun],
    ]
    english = " ".join(filter(None, words))
    chinese = " ".join(filter(None, translations))
    if kind == "VP":
        verb = rng.choice(sorted(VERBS))
        return f"{verb} {english}", f"{VERBS[verb]} {chinese}"
    if kind == "PP":
        preposition = rng.choice(sorted(PREPOSITIONS))
        return f"{preposition} {english}", f"{chinese} {PREPOSITIONS[preposition]}"
    return english, chinese
