"""The modules of models and objectives that settings may name, and the check of what they are given. No torch here."""

from workflow_scripts.checking import nearest
from workflow_scripts.errors import UserError
from workflow_scripts.models import encoder_settings, fused_settings
from workflow_scripts.models import settings as model_settings
from workflow_scripts.objectives import masked_settings, sentence_settings
from workflow_scripts.objectives import settings as objective_settings

# Section of the settings -> module -> its settings.
MODULES = {
    "model": model_settings.SETTINGS | fused_settings.SETTINGS | encoder_settings.SETTINGS,
    "objective": objective_settings.SETTINGS | masked_settings.SETTINGS | sentence_settings.SETTINGS,
}


def check_modules(sections: dict[str, dict], gpus: int, where: str) -> None:
    """Check the settings of model and objective, and that with `gpus` > 1 a batch can be divided. Raises UserError."""
    for section, known in MODULES.items():
        module = sections[section]["module"]
        if module not in known:
            raise UserError(
                f"{where}: {section}.module is '{module}', which no SETTINGS under workflow_scripts/{section}s lists; "
                f"{nearest(module, known)}"
            )
        given = model_settings.without_module(sections[section])
        settings = model_settings.read_settings(known[module], given, f"{where}: {section}")
        # Where nothing is said of it, nobody has thought of it.
        indivisible = getattr(settings, "indivisible", lambda: "its settings do not say that one can")
        if gpus > 1 and (why := indivisible()):
            raise UserError(
                f"{where}: training.gpus is {gpus}, but no batch can be divided with {section} {module}: {why}; "
                "set gpus to 1"
            )
