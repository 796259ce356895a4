"""Stand-in data for COGS: a small English grammar with logical forms, and all 21 kinds of generalisation.

As in COGS, training has a few words in one role only (`EXPOSURE`, `PRIMITIVES`). Each kind of generalisation puts such
a word into another role, or a phrase into a position or depth, that is not in training (`GENERALISATIONS`).
To add stand-in data for another data set, add a module here that writes files in upstream's format; the reader of the
data set reads them.
"""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
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
class SentenceBuilder:
    """A sentence under construction: its words, definite nouns, and facts, each with the position of its word."""

    rng: random.Random
    words: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    facts: list[tuple[int, str]] = field(default_factory=list)

    def add_word(self, word: str) -> int:
        """Append a word and return its position."""
        self.words.append(word)
        return len(self.words) - 1

    def add_verb(self, verb: Verb | None, verbs: list[Verb], *before: str) -> tuple[int, str]:
        """Append a verb, or one sampled from `verbs`, after the words `before`. Returns its position and lemma."""
        lemma, form = verb or self.rng.choice(verbs)
        for word in before:
            self.add_word(word)
        return self.add_word(form), lemma

    def add_noun_phrase(self, word: str | None = None, depth: int = 0) -> str:
        """Append a name, or a noun with article and `depth` nested prepositional phrases. Returns its variable."""
        if word is None:
            word = self.rng.choice(NOUNS if depth or self.rng.random() < 0.7 else NAMES)
        if word[0].isupper():
            self.add_word(word)
            return word
        article = self.add_word(self.rng.choice(["a", "the"]) if self.words else self.rng.choice(["A", "The"]))
        position = self.add_word(word)
        variable = f"x _ {position}"
        if self.words[article].lower() == "the":
            self.definite.append(f"* {word} ( {variable} ) ;")
        else:
            self.facts.append((position, f"{word} ( {variable} )"))
        if depth:
            preposition = self.rng.choice(PREPOSITIONS)
            self.add_word(preposition)
            inner = self.add_noun_phrase(self.rng.choice(PLACES), depth - 1)
            self.facts.append((position, f"{word} . nmod . {preposition} ( {variable} , {inner} )"))
        return variable

    def add_facts(self, position: int, lemma: str, **arguments: str) -> None:
        """Add the arguments of the verb at `position` to the facts, in this order."""
        for role, value in arguments.items():
            self.facts.append((position, f"{lemma} . {role} ( x _ {position} , {value} )"))

    def format_line(self, kind: str) -> str:
        """Format the TSV line: definite nouns, then the facts in the order of their words."""
        facts = " AND ".join(fact for _, fact in sorted(self.facts, key=lambda fact: fact[0]))
        return f"{' '.join([*self.words, '.'])}\t{' '.join([*self.definite, facts])}\t{kind}"


# Each frame appends a clause and returns the position of its verb. The order of its steps decides the random draws.
Frame = Callable[..., int]


def add_transitive(
    s: SentenceBuilder,
    subject: str | None = None,
    direct_object: str | None = None,
    verb: Verb | None = None,
    subject_depth: int = 0,
    object_depth: int | None = None,
) -> int:
    """Append `agent verb theme`; the depths are those of nested prepositional phrases."""
    agent = s.add_noun_phrase(subject, subject_depth)
    position, lemma = s.add_verb(verb, TRANSITIVE)
    if object_depth is None:
        object_depth = 0 if direct_object else s.rng.choice([0, 0, 1])
    s.add_facts(position, lemma, agent=agent, theme=s.add_noun_phrase(direct_object, object_depth))
    return position


def add_passive(s: SentenceBuilder, verb: Verb | None = None) -> int:
    """Append `theme was verb`, sometimes with `by agent`."""
    theme = s.add_noun_phrase()
    position, lemma = s.add_verb(verb, PASSIVE, "was")
    s.add_facts(position, lemma, theme=theme)
    if s.rng.random() < 0.5:
        s.add_word("by")
        s.add_facts(position, lemma, agent=s.add_noun_phrase())
    return position


def add_intransitive(
    s: SentenceBuilder, role: str, verbs: list[Verb], subject: str | None = None, verb: Verb | None = None
) -> int:
    """Append `subject verb`; the subject has the role `agent` (unergative verbs) or `theme` (unaccusative verbs)."""
    value = s.add_noun_phrase(subject)
    position, lemma = s.add_verb(verb, verbs)
    s.add_facts(position, lemma, **{role: value})
    return position


unergative = partial(add_intransitive, role="agent", verbs=UNERGATIVE)
unaccusative = partial(add_intransitive, role="theme", verbs=UNACCUSATIVE)


def add_dative(s: SentenceBuilder, verb: Verb | None = None) -> int:
    """Append `agent verb theme to recipient`."""
    agent = s.add_noun_phrase()
    position, lemma = s.add_verb(verb, DATIVE)
    theme = s.add_noun_phrase(s.rng.choice(NOUNS))
    s.add_word("to")
    s.add_facts(position, lemma, agent=agent, theme=theme, recipient=s.add_noun_phrase())
    return position


def add_double_object(s: SentenceBuilder, verb: Verb | None = None) -> int:
    """Append `agent verb recipient theme`."""
    agent = s.add_noun_phrase()
    position, lemma = s.add_verb(verb, DATIVE)
    recipient = s.add_noun_phrase()
    s.add_facts(position, lemma, agent=agent, recipient=recipient, theme=s.add_noun_phrase(s.rng.choice(NOUNS)))
    return position


def add_clausal(s: SentenceBuilder, depth: int = 1, inner: Frame = unergative, **fixed: Any) -> int:
    """Append `depth` nested clauses; `fixed` are arguments of the innermost one."""
    agent = s.add_noun_phrase()
    position, lemma = s.add_verb(None, CLAUSAL)
    s.add_word("that")
    verb = add_clausal(s, depth - 1, inner, **fixed) if depth > 1 else inner(s, **fixed)
    s.add_facts(position, lemma, agent=agent, ccomp=f"x _ {verb}")
    return position


def add_control(s: SentenceBuilder, infinitive: str | None = None) -> int:
    """Append `agent verb to infinitive`."""
    agent = s.add_noun_phrase()
    position, lemma = s.add_verb(None, CONTROL)
    s.add_word("to")
    word = infinitive or s.rng.choice(UNERGATIVE)[0]
    inner = s.add_word(word)
    s.add_facts(position, lemma, agent=agent, xcomp=f"x _ {inner}")
    s.add_facts(inner, word, agent=agent)
    return position


TRAINING_FRAMES = [
    *(add_transitive, add_passive, unergative, unaccusative),
    *(add_dative, add_double_object, add_clausal, add_control),
]

# Kind -> (frame, its fixed arguments). In training, each of these words occurs in this role only.
EXPOSURE = {
    "exposure_example_subj_common": (add_transitive, {"subject": "hedgehog"}),
    "exposure_example_obj_common": (add_transitive, {"direct_object": "cockroach"}),
    "exposure_example_subj_proper": (add_transitive, {"subject": "Lina"}),
    "exposure_example_obj_proper": (add_transitive, {"direct_object": "Charlie"}),
    "exposure_example_transitive_subj": (add_transitive, {"subject": "cobra"}),
    "exposure_example_unacc_subj": (unaccusative, {"subject": "hippo"}),
    "exposure_example_active": (add_transitive, {"verb": ("bless", "blessed")}),
    "exposure_example_passive": (add_passive, {"verb": ("squeeze", "squeezed")}),
    "exposure_example_obj_omitted_transitive": (unergative, {"verb": ("bake", "baked")}),
    "exposure_example_unacc": (unaccusative, {"verb": ("shatter", "shattered")}),
    "exposure_example_do_dative": (add_double_object, {"verb": ("teleport", "teleported")}),
    "exposure_example_pp_dative": (add_dative, {"verb": ("ship", "shipped")}),
}
GENERALISATIONS = {
    "subj_to_obj_common": (add_transitive, {"direct_object": "hedgehog"}),
    "obj_to_subj_common": (add_transitive, {"subject": "cockroach"}),
    "subj_to_obj_proper": (add_transitive, {"direct_object": "Lina"}),
    "obj_to_subj_proper": (add_transitive, {"subject": "Charlie"}),
    "prim_to_subj_common": (add_transitive, {"subject": "shark"}),
    "prim_to_obj_common": (add_transitive, {"direct_object": "shark"}),
    "prim_to_subj_proper": (add_transitive, {"subject": "Paula"}),
    "prim_to_obj_proper": (add_transitive, {"direct_object": "Paula"}),
    "prim_to_inf_arg": (add_control, {"infinitive": "crawl"}),
    "active_to_passive": (add_passive, {"verb": ("bless", "blessed")}),
    "passive_to_active": (add_transitive, {"verb": ("squeeze", "squeezed")}),
    "obj_omitted_transitive_to_transitive": (add_transitive, {"verb": ("bake", "baked")}),
    "unacc_to_transitive": (add_transitive, {"verb": ("shatter", "shattered")}),
    "do_dative_to_pp_dative": (add_dative, {"verb": ("teleport", "teleported")}),
    "pp_dative_to_do_dative": (add_double_object, {"verb": ("ship", "shipped")}),
    "only_seen_as_transitive_subj_as_unacc_subj": (add_clausal, {"inner": unaccusative, "subject": "cobra"}),
    "only_seen_as_unacc_subj_as_unerg_subj": (add_clausal, {"subject": "hippo"}),
    "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj": (
        add_clausal,
        {"subject": "hippo", "verb": ("bake", "baked")},
    ),
    "obj_pp_to_subj_pp": (add_transitive, {"subject_depth": 1}),
    "pp_recursion": (add_transitive, {"object_depth": 3}),
    "cp_recursion": (add_clausal, {"depth": 3}),
}


def write_cogs(folder: Path, seed: int) -> dict[str, Path]:
    """Write {train,dev,test,gen}.tsv, in which no sentence is repeated. Returns their paths by source name."""
    rng = random.Random(f"{seed}/cogs stand-in")
    seen: set[str] = set()

    def new(entries: list[tuple[Frame, dict]], kind: str) -> str:
        """Generate a line of a kind from one of the entries, with a sentence that is in no file yet."""
        while True:
            sentence = SentenceBuilder(rng)
            frame, fixed = rng.choice(entries)
            frame(sentence, **fixed)
            line = sentence.format_line(kind)
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
    return {f"cogs/{file}.tsv": folder / f"{file}.tsv" for file in files}
