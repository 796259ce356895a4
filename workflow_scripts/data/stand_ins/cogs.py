"""Stand-in data for COGS: a small English grammar with logical forms, and all 21 kinds of generalisation.

As in COGS, training has a few words in one role only (`EXPOSURE`, `PRIMITIVES`). Each kind of generalisation puts such
a word into another role, or a phrase into a position or depth, that is not in training (`GENERALISATIONS`).
To add stand-in data for another data set, add a module here that writes files in upstream's format; the reader of the
data set reads them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

NAMES = ["Emma", "Liam", "Olivia", "Noah", "Ava", "James"]
NOUNS = ["cat", "dog", "boy", "girl", "cake", "book", "ball", "rose"]
PLACES = ["table", "box", "house", "car"]
PREPOSITIONS = ["in", "on", "beside"]
Verb = tuple[str, str]  # lemma and inflected form
TRANSITIVE: list[Verb] = [("see", "saw"), ("help", "helped"), ("paint", "painted")]
PASSIVE: list[Verb] = [("see", "seen"), ("help", "helped"), ("paint", "painted")]
UNERGATIVE: list[Verb] = [("smile", "smiled"), ("run", "ran"), ("sneeze", "sneezed")]
UNACCUSATIVE: list[Verb] = [("roll", "rolled"), ("burn", "burned"), ("freeze", "froze")]
DATIVE: list[Verb] = [("give", "gave"), ("sell", "sold"), ("send", "sent")]
CLAUSAL: list[Verb] = [("like", "liked"), ("say", "said"), ("hope", "hoped")]
CONTROL: list[Verb] = [("want", "wanted"), ("try", "tried")]
PRIMITIVES = [
    ("shark", "LAMBDA a . shark ( a )"),
    ("Paula", "Paula"),
    ("crawl", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
]
ROWS = {"train": 1000, "dev": 100, "test": 100}
ROWS_PER_KIND = 10


@dataclass
class Sentence:
    """A sentence under construction: its words, definite nouns, and facts, each with the position of its word."""

    rng: random.Random
    words: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    facts: list[tuple[int, str]] = field(default_factory=list)

    def say(self, word: str) -> int:
        """Append a word and return its position."""
        self.words.append(word)
        return len(self.words) - 1

    def noun_phrase(self, word: str | None = None, depth: int = 0) -> str:
        """Append a name, or a noun with article and `depth` nested prepositional phrases. Returns its variable."""
        if word is None:
            word = self.rng.choice(NOUNS if depth or self.rng.random() < 0.7 else NAMES)
        if word[0].isupper():
            self.say(word)
            return word
        article = self.say(self.rng.choice(["a", "the"]) if self.words else self.rng.choice(["A", "The"]))
        position = self.say(word)
        variable = f"x _ {position}"
        if self.words[article].lower() == "the":
            self.definite.append(f"* {word} ( {variable} ) ;")
        else:
            self.facts.append((position, f"{word} ( {variable} )"))
        if depth:
            preposition = self.rng.choice(PREPOSITIONS)
            self.say(preposition)
            inner = self.noun_phrase(self.rng.choice(PLACES), depth - 1)
            self.facts.append((position, f"{word} . nmod . {preposition} ( {variable} , {inner} )"))
        return variable

    def predicate(self, position: int, lemma: str, **arguments: str) -> None:
        """Add the arguments of the verb at `position` to the facts, in the given order."""
        for role, value in arguments.items():
            self.facts.append((position, f"{lemma} . {role} ( x _ {position} , {value} )"))

    def line(self, kind: str) -> str:
        """Format the TSV line: definite nouns, then the facts in the order of their words."""
        facts = " AND ".join(fact for _, fact in sorted(self.facts, key=lambda fact: fact[0]))
        return f"{' '.join([*self.words, '.'])}\t{' '.join([*self.definite, facts])}\t{kind}"


# Each frame appends a clause and returns the position of its verb.
Frame = Callable[..., int]


def transitive(
    s: Sentence,
    subject: str | None = None,
    direct_object: str | None = None,
    verb: Verb | None = None,
    subject_depth: int = 0,
    object_depth: int | None = None,
) -> int:
    agent = s.noun_phrase(subject, subject_depth)
    lemma, form = verb or s.rng.choice(TRANSITIVE)
    position = s.say(form)
    if object_depth is None:
        object_depth = 0 if direct_object else s.rng.choice([0, 0, 1])
    s.predicate(position, lemma, agent=agent, theme=s.noun_phrase(direct_object, object_depth))
    return position


def passive(s: Sentence, verb: Verb | None = None) -> int:
    theme = s.noun_phrase()
    lemma, form = verb or s.rng.choice(PASSIVE)
    s.say("was")
    position = s.say(form)
    s.predicate(position, lemma, theme=theme)
    if s.rng.random() < 0.5:
        s.say("by")
        s.predicate(position, lemma, agent=s.noun_phrase())
    return position


def unergative(s: Sentence, subject: str | None = None, verb: Verb | None = None) -> int:
    agent = s.noun_phrase(subject)
    lemma, form = verb or s.rng.choice(UNERGATIVE)
    position = s.say(form)
    s.predicate(position, lemma, agent=agent)
    return position


def unaccusative(s: Sentence, subject: str | None = None, verb: Verb | None = None) -> int:
    theme = s.noun_phrase(subject)
    lemma, form = verb or s.rng.choice(UNACCUSATIVE)
    position = s.say(form)
    s.predicate(position, lemma, theme=theme)
    return position


def dative(s: Sentence, verb: Verb | None = None) -> int:
    agent = s.noun_phrase()
    lemma, form = verb or s.rng.choice(DATIVE)
    position = s.say(form)
    theme = s.noun_phrase(s.rng.choice(NOUNS))
    s.say("to")
    s.predicate(position, lemma, agent=agent, theme=theme, recipient=s.noun_phrase())
    return position


def double_object(s: Sentence, verb: Verb | None = None) -> int:
    agent = s.noun_phrase()
    lemma, form = verb or s.rng.choice(DATIVE)
    position = s.say(form)
    recipient = s.noun_phrase()
    s.predicate(position, lemma, agent=agent, recipient=recipient, theme=s.noun_phrase(s.rng.choice(NOUNS)))
    return position


def clausal(s: Sentence, depth: int = 1, inner: Frame = unergative, **fixed: Any) -> int:
    """Append `depth` nested clauses; `fixed` are arguments of the innermost one."""
    agent = s.noun_phrase()
    lemma, form = s.rng.choice(CLAUSAL)
    position = s.say(form)
    s.say("that")
    verb = clausal(s, depth - 1, inner, **fixed) if depth > 1 else inner(s, **fixed)
    s.predicate(position, lemma, agent=agent, ccomp=f"x _ {verb}")
    return position


def control(s: Sentence, infinitive: str | None = None) -> int:
    agent = s.noun_phrase()
    lemma, form = s.rng.choice(CONTROL)
    position = s.say(form)
    s.say("to")
    word = infinitive or s.rng.choice(UNERGATIVE)[0]
    inner = s.say(word)
    s.predicate(position, lemma, agent=agent, xcomp=f"x _ {inner}")
    s.predicate(inner, word, agent=agent)
    return position


TRAINING_FRAMES = [transitive, passive, unergative, unaccusative, dative, double_object, clausal, control]

# Kind -> (frame, its fixed arguments). In training, each of these words occurs in this role only.
EXPOSURE = {
    "exposure_example_subj_common": (transitive, {"subject": "hedgehog"}),
    "exposure_example_obj_common": (transitive, {"direct_object": "cockroach"}),
    "exposure_example_subj_proper": (transitive, {"subject": "Lina"}),
    "exposure_example_obj_proper": (transitive, {"direct_object": "Charlie"}),
    "exposure_example_transitive_subj": (transitive, {"subject": "cobra"}),
    "exposure_example_unacc_subj": (unaccusative, {"subject": "hippo"}),
    "exposure_example_active": (transitive, {"verb": ("bless", "blessed")}),
    "exposure_example_passive": (passive, {"verb": ("squeeze", "squeezed")}),
    "exposure_example_obj_omitted_transitive": (unergative, {"verb": ("bake", "baked")}),
    "exposure_example_unacc": (unaccusative, {"verb": ("shatter", "shattered")}),
    "exposure_example_do_dative": (double_object, {"verb": ("teleport", "teleported")}),
    "exposure_example_pp_dative": (dative, {"verb": ("ship", "shipped")}),
}
GENERALISATIONS = {
    "subj_to_obj_common": (transitive, {"direct_object": "hedgehog"}),
    "obj_to_subj_common": (transitive, {"subject": "cockroach"}),
    "subj_to_obj_proper": (transitive, {"direct_object": "Lina"}),
    "obj_to_subj_proper": (transitive, {"subject": "Charlie"}),
    "prim_to_subj_common": (transitive, {"subject": "shark"}),
    "prim_to_obj_common": (transitive, {"direct_object": "shark"}),
    "prim_to_subj_proper": (transitive, {"subject": "Paula"}),
    "prim_to_obj_proper": (transitive, {"direct_object": "Paula"}),
    "prim_to_inf_arg": (control, {"infinitive": "crawl"}),
    "active_to_passive": (passive, {"verb": ("bless", "blessed")}),
    "passive_to_active": (transitive, {"verb": ("squeeze", "squeezed")}),
    "obj_omitted_transitive_to_transitive": (transitive, {"verb": ("bake", "baked")}),
    "unacc_to_transitive": (transitive, {"verb": ("shatter", "shattered")}),
    "do_dative_to_pp_dative": (dative, {"verb": ("teleport", "teleported")}),
    "pp_dative_to_do_dative": (double_object, {"verb": ("ship", "shipped")}),
    "only_seen_as_transitive_subj_as_unacc_subj": (clausal, {"inner": unaccusative, "subject": "cobra"}),
    "only_seen_as_unacc_subj_as_unerg_subj": (clausal, {"subject": "hippo"}),
    "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj": (
        clausal,
        {"subject": "hippo", "verb": ("bake", "baked")},
    ),
    "obj_pp_to_subj_pp": (transitive, {"subject_depth": 1}),
    "pp_recursion": (transitive, {"object_depth": 3}),
    "cp_recursion": (clausal, {"depth": 3}),
}


def write(folder: Path, seed: int) -> None:
    """Write {train,dev,test,gen}.tsv, without a repeated sentence in all of them."""
    rng = random.Random(f"{seed}/cogs stand-in")
    seen: set[str] = set()

    def new(entries: list[tuple[Frame, dict]], kind: str) -> str:
        """Generate a line of the given kind from one of the entries, with a sentence that is in no file yet."""
        while True:
            sentence = Sentence(rng)
            frame, fixed = rng.choice(entries)
            frame(sentence, **fixed)
            line = sentence.line(kind)
            text = line.split("\t")[0]
            if text not in seen:
                seen.add(text)
                return line

    usual = [(frame, {}) for frame in TRAINING_FRAMES]
    files = {
        "train": [f"{word}\t{meaning}\tprimitive" for word, meaning in PRIMITIVES]
        + [new([entry], kind) for kind, entry in EXPOSURE.items()],
        "gen": [new([entry], kind) for kind, entry in GENERALISATIONS.items() for _ in range(ROWS_PER_KIND)],
    }
    for file, rows in ROWS.items():
        lines = files.setdefault(file, [])
        lines += [new(usual, "in_distribution") for _ in range(rows - len(lines))]
    for file, lines in files.items():
        rng.shuffle(lines)
        (folder / f"{file}.tsv").write_text("\n".join(lines) + "\n")
