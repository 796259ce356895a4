"""Stand-in data for CoGnition: some words of its compounds, in contexts that are translated word by word.

No compound of the test set occurs in the other files, but all its words do.
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


def write_cognition(folder: Path, seed: int) -> dict[str, Path]:
    """Write all files; no English sentence is repeated in train, valid and test.

    Returns the paths by source name.
    """
    rng = random.Random(f"{seed}/cognition stand-in")
    new: dict[str, list[tuple[str, str]]] = {}
    for kind in CONTEXTS:
        found: dict[str, str] = {}
        while len(found) < COMPOUNDS:
            found |= [generate_phrase(rng, kind)]
        new[kind] = list(found.items())
    lines: dict[str, list[tuple[str, str]]] = {"cg-test_cg-test": []}
    compounds = []
    for kind, phrases in new.items():
        for english, chinese in phrases:
            for context in rng.sample(sorted(CONTEXTS[kind]), 5):
                filled = (
                    context.format(english),
                    CONTEXTS[kind][context].format(chinese).replace(" ", ""),
                )
                lines["cg-test_cg-test"].append(filled)
                compounds.append(english)
    held_out, seen = set(compounds), set()
    for file, rows in ROWS.items():
        lines[file] = []
        while len(lines[file]) < rows:
            kind = rng.choice(sorted(CONTEXTS))
            context = rng.choice(sorted(CONTEXTS[kind]))
            english, chinese = generate_phrase(rng, kind)
            sentence = context.format(english)
            if sentence not in seen and not any(
                f" {compound} " in f" {sentence} " for compound in held_out
            ):
                seen.add(sentence)
                lines[file].append(
                    (sentence, " ".join(CONTEXTS[kind][context].format(chinese).split()))
                )
    files: dict[str, Iterable[str]] = {"cg-test_cg-test.compound": compounds}
    for file, pairs in lines.items():
        files |= {
            f"{file}.{ending}": [pair[side] for pair in pairs]
            for side, ending in enumerate(("en", "zh"))
        }
    lexicon = dict(TRANSLATIONS)
    for words in (DETERMINERS, ADJECTIVES, NOUNS, VERBS, PREPOSITIONS):
        lexicon |= {
            word: text.split(" ")[0] for word, text in words.items() if word and word not in lexicon
        }
    files["eval_lexicon"] = [f"{word}\t{translations}" for word, translations in lexicon.items()]
    whole = sorted(
        {word for _, chinese in lines["train"] for word in chinese.split(" ")} - set(DIVIDED)
    )
    merges: dict[str, None] = {}  # in order; they build each word character by character
    for word in whole:
        signs = [*word[:-1], f"{word[-1]}</w>"]
        merges |= dict.fromkeys(
            "".join(signs[:end]) + f" {signs[end]}" for end in range(1, len(signs))
        )
    files["processed_code"] = ["#version: 0.2", *merges]
    return write_text_lines(folder, {f"cognition/{name}": lines for name, lines in files.items()})


def generate_phrase(rng: random.Random, kind: str) -> tuple[str, str]:
    """Generate a noun phrase, after a verb (VP) or a preposition (PP) for these kinds, and its translation."""
    determiner, adjective, noun, modifier = (
        rng.choice(sorted(words)) for words in (DETERMINERS, ADJECTIVES, NOUNS, MODIFIERS)
    )
    english = " ".join(filter(None, [determiner, adjective, noun, modifier]))
    chinese = " ".join(
        filter(
            None, [MODIFIERS[modifier], DETERMINERS[determiner], ADJECTIVES[adjective], NOUNS[noun]]
        )
    )
    if kind == "VP":
        verb = rng.choice(sorted(VERBS))
        return f"{verb} {english}", f"{VERBS[verb]} {chinese}"
    if kind == "PP":
        preposition = rng.choice(sorted(PREPOSITIONS))
        return f"{preposition} {english}", f"{chinese} {PREPOSITIONS[preposition]}"
    return english, chinese
