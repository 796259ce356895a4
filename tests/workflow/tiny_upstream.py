"""Small files in upstream's formats for every source of `full`, and small models of random weights for
every model of the hub that it names.
"""

import gzip
import json
import tarfile
import zipfile
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import spacy
import torch
from spacy.training import Example as TaggedExample
from transformers import (
    BertConfig,
    BertModel,
    DistilBertConfig,
    DistilBertForMaskedLM,
    PreTrainedModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

from tests.data import upstream_files
from tests.data.hub_server import HubServer
from tests.data.packing import pack
from tests.data.preparing import prepare_data
from tests.interventions import small_lexicon
from tests.models.small_roberta import SPECIAL
from tests.models.small_roberta import tokenizer as train_roberta_tokenizer
from tests.training.sentence_toy import pairs
from tests.workflow.tiny_full import MINILM, SHARDS, SIZES
from workflow_scripts.config.loading import load_catalogue
from workflow_scripts.config.specs import resolve_data
from workflow_scripts.data.datasets import inverse_dictionary, scan, sst
from workflow_scripts.data.formats.tokenizer_training import train_tokenizer, train_wordpiece
from workflow_scripts.data.sources.declared import load_repositories
from workflow_scripts.data.stand_ins import bird, cfq, cognition, cogs, corpora, wmt
from workflow_scripts.data.stand_ins import sst as trees
from workflow_scripts.data.stand_ins import wordnet as dictionary
from workflow_scripts.interventions.settings import SPACY_WHEELS, WORD_PROBABILITIES
from workflow_scripts.interventions.spacy_models import PROBABILITIES
from workflow_scripts.models.causal_lm.model import build
from workflow_scripts.models.causal_lm.settings import Settings

FAMILIES = {
    "openai-community/gpt2": "gpt2",
    "openai-community/gpt2-large": "gpt2",
    "google/gemma-2b": "gemma",
    "meta-llama/Llama-3.2-1B": "llama",
    "meta-llama/Llama-3.2-3B": "llama",
    "Qwen/Qwen2.5-0.5B": "qwen2",
    "Qwen/Qwen2.5-3B": "qwen2",
}
IN_SHARDS = ("meta-llama/Llama-3.2-3B", "Qwen/Qwen2.5-3B")


def write_mirror(mirror: Path, scratch: Path) -> None:
    """Write `<dataset>/<file>` of every source of `full`."""
    scratch.mkdir()
    written = upstream_files.write(scratch)
    for write in (cfq.write_cfq, cogs.write_cogs, cognition.write_cognition):
        written |= write(scratch, 0)
    written |= bird.write_bird(scratch)
    written |= write_translations(scratch)
    texts = corpora.write_corpora(scratch)
    shard = texts.pop("wikipedia/train-00000-of-00001.parquet")
    table = pq.read_table(shard)
    for number, name in enumerate(SHARDS):
        written[name] = scratch / f"shard-{number}.parquet"
        pq.write_table(table.slice(30 * number, 30), written[name])
    written |= texts
    written |= small_lexicon.write_sources(scratch)
    written |= write_folders(scratch)
    for name, path in written.items():
        target = mirror / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(path.read_bytes())
    write_wheels(mirror, scratch)


def write_translations(scratch: Path) -> dict[str, Path]:
    """Write the archives of both pairs of languages; some have files of both."""
    members: dict[str, dict[str, bytes]] = {}
    for task in ("wmt17-en-de", "wmt14-en-fr"):
        options = resolve_data(load_catalogue(), task, "full").options
        parts = [(corpus.archive, corpus.files) for corpus in options.corpora]
        test = (options.test.archive, options.test.files)
        folder = scratch / task
        folder.mkdir()
        for archive, path in wmt.write_wmt(folder, parts, test).items():
            members.setdefault(archive, {}).update(read_tar(path))
    return {name: pack(scratch / Path(name).name, files) for name, files in members.items()}


def read_tar(path: Path) -> dict[str, bytes]:
    with tarfile.open(path) as archive:
        return {member.name: archive.extractfile(member).read() for member in archive}


def write_folders(scratch: Path) -> dict[str, Path]:
    """Write SCAN, and the archives of what stand-ins write as folders: WordNet, SST, Punkt."""
    written = {}
    for name, phrase in (("addprim_jump", "jump"), ("template_around_right", "around right")):
        for part, examples in zip(("train", "test"), scan.split_commands(phrase), strict=True):
            path = scratch / f"tasks_{part}_{name}.txt"
            path.write_text("".join(f"IN: {one.source} OUT: {one.target}\n" for one in examples))
            written[f"scan/{path.name}"] = path
    for name, inner, write in (
        ("wordnet/wordnet-3.0-dict.tar.xz", "dict", dictionary.write_wordnet),
        ("sst/trainDevTestTrees_PTB.zip", "trees", trees.write_sst),
    ):
        folder = scratch / inner
        folder.mkdir()
        write(folder)
        files = {f"{inner}/{path.name}": path.read_bytes() for path in sorted(folder.iterdir())}
        written[name] = pack(scratch / Path(name).name, files)
    punkt = {
        "abbrev_types.txt": "dr\nmr\n",
        "collocations.tab": "",
        "ortho_context.tab": "",
        "sent_starters.txt": "",
    }
    archive = scratch / "punkt_tab_english.tar.gz"
    members = {f"punkt_tab/english/{name}": text for name, text in punkt.items()}
    return written | {f"nltk/{archive.name}": pack(archive, members)}


def list_texts() -> tuple[list[str], dict[str, int]]:
    """Return texts of the tasks, and their answers to prompts, each with a number of occurrences."""
    texts = [text for row in pairs(50, 0) for text in (row.first, row.second)]
    answers: dict[str, int] = {}
    for module in (inverse_dictionary, sst):
        tables = prepare_data(module, {"from": "stand_in"}, {}).tables
        for table in tables.values():
            texts += table["content"]
            answers |= dict.fromkeys(table["label"], 500)
    texts += [f"label: {answer}" for answer in answers for _ in range(50)]
    return texts, answers


def write_wheels(mirror: Path, scratch: Path) -> None:
    """Write the wheels of spaCy's pipeline and tables, and of MiniLM."""
    texts = list_texts()[0]
    words = sorted({word for text in texts for word in text.split()})
    folder = scratch / "spacy"
    make_pipeline(words).to_disk(folder)
    files = {
        f"en_core_web_md/en_core_web_md-3.8.0/{file.relative_to(folder)}": file.read_bytes()
        for file in sorted(folder.rglob("*"))
        if file.is_file()
    }
    write_wheel(mirror / SPACY_WHEELS["en_core_web_md"], files)
    table = gzip.compress(json.dumps(dict.fromkeys(words, -10.0)).encode())
    write_wheel(mirror / WORD_PROBABILITIES, {f"spacy_lookups_data/data/{PROBABILITIES}": table})
    package = load_repositories()[MINILM]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    model = BertModel(BertConfig(vocab_size=300, intermediate_size=64, **sizes))
    files = save_model(model, train_wordpiece(300, texts).to_str(), scratch / "minilm")
    members = {member: files[Path(member).name] for member in package.files}
    write_wheel(mirror / package.wheel, members)


def make_pipeline(words: list[str]) -> spacy.Language:
    """Make a pipeline with a vector of each word, for whose tagger almost all words are nouns."""
    nlp = spacy.blank("en")
    random = np.random.default_rng(0)
    for word in words:
        nlp.vocab.set_vector(word, (1 + random.random(8)).astype(np.float32))
    tagger = nlp.add_pipe("tagger")
    for tag in ("DT", "NN"):
        tagger.add_label(tag)
    sentence = ["the", *words[:20], "a", *words[20:40]]
    tags = ["DT" if word in ("the", "a") else "NN" for word in sentence]
    doc = spacy.tokens.Doc(nlp.vocab, words=sentence)
    example = TaggedExample.from_dict(doc, {"tags": tags})
    optimiser = nlp.initialize(lambda: [example])
    for _ in range(10):
        nlp.update([example], sgd=optimiser)
    return nlp


def write_wheel(path: Path, files: dict[str, bytes]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with zipfile.ZipFile(path, "w") as wheel:
        for name, content in files.items():
            wheel.writestr(name, content)


def save_model(
    model: PreTrainedModel, tokenizer: str, folder: Path, **options: object
) -> dict[str, bytes]:
    """Return the files of a model as transformers saves them, and its tokenizer.json."""
    model.save_pretrained(folder, **options)
    (folder / "tokenizer.json").write_text(tokenizer)
    return {path.name: path.read_bytes() for path in folder.iterdir()}


def add_models(hub: HubServer, scratch: Path) -> None:
    """Add small models of random weights for every model of the hub that `full` names."""
    torch.manual_seed(0)
    texts, answers = list_texts()
    repositories = load_repositories()
    pieces = train_tokenizer("bpe", 1500, texts, answers)
    sizes = SIZES | {"layers": 4, "positions": 256}
    for name, family in FAMILIES.items():
        model = build(Settings(family=family, **sizes), pieces.get_vocab_size())
        options = {"max_shard_size": "50KB"} if name in IN_SHARDS else {}
        files = save_model(model, pieces.to_str(), scratch / name, **options)
        hub.add(name, repositories[name].revision, files)
    bytes_of_roberta = train_roberta_tokenizer(texts, [*SPECIAL, "<mask>"])
    roberta = RobertaForMaskedLM(
        RobertaConfig(
            vocab_size=bytes_of_roberta.get_vocab_size(), hidden_size=32, num_hidden_layers=4,
            num_attention_heads=2, intermediate_size=64, max_position_embeddings=514,
            type_vocab_size=1, layer_norm_eps=1e-5,
        )
    )  # fmt: skip
    words = train_wordpiece(400, texts)
    distilbert = DistilBertForMaskedLM(
        DistilBertConfig(vocab_size=words.get_vocab_size(), n_layers=6, n_heads=2, dim=32,
                         hidden_dim=64)
    )  # fmt: skip
    for name, model, tokenizer in (
        ("FacebookAI/roberta-base", roberta, bytes_of_roberta),
        ("distilbert/distilbert-base-uncased", distilbert, words),
    ):
        files = save_model(model, tokenizer.to_str(), scratch / name)
        hub.add(name, repositories[name].revision, files)
