"""Synonym candidates of a data set: all words at once, against word by word."""

import argparse
import time
from pathlib import Path

from benchmarks.turns import show, take_turns
from workflow_scripts.common.errors import UserError
from workflow_scripts.interventions.candidates import (
    build,
    find_queries,
    find_wordnet_synonyms,
    rank_candidates,
)
from workflow_scripts.interventions.settings import CandidateSpec, Options
from workflow_scripts.interventions.synonym_resources import build_gloss_vectors, load_resources

WEIGHT, TOP = 0.6, 5


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--downloads",
        type=Path,
        default=Path("results/downloads"),
        help="where fetch put the sources",
    )
    parser.add_argument(
        "--contents", type=int, default=1000, help="glosses of WordNet, evenly spread"
    )
    parser.add_argument("--whole", type=int, default=11_948, help="definitions of a whole data set")
    parser.add_argument("--rounds", type=int, default=3)
    args = parser.parse_args()
    options = Options.model_validate({"vectors": "glosses"})
    sources = CandidateSpec("test", options).sources
    try:
        resources = load_resources({name: args.downloads / name for name in sources}, options)
    except UserError as error:
        parser.error(f"{error}\nfirst: python -m workflow_scripts fetch {' '.join(sources)}")
    vectors = build_gloss_vectors(resources.lexicon)
    synsets = resources.lexicon.synsets
    contents = [
        synset.gloss.split(";")[0] for synset in synsets[:: max(1, len(synsets) // args.contents)]
    ]
    contents = contents[: args.contents]

    def at_once() -> dict:
        wanted = {
            content: find_queries(content, resources, options.min_characters)
            for content in contents
        }
        queries = sorted({query for found in wanted.values() for query in found.values()})
        chosen = rank_candidates(
            queries, find_wordnet_synonyms(queries, resources), vectors, WEIGHT, TOP
        )
        return {
            content: {
                position: chosen[query] for position, query in found.items() if query in chosen
            }
            for content, found in wanted.items()
        }

    def word_by_word() -> dict:
        made: dict = {}
        for content in contents:
            made[content] = {}
            found = find_queries(content, resources, options.min_characters)
            for position, query in found.items():
                chosen = rank_candidates(
                    [query], find_wordnet_synonyms([query], resources), vectors, WEIGHT, TOP
                )
                if query in chosen:
                    made[content][position] = chosen[query]
        return made

    together, apart = (
        {c: {p: [t for t, _ in s] for p, s in f.items()} for c, f in made.items()}
        for made in (at_once(), word_by_word())
    )
    words = sum(len(content.split()) for content in contents)
    same = sum(together[c] == apart[c] for c in contents)
    print(
        f"{len(contents)} glosses, {words} words; the same candidates in the same order for {same} of them"
    )
    seconds = take_turns(
        {"all words at once": at_once, "word by word": word_by_word}, args.rounds, warm_up=0
    )
    show("Synonym candidates", seconds, "all words at once")
    everything = [
        definition
        for synset in synsets
        if " " in (definition := synset.gloss.split(";")[0].strip())
    ]
    chosen = everything[:: len(everything) // args.whole][: args.whole]
    started = time.monotonic()
    table = build(chosen, resources, options)
    print(
        f"the table of {table.num_rows:,} definitions: {time.monotonic() - started:.1f} s of wall clock, in one process"
    )


if __name__ == "__main__":
    main()
