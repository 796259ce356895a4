"""Small files in the formats of upstream's: GLUE, IMDB, MNLI, Amazon reviews, SST-2, the STS
benchmark, PAWS, SQuAD.

Their sentences are those of `training.sentence_toy`, which a small encoder knows the words of.
"""

import gzip
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tests.data.packing import pack
from tests.training.sentence_toy import pairs
from workflow_scripts.data.stand_ins import squad

ROWS = 24  # of each part of a data set
Line = Callable[[int, str, str, int], str]
GENRES = ("telephone", "letters", "fiction")

# Options with which tasks can be prepared from them: few rows are there to draw from.
FEWER = {
    **{
        task: {}
        for task in ("paws", "stsb", "stsb-msrvid", "imdb-sst2", "imdb-sst2-50pc", "glue-mrpc")
    },
    **{f"glue-{name}": {"validation": 6} for name in ("cola", "mnli", "qnli", "qqp", "rte")},
    "sst2": {"test": 8},
    "sst2-10pc": {"test": 4},
    "mnli-letters": {"train": 5},
    "amazon-video": {"train": 10, "valid": 6, "test": 8},
    "squad": {"validation": 20},
}


def texts(seed: int) -> Iterator[tuple[int, str, str, int]]:
    """(number, sentence, sentence, 0 or 1) of each row of a part."""
    for i, row in enumerate(pairs(ROWS, seed)):
        yield i, row.first, row.second, int(row.label)


def tsv(header: str, line: Line, seed: int) -> str:
    return (f"{header}\n" if header else "") + "".join(f"{line(*row)}\n" for row in texts(seed))


Files = dict[str, str]  # of an archive: name -> content


def glue(folder: str, header: str, line: Line, parts: Sequence[str] = ("train", "dev")) -> Files:
    """An archive of upstream's form: a folder, and a test set without labels next to the parts."""
    files = {f"{folder}/{part}.tsv": tsv(header, line, seed) for seed, part in enumerate(parts)}
    return files | {f"{folder}/test.tsv": "index\tsentence\n0\tno label\n"}


def mnli() -> Files:
    parses = "sentence1_binary_parse\tsentence2_binary_parse"
    header = f"index\tpromptID\tpairID\tgenre\t{parses}\tsentence1\tsentence2\tlabel1\tgold_label"
    classes = ("entailment", "neutral", "contradiction")

    def line(i: int, first: str, second: str, label: int) -> str:
        return f"{i}\t{i}\t{i}e\t{GENRES[i % 3]}\t( A )\t( B )\t{first}\t{second}\tneutral\t{classes[label + i % 2]}"

    return glue("MNLI", header, line, ("train", "dev_matched", "dev_mismatched"))


def mrpc(seed: int) -> bytes:
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String"
    return tsv(
        header, lambda i, one, two, y: f"{y}\t{100 + i}\t{200 + i}\t{one}\t{two}", seed
    ).encode()


def imdb() -> Files:
    files = {"aclImdb/README": "read me", "aclImdb/train/unsup/0_0.txt": "no label"}
    for seed, part in enumerate(("train", "test")):
        files |= {
            f"aclImdb/{part}/{('neg', 'pos')[y]}/{i}_{1 + 8 * y}.txt": one
            for i, one, _, y in texts(seed)
        }
    return files


def amazon(seed: int) -> bytes:
    reviews = (
        {
            "reviewerID": "A",
            "asin": str(i),
            "reviewText": one,
            "overall": 1.0 + i % 5,
            "unixReviewTime": 0,
        }
        for i, one, _, _ in texts(seed)
    )
    return gzip.compress("".join(json.dumps(review) + "\n" for review in reviews).encode())


def stsb() -> Files:
    def line(i: int, one: str, two: str, y: int) -> str:
        source = ("MSRvid", "images")[i % 2]
        return f"main-captions\t{source}\t2012test\t{i:04}\t{4 * y + i % 2:.3f}\t{one}\t{two}"

    parts = enumerate(("train", "dev", "test"))
    return {f"stsbenchmark/sts-{part}.csv": tsv("", line, seed) for seed, part in parts}


def paws(*parts: str) -> Files:
    header = "id\tsentence1\tsentence2\tlabel"
    line = lambda i, one, two, y: f"{i}\t{one}\t{two}\t{y}"  # noqa: E731
    return {f"final/{part}.tsv": tsv(header, line, seed) for seed, part in enumerate(parts)}


def squad_files(folder: Path) -> dict[str, bytes]:
    return {name: path.read_bytes() for name, path in squad.write_squad(folder, 0).items()}


def write(folder: Path) -> dict[str, Path]:
    """All files under their names in sources.yaml."""
    made = {
        "glue/CoLA.zip": glue(
            "CoLA", "", lambda i, one, _, y: f"gj04\t{y}\t{'*' * (1 - y)}\t{one}"
        ),
        "glue/MNLI.zip": mnli(),
        "glue/msr_paraphrase_train.txt": mrpc(0),
        "glue/msr_paraphrase_test.txt": mrpc(1),
        "glue/mrpc_dev_ids.tsv": b"".join(b"%d\t%d\n" % (100 + i, 200 + i) for i in range(6)),
        "glue/QNLIv2.zip": glue(
            "QNLI",
            "index\tquestion\tsentence\tlabel",
            lambda i, one, two, y: f"{i}\t{one}\t{two}\t{('not_' * y)}entailment",
        ),
        "glue/QQP-clean.zip": glue(
            "QQP",
            "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate",
            lambda i, one, two, y: f"{i}\t{i}\t{i + 1}\t{one}" + (f"\t{two}\t{y}" if i else ""),
        ),
        "glue/RTE.zip": glue(
            "RTE",
            "index\tsentence1\tsentence2\tlabel",
            lambda i, one, two, y: f"{i}\t{one}\t{two}\t{('not_' * y)}entailment",
        ),
        "sst2/SST-2.zip": glue("SST-2", "sentence\tlabel", lambda i, one, _, y: f"{one} \t{y}"),
        "imdb/aclImdb_v1.tar.gz": imdb(),
        "amazon/reviews_Digital_Music_5.json.gz": amazon(0),
        "amazon/reviews_Amazon_Instant_Video_5.json.gz": amazon(1),
        "stsb/Stsbenchmark.tar.gz": stsb(),
        "paws/paws_wiki_labeled_final.tar.gz": paws("train", "dev", "test"),
        "paws/paws_wiki_labeled_swap.tar.gz": paws("train"),
        **squad_files(folder),
    }
    written = {}
    for name, content in made.items():
        written[name] = folder / name
        written[name].parent.mkdir(parents=True, exist_ok=True)
        if isinstance(content, dict):
            pack(written[name], content)
        else:
            written[name].write_bytes(content)
    return written
