"""The modules of models and objectives that settings may name, and the check of what they are given. No torch here."""

from workflow_scripts.common.errors import UserError
from workflow_scripts.common.validation import nearest
from workflow_scripts.models import encoder_settings, fused_settings
from workflow_scripts.models import settings as model_settings
from workflow_scripts.objectives import masked_settings, sentence_settings
from workflow_scripts.objectives import settings as objective_settings

# Section of the settings -> module -> its settings.
MODULES = {
    "model": model_settings.SETTINGS | fused_settings.SETTINGS | encoder_settings.SETTINGS,
    "objective": objective_settings.SETTINGS | masked_settings.SETTINGS | sentence_settings.SETTINGS,
}


def check_modules(sections: dict[str, dict], where: str) -> None:
    """Check the settings of model and objective. Raises UserError."""
    for section, known in MODULES.items():
        module = sections[section]["module"]
        if module not in known:
            raise UserError(
                f"{where}: {section}.module is '{module}', which no SETTINGS under workflow_scripts/{section}s lists; "
                f"{nearest(module, known)}"
            )
        given = model_settings.without_module(sections[section])
        model_settings.read_settings(known[module], given, f"{where}: {section}")
