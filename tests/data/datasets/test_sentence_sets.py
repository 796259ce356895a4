"""BiRD, SST-2, STS-B, GLUE, MNLI by genre, IMDB, Amazon: real files if at hand, else small ones in their layouts."""

import gzip
import json
from collections import Counter

import pytest

from tests.data.packing import pack
from workflow_scripts.common.errors import UserError
from workflow_scripts.data.datasets import amazon, bird, glue, imdb, mnli_letters, squad, sst2, sts
from workflow_scripts.data.prepared import prepare_data


def sizes(made) -> dict[str, int]:
    return {split: len(columns["item"]) for split, columns in made.tables.items()}


def test_bird(mirror):
    made = prepare_data(bird, {}, {"bird/BiRD.txt": mirror / "bird/BiRD.txt"})
    scores = made.tables["test"]["label"]
    assert sizes(made) == {"test": 3345} and (min(scores), max(scores)) == (0.026, 0.936)
    assert made.described == {"labels": None}


def test_abba_has_each_pair_in_both_orders(mirror):
    columns = prepare_data(bird, {"set": "abba"}, {"bird/BiRD-ABBA.txt": mirror / "bird/BiRD-ABBA.txt"}).tables["test"]
    assert len(columns["item"]) == 410
    assert all(
        first.split() == second.split()[::-1] for first, second in zip(columns["first"], columns["second"], strict=True)
    )


def test_a_bird_file_that_is_none(tmp_path):
    (tmp_path / "BiRD.txt").write_text("pair\tterm1\tterm2\tscore\na\tb\tc\t1\n")
    with pytest.raises(UserError, match=r"BiRD.txt: no column 'relatedness score'"):
        prepare_data(bird, {}, {"bird/BiRD.txt": tmp_path / "BiRD.txt"})
    (tmp_path / "BiRD.txt").write_text("term1\tterm2\trelatedness score\na b\tb\t1.5\n")
    with pytest.raises(UserError, match=r"BiRD.txt:2: the label is '1.5', not a number from 0 to 1"):
        prepare_data(bird, {}, {"bird/BiRD.txt": tmp_path / "BiRD.txt"})


def test_sst2_from_the_files_of_the_mirror(mirror):
    made = prepare_data(sst2, {}, {name: mirror / name for name in ("sst2/train.tsv", "sst2/dev.tsv")})
    assert sizes(made) == {"train": 60000, "valid": 872, "test": 7349}
    assert made.tables["valid"]["first"][0] == "it 's a charming and often affecting journey ."
    assert Counter(made.tables["valid"]["label"]) == {1.0: 444, 0.0: 428}
    assert set(made.tables["train"]["second"]) == {None}


def test_sst2_from_its_archive(tmp_path):
    files = {f"SST-2/{part}.tsv": "sentence\tlabel\ngood \t1\nbad \t0\nfine \t1\n" for part in ("train", "dev")}
    made = prepare_data(sst2, {"test": 1}, {"sst2/SST-2.zip": pack(tmp_path / "SST-2.zip", files)})
    assert sizes(made) == {"train": 2, "valid": 3, "test": 1}


def test_stsb_from_the_files_of_the_mirror(mirror):
    sources = {f"stsb/sts-{part}.csv": mirror / f"stsb/sts-{part}.csv" for part in sts.PARTS}
    assert sizes(prepare_data(sts, {}, sources)) == {"train": 5749, "valid": 1500, "test": 1379}
    made = prepare_data(sts, {"in_distribution": "images", "test": "MSRvid"}, sources)
    assert sizes(made) == {"train": 1000, "valid": 250, "in_distribution": 250, "test": 250}
    # Images and MSRvid are equal in number in every part.
    parts = {"train": "train", "valid": "dev", "in_distribution": "test", "test": "test"}
    for split, part in parts.items():
        lines = (mirror / f"stsb/sts-{part}.csv").read_text(encoding="utf-8").rstrip("\n").split("\n")
        rows = [
            cells for line in lines if (cells := line.split("\t"))[1] == ("MSRvid" if split == "test" else "images")
        ]
        expected = [(cells[5], cells[6], float(cells[4])) for cells in rows]
        columns = (made.tables[split][name] for name in ("first", "second", "label"))
        assert list(zip(*columns, strict=True)) == expected


@pytest.mark.parametrize(
    ("module", "options"), [(sst2, {"test": 200}), (sts, {"in_distribution": "images"}), (bird, {})]
)
def test_stand_ins(module, options):
    made = prepare_data(module, {"from": "stand_in", **options}, {})
    assert made.protocol == "stand_in"
    assert all(len(set(columns["label"])) > 1 for columns in made.tables.values())


PAIRS = "index\tsentence1\tsentence2\tlabel\n"
QNLI, QQP = (
    PAIRS.replace("sentence1\tsentence2", "question\tsentence"),
    "id\tqid1\tqid2\tquestion1\tquestion2\tis_duplicate\n",
)
# Task -> (source, folder, content of a part).
GLUE = {
    "cola": ("glue/CoLA.zip", "CoLA", "gj04\t1\t\tHe ran {0}.\ngj04\t0\t*\tHim ran {0}.\n"),
    "qnli": ("glue/QNLIv2.zip", "QNLI", f"{QNLI}0\tWho {{0}}?\tHe.\tentailment\n1\tA {{0}}\tB\tnot_entailment\n"),
    "rte": ("glue/RTE.zip", "RTE", f"{PAIRS}0\tA {{0}}\tB\tnot_entailment\n1\tA {{0}}\tB\tentailment\n"),
    "qqp": ("glue/QQP-clean.zip", "QQP", f"{QQP}1\t1\t2\tA {{0}}?\tB?\t1\n3\t3\t4\tC?\n5\t5\t6\tD {{0}}?\tE?\t0\n"),
}


def glue_sources(tmp_path, task, **changes: str):
    source, folder, content = GLUE[task]
    files = {part: content.format(part) for part in ("train", "dev")} | changes
    return {source: pack(tmp_path / "a.zip", {f"{folder}/{part}.tsv": text for part, text in files.items()})}


@pytest.mark.parametrize("task", GLUE)
def test_glue_archives(tmp_path, task):
    made = prepare_data(glue, {"task": task, "validation": 1}, glue_sources(tmp_path, task))
    assert sizes(made) == {"train": 1, "valid": 1, "test": 2}
    for split, part in (("train", "train"), ("valid", "train"), ("test", "dev")):
        assert all(part in text for text in made.tables[split]["first"])
    assert made.tables["test"]["label"] == ([1.0, 0.0] if task in ("cola", "rte", "qqp") else [0.0, 1.0])
    assert len(made.described["labels"]) == 2
    assert (made.tables["test"]["second"][0] is None) == (task == "cola")


def test_mrpc_has_its_own_dev_set(tmp_path):
    header = "\ufeffQuality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    for part in ("train", "test"):
        lines = '1\t10\t11\tHe said "no.\tHe denied.\n0\t12\t13\tA\tB\n'
        (tmp_path / f"msr_paraphrase_{part}.txt").write_text(header + lines, encoding="utf-8")
    (tmp_path / "mrpc_dev_ids.tsv").write_text("12\t13\n")
    sources = {
        f"glue/{name}": tmp_path / name
        for name in ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "mrpc_dev_ids.tsv")
    }
    made = prepare_data(glue, {"task": "mrpc"}, sources)
    assert made.tables["train"]["item"] == ["10/11"] and made.tables["valid"]["item"] == ["12/13"]
    assert made.tables["test"]["first"] == ['He said "no.', "A"]
    for content, message in (
        ("12\t13\n<html>\n", r"mrpc_dev_ids.tsv:2: not the two ids of a pair"),
        ("12\t13\t1\n", r"mrpc_dev_ids.tsv:1: not the two ids of a pair"),
        ("13\t12\n", r"mrpc_dev_ids.tsv: no pair 13 12 in the training set"),
        ("", r"mrpc_dev_ids.tsv: no pair; fetch"),
    ):
        (tmp_path / "mrpc_dev_ids.tsv").write_text(content)
        with pytest.raises(UserError, match=message):
            prepare_data(glue, {"task": "mrpc"}, sources)


def mnli(tmp_path):
    columns = "index\tpromptID\tpairID\tgenre\tsentence1\tsentence2\tlabel1\tgold_label\n"
    genres = {
        "train": ["telephone", "fiction", "telephone", "telephone"],
        "dev_matched": ["telephone", "travel"],
        "dev_mismatched": ["letters", "oup", "letters"],
    }
    files = {
        f"MNLI/{name}.tsv": columns
        + "".join(f"{i}\t1\t1a\t{genre}\t{name} {i}\tH{i}\tneutral\tcontradiction\n" for i, genre in enumerate(rows))
        for name, rows in genres.items()
    }
    return {"glue/MNLI.zip": pack(tmp_path / "MNLI.zip", files)}


def test_mnli(tmp_path):
    made = prepare_data(glue, {"task": "mnli", "validation": 1}, mnli(tmp_path))
    assert sizes(made) == {"train": 3, "test": 2, "mismatched": 3, "valid": 1}
    for split, part in (("test", "dev_matched"), ("mismatched", "dev_mismatched"), ("valid", "train")):
        assert {text.split(" ")[0] for text in made.tables[split]["first"]} == {part}


def test_mnli_by_genre(tmp_path):
    made = prepare_data(mnli_letters, {"train": 2}, mnli(tmp_path))
    assert sizes(made) == {"train": 2, "valid": 1, "in_distribution": 1, "test": 2}
    assert sorted(made.tables["train"]["first"] + made.tables["valid"]["first"]) == ["train 0", "train 2", "train 3"]
    assert made.tables["in_distribution"]["first"] == ["dev_matched 0"]
    assert made.tables["test"]["first"] == ["dev_mismatched 0", "dev_mismatched 2"]
    assert set(made.tables["test"]["label"]) == {2.0}
    with pytest.raises(UserError, match="key 'train' is 3; the training set has 3 pairs"):
        prepare_data(mnli_letters, {"train": 3}, mnli(tmp_path))


def test_imdb(tmp_path):
    names = [f"aclImdb/{part}/{kind}/{i}_{4 + i}.txt" for part in ("test", "train") for kind in ("pos", "neg")
             for i in range(6, 0, -1)]  # fmt: skip
    others = ["aclImdb/train/unsup/0_0.txt", "aclImdb/README"]
    reviews = pack(tmp_path / "imdb.tar.gz", {name: name for name in [*names, *others]})
    (tmp_path / "dev.tsv").write_text("sentence\tlabel\ngood \t1\n")
    made = prepare_data(imdb, {}, {imdb.ARCHIVE: reviews, "sst2/dev.tsv": tmp_path / "dev.tsv"})
    assert sizes(made) == {"train": 12, "valid": 6, "in_distribution": 6, "test": 1}
    found = dict(zip(made.tables["train"]["first"], made.tables["train"]["label"], strict=True))
    assert found == {name: float("/pos/" in name) for name in names if "/train/" in name}
    assert made.tables["train"]["label"] != sorted(made.tables["train"]["label"])
    halves = made.tables["valid"]["first"] + made.tables["in_distribution"]["first"]
    assert sorted(halves) == sorted(name for name in names if "/test/" in name)
    assert made.tables["test"]["first"] == ["good"]
    with pytest.raises(UserError, match=r"empty.tar.gz: no reviews under train/neg"):
        imdb.read_imdb(pack(tmp_path / "empty.tar.gz", {}))
    broken = pack(tmp_path / "broken.tar.gz", {"aclImdb/train/neg/7_2.txt": b"caf\xe9"})
    with pytest.raises(UserError, match=r"broken.tar.gz: aclImdb/train/neg/7_2.txt: not UTF-8 text; fetch it again"):
        imdb.read_imdb(broken)


def test_amazon(tmp_path):
    sources = {}
    for name in (amazon.MUSIC, amazon.VIDEO):
        sources[name] = tmp_path / name.split("/")[1]
        with gzip.open(sources[name], "wt") as stream:
            for i in range(12):
                stream.write(json.dumps({"reviewText": f"{name} {i}", "overall": 1.0 + i % 5}) + "\n")
    made = prepare_data(amazon, {"train": 6, "valid": 3, "test": 5}, sources)
    assert sizes(made) == {"train": 6, "valid": 3, "in_distribution": 3, "test": 5}
    assert made.protocol == "reduced" and "in_distribution: 3 reviews, 5 were asked for" in made.notes
    music = [text for split in ("train", "valid", "in_distribution") for text in made.tables[split]["first"]]
    assert sorted(music) == sorted(f"{amazon.MUSIC} {i}" for i in range(12))
    assert all(text.startswith(amazon.VIDEO) for text in made.tables["test"]["first"])
    with gzip.open(tmp_path / "broken.json.gz", "wt") as stream:
        stream.write('{"reviewText": "fine", "overall": 5.0}\n{"overall": 5.0}\n')
    with pytest.raises(UserError, match=r"broken.json.gz:2: not a review with reviewText and overall"):
        amazon.read_amazon_reviews(tmp_path / "broken.json.gz")


@pytest.mark.parametrize(
    ("task", "part", "content", "message"),
    [
        ("cola", "train", "gj04\t1\t\tHe ran.\ngj04\t2\t\tHim ran.\n", "train.tsv:2: the label is '2'"),
        ("qnli", "dev", f"{QNLI}0\tA\tB\tno\n", "dev.tsv:2: the label is 'no'"),
        ("rte", "train", f"{PAIRS}0\tA\tB\tentailment\n1\tA\n", "train.tsv:3: 2 fields, 4 needed"),
        ("qqp", "train", f"{QQP}1\t1\t2\tA?\tB?\tyes\n", "train.tsv:2: the label is 'yes'"),
        *((task, "train", content, "train.tsv:") for task in GLUE for content in ("", "\n")),
    ],
)
def test_a_bad_line_and_a_file_of_glue_without_examples_are_named(tmp_path, task, part, content, message):
    with pytest.raises(UserError, match=f"a.zip: {message}.* fetch (the file|it) again") as caught:
        prepare_data(glue, {"task": task, "validation": 1}, glue_sources(tmp_path, task, **{part: content}))
    assert "\n" not in str(caught.value)


def question(**changes) -> dict:
    return {"id": "q1", "question": "Who?", "answers": [{"text": "Anna", "answer_start": 0}]} | changes


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (question(question=7), "question q1: its key, question, paragraph or answer is no text"),
        (question(id=7), "question 7: its key, question, paragraph or answer is no text"),
        (question(answers=[{"text": "Anna", "answer_start": 1e400}]), "cannot convert float infinity to integer"),
        (question(answers=[]), "list index out of range"),
        ([], "list indices must be integers"),
    ],
)
def test_a_question_of_another_form_is_named(tmp_path, content, message):
    paragraphs = [{"context": "Anna ran.", "qas": [content]}]
    (tmp_path / "train.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
    with pytest.raises(UserError, match=rf"train.json is not a file of SQuAD's form \({message}.*fetch it again"):
        squad.read_squad(tmp_path / "train.json")


def test_json_that_is_nested_too_deeply_is_named(tmp_path):
    (tmp_path / "train.json").write_text("[" * 100_000)
    with pytest.raises(UserError, match=r"train.json is not a file of SQuAD's form .maximum recursion depth exceeded"):
        squad.read_squad(tmp_path / "train.json")
    with gzip.open(tmp_path / "reviews.json.gz", "wt") as stream:
        stream.write("[" * 100_000)
    with pytest.raises(UserError, match=r"reviews.json.gz:1: not a review .*maximum recursion depth exceeded"):
        amazon.read_amazon_reviews(tmp_path / "reviews.json.gz")


def test_a_bad_line_of_mrpc_and_of_mnli_is_named(tmp_path):
    header = "Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n"
    names = ("msr_paraphrase_train.txt", "msr_paraphrase_test.txt", "mrpc_dev_ids.tsv")
    sources = {f"glue/{name}": tmp_path / name for name in names}
    for path in sources.values():
        path.write_text(f"{header}1\t10\t11\tA\tB\n2\t10\t11\tA\tB\n")
    with pytest.raises(UserError, match=r"msr_paraphrase_train.txt:3: the label is '2', none of 0, 1"):
        prepare_data(glue, {"task": "mrpc"}, sources)
    columns = "index\tgenre\tsentence1\tsentence2\tgold_label\n"
    files = {f"MNLI/{part}.tsv": columns + "0\ttelephone\tA\tB\tneutral\n" * 3
             for part in ("train", "dev_matched", "dev_mismatched")}  # fmt: skip
    files["MNLI/dev_mismatched.tsv"] = f"{columns}0\tletters\tA\tB\tneutral\n1\tletters\tA\tB\t-\n"
    with pytest.raises(UserError, match=r"MNLI.zip: dev_mismatched.tsv:3: the label is '-'"):
        prepare_data(mnli_letters, {"train": 2}, {"glue/MNLI.zip": pack(tmp_path / "MNLI.zip", files)})
    files["MNLI/train.tsv"] = "index\tsentence1\n0\tA\n"
    with pytest.raises(UserError, match=r"MNLI.zip: train.tsv: no column 'sentence2'"):
        prepare_data(mnli_letters, {"train": 2}, {"glue/MNLI.zip": pack(tmp_path / "MNLI.zip", files)})
