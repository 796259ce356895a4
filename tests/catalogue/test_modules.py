import dataclasses
from pathlib import Path

import pytest

from tests.catalogue.copies import ROOT, edit
from workflow_scripts.catalogue.loading import load_catalogue
from workflow_scripts.catalogue.run_specs import resolve_run
from workflow_scripts.common.errors import UserError
from workflow_scripts.models.encoder_settings import CatSettings, EncoderSettings
from workflow_scripts.models.settings import Seq2SeqSettings, SQTransformerSettings
from workflow_scripts.objectives.masked_settings import CompositionalSettings, MaskedSettings
from workflow_scripts.objectives.settings import CrossEntropySettings, StructuralQuantisationSettings

MODELS = {"seq2seq": Seq2SeqSettings, "sq_transformer": SQTransformerSettings}
MODELS |= {"encoder": EncoderSettings, "cat": CatSettings}
OBJECTIVES = {"cross_entropy": CrossEntropySettings, "structural_quantisation": StructuralQuantisationSettings}
OBJECTIVES |= {"masked_language_modelling": MaskedSettings, "compositional_pretraining": CompositionalSettings}


@pytest.mark.parametrize(
    ("section", "change", "message"),
    [
        ("model", {"width": "thirty"}, "model: width is 'thirty'; it must be of type int"),
        ("model", {"heads": -3}, "heads is -3; it must be at least 1"),
        ("model", {"positions": "rotary"}, "choose one of relative, sinusoidal"),
        ("objective", {"label_smoothing": 2.0}, "label_smoothing is 2.0; it must lie in [0, 1)"),
        ("model", {"module": "workflow_scripts.models.seq2sq"}, "did you mean 'workflow_scripts.models.seq2seq'?"),
        (
            "objective",
            {"module": "workflow_scripts.objectives.my"},
            "no SETTINGS under workflow_scripts/objectives",
        ),
    ],
)
def test_a_wrong_value_of_a_model_is_refused_before_any_job(copy: Path, section: str, change: dict, message: str):
    edit(
        copy / "catalogue/scales.yaml",
        lambda scales: scales["small"]["settings"].setdefault(section, {}).update(change),
    )
    with pytest.raises(UserError) as error:
        resolve_run(load_catalogue(copy), "scan-jump-x2/transformer/default/seed-1", "small")
    assert message in str(error.value)


@pytest.mark.parametrize("method", ["transformer", "sq-transformer", "bert", "cat"])
def test_a_method_names_every_setting_of_its_modules_with_the_defaults(method: str):
    settings = load_catalogue(ROOT).methods[method].settings
    for section, classes in ((settings.model, MODELS), (settings.objective, OBJECTIVES)):
        defaults = dataclasses.asdict(classes[section["module"].rsplit(".", 1)[1]]())
        assert {key: value for key, value in section.items() if key != "module"} == defaults
