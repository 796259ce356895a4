"""Stand-in data for COGS: a small English grammar with logical forms.

It has all 21 kinds of generalisation. As in COGS, training has a few words in one role only
(`EXPOSURE`, `PRIMITIVES`). Each kind of generalisation puts such a word into another role, or a
phrase into a position or depth, that is not in training (`GENERALISATIONS`).
"""

import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from workflow_scripts.data.sources.task_sources import write_text_lines

NAMES = ["Emma", "Liam", "Olivia", "Noah", "Ava", "James"]
NOUNS = ["cat", "dog", "boy", "girl", "cake", "book", "ball", "rose"]
PLACES = ["table", "box", "house", "car"]
PREPOSITIONS = ["in", "on", "beside"]
Verb = tuple[str, str]  # lemma and inflected form
UNERGATIVE: list[Verb] = [("smile", "smiled"), ("run", "ran"), ("sneeze", "sneezed")]
DATIVE: list[Verb] = [("give", "gave"), ("sell", "sold"), ("send", "sent")]
FRAMES: dict[str, tuple[str, list[Verb]]] = {  # the parts of a clause in their order, and its verbs
    "transitive": ("agent verb theme", [("see", "saw"), ("help", "helped"), ("paint", "painted")]),
    "passive": ("theme was verb", [("see", "seen"), ("help", "helped"), ("paint", "painted")]),
    "unergative": ("agent verb", UNERGATIVE),
    "unaccusative": ("theme verb", [("roll", "rolled"), ("burn", "burned"), ("freeze", "froze")]),
    "dative": ("agent verb theme to recipient", DATIVE),
    "double_object": ("agent verb recipient theme", DATIVE),
    "clausal": ("agent verb that ccomp", [("like", "liked"), ("say", "said"), ("hope", "hoped")]),
    "control": ("agent verb to xcomp", [("want", "wanted"), ("try", "tried")]),
}
PRIMITIVES = [
    ("shark", "LAMBDA a . shark ( a )"),
    ("Paula", "Paula"),
    ("crawl", "LAMBDA a . LAMBDA e . crawl . agent ( e , a )"),
]
ROWS = {"train": 1000, "dev": 100, "test": 100}
ROWS_PER_KIND = 10


@dataclass
class SentenceBuilder:
    """A sentence under construction: its words, definite nouns, and facts.

    Each fact has the position of its word.
    """

    rng: random.Random
    words: list[str] = field(default_factory=list)
    definite: list[str] = field(default_factory=list)
    facts: list[tuple[int, str]] = field(default_factory=list)

    def add_word(self, word: str) -> int:
        """Append a word and return its position."""
        self.words.append(word)
        return len(self.words) - 1

    def add_noun_phrase(self, word: str | None = None, depth: int = 0) -> str:
        """Append a name, or a noun with article and `depth` nested prepositional phrases.

        word: in place of a random one. Returns its variable in the logical form: a name itself, or
        `x _ <position>` for a noun.
        """
        if word is None:
            names_or_nouns = NAMES
            if depth or self.rng.random() < 0.7:
                names_or_nouns = NOUNS
            word = self.rng.choice(names_or_nouns)
        if word[0].isupper():
            self.add_word(word)
            return word
        article = self.rng.choice(["a", "the"])
        if not self.words:
            article = article.capitalize()
        self.add_word(article)
        position = self.add_word(word)
        variable = f"x _ {position}"
        if article.lower() == "the":
            self.definite.append(f"* {word} ( {variable} ) ;")
        else:
            self.facts.append((position, f"{word} ( {variable} )"))
        if depth:
            preposition = self.rng.choice(PREPOSITIONS)
            self.add_word(preposition)
            inner = self.add_noun_phrase(self.rng.choice(PLACES), depth - 1)
            self.facts.append((position, f"{word} . nmod . {preposition} ( {variable} , {inner} )"))
        return variable

    def add_clause(self, frame: str, verb: Verb | None = None, depth: int = 1, **fixed: Any) -> int:
        """Append a clause and return the position of its verb.

        The order of the steps decides the random draws.

        frame: a key of FRAMES. verb: in place of a random one of the frame.
        fixed: role -> its word, or the number of its nested prepositional phrases; `xcomp` -> the
            infinitive; `ccomp` -> arguments of the innermost of `depth` nested clauses.
        """
        parts, verbs = FRAMES[frame]
        roles: dict[str, str] = {}
        infinitive: tuple[int, str] | None = None
        lemma = ""  # of the verb, which every frame has
        position = 0
        for part in parts.split(" "):
            value = fixed.get(part)
            if part == "verb":
                lemma, form = verb or self.rng.choice(verbs)
                position = self.add_word(form)
            elif part == "ccomp":
                roles[part] = f"x _ {self.add_nested_clause(depth, value)}"
            elif part == "xcomp":
                word = value or self.rng.choice(UNERGATIVE)[0]
                infinitive = (self.add_word(word), word)
                roles[part] = f"x _ {infinitive[0]}"
            elif part in ("agent", "theme", "recipient"):
                if part == "theme" and verbs is DATIVE:
                    value = self.rng.choice(NOUNS)
                elif part == "theme" and frame == "transitive" and value is None:
                    value = self.rng.choice([0, 0, 1])
                if isinstance(value, str):
                    roles[part] = self.add_noun_phrase(value)
                else:
                    roles[part] = self.add_noun_phrase(depth=value or 0)
            else:
                self.add_word(part)
        if frame == "passive" and self.rng.random() < 0.5:
            self.add_word("by")
            roles["agent"] = self.add_noun_phrase()
        for role, variable in roles.items():
            self.facts.append((position, f"{lemma} . {role} ( x _ {position} , {variable} )"))
        if infinitive:
            place, word = infinitive
            self.facts.append((place, f"{word} . agent ( x _ {place} , {roles['agent']} )"))
        return position

    def add_nested_clause(self, depth: int, innermost: dict[str, Any] | None) -> int:
        """Append `depth` nested clauses and return the position of the first one's verb.

        innermost: arguments of the innermost clause.
        """
        if depth > 1:
            return self.add_clause("clausal", depth=depth - 1, ccomp=innermost)
        return self.add_clause(**(innermost or {"frame": "unergative"}))

    def format_line(self, kind: str) -> str:
        """Format the TSV line: definite nouns, then the facts in the order of their words."""
        facts = " AND ".join(fact for _, fact in sorted(self.facts, key=lambda fact: fact[0]))
        return f"{' '.join([*self.words, '.'])}\t{' '.join([*self.definite, facts])}\t{kind}"


# Kind -> arguments of the clause. In training, each of these words occurs in this role only.
EXPOSURE: dict[str, dict[str, Any]] = {
    "exposure_example_subj_common": {"frame": "transitive", "agent": "hedgehog"},
    "exposure_example_obj_common": {"frame": "transitive", "theme": "cockroach"},
    "exposure_example_subj_proper": {"frame": "transitive", "agent": "Lina"},
    "exposure_example_obj_proper": {"frame": "transitive", "theme": "Charlie"},
    "exposure_example_transitive_subj": {"frame": "transitive", "agent": "cobra"},
    "exposure_example_unacc_subj": {"frame": "unaccusative", "theme": "hippo"},
    "exposure_example_active": {"frame": "transitive", "verb": ("bless", "blessed")},
    "exposure_example_passive": {"frame": "passive", "verb": ("squeeze", "squeezed")},
    "exposure_example_obj_omitted_transitive": {"frame": "unergative", "verb": ("bake", "baked")},
    "exposure_example_unacc": {"frame": "unaccusative", "verb": ("shatter", "shattered")},
    "exposure_example_do_dative": {"frame": "double_object", "verb": ("teleport", "teleported")},
    "exposure_example_pp_dative": {"frame": "dative", "verb": ("ship", "shipped")},
}
GENERALISATIONS: dict[str, dict[str, Any]] = {
    "subj_to_obj_common": {"frame": "transitive", "theme": "hedgehog"},
    "obj_to_subj_common": {"frame": "transitive", "agent": "cockroach"},
    "subj_to_obj_proper": {"frame": "transitive", "theme": "Lina"},
    "obj_to_subj_proper": {"frame": "transitive", "agent": "Charlie"},
    "prim_to_subj_common": {"frame": "transitive", "agent": "shark"},
    "prim_to_obj_common": {"frame": "transitive", "theme": "shark"},
    "prim_to_subj_proper": {"frame": "transitive", "agent": "Paula"},
    "prim_to_obj_proper": {"frame": "transitive", "theme": "Paula"},
    "prim_to_inf_arg": {"frame": "control", "xcomp": "crawl"},
    "active_to_passive": {"frame": "passive", "verb": ("bless", "blessed")},
    "passive_to_active": {"frame": "transitive", "verb": ("squeeze", "squeezed")},
    "obj_omitted_transitive_to_transitive": {"frame": "transitive", "verb": ("bake", "baked")},
    "unacc_to_transitive": {"frame": "transitive", "verb": ("shatter", "shattered")},
    "do_dative_to_pp_dative": {"frame": "dative", "verb": ("teleport", "teleported")},
    "pp_dative_to_do_dative": {"frame": "double_object", "verb": ("ship", "shipped")},
    "only_seen_as_transitive_subj_as_unacc_subj": {
        "frame": "clausal",
        "ccomp": {"frame": "unaccusative", "theme": "cobra"},
    },
    "only_seen_as_unacc_subj_as_unerg_subj": {
        "frame": "clausal",
        "ccomp": {"frame": "unergative", "agent": "hippo"},
    },
    "only_seen_as_unacc_subj_as_obj_omitted_transitive_subj": {
        "frame": "clausal",
        "ccomp": {"frame": "unergative", "agent": "hippo", "verb": ("bake", "baked")},
    },
    "obj_pp_to_subj_pp": {"frame": "transitive", "agent": 1},
    "pp_recursion": {"frame": "transitive", "theme": 3},
    "cp_recursion": {"frame": "clausal", "depth": 3},
}


def write_cogs(folder: Path, seed: int) -> dict[str, Path]:
    """Write {train,dev,test,gen}.tsv, in which no sentence is repeated.

    Returns their paths by source name.
    """
    rng = random.Random(f"{seed}/cogs stand-in")
    seen: set[str] = set()
    train = [f"{word}\t{meaning}\tprimitive" for word, meaning in PRIMITIVES]
    for kind, clause in EXPOSURE.items():
        train.append(generate_new_line(rng, [clause], kind, seen))
    gen = []
    for kind, clause in GENERALISATIONS.items():
        for _ in range(ROWS_PER_KIND):
            gen.append(generate_new_line(rng, [clause], kind, seen))
    files: dict[str, list[str]] = {"train": train, "gen": gen, "dev": [], "test": []}
    clauses = [{"frame": frame} for frame in FRAMES]
    for file, rows in ROWS.items():
        while len(files[file]) < rows:
            files[file].append(generate_new_line(rng, clauses, "in_distribution", seen))
    for lines in files.values():
        rng.shuffle(lines)
    return write_text_lines(folder, {f"cogs/{file}.tsv": lines for file, lines in files.items()})


def generate_new_line(
    rng: random.Random, clauses: list[dict[str, Any]], kind: str, seen: set[str]
) -> str:
    """Generate a line of a kind from one of the clauses.

    Its sentence is not in `seen`, and is added there.
    """
    while True:
        builder = SentenceBuilder(rng)
        builder.add_clause(**rng.choice(clauses))
        line = builder.format_line(kind)
        sentence = line.split("\t")[0]
        if sentence not in seen:
            seen.add(sentence)
            return line
